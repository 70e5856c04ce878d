"""The choice of a search as kernels of Triton: two for a beam, one for the most probable token.

Memory: a program of `largest_of_groups` loads some groups of 64 scores of one row and what is closed there, and writes
the largest of each group; where scores are not log p yet, also the largest m of all and Σ exp(o - m), so that log p is
never written. A program of `best_of_sentence` looks at the largest of all groups of the hypotheses of one sentence,
loads the k groups with the largest of each, makes log P of them, and writes the w best. A program of `best_of_row` goes
through a whole row. Each largest is found by two reductions, its value and the least place that has it, so that equals
are in order. A program of `answers_of_sentence` looks through all that a beam has kept of one sentence.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from recurra.products.triton_here import has_triton
from recurra.search.continuing import GROUP, Continued, empty_continued
from recurra.search.running import Notes, Scored

CHUNK = 64
"""So many groups of a row a program of `largest_of_groups` goes through."""

LARGEST_BLOCK = 4096
"""So many numbers of a row a program of `best_of_row` holds at once."""

if has_triton():  # it comes with torch for CUDA
    import triton  # type: ignore[import-not-found,unused-ignore]
    import triton.language as tl  # type: ignore[import-not-found,unused-ignore]

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def in_full(x):  # type: ignore[no-untyped-def]
        """In float32, or in float64."""
        return x if x.dtype == tl.float64 else x.to(tl.float32)

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def least(most):  # type: ignore[no-untyped-def]
        """What is taken from scores before exp: their largest, or 0 where all are -inf."""
        return tl.where(most == float("-inf"), 0.0, most)

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def largest_of_groups(  # type: ignore[no-untyped-def]
        scores,
        closed,
        largest,
        tops,
        sums,
        V,
        row_stride,
        GROUPS,
        CHUNKS,
        GROUP: tl.constexpr,
        CHUNK: tl.constexpr,
        CLOSED: tl.constexpr,
        SUMS: tl.constexpr,
    ):
        row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
        group = chunk * CHUNK + tl.arange(0, CHUNK)
        places = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        x = in_full(tl.load(scores + row * row_stride + places, mask=places < V, other=float("-inf")))
        if SUMS:
            top = tl.max(tl.max(x, 1), 0)
            tl.store(tops + row * CHUNKS + chunk, top)
            tl.store(sums + row * CHUNKS + chunk, tl.sum(tl.sum(tl.exp(x - least(top)), 1), 0))
        if CLOSED:
            x = tl.where(tl.load(closed + places, mask=places < V, other=1) != 0, float("-inf"), x)
        x = tl.where(x != x, float("inf"), x)  # what is no number comes first
        tl.store(largest + row * GROUPS + group, tl.max(x, 1), mask=group < GROUPS)

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def best_of_sentence(  # type: ignore[no-untyped-def]
        scores,
        closed,
        largest,
        tops,
        sums,
        totals,
        is_end,
        kept,
        chosen,
        parents,
        rows,
        live,
        V,
        row_stride,
        GROUPS,
        CHUNKS,
        W: tl.constexpr,
        K: tl.constexpr,
        GROUP: tl.constexpr,
        WP: tl.constexpr,
        KP: tl.constexpr,
        GP: tl.constexpr,
        CP: tl.constexpr,
        CLOSED: tl.constexpr,
        SUMS: tl.constexpr,
    ):
        sentence = tl.program_id(0).to(tl.int64)
        w_at = tl.arange(0, WP)[:, None]
        row = sentence * W + w_at
        # The k groups with the largest numbers, of equals the first ones: the k largest numbers are in them.
        g_at = tl.arange(0, GP)[None, :]
        left = (w_at < W) & (g_at < GROUPS)
        x = tl.load(largest + row * GROUPS + g_at, mask=left, other=float("-inf"))
        k_at = tl.arange(0, KP)[None, :]
        groups = tl.full((WP, KP), 2147483647, tl.int32)
        for k in tl.static_range(K):
            y = tl.where(left, x, float("-inf"))
            most = tl.max(y, 1)[:, None]
            group = tl.min(tl.where(left & (y == most), g_at, 2147483647), 1)[:, None]
            groups = tl.where(k_at == k, group, groups)
            left = left & (g_at != group)
        # Their numbers, as log P.
        is_group = (groups < GROUPS)[:, :, None]
        ids = tl.where(groups < GROUPS, groups, 0)[:, :, None] * GROUP + tl.arange(0, GROUP)[None, None, :]
        open_ = is_group & (ids < V) & (w_at < W)[:, :, None]
        z = in_full(tl.load(scores + row[:, :, None] * row_stride + ids, mask=open_, other=float("-inf")))
        if CLOSED:
            z = tl.where(tl.load(closed + ids, mask=open_, other=1) != 0, float("-inf"), z)
        if SUMS:
            c_at = tl.arange(0, CP)[None, :]
            inside = (w_at < W) & (c_at < CHUNKS)
            of_chunks = tl.load(tops + row * CHUNKS + c_at, mask=inside, other=float("-inf"))
            top = least(tl.max(of_chunks, 1))[:, None]
            whole = tl.load(sums + row * CHUNKS + c_at, mask=inside, other=0.0) * tl.exp(least(of_chunks) - top)
            z = (z - top[:, :, None]) - tl.log(tl.sum(whole, 1))[:, None, None]
        before = tl.load(totals + row, mask=w_at < W, other=0.0)
        z = z.to(tl.float64) + before[:, :, None]
        z = tl.where(z != z, float("inf"), z)
        places = w_at[:, :, None] * V + ids
        for w in tl.static_range(W):
            y = tl.where(open_, z, float("-inf"))
            best = tl.max(tl.max(tl.max(y, 2), 1), 0)
            found = tl.min(tl.min(tl.min(tl.where(open_ & (y == best), places, 2147483647), 2), 1), 0)
            place = tl.minimum(found, W * V - 1)
            own, parent = place % V, place // V
            total = tl.where(best == float("inf"), float("nan"), best)
            at = sentence * W + w
            tl.store(kept + at, total)
            tl.store(chosen + at, own.to(tl.int64))
            tl.store(parents + at, parent.to(tl.int64))
            tl.store(rows + at, sentence * W + parent)
            tl.store(live + at, tl.where(tl.load(is_end + own) != 0, float("-inf"), total))
            open_ = open_ & (places != found)

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def taken_of_row(  # type: ignore[no-untyped-def]
        scores,
        closed,
        values,
        tokens,
        step,
        chosen,
        alive,
        limits,
        is_end,
        V,
        row_stride,
        L,
        at_step,
        BLOCK: tl.constexpr,
        CLOSED: tl.constexpr,
        SUMS: tl.constexpr,
        NOTES: tl.constexpr,
    ):
        """The token that is taken of the row of this program, written down."""
        row = tl.program_id(0).to(tl.int64)
        lanes = tl.arange(0, BLOCK)
        x = in_full(tl.load(scores + row * row_stride + lanes, mask=lanes < V, other=float("-inf")))
        best = tl.full((BLOCK,), float("-inf"), x.dtype)
        place = lanes
        most = best
        total = tl.zeros((BLOCK,), x.dtype)
        for first in range(0, V, BLOCK):
            at = first + lanes
            x = in_full(tl.load(scores + row * row_stride + at, mask=at < V, other=float("-inf")))
            if SUMS:
                larger = tl.maximum(most, x)
                total = total * tl.exp(most - least(larger)) + tl.exp(x - least(larger))
                most = larger
            if CLOSED:
                x = tl.where(tl.load(closed + at, mask=at < V, other=1) != 0, float("-inf"), x)
            x = tl.where(x != x, float("inf"), x)  # what is no number comes first
            is_better = x > best
            best = tl.where(is_better, x, best)
            place = tl.where(is_better, at, place)
        top = tl.max(best, 0)
        token = tl.minimum(tl.min(tl.where(best == top, place, 2147483647), 0), V - 1)
        value = tl.where(top == float("inf"), float("nan"), top)
        if SUMS:
            shift = least(tl.max(most, 0))
            value = (value - shift) - tl.log(tl.sum(total * tl.exp(least(most) - shift), 0))
        tl.store(tokens + row, token.to(tl.int64))
        if NOTES:
            number = tl.load(step) + at_step
            tl.store(values + row * L + number, value.to(tl.float64))
            tl.store(chosen + row * L + number, token.to(tl.int64))
            is_finite = tl.abs(value) < float("inf")
            goes_on = is_finite & (tl.load(is_end + token) == 0) & (number + 1 < tl.load(limits + row))
            tl.store(alive + row, tl.where(goes_on, tl.load(alive + row), 0).to(tl.int8))
        else:
            tl.store(values + row, value)
        return token.to(tl.int64)

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def best_of_row(  # type: ignore[no-untyped-def]
        scores,
        closed,
        values,
        tokens,
        step,
        chosen,
        alive,
        limits,
        is_end,
        V,
        row_stride,
        L,
        at_step,
        BLOCK: tl.constexpr,
        CLOSED: tl.constexpr,
        SUMS: tl.constexpr,
        NOTES: tl.constexpr,
    ):
        taken_of_row(
            scores, closed, values, tokens, step, chosen, alive, limits, is_end, V, row_stride, L, at_step,
            BLOCK, CLOSED, SUMS, NOTES,
        )  # fmt: skip

    @triton.jit  # type: ignore[untyped-decorator,unused-ignore]
    def answers_of_sentence(  # type: ignore[no-untyped-def]
        totals,
        codes,
        lacks,
        divisors,
        is_end,
        places,
        limits,
        ids,
        numbers,
        B,
        L,
        W: tl.constexpr,
        BEST: tl.constexpr,
        NP: tl.constexpr,
        LACKS: tl.constexpr,
    ):
        n = tl.program_id(0).to(tl.int64)
        b, limit = tl.load(places + n), tl.load(limits + n)
        at = tl.arange(0, NP)
        step = at // W
        inside = at < L * W
        place = (step * B + b) * W + at % W
        total = tl.load(totals + place, mask=inside, other=float("-inf"))
        token = tl.load(codes + place, mask=inside, other=0) // W
        score = total / tl.load(divisors + step, mask=inside, other=1.0)
        if LACKS:
            score += tl.load(lacks + place, mask=inside, other=0.0)
        real = inside & (total > float("-inf")) & (step < limit)
        has_ended = tl.load(is_end + token, mask=inside, other=0) != 0
        ended = (real & has_ended).to(tl.int32)
        cut = (real & (step + 1 == limit)).to(tl.int32) - (ended & (step + 1 == limit).to(tl.int32))
        wrong = tl.sum((inside & (total != total)).to(tl.int32), 0)
        for k in tl.static_range(BEST):
            out = ids + (n * BEST + k) * (3 + 2 * L)
            # Those that ended first, then those that were cut off; of equals, the one that was reached first.
            are_ended = tl.max(ended, 0)
            pool = tl.where(are_ended > 0, ended, cut) > 0
            y = tl.where(pool, score, float("-inf"))
            best = tl.max(y, 0)
            found = tl.min(tl.where(pool & (y == best), at, 2147483647), 0)
            is_answer = best > float("-inf")
            found = tl.where(is_answer, found, 0)
            last = found // W
            tl.store(out, tl.where(is_answer, last, -1).to(tl.int64))
            tl.store(out + 1, are_ended.to(tl.int64))
            tl.store(out + 2, wrong.to(tl.int64))
            tl.store(numbers + (n * BEST + k) * 2, tl.load(totals + (last * B + b) * W + found % W))
            tl.store(numbers + (n * BEST + k) * 2 + 1, best)
            slot = (found % W).to(tl.int64)
            for back in range(0, L):
                now = L - 1 - back
                is_on = is_answer & (now <= last)
                code = tl.load(codes + (now * B + b) * W + slot, mask=is_on, other=0)
                tl.store(out + 3 + now, code // W)
                tl.store(out + 3 + L + now, code % W)
                slot = tl.where(is_on, code % W, slot)
            ended = tl.where(at == found, 0, ended)
            cut = tl.where(at == found, 0, cut)


def continued(scored: Scored, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued:
    """What `continuing.continued` finds, by two kernels."""
    scores, has_sums = scored.values, not scored.is_log_p
    sentences, width = totals.shape
    rows, size = scores.shape
    groups = -(-size // GROUP)
    chunk = min(CHUNK, triton.next_power_of_2(groups))
    chunks = -(-groups // chunk)
    dtype = torch.promote_types(scores.dtype, torch.float32)
    largest = scores.new_empty(rows, groups, dtype=dtype)
    tops, sums = scores.new_empty(2, rows, chunks, dtype=dtype) if has_sums else (largest, largest)
    shut = scores if closed is None else closed
    flags = {"GROUP": GROUP, "CLOSED": closed is not None, "SUMS": has_sums}
    sizes = (size, scores.stride(0), groups, chunks)
    largest_of_groups[(rows, chunks)](
        scores, shut, largest, tops, sums, *sizes, CHUNK=chunk, **flags, num_warps=max(1, chunk * GROUP // 1024)
    )
    found = empty_continued(totals)
    padded = triton.next_power_of_2
    k = min(width, groups)
    best_of_sentence[(sentences,)](
        scores,
        shut,
        largest,
        tops,
        sums,
        totals,
        is_end,
        *found,
        *sizes,
        W=width,
        K=k,
        WP=padded(width),
        KP=padded(k),
        GP=padded(groups),
        CP=padded(chunks),
        **flags,
        num_warps=4 if padded(width) * padded(k) < 256 else 8,
    )
    return found


def most_probable(scored: Scored, closed: Tensor | None, notes: Notes | None = None) -> tuple[Tensor, Tensor]:
    """What `continuing.most_probable` finds, by one kernel; with notes, written down there, values among them."""
    scores = scored.values
    tokens = scores.new_empty(len(scores), dtype=torch.long)
    if notes is None:
        values = scores.new_empty(len(scores), dtype=torch.promote_types(scores.dtype, torch.float32))
    else:
        values = notes.gained
    best_of_row[(len(scores),)](*taking(scored, closed, values, tokens, notes), **taking_sizes(scored, closed, notes))
    return values, tokens


def taking(
    scored: Scored, closed: Tensor | None, values: Tensor, tokens: Tensor, notes: Notes | None
) -> tuple[Any, ...]:
    """What `taken_of_row` is called with, in order."""
    scores = scored.values
    into: tuple[Any, ...] = (tokens,) * 5
    if notes is not None:
        alive, is_end = notes.alive.view(torch.int8), notes.is_end.view(torch.int8)
        into = (notes.step, notes.chosen, alive, notes.limits, is_end)
    columns, at = (0, 0) if notes is None else (notes.chosen.shape[1], notes.at)
    shut = scores if closed is None else closed
    return (scores, shut, values, tokens, *into, scores.shape[1], scores.stride(0), columns, at)


def taking_sizes(scored: Scored, closed: Tensor | None, notes: Notes | None) -> dict[str, Any]:
    """And by name."""
    block = min(LARGEST_BLOCK, triton.next_power_of_2(scored.values.shape[1]))
    flags = {"CLOSED": closed is not None, "SUMS": not scored.is_log_p, "NOTES": notes is not None}
    return {"BLOCK": block, **flags, "num_warps": max(1, min(8, block // 256))}


def answers(
    written: tuple[Tensor, Tensor, Tensor | None],
    divisors: Tensor,
    is_end: Tensor,
    places: Tensor,
    limits: Tensor,
    best: int,
) -> tuple[Tensor, Tensor]:
    """The best answers of sentences in some places (n,) of what a beam has written: totals, codes and lacks (L, B, w).

    ids (n, best, 3 + 2 L): the last step, or -1 where there is none; whether it ended; how many totals are no numbers;
    tokens; places continued. And numbers (n, best, 2): log P and the score.
    """
    totals, codes, lacks = written
    L, B, width = totals.shape
    ids = codes.new_empty(len(places), best, 3 + 2 * L)
    numbers = totals.new_empty(len(places), best, 2)
    answers_of_sentence[(len(places),)](
        totals,
        codes,
        totals if lacks is None else lacks,
        divisors,
        is_end,
        places,
        limits,
        ids,
        numbers,
        B,
        L,
        W=width,
        BEST=best,
        NP=triton.next_power_of_2(L * width),
        LACKS=lacks is not None,
        num_warps=max(1, min(8, triton.next_power_of_2(L * width) // 256)),
    )
    return ids, numbers
