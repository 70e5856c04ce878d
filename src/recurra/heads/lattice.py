"""The best path through a chain of labels and the probability of each label, in NumPy float64 on the CPU.

With S_t(a, b) = A_ab + e_t(b), maxima and sums over all paths that end in label b at step t are

    v_t(b) = max_a (v_{t-1}(a) + S_t(a, b))              v_1 = start + e_1
    α_t(b) = log Σ_a exp(α_{t-1}(a) + S_t(a, b))         α_1 = start + e_1

and the maxima give the sums their scale: with α_t = v_t + log r_t,

    r_t(b) = Σ_a r_{t-1}(a) K_t(a, b)                    r_1 = 1
    K_t(a, b) = exp(v_{t-1}(a) + S_t(a, b) - v_t(b))     at most 1, and 1 for the best a

so that all exponentials are taken at once and a step of the sum is a small product. Since 1 ≤ r_t ≤ L^t, nothing
overflows and nothing that counts is lost while L^T is a float64; longer rows go through α_t as it is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.heads import c_lattice

Array: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]

LARGEST_EXPONENT = 690.0  # e^690 is a float64, and e^-745, which is not, times e^690 is nothing beside 1
BLOCK = 1 << 19  # numbers K_t(a, b) held at once: as many as the caches of a CPU hold


class Chain(NamedTuple):
    """Scores of a chain: score(y) = start[y_1] + Σ_t e_t[y_t] + Σ_t A[y_{t-1}, y_t] + end[y_T]; -inf forbids.

    >>> chain = Chain(A=np.array([[0.0, -np.inf], [0.0, 0.0]]), start=np.zeros(2), end=np.zeros(2))
    >>> labels, log_probability = best_path(chain, np.array([[[1.0, 0.0], [0.0, 2.0]]]), np.array([2]))
    >>> labels.tolist()
    [[1, 1]]
    """

    A: NDArray[Any]
    start: NDArray[Any]
    end: NDArray[Any]


def best_path(chain: Chain, emissions: NDArray[Any], lengths: Whole) -> tuple[Whole, Array]:
    """The best labelling of each row, (B, T) with 0 on padding, and its log-probability (B,).

    Scores may be float32 too: they become float64 on the way.

    Of labellings that are equally good, the one whose last label, then last but one, … has the lowest number.

    >>> chain = Chain(A=np.zeros((2, 2)), start=np.zeros(2), end=np.zeros(2))
    >>> labels, log_probability = best_path(chain, np.zeros((1, 3, 2)), np.array([2]))
    >>> labels.tolist(), np.exp(log_probability).round(6).tolist()
    ([[0, 0, 0]], [0.25])
    """
    found = c_lattice.best_path(*chain, emissions, lengths)
    if found is not None:
        return found
    doubled = Chain(*(scores.astype(np.float64) for scores in chain))
    return best_path_in_numpy(doubled, emissions.astype(np.float64), lengths)


def best_path_in_numpy(chain: Chain, emissions: Array, lengths: Whole) -> tuple[Whole, Array]:
    """The same where there is no C compiler."""
    labels = np.zeros(emissions.shape[:2], dtype=np.int64)
    log_p = np.zeros(len(emissions))
    for rows, e in _blocks(emissions, lengths):
        long = lengths[rows]
        v, before = _maxima(chain, e, long)
        y = _traced(chain, v, long)
        labels[rows, : len(e)] = y.T
        last = long - 1, np.arange(len(rows))
        score = (v[last] + chain.end).max(1)
        total = _log_sum(_sums(chain, e, long, v, before)[last] + chain.end)
        log_p[rows] = np.minimum(score - total, 0)  # rounding may put it a little above
    return labels, log_p


def marginals(chain: Chain, emissions: Array, lengths: Whole) -> Array:
    """(B, T, L): the probability of each label at each step, 0 on padding.

    >>> chain = Chain(A=np.zeros((2, 2)), start=np.zeros(2), end=np.array([0.0, -np.inf]))
    >>> marginals(chain, np.zeros((1, 2, 2)), np.array([2])).tolist()
    [[[0.5, 0.5], [1.0, 0.0]]]
    """
    p = np.zeros(emissions.shape)
    backwards = Chain(A=np.ascontiguousarray(chain.A.T), start=chain.end, end=chain.start)
    for rows, e in _blocks(emissions, lengths):
        long = lengths[rows]
        steps = np.arange(len(e))[:, None]
        mirrored = np.where(steps < long, long - 1 - steps, steps), np.arange(len(rows))
        from_start = _sums(chain, e, long, *_maxima(chain, e, long))
        from_end = _sums(backwards, e[mirrored], long, *_maxima(backwards, e[mirrored], long))[mirrored]
        both = from_start + from_end - e  # e_t is in both
        relative = np.exp(both - both.max(2, keepdims=True))
        relative /= relative.sum(2, keepdims=True)
        p[rows, : len(e)] = np.where((steps < long)[:, :, None], relative, 0).transpose(1, 0, 2)
    return p


def filtered(chain: Chain, emissions: Array, before: Array | None = None) -> Array:
    """(T, L): log p of each label at each step given the emissions up to it, log p(y_t | e_1 … e_t).

        log p_t = α_t − log Σ_b exp α_t(b),  α_t(b) = log Σ_a exp(log p_{t−1}(a) + A_ab) + e_t(b),  α_1 = start + e_1

    of one row (T, L). `before` is log p_{t−1}, (L,), or None where the first step is that of the row. The end of the
    row is not known, so that its scores do not count.

    >>> chain = Chain(A=np.array([[0.0, -np.inf], [0.0, 0.0]]), start=np.array([0.0, -np.inf]), end=np.zeros(2))
    >>> np.exp(filtered(chain, np.zeros((2, 2)))).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    found = np.zeros(emissions.shape)
    with np.errstate(divide="ignore"):
        for t, e in enumerate(emissions):
            alpha = chain.start + e if before is None else _log_sum((before[:, None] + chain.A).T) + e
            before = alpha - _log_sum(alpha[None])
            found[t] = before
    return found


