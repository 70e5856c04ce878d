"""The generators of random numbers on which a computation on a device draws: that of the CPU, and its own."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor


def states_of(device: torch.device) -> list[Tensor]:
    """Where they stand."""
    own = [getattr(torch, device.type).get_rng_state(device)] if has_own(device) else []
    return [torch.get_rng_state(), *own]


def unnoticed(device: torch.device) -> AbstractContextManager[None]:
    """Inside, numbers are drawn, and afterwards they go on as if none had been.

    >>> before = torch.get_rng_state()
    >>> with unnoticed(torch.device("cpu")):
    ...     torch.rand(2).shape
    torch.Size([2])
    >>> torch.equal(torch.get_rng_state(), before)
    True
    """
    if has_own(device):
        return torch.random.fork_rng(devices=[device], device_type=device.type)
    return torch.random.fork_rng(devices=[])


def has_own(device: torch.device) -> bool:
    """Whether torch gives the state of a generator of that device, such as cuda and mps.

    >>> has_own(torch.device("meta"))
    False
    """
    return device.type != "cpu" and hasattr(getattr(torch, device.type, None), "get_rng_state")
