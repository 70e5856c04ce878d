"""Whether a model knows how sure it may be: refusing what it was never taught."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import ConfigError, DataError


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
        raise ConfigError(f"rate must be between 0 and 1, such as 0.05, but is {rate!r}.")
    known, unknown = np.sort(_column(inside, "inside")), _column(outside, "outside")
    # 0.29 · 100 is 28.999… in floats, and means 29.
    allowed = math.floor(rate * len(known) + 1e-9)
    return float((unknown < known[allowed]).mean()) if allowed < len(known) else 1.0


def _column(values: ArrayLike, what: str) -> NDArray[np.float64]:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or not column.size:
        raise DataError(f"{what} must have one value per item, but has shape {column.shape}.")
    if np.isnan(column).any():
        raise DataError(f"{what} holds NaN at item {int(np.isnan(column).argmax()) + 1}.")
    return column
