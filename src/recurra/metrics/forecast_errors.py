"""Errors of forecasts: scaled by the history of their series, relative, of quantiles and of drawn paths.

y actual values, f forecasts; O origins, h the horizon, d the values of a step, L levels, n paths.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.forecasts import Futures, Origins, Values

Floats: TypeAlias = NDArray[np.float64]

LEVELS = tuple(step / 20 for step in range(1, 20))
"""Shares of the quantiles by which forecasts of distributions are scored: 0.05, 0.10, … 0.95."""

NEAR_ZERO = 1e-6
"""Actual values below this share of their series' mean size are nearly 0: a percentage of them says nothing."""


def naive_errors(
    values: Values, origins: Origins, season: int = 1, *, power: int = 1, recent: int | None = None
) -> Floats:
    """(O, d): the mean of |y_t − y_{t−m}|^power over the steps before each origin; NaN if there are none, or it is 0.

    It is the scale of MASE (power 1) and the square of that of RMSSE (power 2). With `recent`, the mean is over the
    last so many steps.

    >>> naive_errors(np.array([[1.0], [3.0], [4.0], [9.0]]), np.array([1, 2, 3]), 1)[:, 0].tolist()
    [nan, 2.0, 1.5]
    """
    season = max(1, season)
    if len(values) <= season:
        return np.full((len(origins), values.shape[1]), np.nan)
    apart = np.abs(values[season:] - values[:-season]) ** power
    is_known = ~np.isnan(apart)
    nothing = np.zeros((1, values.shape[1]))
    sums = np.concatenate([nothing, np.where(is_known, apart, 0.0).cumsum(0)])
    counts = np.concatenate([nothing, is_known.cumsum(0)])
    last = np.clip(origins - season, 0, len(apart))
    first = np.zeros_like(last) if recent is None else np.maximum(0, last - recent)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (sums[last] - sums[first]) / (counts[last] - counts[first])
    # The errors of what repeats itself exactly are rounding errors.
    size = np.nanmean(np.abs(values), axis=0) ** power if (~np.isnan(values)).any(0).all() else np.zeros(1)
    return np.where(found > 1e-12 * size, found, np.nan)


def percentage_errors(gold: Futures, found: Futures) -> Futures:
    """100 |y − f| / |y|, in percent; NaN where y is 0 or nearly 0.

    >>> percentage_errors(np.array([[[2.0], [0.0]]]), np.array([[[3.0], [1.0]]]))[0, :, 0].tolist()
    [50.0, nan]
    """
    is_near = is_near_zero(gold)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.where(is_near, np.nan, 100 * np.abs(gold - found) / np.abs(gold))


def is_near_zero(gold: Futures) -> NDArray[np.bool_]:
    """Where an actual value is 0, or nearly 0 beside the others of its column."""
    sizes = np.abs(gold)
    mean = np.nanmean(sizes, axis=tuple(range(gold.ndim - 1))) if (~np.isnan(gold)).any() else np.zeros(gold.shape[-1])
    return np.asarray(sizes <= NEAR_ZERO * mean, np.bool_)


def symmetric_percentage_errors(gold: Futures, found: Futures) -> Futures:
    """200 |y − f| / (|y| + |f|), in percent, as M4 counts it; 0 where both are 0.

    >>> symmetric_percentage_errors(np.array([[[2.0], [0.0]]]), np.array([[[3.0], [0.0]]]))[0, :, 0].tolist()
    [40.0, 0.0]
    """
    size = np.abs(gold) + np.abs(found)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(size == 0, 0.0, 200 * np.abs(gold - found) / size)


def pinball(quantiles: Floats, gold: Floats, levels: Floats) -> Floats:
    """(..., L): (1{y < q} − u) (q − y) of quantiles (..., L) at levels u of values y (...).

    >>> pinball(np.array([1.0, 1.0]), np.array(3.0), np.array([0.1, 0.9])).tolist()
    [0.2, 1.8]
    """
    apart = gold[..., None] - quantiles
    return np.maximum(levels * apart, (levels - 1) * apart)


def crps_of_paths(paths: Floats, gold: Floats) -> Floats:
    """(...): the CRPS of drawn values (n, ...), E|X − y| − ½ E|X − X′|, for values y (...).

    The second mean is over pairs of different paths, so that few paths are not taken for a narrow distribution.

    >>> crps_of_paths(np.array([0.0, 2.0]), np.array(1.0)).item()
    0.0
    """
    count = len(paths)
    ranks = 2 * np.arange(1, count + 1) - count - 1
    ordered = np.sort(paths, axis=0)
    pairs = np.tensordot(ranks, ordered, axes=(0, 0)) / max(1, count * (count - 1))  # ½ E|X − X′|
    return np.asarray(np.abs(paths - gold).mean(0) - pairs, np.float64)
