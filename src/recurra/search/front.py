"""The hypotheses that a beam continues, and the choice among what may follow them."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.search.arrays import Array, array_like, at_least_single, falling, is_numpy, largest, numbers_of
from recurra.search.rules import Flags, Ids, Law

Numbers: TypeAlias = NDArray[np.float64]

FEW = 32
"""Up to so many ids that no hypothesis may choose are passed over among the best, which spares a copy of log p."""


class Front(NamedTuple):
    """k hypotheses of each of A sentences, row by row; one that is absent has a log P of -∞."""

    sentences: Ids  # (A,)
    totals: Numbers  # (A, k): log P
    places: Ids  # (A k,): where each lies among what the step before kept
    past: Ids  # (A k, t): the tokens so far; stays empty where no rule asks for them

    @property
    def row_sentences(self) -> Ids:
        return np.repeat(self.sentences, self.totals.shape[1])


class Candidates(NamedTuple):
    """What may follow each of N rows: for each the best few, best first, and those that are forced."""

    log_p: Numbers  # (N, m)
    tokens: Ids  # (N, m)
    lacks: Numbers  # (N, 0 or 1): what coverage takes from the score of each row


class Kept(NamedTuple):
    """The w best continuations of each of A sentences, best first; those that are absent have a log P of -∞."""

    totals: Numbers  # (A, w)
    tokens: Ids  # (A, w)
    rows: Ids  # (A, w): row of the step that each continues


def front_of(sentences: int) -> Front:
    """Where a search begins: one hypothesis for each sentence, without tokens."""
    every = np.arange(sentences)
    return Front(every, np.zeros((sentences, 1)), every, np.zeros((sentences, 0), np.int64))


def candidates(log_p: Array, front: Front, written: int, width: int, law: Law, lack: Array | None) -> Candidates:
    """All that can be among the `width` best continuations; the one place where a search waits for the device."""
    passed_over: list[int] = []
    if not law.is_empty:
        passed_over = law.everywhere(written)
        if not law.is_one_for_all(written) or len(passed_over) > FEW:
            log_p, passed_over = law.allowed(log_p, front.past, front.row_sentences), []
    # One more than can be kept, which shows whether the last of them has an equal with a lower id.
    count = min(log_p.shape[1], width + 1 + len(passed_over))
    values, ids = largest(at_least_single(log_p), count)
    columns = [values, ids]
    if len(law.forced):
        columns.append(log_p[:, array_like(law.forced, log_p)])
    if lack is not None:
        columns.append(lack[:, None])
    numbers = joined(columns)
    best, tokens = numbers[:, :count], numbers[:, count : 2 * count].astype(np.int64)
    in_order(best, tokens, log_p)
    if passed_over:
        best[np.isin(tokens, passed_over)] = -np.inf
    lacks = numbers[:, 2 * count + len(law.forced) :]
    if not len(law.forced):
        return Candidates(best, tokens, lacks)
    forced = numbers[:, 2 * count : 2 * count + len(law.forced)]
    forced[(tokens[:, :, None] == law.forced).any(1)] = -np.inf  # among the best already
    ids_forced = np.broadcast_to(law.forced, forced.shape)
    return Candidates(np.concatenate([best, forced], 1), np.concatenate([tokens, ids_forced], 1), lacks)


def joined(columns: list[Array]) -> Numbers:
    """Columns side by side on the host; a device is waited for once."""
    if is_numpy(columns[0]):
        return np.concatenate([each.astype(np.float64) for each in columns], axis=1)
    import torch

    found: Numbers = torch.cat([each.to(columns[0].dtype) for each in columns], dim=1).cpu().numpy().astype(np.float64)
    return found


def in_order(best: Numbers, tokens: Ids, log_p: Array) -> None:
    """Puts lower ids before higher ones where log p are equal, which topk does not promise."""
    is_tied = ((best[:, 1:] == best[:, :-1]) & (best[:, 1:] > -np.inf)).any(1)
    if is_tied.any():
        rows = np.nonzero(is_tied)[0]
        values, ids = falling(log_p[array_like(rows, log_p)])
        best[rows] = numbers_of(values[:, : best.shape[1]]).astype(np.float64)
        tokens[rows] = numbers_of(ids[:, : best.shape[1]])


def kept_of(front: Front, found: Candidates, width: int, law: Law) -> Kept:
    """The most probable of all candidates of each sentence; of equals, those of better parents."""
    sentences, hypotheses = front.totals.shape
    each = found.log_p.shape[1]
    sums = (front.totals[:, :, None] + found.log_p.reshape(sentences, hypotheses, each)).reshape(sentences, -1)
    order = np.argsort(-sums, axis=1, kind="stable")
    if len(law.forced):
        order = spread(order, sums, met_by(front, found, law).reshape(sums.shape), width)
    order = order[:, :width]
    rows = order // each + np.arange(0, sentences * hypotheses, hypotheses)[:, None]
    return Kept(np.take_along_axis(sums, order, 1), found.tokens[rows, order % each], rows)


def met_by(front: Front, found: Candidates, law: Law) -> Ids:
    """(N, m): how many of the forced tokens each candidate has, its own among them; an end counts as one more."""
    met = law.met(front.past)
    is_new = ((found.tokens[:, :, None] == law.forced) & ~met[:, None]).any(2)
    counts: Ids = met.sum(1)[:, None] + is_new + np.isin(found.tokens, law.ends)
    return counts


def spread(order: Ids, sums: Numbers, met: Ids, width: int) -> Ids:
    """`width` of each row of `order`: first the best with each number of forced tokens, then the second best, ….

    So that hypotheses which have said more of them, and are less probable for it, are not crowded out, nor those
    that could end.

    >>> sums, met = np.array([[-1.0, -2.0, -3.0, -4.0, -5.0]]), np.array([[0, 0, 0, 1, 2]])
    >>> spread(np.array([[0, 1, 2, 3, 4]]), sums, met, 4).tolist()
    [[0, 1, 3, 4]]
    """
    counts = np.take_along_axis(met, order, 1)
    rank = np.zeros_like(order)
    for count in np.unique(counts):
        is_here = counts == count
        rank[is_here] = (is_here.cumsum(1) - 1)[is_here]
    rank[np.take_along_axis(sums, order, 1) == -np.inf] = order.shape[1]
    turns = np.sort(np.argsort(rank, axis=1, kind="stable")[:, :width], axis=1)
    taken: Ids = np.take_along_axis(order, turns, 1)
    return taken


def continued(front: Front, kept: Kept, is_live: Flags, goes_on: Flags, law: Law) -> tuple[Front, Ids, Ids]:
    """The next front, of sentences that go on and hypotheses that live; its last tokens; the rows that it continues.

    Every sentence has as many rows as the one with the most; the others have absent ones after their own.
    """
    totals = np.where(is_live, kept.totals, -np.inf)[goes_on]
    slots = np.argsort(totals == -np.inf, axis=1, kind="stable")[:, : is_live[goes_on].sum(1).max()]
    totals = np.take_along_axis(totals, slots, 1)
    rows = np.take_along_axis(kept.rows[goes_on], slots, 1).ravel()
    tokens = np.take_along_axis(kept.tokens[goes_on], slots, 1).ravel()
    places = (slots + np.nonzero(goes_on)[0][:, None] * kept.totals.shape[1]).ravel()
    past = front.past if law.is_empty else np.concatenate([front.past[rows], tokens[:, None]], axis=1)
    return Front(front.sentences[goes_on], totals, places, past), tokens, rows
