"""Whether a model knows how sure it may be: calibration, and refusing what it was never taught."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import ConfigError, DataError


@dataclass(frozen=True)
class Bin:
    """The items whose confidence lies between low and high.

    >>> calibration([0.95, 0.93], [True, False])[0].accuracy
    0.5
    """

    low: float
    high: float
    count: int
    confidence: float
    """Their mean confidence: what the model expects its accuracy to be."""
    accuracy: float
    """What it is."""


def calibration(confidence: ArrayLike, right: ArrayLike, bins: int = 10) -> list[Bin]:
    """The items in bins of equal width by their confidence, those bins that have any, the lowest first.

    Bin k holds k / bins ≤ confidence < (k + 1) / bins, and the last holds 1 as well. Confidence and right are (N,).

    >>> for row in calibration([0.55, 0.95, 0.97, 1.0], [False, True, True, True]):
    ...     print(row.low, row.high, row.count, round(row.confidence, 3), row.accuracy)
    0.5 0.6 1 0.55 0.0
    0.9 1.0 3 0.973 1.0
    """
    if not isinstance(bins, int) or isinstance(bins, bool) or bins < 1:
        raise ConfigError(f"bins must be a whole number of at least 1, but is {bins!r}.")
    sure, flags = _column(confidence, "confidence"), _column(right, "right")
    if len(sure) != len(flags):
        raise DataError(f"confidence has {len(sure)} items but right has {len(flags)}: each item needs both.")
    beyond = np.flatnonzero((sure < 0) | (sure > 1))
    if beyond.size:
        raise DataError(f"a confidence lies between 0 and 1, but item {beyond[0] + 1} has {sure[beyond[0]]}.")
    edges = np.arange(bins + 1) / bins
    place = np.minimum(np.searchsorted(edges, sure, side="right") - 1, bins - 1)
    return [
        Bin(
            low=float(edges[k]),
            high=float(edges[k + 1]),
            count=int((place == k).sum()),
            confidence=float(sure[place == k].mean()),
            accuracy=float(flags[place == k].mean()),
        )
        for k in np.unique(place)
    ]


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = 10) -> float:
    """How far confidence and accuracy lie apart, in the mean over items (Guo et al. 2017).

        ECE = Σ_k (n_k / N) |accuracy_k - confidence_k|

    >>> round(expected_calibration_error([0.8, 0.8, 0.6, 0.6], [True, True, True, False]), 3)
    0.15
    """
    rows = calibration(confidence, right, bins)
    return sum(row.count * abs(row.accuracy - row.confidence) for row in rows) / sum(row.count for row in rows)


def recall_at_false_alarms(inside: ArrayLike, outside: ArrayLike, rate: float = 0.05) -> float:
    """The share of items out of scope that are refused when at most this rate of the items in scope is.

    Whatever has a confidence below a threshold is refused. A false alarm is an item in scope that is refused, and the
    threshold is the highest with at most ⌊rate · N⌋ of them among the N confidences inside:

        threshold = the confidence inside at place ⌊rate · N⌋ + 1, the lowest first
        recall = (1 / M) Σ_j [outside_j < threshold]

    Equal confidences stand and fall together, so that fewer than the rate may be refused. With rate = 1 all are.

    >>> recall_at_false_alarms([0.5, 0.7, 0.9, 0.95], [0.2, 0.6, 0.8], 0.25)
    0.6666666666666666
    """
    if not 0 <= rate <= 1:
        raise ConfigError(f"rate must be a share between 0 and 1, such as 0.05, but is {rate!r}.")
    known, unknown = np.sort(_column(inside, "inside")), _column(outside, "outside")
    # 0.29 · 100 is 28.999… in floats, and means 29.
    allowed = math.floor(rate * len(known) + 1e-9)
    return float((unknown < known[allowed]).mean()) if allowed < len(known) else 1.0


def _column(values: ArrayLike, what: str) -> NDArray[np.float64]:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or not column.size:
        raise DataError(f"{what} must be a column with a value for each item, but has the shape {column.shape}.")
    if np.isnan(column).any():
        raise DataError(f"{what} holds NaN at item {int(np.isnan(column).argmax()) + 1}.")
    return column
