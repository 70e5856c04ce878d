"""The choice of a beam among all that may follow its hypotheses, without waiting for a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from recurra.errors import is_lack_of_memory
from recurra.products.triton_here import has_triton, in_words, say_once, why_no_kernels
from recurra.search.largest import in_order, largest
from recurra.search.running import Notes, Scored

Result = TypeVar("Result")

MOST_NUMBERS = 1 << 15
"""As many of a sentence one program of a kernel holds at most."""

WIDEST = 16
"""Widest beam of which a kernel finds one hypothesis after the other."""

GROUP = 64
"""Numbers of a row whose largest stands for all of them at first."""


FAILURES: list[str] = []
"""Why kernels are no longer tried."""


class Continued(NamedTuple):
    """The w best continuations of each of B sentences, best first; those that are absent have a log P of -∞."""

    kept: Tensor  # (B, w): log P
    chosen: Tensor  # (B, w): the token of each
    parents: Tensor  # (B, w): the hypothesis that each continues
    rows: Tensor  # (B w,): the same among all rows
    live: Tensor  # (B, w): log P of those that have not ended, else -∞


def continued(scored: Scored, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued:
    """The best of what may follow w hypotheses with log P `totals` (B, w), by the scores (B w, V) of their next tokens.

    `closed` (V,) may not be chosen; `is_end` (V,) ends a hypothesis. Of equals, the one with the better parent, then
    the one with the lower id.

    >>> log_p, nothing = torch.tensor([[-1.0, -2.0, -9.0], [-0.5, -2.0, -9.0]]), torch.zeros(3, dtype=torch.bool)
    >>> is_end = torch.tensor([True, False, False])
    >>> found = continued(Scored(log_p), None, torch.tensor([[-1.0, -2.0]]).double(), is_end)
    >>> found.kept.tolist(), found.chosen.tolist(), found.parents.tolist(), found.live.tolist()
    ([[-2.0, -2.5]], [[0, 0]], [[0, 1]], [[-inf, -inf]])
    """
    width, size = totals.shape[1], scored.values.shape[1]
    if fits_a_kernel(width, size):
        found = tried(scored, lambda: by_kernels(scored, closed, totals, is_end))
        if found is not None:
            return found
    return by_torch(scored, closed, totals, is_end)


def most_probable(scored: Scored, closed: Tensor | None) -> tuple[Tensor, Tensor]:
    """The largest log p of each row (N, V) and its token, (N,) each; of equals, the lowest id.

    >>> most_probable(Scored(torch.tensor([[-3.0, -1.0, -3.0]])), torch.tensor([False, True, False]))
    (tensor([-3.]), tensor([0]))
    """
    found = tried(scored, lambda: most_probable_by_kernel(scored, closed))
    if found is not None:
        return found
    log_p = scored.log_p()
    best = (log_p if closed is None else log_p.masked_fill(closed, -torch.inf)).max(1)
    return best.values, best.indices


def most_probable_noted(scored: Scored, closed: Tensor | None, notes: Notes) -> Tensor | None:
    """The most probable token of each row (N,), written down where `notes` say; None where no kernel can."""
    found = tried(scored, lambda: most_probable_by_kernel(scored, closed, notes))
    return None if found is None else found[1]


def tried(scored: Scored, run: Callable[[], Result]) -> Result | None:
    """What kernels find, on a GPU for which there are some."""
    if not has_kernels(scored.values.device):
        return None
    try:
        return run()
    except Exception as error:  # a compiler may be missing, or the GPU too old: Triton has many names for it
        give_up(error)
        return None


def has_kernels(device: torch.device) -> bool:
    """Whether searches on a device run by kernels; where they could and do not, a warning says why, once."""
    if FAILURES:
        return False
    reason = why_no_kernels(device)
    if reason is not None and device.type == "cuda":
        fail(reason)
    return reason is None


def give_up(error: Exception) -> None:
    """Try no kernels again, after one has failed: unless what was lacking is memory."""
    if is_lack_of_memory(error):
        raise error
    fail(in_words(error))


def fail(reason: str) -> None:
    FAILURES.append(reason)
    say_once(f"searches run without kernels, which is slower: {reason}")


def by_kernels(scored: Scored, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued:
    """`continued` by two kernels of Triton."""
    from recurra.search import triton_kernels

    return triton_kernels.continued(with_rows_dense(scored), closed, totals.contiguous(), is_end)


def most_probable_by_kernel(scored: Scored, closed: Tensor | None, notes: Notes | None = None) -> tuple[Tensor, Tensor]:
    """`most_probable` by one kernel of Triton."""
    from recurra.search import triton_kernels

    return triton_kernels.most_probable(with_rows_dense(scored), closed, notes)


def best_answers(
    written: tuple[Tensor, Tensor, Tensor | None],
    divisors: Tensor,
    is_end: Tensor,
    places: Tensor,
    limits: Tensor,
    best: int,
) -> tuple[Tensor, Tensor] | None:
    """What `triton_kernels.answers` finds, on a GPU; None where there is no kernel for it."""
    steps, _, width = written[0].shape
    if best > WIDEST or 2 * steps * width > MOST_NUMBERS or not has_kernels(written[0].device):
        return None
    try:
        from recurra.search import triton_kernels

        return triton_kernels.answers(written, divisors, is_end, places, limits, best)
    except Exception as error:
        give_up(error)
        return None


def with_rows_dense(scored: Scored) -> Scored:
    """The same with the numbers of a row side by side."""
    values = scored.values
    return scored if values.stride(1) == 1 else scored._replace(values=values.contiguous())


def by_torch(scored: Scored, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued:
    """The same in torch's operations."""
    log_p = scored.log_p()
    log_p = log_p if log_p.dtype == torch.float64 else log_p.float()
    sentences, width = totals.shape
    count = min(width, log_p.shape[1])
    values, ids = largest(log_p if closed is None else log_p.masked_fill(closed, -torch.inf), count)
    sums = (totals.unsqueeze(2) + values.reshape(sentences, width, count)).flatten(1)
    kept, order = in_order(sums, width)
    parents, chosen = order // count, ids.reshape(sentences, width * count).gather(1, order)
    rows = parents + torch.arange(0, sentences * width, width, device=log_p.device).unsqueeze(1)
    return Continued(kept, chosen, parents, rows.flatten(), kept.masked_fill(is_end[chosen], -torch.inf))


def empty_continued(totals: Tensor) -> Continued:
    """Room for the continuations of hypotheses (B, w)."""
    ids = [torch.empty_like(totals, dtype=torch.long) for _ in range(3)]
    return Continued(torch.empty_like(totals), ids[0], ids[1], ids[2].flatten(), torch.empty_like(totals))


def fits_a_kernel(width: int, vocabulary: int) -> bool:
    """Whether there is a kernel for such a beam, and Triton to make it."""
    groups = -(-vocabulary // GROUP)
    return width <= WIDEST and 2 * width * groups <= MOST_NUMBERS and has_triton()
