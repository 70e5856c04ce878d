"""The kernel by which it is tried whether Triton can compile and launch any (triton_here.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from recurra.products.triton_here import has_triton

if has_triton():  # it comes with torch for CUDA
    import triton  # type: ignore[import-not-found,unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found,unused-ignore]

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def write_doubled(given, into, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.arange(0, BLOCK)
        tl.store(into + at, tl.load(given + at) * 2)


def doubled(given: Tensor) -> Tensor:
    """Twice as many, of a vector whose length is a power of two."""
    into = torch.empty_like(given)
    write_doubled[(1,)](given, into, BLOCK=len(given))
    return into
