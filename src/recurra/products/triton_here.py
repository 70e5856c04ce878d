"""Whether kernels of Triton can run on a device, and in words why not.

Triton comes with torch for CUDA. That it is installed does not say that it works: it compiles a launcher by the C
compiler of the machine, and kernels for one GPU use instructions that another lacks. So a kernel of a line is tried
first, once for each device; and where another fails later, what it was for is computed without kernels from then on,
and a warning says so.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from recurra.errors import EngineError, is_lack_of_memory

LEAST_CAPABILITY = (8, 0)
"""The oldest GPUs that Triton 3.6 compiles for."""


class KernelsError(EngineError):
    """Kernels of Triton failed: the same work, asked for again, is done without them."""


@functools.cache
def has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


@functools.cache
def is_interpreted() -> bool:
    """Whether TRITON_INTERPRET=1 runs kernels on the CPU, to test them."""
    if "TRITON_INTERPRET" not in os.environ or not has_triton():
        return False
    from triton import knobs  # type: ignore[import-not-found,unused-ignore]  # not installed without CUDA

    return bool(knobs.runtime.interpret)


FAILED: dict[tuple[torch.device, Hashable], str] = {}
"""What kernels are no longer used for, and why; None stands for everything."""

TRIED: set[torch.device] = set()
"""Where the trial kernel has run, or failed."""


SAID: set[str] = set()
"""Warnings that have come."""


def why_no_kernels(device: torch.device, of: Hashable = None) -> str | None:
    """Why no kernel of Triton can run on a device, in words; None where they can. of: what they are for.

    >>> why_no_kernels(torch.device("meta"))
    'it runs on a GPU, but the batch is on meta'
    """
    if device.type == "cuda":
        if not has_triton():
            return "Triton, which compiles its kernels, is not installed (pip install triton)"
        capability = torch.cuda.get_device_capability(device)
        if capability < LEAST_CAPABILITY:
            least, own = (".".join(map(str, each)) for each in (LEAST_CAPABILITY, capability))
            return f"Triton needs a GPU of compute capability {least} or newer, and this one has {own}"
    elif device.type != "cpu" or not is_interpreted():
        return f"it runs on a GPU, but the batch is on {device.type}"
    if device not in TRIED and not (device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
        TRIED.add(device)
        if (failure := trial(device)) is not None:
            FAILED[device, None] = failure
    return FAILED.get((device, None)) or FAILED.get((device, of))


def trial(device: torch.device) -> str | None:
    """Compile and launch a kernel of a line; why that failed, if it did."""
    try:
        from recurra.products.triton_trial import doubled

        given = torch.arange(16, dtype=torch.float32, device=device)
        if not torch.equal(doubled(given), 2 * given):
            return "a kernel of Triton that was tried found wrong numbers"
    except Exception as error:  # a compiler may be missing, or Triton not fit torch: it has many names for it
        if not is_lack_of_memory(error):
            return in_words(error)
        TRIED.discard(device)
    return None


def in_words(error: Exception) -> str:
    """What went wrong in Triton, in a line."""
    first = next((line for line in str(error).splitlines() if line.strip()), "no reason given").strip()
    return f"Triton failed ({type(error).__name__}: {first})"


def gave_up(device: torch.device, of: Hashable, what: str, error: Exception) -> str:
    """Use no kernels for something from here on, and say so once; the reason."""
    reason = in_words(error)
    if (device, of) not in FAILED:
        FAILED[device, of] = reason
        say_once(f"{what} runs without its kernels, which is slower: {reason}")
    return reason


def say_once(text: str) -> None:
    """A warning that comes once, in a line of its own on the console."""
    if text not in SAID:
        SAID.add(text)
        warnings.warn(f"recurra: {text}", UserWarning, stacklevel=3)


@contextmanager
def kernels_for(device: torch.device, of: Hashable, what: str) -> Iterator[None]:
    """Inside, kernels are launched: where Triton fails, a KernelsError says so, and they are not used again."""
    try:
        yield
    except Exception as error:
        if not is_of_triton(error):
            raise
        raise KernelsError(
            f"{what}: {gave_up(device, of, what, error)}. The next try does without its kernels."
        ) from error


def is_of_triton(error: BaseException) -> bool:
    """Whether an error came out of Triton: not one of recurra, and no lack of memory."""
    if isinstance(error, EngineError) or (isinstance(error, Exception) and is_lack_of_memory(error)):
        return False
    if type(error).__module__.split(".")[0] == "triton":
        return True
    trace = error.__traceback__
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__")).split(".")[0] == "triton":
            return True
        trace = trace.tb_next
    return False


def can_run(tensor: Tensor, of: Hashable = None) -> bool:
    """Whether kernels of Triton can read a tensor."""
    return why_no_kernels(tensor.device, of) is None
