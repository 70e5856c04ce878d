"""The cost of some rows and its gradient by their scores as one kernel of Triton, which overwrites the scores.

Memory: a program has one row, of both passes where there are two (R-Drop). It reads the row's scores (V) three times,
twice with one pass: for log Σ exp, for the sums of the cost, and to write ∂cost/∂scores where the scores were. Scores
stay in the type in which they were multiplied; all sums are float32. See `cross_entropy._of_rows` for the formulas.
"""

from __future__ import annotations

import torch
from torch import Tensor

from recurra.products.triton_here import has_triton

LARGEST_BLOCK = 4096
"""So many scores a program holds at once."""


if has_triton():  # it comes with torch for CUDA
    import triton  # type: ignore[import-not-found,unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found,unused-ignore]

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def log_sum_of_row(row, size, columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        most = tl.full((), float("-inf"), tl.float32)
        total = tl.full((), 0.0, tl.float32)
        scores = tl.full((), 0.0, tl.float32)
        for first in range(0, size, BLOCK):
            at = first + columns
            x = tl.load(row + at, mask=at < size, other=float("-inf")).to(tl.float32)
            larger = tl.maximum(most, tl.max(x, 0))
            total = total * tl.exp(most - larger) + tl.sum(tl.exp(x - larger), 0)
            scores += tl.sum(tl.where(at < size, x, 0.0), 0)
            most = larger
        return most + tl.log(total), scores

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def cost_and_slopes(  # type: ignore[no-untyped-def]
        one,
        other,
        stride,
        targets,
        other_targets,
        costs,
        size,
        width,
        smoothing,
        alpha,
        ignored,
        IGNORES: tl.constexpr,
        TWO: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        n = tl.program_id(0).to(tl.int64)
        columns = tl.arange(0, BLOCK)
        p_row, q_row = one + n * stride, other + n * stride
        y, z = tl.load(targets + n), tl.load(other_targets + n)
        counts = tl.full((), 1.0, tl.float32)
        z_counts = tl.full((), 1.0, tl.float32)
        if IGNORES:
            counts = tl.where(y == ignored, 0.0, 1.0)
            z_counts = tl.where(z == ignored, 0.0, 1.0)
            y, z = tl.where(y == ignored, 0, y), tl.where(z == ignored, 0, z)
        # Read before the sums, where warps wait for each other: afterwards one overwrites what another would read.
        p_score = tl.load(p_row + y).to(tl.float32)
        p_log, p_scores = log_sum_of_row(p_row, size, columns, BLOCK)
        p_y = p_score - p_log
        share = tl.full((), 1.0, tl.float32)
        if TWO:
            share = share * 0.5
        even = smoothing / size
        p_cost = -share * ((1 - smoothing) * p_y + even * (p_scores - size * p_log))
        q_cost = p_cost
        q_log = p_log
        p_kl = tl.full((), 0.0, tl.float32)
        q_kl = tl.full((), 0.0, tl.float32)
        if TWO:
            q_log, q_scores = log_sum_of_row(q_row, size, columns, BLOCK)
            q_y = tl.load(q_row + z).to(tl.float32) - q_log
            q_cost = -share * ((1 - smoothing) * q_y + even * (q_scores - size * q_log))
            for first in range(0, size, BLOCK):
                at = first + columns
                a = tl.load(p_row + at, mask=at < size, other=0.0).to(tl.float32) - p_log
                b = tl.load(q_row + at, mask=at < size, other=0.0).to(tl.float32) - q_log
                d = tl.where(at < size, a - b, 0.0)
                p_kl += tl.sum(tl.exp(a) * d, 0)
                q_kl -= tl.sum(tl.exp(b) * d, 0)
            p_cost += alpha / 4 * p_kl
            q_cost += alpha / 4 * q_kl
        for first in range(0, width, BLOCK):
            at = first + columns
            real = at < size
            a = tl.load(p_row + at, mask=real, other=float("-inf")).to(tl.float32) - p_log
            p = tl.exp(a)
            slope = share * (p - tl.where(at == y, 1 - smoothing, 0.0) - even)
            if TWO:
                b = tl.load(q_row + at, mask=real, other=float("-inf")).to(tl.float32) - q_log
                q = tl.exp(b)
                d = tl.where(real, a - b, 0.0)
                q_slope = share * (q - tl.where(at == z, 1 - smoothing, 0.0) - even)
                slope += alpha / 4 * (p * (1 - p_kl + d) - q)
                q_slope += alpha / 4 * (q * (1 - q_kl - d) - p)
                tl.store(q_row + at, tl.where(real, q_slope * z_counts, 0.0), mask=at < width)
            tl.store(p_row + at, tl.where(real, slope * counts, 0.0), mask=at < width)
        total = p_cost * counts
        if TWO:
            total += q_cost * z_counts
        tl.store(costs + n, total)


def overwrite(
    scores: list[Tensor], targets: list[Tensor], *, size: int, smoothing: float, r_drop: float, ignored: int | None
) -> Tensor:
    """(C,): the costs of rows (C, V) in one pass or two, of which `size` columns count; scores become gradients."""
    one, other = scores[0], scores[-1]
    (rows, width), stride = one.shape, one.stride(0)
    assert one.stride() == other.stride() == (stride, 1), "rows of both passes lie alike"
    costs = torch.empty(rows, dtype=torch.float32, device=one.device)
    block = min(LARGEST_BLOCK, 1 << (width - 1).bit_length())
    cost_and_slopes[(rows,)](
        one,
        other,
        stride,
        targets[0],
        targets[-1],
        costs,
        size,
        width,
        smoothing,
        r_drop,
        0 if ignored is None else ignored,
        IGNORES=ignored is not None,
        TWO=len(scores) == 2,
        BLOCK=block,
        num_warps=max(1, min(8, block // 256)),
    )
    return costs
