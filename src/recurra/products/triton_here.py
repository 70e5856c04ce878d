"""Whether Triton is installed, which comes with torch for CUDA, and where its kernels run."""

from __future__ import annotations

import functools
import importlib.util

from torch import Tensor


@functools.cache
def has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


@functools.cache
def is_interpreted() -> bool:
    """Whether TRITON_INTERPRET=1 runs kernels on the CPU, to test them."""
    if not has_triton():
        return False
    from triton import knobs  # type: ignore[import-not-found,unused-ignore]  # not installed without CUDA

    return bool(knobs.runtime.interpret)


def can_run(tensor: Tensor) -> bool:
    """Whether kernels of Triton can read a tensor."""
    return has_triton() and (tensor.is_cuda or (is_interpreted() and tensor.device.type == "cpu"))
