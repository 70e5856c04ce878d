"""Whether a persistent kernel has given up: its programs wait for each other, and stop after some seconds of it.

Steps that are launched look at the flag as they begin, without waiting for the GPU, so that they learn of those before
them. Who uses what the last of them has made, or saves it, looks once the GPU has done all of it.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from recurra.errors import EngineError


@functools.cache
def failure_flag(device: str) -> Tensor:
    """One number that a kernel sets when it gives up, the same for all: recorded graphs outlive the memory of their
    steps. It lies in memory of the host that kernels write to directly, so that it is read without waiting for the GPU.
    """
    return torch.zeros(1, dtype=torch.int32, device="cpu", pin_memory=device == "cuda")


def check_waiting(device: str) -> None:
    """Raise an EngineError if a kernel has given up, as far as is known without waiting for the device."""
    failed = failure_flag(device)
    if failed.item():
        failed.zero_()
        raise EngineError(
            "a persistent kernel waited for seconds for its other programs and gave up; its results are wrong. "
            "Something else may keep the GPU busy. Set model.engine = 'vendor' or 'loop', or try again."
        )


def check_done(device: torch.device) -> None:
    """The same of all that was launched: a GPU is waited for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    if device.type in ("cuda", "cpu"):
        check_waiting(device.type)
