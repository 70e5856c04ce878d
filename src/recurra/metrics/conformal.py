"""Split-conformal intervals: widened until they hold as often as they say, by what was seen on held-out data.

For forecasts [lo, hi] of values y that were not trained on (Romano et al. 2019; lo = hi = f for a forecast without an
interval), scores in units of a scale s, such as the usual error of a series,

    E_i = max(lo_i − y_i, y_i − hi_i) / s_i
    Q   = the ⌈(n + 1) c⌉-th smallest of n scores
    [lo − s Q, hi + s Q]                             holds y with a probability of at least c,

and, where no two scores are equal, of at most c + 1/(n + 1), if the new value is exchangeable with those seen.
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
    known = np.sort(scores[~np.isnan(scores)])
    rank = math.ceil(round((len(known) + 1) * coverage, 9))  # 0.9 · 10 is 9, although a float may say 9.000000000000002
    return float(known[rank - 1]) if rank <= len(known) else math.inf


class Calibration(NamedTuple):
    """Q of each step of the horizon and of each column, for every coverage of COVERAGES."""

    quantiles: Floats  # (C, h, d)
    counts: NDArray[np.int64]  # (h, d): the scores that they come from

    @classmethod
    def of(cls, scores: Floats) -> Calibration:
        """From scores (N, h, d).

        >>> found = Calibration.of(np.arange(99.0)[:, None, None])
        >>> found.at(0.9).tolist(), found.counts.tolist()
        ([[89.0]], [[99]])
        """
        _, horizon, width = scores.shape
        found = [
            [[conformal_quantile(scores[:, k, j], c) for j in range(width)] for k in range(horizon)] for c in COVERAGES
        ]
        return cls(np.array(found), (~np.isnan(scores)).sum(0))

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
