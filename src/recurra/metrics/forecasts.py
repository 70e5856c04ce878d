"""Forecasts from several origins: what came true, and what simple rules would have said.

An origin o is the number of steps that were known, T that of all steps, d the values of a step, h the horizon.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

PIECE = 1 << 18
"""Numbers of a table that are worked on together."""

Values: TypeAlias = NDArray[np.float64]
"""(T, d)."""

Futures: TypeAlias = NDArray[np.float64]
"""(O, h, d): h steps after each of O origins."""

Origins: TypeAlias = NDArray[np.int64]
"""(O,)."""


def origins_of(steps: int, *, first: int, stride: int = 1) -> Origins:
    """Every so-many-th origin from the first on that has a step after it.

    >>> origins_of(6, first=2, stride=2).tolist()
    [2, 4]
    """
    return np.arange(first, steps, stride)


def came_true(values: Values, origins: Origins, horizon: int) -> Futures:
    """The steps after each origin; NaN beyond the end.

    >>> came_true(np.array([[1.0], [2.0], [3.0]]), np.array([1, 2]), 2)[:, :, 0].tolist()
    [[2.0, 3.0], [3.0, nan]]
    """
    return _at(values, origins[:, None] + np.arange(horizon))


def last_value(values: Values, origins: Origins, horizon: int) -> Futures:
    """The last known step, again and again: x̂_{o+k} = x_o.

    >>> last_value(np.array([[1.0], [2.0], [3.0]]), np.array([2]), 2)[:, :, 0].tolist()
    [[2.0, 2.0]]
    """
    return _at(values, np.repeat(origins[:, None] - 1, horizon, axis=1))


def seasonal(values: Values, origins: Origins, horizon: int, season: int) -> Futures:
    """The last known season, again and again: x̂_{o+k} = x_{o+k−m}, with m the least multiple of a season ≥ k.

    Where less than a season is known, the last value.

    >>> seasonal(np.array([[1.0], [2.0], [3.0]]), np.array([3]), 5, season=2)[:, :, 0].tolist()
    [[2.0, 3.0, 2.0, 3.0, 2.0]]
    """
    if season < 1:
        raise DataError(f"season must be at least 1 step, but is {season}.")
    places = origins[:, None] - season + np.arange(horizon) % season
    return _at(values, np.where(places < 0, origins[:, None] - 1, places))


def drift(values: Values, origins: Origins, horizon: int) -> Futures:
    """The line through the first and the last known step: x̂_{o+k} = x_o + k (x_o − x_1) / (o − 1).

    >>> drift(np.array([[1.0], [5.0], [3.0]]), np.array([1, 3]), 2)[:, :, 0].tolist()
    [[1.0, 1.0], [4.0, 5.0]]
    """
    last = values[origins - 1]
    first = np.argmax(~np.isnan(values), axis=0)  # the first that is known, column by column
    begin = values[first, np.arange(values.shape[1])]
    slope = (last - begin) / np.maximum(origins[:, None] - 1 - first, 1)
    return np.asarray(last[:, None] + np.arange(1, horizon + 1)[:, None] * slope[:, None], np.float64)


def pieces(table: NDArray[Any]) -> Iterator[slice]:
    """Rows of a large table that are worked on together, so that what is made of them on the way stays small.

    >>> [(some.start, some.stop) for some in pieces(np.empty((5, PIECE // 2)))]
    [(0, 2), (2, 4), (4, 6)]
    """
    rows = max(1, PIECE * max(1, len(table)) // max(1, table.size))
    return (slice(start, start + rows) for start in range(0, len(table), rows))


def simple_rules(values: Values, origins: Origins, horizon: int, season: int = 0) -> dict[str, Futures]:
    """By their names: the last value, drift and, where there is a season, the last season."""
    found = {"last value": last_value(values, origins, horizon), "drift": drift(values, origins, horizon)}
    return {"seasonal": seasonal(values, origins, horizon, season), **found} if season else found


def _at(values: Values, places: NDArray[np.int64]) -> Futures:
    """The steps at some places; NaN where there is none."""
    is_there = (places >= 0) & (places < len(values))
    found = np.full((*places.shape, values.shape[1]), np.nan)
    found[is_there] = values[places[is_there]]
    return found
