"""chrF: how many runs of one to six characters an answer shares with its reference."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.references import References, Tokens, check_references

ORDER = 6
BETA = 2
"""Recall weighs so many times as much as precision."""


def chrf(gold: References, predicted: Tokens, *, lowercase: bool = False) -> float:
    """chrF2 of a whole corpus, 0 to 100 (Popović 2015), equal to sacrebleu's.

        chrF = 100 · (1 + β²) P R / (β² P + R)        β = 2

    P and R are the means over n = 1 … 6 of the precision and the recall of runs of n characters, blanks left out; an
    order that one side is too short for does not count. Of several references the one with the best chrF counts.

    >>> chrf([["the cat"]], ["the cart"])
    58.91790473273089
    """
    return float(chrf_of(chrf_counts(gold, predicted, lowercase=lowercase).sum(0)))


def chrf_counts(gold: References, predicted: Tokens, *, lowercase: bool = False) -> NDArray[np.int64]:
    """(N, 18): for each n, the runs of the answer, of the best reference, and those in both.

    >>> chrf_counts([["ab"]], ["abc"])[0, :6].tolist()
    [3, 2, 2, 2, 1, 1]
    """
    check_references(gold, predicted)
    counts = np.zeros((len(gold), 3 * ORDER), np.int64)
    for row, (references, answer) in enumerate(zip(gold, predicted, strict=True)):
        written = _runs(answer.lower() if lowercase else answer)
        rights = [_runs(reference.lower() if lowercase else reference) for reference in references]
        found = np.array([_shared(right, written) for right in rights])
        counts[row] = found[0] if len(found) == 1 else found[chrf_of(found).argmax()]
    return counts


def chrf_of(counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """chrF of counts (..., 18) that were summed over items: (...).

    >>> chrf_of(np.array([3, 2, 2] + [0] * 15)).round(2)
    np.float64(90.91)
    """
    written, right, both = np.moveaxis(counts.reshape(*counts.shape[:-1], ORDER, 3), -1, 0)
    seen = (written > 0) & (right > 0)
    orders = np.maximum(seen.sum(-1), 1)
    precision = np.where(seen, both / np.maximum(written, 1), 0).sum(-1) / orders
    recall = np.where(seen, both / np.maximum(right, 1), 0).sum(-1) / orders
    mean = BETA**2 * precision + recall
    return 100 * ((1 + BETA**2) * precision * recall / np.where(mean > 0, mean, 1))


def _runs(text: str) -> list[Counter[str]]:
    joined = "".join(text.split())
    return [Counter([joined[start : start + n] for start in range(len(joined) + 1 - n)]) for n in range(1, ORDER + 1)]


def _shared(right: list[Counter[str]], written: list[Counter[str]]) -> list[int]:
    counts = []
    for one, other in zip(right, written, strict=True):
        both = sum(min(count, one[run]) for run, count in other.items() if run in one)
        # Runs longer than the whole reference are no mistakes of their own.
        counts += [other.total() if one else 0, one.total(), both]
    return counts