def _blocks(emissions: Array, lengths: Whole) -> Iterator[tuple[Whole, Array]]:
    """Rows that are not empty, the longest first, and their emissions (T, rows, L), a few rows at a time."""
    order = np.argsort(-lengths, kind="stable")
    order = order[: int((lengths > 0).sum())]
    while len(order):
        longest = int(lengths[order[0]])
        many = max(1, BLOCK // (longest * emissions.shape[2] ** 2))
        rows, order = order[:many], order[many:]
        yield rows, np.ascontiguousarray(emissions[rows, :longest].transpose(1, 0, 2))


def _running(lengths: Whole, steps: int) -> list[int]:
    """How many rows, of those sorted by length, have each step."""
    counts: list[int] = np.searchsorted(-lengths, -np.arange(steps), side="left").tolist()
    return counts


def _maxima(chain: Chain, e: Array, lengths: Whole) -> tuple[Array, Array]:
    """v, (T, rows, L), and v - e; 0 after the end of a row."""
    v, before = np.zeros(e.shape), np.zeros(e.shape)
    before[0] = chain.start
    v[0] = chain.start + e[0]
    for t, n in enumerate(_running(lengths, len(e))):
        if t:
            np.maximum.reduce(v[t - 1, :n, :, None] + chain.A, axis=1, out=before[t, :n])
            np.add(before[t, :n], e[t, :n], out=v[t, :n])
    return v, before


def _traced(chain: Chain, v: Array, lengths: Whole) -> Whole:
    """The best labels, (T, rows), from the last step to the first."""
    y = np.zeros(v.shape[:2], dtype=np.int64)
    into = np.ascontiguousarray(chain.A.T)
    going_on = 0  # the first rows, which have a step after this one
    for t, n in reversed(list(enumerate(_running(lengths, len(v))))):
        if going_on:
            y[t, :going_on] = (v[t, :going_on] + into[y[t + 1, :going_on]]).argmax(1)
        if n > going_on:
            y[t, going_on:n] = (v[t, going_on:n] + chain.end).argmax(1)
        going_on = n
    return y


def _sums(chain: Chain, e: Array, lengths: Whole, v: Array, before: Array) -> Array:
    """α, (T, rows, L)."""
    running = _running(lengths, len(e))
    if len(e) * math.log(max(e.shape[2], 2)) > LARGEST_EXPONENT:
        alpha = v.copy()
        for t, n in enumerate(running[1:], start=1):
            alpha[t, :n] = _log_sum(alpha[t - 1, :n, :, None] + chain.A) + e[t, :n]
        return alpha
    # Where no path leads to b, all of K_t(·, b) is exp(-inf) = 0. After the end of a row it may be too large; it is
    # not read there.
    scale = np.where(np.isneginf(before[1:]), 0, before[1:])
    with np.errstate(over="ignore"):
        K = np.exp(v[:-1, :, :, None] + chain.A - scale[:, :, None, :])
    r = np.ones((len(e), e.shape[1], 1, e.shape[2]))
    for t, n in enumerate(running[1:], start=1):
        np.matmul(r[t - 1, :n], K[t - 1, :n], out=r[t, :n])
    with np.errstate(divide="ignore"):
        return v + np.log(r[:, :, 0])


def _log_sum(x: Array) -> Array:
    """log Σ exp over the second dimension, -inf where all are."""
    largest = x.max(1, keepdims=True)
    largest = np.where(np.isneginf(largest), 0, largest)
    with np.errstate(divide="ignore"):
        summed: Array = np.log(np.exp(x - largest).sum(1)) + largest[:, 0]
    return summed
