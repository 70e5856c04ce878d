"""What a training computes on: device, threads and type of numbers, or a sentence why it cannot."""

from __future__ import annotations

import os
import warnings

import torch

from recurra.config import Training
from recurra.errors import ConfigError
from recurra.padding import longest
from recurra.products.triton_here import why_no_kernels
from recurra.settings import SettingError, about
from recurra.training.processes import Processes

MOST_THREADS = 256
"""Threads that any system can start; a machine with many cores may have more."""


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


def device_of(training: Training, processes: Processes | None = None) -> torch.device:
    """The device that a config file means; of several processes on a machine, each has a GPU of its own."""
    wanted = training.device
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    if processes is not None and not processes.is_one and wanted != "cpu":
        wanted = own_gpu(wanted, processes.local_rank, processes.local_size)
    with about("training", "device"):
        device = usable_device(wanted, f"training.device = '{training.device}'")
    if training.precision == "float16" and device.type != "cuda":
        raise SettingError(
            "training.precision = 'float16' needs a GPU; on the CPU use 'bfloat16' or 'float32'.",
            ("training", "precision"),
        )
    if training.precision == "float64" and longest(device) != torch.float64:
        raise SettingError(
            f"training.precision = 'float64' needs a device that has float64, and {device.type} has not: use "
            f"'float32', or training.device = 'cpu'.",
            ("training", "precision"),
        )
    return device


def own_gpu(wanted: str, rank: int, processes: int) -> str:
    """The GPU of one of several processes on this machine."""
    if wanted != "cuda":
        raise SettingError(
            f"training.device = '{wanted}' is one device, but there are {processes} processes: use 'cuda', of "
            f"which each takes one, or 'cpu'.",
            ("training", "device"),
        )
    if torch.cuda.is_available() and (found := torch.cuda.device_count()) < processes:
        few = "there is 1 here: train in one process" if found == 1 else f"there are {found} here: train in as many"
        raise SettingError(
            f"{processes} processes need a GPU each, but {few}, or with training.device = 'cpu' (--device cpu).",
            ("training", "device"),
        )
    return f"cuda:{rank}"


def slower_without_kernels(device: torch.device) -> str | None:
    """What is said of a GPU that runs none of recurra's kernels; None where it does, or there is no GPU."""
    reason = why_no_kernels(device) if device.type == "cuda" else None
    return None if reason is None else f"training runs without kernels of recurra, which is slower: {reason}"


def dtype_of(training: Training) -> torch.dtype:
    return torch.float64 if training.precision == "float64" else torch.float32


def set_up_torch(training: Training, device: torch.device, processes: Processes) -> None:
    """Threads, and the same numbers each time."""
    # oneDNN keeps what it compiled for each of 1024 shapes, and batches have many: hundreds of MB, and no speed.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
    if training.threads is not None:
        most = max(MOST_THREADS, 4 * (os.cpu_count() or 1))
        if training.threads > most:
            raise SettingError(
                f"training.threads must be at most {most} on this machine, but is {training.threads}: more threads "
                f"than the system can start end the process.",
                ("training", "threads"),
            )
        torch.set_num_threads(training.threads)
    elif processes.local_size > 1 and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // processes.local_size))
    if device.type == "cuda":
        if not processes.is_one:
            torch.cuda.set_device(device)
        torch.use_deterministic_algorithms(training.deterministic, warn_only=True)
        # Else torch fills all memory that is not: a third of all kernels of a step.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cuda.matmul.allow_tf32 = training.precision == "tf32"
