"""Split-conformal intervals: widened until they hold as often as they say, by what was seen on held-out data.

For forecasts [lo, hi] of values y that were not trained on (Romano et al. 2019; lo = hi = f for a forecast without an
interval), scores in units of a scale s, such as the usual error of a series,

    E_i = max(lo_i − y_i, y_i − hi_i) / s_i
    Q   = the ⌈(n + 1) c⌉-th smallest of n scores
    [lo − s Q, hi + s Q]                             holds y with a probability of at least c,

and, where no two scores are equal, of at most c + 1/(n + 1), if the new value is exchangeable with those seen.

Values of a few months or days that lie beside each other are not: a lively summer makes all of them lively, in every
series. What can be exchangeable are blocks of time as long as the horizon. Conformal prediction gives the place of the
one block more, which was not seen, to the worst, ∞; with B blocks no interval of a coverage above B/(B + 1) would then
be finite. A model that predicts a distribution says itself what that block would hold. With F̂ the share of the scores
seen (of n + 1) and F' of those that the model expects, for values drawn from its own distribution,

    Q   = the least q with  w F̂(q) + (1 − w) F'(q) ≥ c,          w = B/(B + 1)

which is the mean of a Dirichlet process that believes the model as much as one block (Ferguson 1973). With many blocks
it is the conformal Q. Where the model is right, the coverage is c for any B; where it is wrong, F' ≤ 1 still gives

    F(Q) ≥ c − (1 − c)/B                                           F: the distribution of the scores

of what is seen: with two blocks at least 85 % in place of 90.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

Floats = NDArray[np.float64]

COVERAGES = tuple(percent / 100 for percent in range(1, 100))
"""For which Q is kept."""

GOLDEN = (math.sqrt(5) - 1) / 2


def conformal_scores(low: Floats, high: Floats, gold: Floats, scale: Floats) -> Floats:
    """E of each value; NaN where it is not known.

    >>> low, high = np.array([0.0, 0.0]), np.array([1.0, 1.0])
    >>> conformal_scores(low, high, np.array([3.0, 0.5]), np.array([2.0, 1.0])).tolist()
    [1.0, -0.5]
    """
    return np.asarray(np.maximum(low - gold, gold - high) / scale, np.float64)


def conformal_quantile(scores: Floats, coverage: float) -> float:
    """The ⌈(n + 1) c⌉-th smallest score; ∞ where n is too small to say; NaN is left out.

    >>> conformal_quantile(np.arange(1.0, 20.0), 0.9), conformal_quantile(np.arange(1.0, 9.0), 0.9)
    (18.0, inf)
    """
    [found] = conformal_quantiles(scores, [coverage])
    return float(found)


def conformal_quantiles(scores: Floats, coverages: Sequence[float] = COVERAGES) -> Floats:
    """(C,): the same for several coverages."""
    known = np.sort(scores[~np.isnan(scores)])
    # 0.9 · 10 is 9, although a float may say 9.000000000000002.
    ranks = np.ceil(np.round((len(known) + 1) * np.array(coverages), 9)).astype(np.int64)
    return np.append(known, math.inf)[np.minimum(ranks - 1, len(known))]


def mixed_quantiles(scores: Floats, expected: Floats, blocks: float) -> Floats:
    """(C,): Q for every coverage of COVERAGES, from scores seen in so many blocks and those that a model expects.

    >>> seen, said = np.arange(1.0, 100.0), np.arange(101.0, 200.0)
    >>> mixed_quantiles(seen, said, 9.0)[[49, 89]].tolist()       # 0.9 F̂ = 0.5 and, 0.9 and more not being seen, F'
    [56.0, 109.0]
    """
    seen = scores[~np.isnan(scores)]
    share = blocks / (blocks + 1) if math.isfinite(blocks) else 1.0
    weights = np.repeat([share / (len(seen) + 1), (1 - share) / max(1, len(expected))], [len(seen), len(expected)])
    both = np.concatenate([seen, expected])
    order = np.argsort(both, kind="stable")
    reached = np.searchsorted(np.cumsum(weights[order]), np.array(COVERAGES) - 1e-9)
    return np.append(both[order], math.inf)[reached]


def evenly(first: int, count: int) -> Floats:
    """(n,): shares between 0 and 1, of which any that follow on each other are spread evenly: multiples of φ.

    >>> evenly(0, 3).round(3).tolist(), evenly(1, 2).round(3).tolist()
    ([0.5, 0.118, 0.736], [0.118, 0.736])
    """
    return np.asarray((0.5 + np.arange(first, first + count) * GOLDEN) % 1.0, np.float64)


def drawn_from(fan: Floats, levels: Floats, shares: Floats) -> Floats:
    """(O, h, d): the quantiles at shares (O,), one for each origin, of distributions with the quantiles (O, h, L, d).

    Between two levels they are interpolated, beyond the outer ones tails fall off exponentially, as those of
    `densities.quantiles`.

    >>> fan = np.array([0.0, 1.0, 3.0])[None, None, :, None].repeat(3, 0)
    >>> levels = np.array([0.25, 0.5, 0.75])
    >>> drawn_from(fan, levels, np.array([0.375, 0.25 / np.e, 1 - 0.25 / np.e])).ravel().round(6).tolist()
    [0.5, -1.0, 5.0]
    """
    after = np.clip(np.searchsorted(levels, shares), 1, len(levels) - 1)
    row = np.arange(len(shares))
    low, high = fan[row, :, after - 1], fan[row, :, after]
    low_level, high_level = levels[after - 1], levels[after]
    slope = (high - low) / (high_level - low_level)[:, None, None]
    below, above = (np.minimum(shares / levels[0], 1.0), np.minimum((1 - shares) / (1 - levels[-1]), 1.0))
    tails = levels[0] * np.log(below) - (1 - levels[-1]) * np.log(above)
    inside = np.clip(shares, levels[0], levels[-1]) - low_level
    return np.asarray(low + slope * (inside + tails)[:, None, None], np.float64)


class Calibration(NamedTuple):
    """Q of each step of the horizon and of each column, for every coverage of COVERAGES."""

    quantiles: Floats  # (C, h, d)
    counts: NDArray[np.int64]  # (h, d): the scores that they come from

    @classmethod
    def of(cls, scores: Floats, expected: Floats | None = None, blocks: float = math.inf) -> Calibration:
        """From scores (N, h, d); of some blocks of time, with those that the model expects, (M, h, d).

        >>> found = Calibration.of(np.arange(99.0)[:, None, None])
        >>> found.at(0.9).tolist(), found.counts.tolist()
        ([[89.0]], [[99]])
        """
        _, horizon, width = scores.shape
        found = np.empty((len(COVERAGES), horizon, width))
        for k, j in np.ndindex(horizon, width):
            if expected is None:
                found[:, k, j] = conformal_quantiles(scores[:, k, j])
            else:
                found[:, k, j] = mixed_quantiles(scores[:, k, j], expected[:, k, j], blocks)
        return cls(found, (~np.isnan(scores)).sum(0))

    @property
    def horizon(self) -> int:
        return len(self.counts)

    def at(self, coverage: float) -> Floats:
        """(h, d): Q for one coverage; between two that are kept, that of the larger one."""
        number = min(math.ceil(round(coverage * 100, 6)), len(COVERAGES)) - 1
        found = self.quantiles[number]
        if not np.isfinite(found).all():
            few = int(self.counts.min())
            needed = math.ceil(round(COVERAGES[number] / (1 - COVERAGES[number]), 6))
            raise DataError(
                f"decoding.coverage = {coverage:g} needs at least {needed} forecasts of each step on the validation "
                f"data, but there were {few}. Train with more validation data or a smaller evaluation.stride, or ask "
                f"for less coverage."
            )
        return np.asarray(found, np.float64)

    @property
    def spread(self) -> Floats:
        """(h, d): how far the score that nine of ten do not exceed lies above the median; a unit to move Q by.

        >>> float(Calibration.of(np.arange(99.0)[:, None, None]).spread[0, 0])
        40.0
        """
        high, median = self.quantiles[COVERAGES.index(0.9)], self.quantiles[COVERAGES.index(0.5)]
        return np.where(np.isfinite(high) & np.isfinite(median), high - median, 0.0)

    def to_json(self) -> dict[str, Any]:
        quantiles = [
            [[q if math.isfinite(q) else None for q in row] for row in each] for each in self.quantiles.tolist()
        ]
        return {"quantiles": quantiles, "counts": self.counts.tolist()}

    @classmethod
    def from_json(cls, given: Mapping[str, Sequence[Any]]) -> Calibration:
        """What `to_json` gave; a ValueError, TypeError or KeyError where it is something else.

        >>> again = Calibration.from_json(Calibration.of(np.zeros((3, 2, 1))).to_json())
        >>> again.horizon, float(again.quantiles[98, 0, 0])
        (2, inf)
        """
        quantiles = np.array(
            [[[math.inf if q is None else float(q) for q in row] for row in each] for each in given["quantiles"]]
        )
        counts = np.array(given["counts"], np.int64)
        if quantiles.shape != (len(COVERAGES), *counts.shape) or counts.ndim != 2:
            raise ValueError("the quantiles of each coverage, step and column do not fit their counts")
        return cls(quantiles, counts)
