"""The choice of a beam among all that may follow its hypotheses, without waiting for a device."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from recurra.products.triton_here import has_triton
from recurra.search.largest import in_order, largest

MOST_CANDIDATES = 4096
"""As many of a sentence are compared by one program of a kernel at most."""

WIDEST = 16
"""Widest beam of which a kernel finds one hypothesis after the other."""

KERNEL_BLOCK = 1024
"""As many numbers of a row are looked through by one program of a kernel."""


FAILURES: list[str] = []
"""Why kernels are no longer tried."""


class Continued(NamedTuple):
    """The w best continuations of each of B sentences, best first; those that are absent have a log P of -∞."""

    kept: Tensor  # (B, w): log P
    chosen: Tensor  # (B, w): the token of each
    parents: Tensor  # (B, w): the hypothesis that each continues
    rows: Tensor  # (B w,): the same among all rows
    live: Tensor  # (B, w): log P of those that have not ended, else -∞


def continued(log_p: Tensor, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued:
    """The best of what may follow w hypotheses with log P `totals` (B, w), by log p (B w, V) of their next tokens.

    `closed` (V,) may not be chosen; `is_end` (V,) ends a hypothesis. Of equals, the one with the better parent, then
    the one with the lower id.

    >>> log_p, nothing = torch.tensor([[-1.0, -2.0, -9.0], [-0.5, -2.0, -9.0]]), torch.zeros(3, dtype=torch.bool)
    >>> found = continued(log_p, None, torch.tensor([[-1.0, -2.0]]).double(), torch.tensor([True, False, False]))
    >>> found.kept.tolist(), found.chosen.tolist(), found.parents.tolist(), found.live.tolist()
    ([[-2.0, -2.5]], [[0, 0]], [[0, 1]], [[-inf, -inf]])
    """
    log_p = log_p if log_p.dtype == torch.float64 else log_p.float()
    found = tried(log_p, closed, totals, is_end)
    return by_torch(log_p, closed, totals, is_end) if found is None else found


def most_probable(log_p: Tensor, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> tuple[Tensor, Tensor]:
    """The largest log p of each row (N, V) and its token, (N,) each; of equals, the lowest id. `totals` (N, 1) are 0.

    >>> zero, never = torch.zeros(1, 1).double(), torch.tensor([False, True, False])
    >>> most_probable(torch.tensor([[-3.0, -1.0, -3.0]]), never, zero, never)
    (tensor([-3.]), tensor([0]))
    """
    found = tried(log_p if log_p.dtype == torch.float64 else log_p.float(), closed, totals, is_end)
    if found is not None:
        return found.kept.squeeze(1), found.chosen.squeeze(1)
    best = (log_p if closed is None else log_p.masked_fill(closed, -torch.inf)).max(1)
    return best.values, best.indices


def tried(log_p: Tensor, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued | None:
    """What the kernels find, on a GPU for which there are some."""
    if not log_p.is_cuda or FAILURES or not fits_a_kernel(totals.shape[1], log_p.shape[1]):
        return None
    try:
        return by_kernels(log_p, closed, totals, is_end)
    except Exception as error:  # a compiler may be missing, or the GPU too old: Triton has many names for it
        FAILURES.append(f"Triton failed ({type(error).__name__}: {error})")
        return None


def by_kernels(log_p: Tensor, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued:
    """The same by two kernels of Triton."""
    from recurra.search import triton_kernels

    return triton_kernels.continued(log_p.contiguous(), closed, totals.contiguous(), is_end)


def by_torch(log_p: Tensor, closed: Tensor | None, totals: Tensor, is_end: Tensor) -> Continued:
    """The same in torch's operations."""
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
    candidates = width * min(width, vocabulary) * -(-vocabulary // KERNEL_BLOCK)
    return width <= WIDEST and candidates <= MOST_CANDIDATES and has_triton()
