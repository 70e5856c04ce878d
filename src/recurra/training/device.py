"""The device to compute on, or a sentence why it cannot be used."""

from __future__ import annotations

import warnings

import torch

from recurra.errors import ConfigError


def usable_device(wanted: str, said: str) -> torch.device:
    """The device of this name; `said` is how the user gave it, such as "--device 'cuda'".

    >>> usable_device("cpu", "--device 'cpu'")
    device(type='cpu')
    """
    try:
        device = torch.device(wanted)
        if device.type == "cuda" and not torch.cuda.is_available():
            build = "" if torch.version.cuda else " This build of torch is for the CPU alone."
            raise ConfigError(f"{said} cannot be used: no GPU here (torch sees none): use --device cpu.{build}")
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            last = torch.cuda.device_count() - 1
            raise ConfigError(f"{said} cannot be used: the GPUs here are cuda:0 to cuda:{last}.")
        if device.type == "mps" and not torch.backends.mps.is_available():
            raise ConfigError(f"{said} cannot be used: torch sees no GPU of Apple here: use --device cpu.")
        torch.zeros(1, device=device).cpu()  # what only has shapes, as the device meta, cannot give them back
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"{said} cannot be used: {str(error).splitlines()[0]}") from error
    if device.type == "mps":
        warnings.warn(
            "recurra: the device mps is untested: nobody has run it. Compare what it answers with --device cpu.",
            RuntimeWarning,
            stacklevel=2,
        )
    return device
