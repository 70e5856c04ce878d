"""The choice of a beam as two kernels of Triton.

Memory: a program of `largest_of_block` loads one block of one row of log p and what is closed there, keeps both in
registers, and writes its k largest and their ids. A program of `best_of_sentence` loads these for all hypotheses of one
sentence, adds the hypotheses' totals, and writes the w best. Each largest is found by two reductions, its value and the
least place that has it, so that equals are in order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from recurra.products.triton_here import has_triton
from recurra.search.continuing import KERNEL_BLOCK, Continued, empty_continued

if has_triton():  # it comes with torch for CUDA
    import triton  # type: ignore[import-not-found,unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found,unused-ignore]

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def largest_of_block(  # type: ignore[no-untyped-def]
        log_p, closed, values, ids, V, row_stride, BLOCKS, K: tl.constexpr, BLOCK: tl.constexpr, CLOSED: tl.constexpr
    ):
        row, block = tl.program_id(0), tl.program_id(1)
        places = block * BLOCK + tl.arange(0, BLOCK)
        left = places < V
        x = tl.load(log_p + row.to(tl.int64) * row_stride + places, mask=left, other=float("-inf"))
        if CLOSED:
            x = tl.where(tl.load(closed + places, mask=left, other=1) != 0, float("-inf"), x)
        x = tl.where(x != x, float("inf"), x)  # what is no number comes first
        out = (row.to(tl.int64) * BLOCKS + block) * K
        for k in tl.static_range(K):
            y = tl.where(left, x, float("-inf"))
            best = tl.max(y, 0)
            place = tl.min(tl.where(left & (y == best), places, 2147483647), 0)
            tl.store(values + out + k, tl.where(best == float("inf"), float("nan"), best))
            tl.store(ids + out + k, tl.minimum(place, V - 1))
            left = left & (places != place)

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def best_of_sentence(  # type: ignore[no-untyped-def]
        values,
        ids,
        totals,
        is_end,
        kept,
        chosen,
        parents,
        rows,
        live,
        W: tl.constexpr,
        C: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        sentence = tl.program_id(0)
        places = tl.arange(0, BLOCK)
        left = places < W * C
        found = sentence.to(tl.int64) * (W * C) + places
        x = tl.load(values + found, mask=left, other=float("-inf")).to(tl.float64)
        x += tl.load(totals + sentence * W + places // C, mask=left, other=0.0)
        x = tl.where(x != x, float("inf"), x)
        token = tl.load(ids + found, mask=left, other=0)
        for w in tl.static_range(W):
            y = tl.where(left, x, float("-inf"))
            best = tl.max(y, 0)
            place = tl.min(tl.where(left & (y == best), places, BLOCK), 0)
            own = tl.sum(tl.where(places == place, token, 0), 0)
            total = tl.where(best == float("inf"), float("nan"), best)
            at = sentence * W + w
            tl.store(kept + at, total)
            tl.store(chosen + at, own.to(tl.int64))
            tl.store(parents + at, (place // C).to(tl.int64))
            tl.store(rows + at, (sentence * W + place // C).to(tl.int64))
            tl.store(live + at, tl.where(tl.load(is_end + own) != 0, float("-inf"), total))
            left = left & (places != place)


def continued(log_p: Tensor, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued:
    """What `continuing.continued` finds, by two kernels."""
    sentences, width = totals.shape
    rows, size = log_p.shape
    k, blocks = min(width, size), -(-size // KERNEL_BLOCK)
    values, ids = log_p.new_empty(rows, blocks * k), is_end.new_empty(rows, blocks * k, dtype=torch.int32)
    largest_of_block[(rows, blocks)](
        log_p,
        log_p if closed is None else closed,
        values,
        ids,
        size,
        log_p.stride(0),
        blocks,
        K=k,
        BLOCK=KERNEL_BLOCK,
        CLOSED=closed is not None,
        num_warps=4,
    )
    found = empty_continued(totals)
    best_of_sentence[(sentences,)](
        values,
        ids,
        totals,
        is_end,
        *found,
        W=width,
        C=blocks * k,
        BLOCK=triton.next_power_of_2(width * blocks * k),
        num_warps=4,
    )
    return found
