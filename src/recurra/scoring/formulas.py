"""Scores as functions of sums: shares, roots, precision and recall."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from recurra.metrics.resampling import Numbers

Sums: TypeAlias = Mapping[str, Numbers]
"""Counts by name, summed over items: (...) or, where an item has L of them, (..., L)."""

Formula: TypeAlias = Callable[[Sums], Numbers]
"""A score as a function of sums, (...) for sums (...): the sums of many samples are given at once."""


def share(part: Numbers, whole: Numbers, *, of_nothing: float = float("nan")) -> Numbers:
    """part / whole, where there is a whole.

    >>> share(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, np.divide(part, whole), of_nothing)


def ratio(part: str, whole: str, *, of_nothing: float = float("nan")) -> Formula:
    """The score part / whole."""
    return lambda sums: share(sums[part], sums[whole], of_nothing=of_nothing)


def root(part: str, whole: str, *, scale: float = 1.0) -> Formula:
    """The score scale · √(part / whole)."""
    return lambda sums: scale * np.sqrt(share(sums[part], sums[whole]))


def perplexity(nats: str, tokens: str) -> Formula:
    """e^(nats per token); infinite where that is more than a float holds."""

    def of(sums: Sums) -> Numbers:
        with np.errstate(over="ignore"):
            return np.exp(share(sums[nats], sums[tokens]))

    return of


def total(name: str) -> Formula:
    """The sum itself."""
    return lambda sums: sums[name]


def found_and_right(prefix: str = "", suffix: str = "", *, of_nothing: float = 0.0) -> dict[str, Formula]:
    """F1, precision and recall from the counts `right`, `gold` and `said` that begin with the prefix."""
    right, gold, said = f"{prefix}right", f"{prefix}gold", f"{prefix}said"
    return {
        f"f1{suffix}": lambda sums: share(2 * sums[right], sums[gold] + sums[said], of_nothing=of_nothing),
        f"precision{suffix}": ratio(right, said, of_nothing=of_nothing),
        f"recall{suffix}": ratio(right, gold, of_nothing=of_nothing),
    }


def macro(prefix: str) -> dict[str, Formula]:
    """Plain means of F1, precision and recall over the kinds that occur or were found: rare ones weigh as much."""

    def mean(score: Formula) -> Formula:
        def over_kinds(sums: Sums) -> Numbers:
            occurs = sums[f"{prefix}gold"] + sums[f"{prefix}said"] > 0
            return share((score(sums) * occurs).sum(-1), occurs.sum(-1), of_nothing=0.0)

        return over_kinds

    return {name: mean(score) for name, score in found_and_right(prefix).items()}
