"""Series that go on: the steps before those of a file, out of the training data or out of another file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.config.frequency import Frequency
from recurra.data.times import Clock, OffGrid, after, anchor_of, dates, numbers_on_grid, on_grid
from recurra.reading.panel import carried
from recurra.reading.steps import Steps


def continued(series: Iterable[Steps], ends: Mapping[str, Steps], *, longest: int) -> Iterator[Steps]:
    """Each series with the end of the one of its name before it, where it goes on with that; these are not scored.

    longest   so many steps may be missing between the two, and so many are read at most
    """
    for steps in series:
        before = ends.get(steps.name)
        joined = None if before is None else _joined(before, steps, longest)
        yield steps if joined is None else joined


def _joined(before: Steps, steps: Steps, longest: int) -> Steps | None:
    """The two as one series; None where the one does not go on with the other."""
    old, new = before.moments, steps.moments
    if new is not None and not len(new):
        new = steps.later
    if old is None or new is None or not len(old) or not len(new) or old.dtype.kind != new.dtype.kind:
        return None
    if not new[0] > old[-1] or before.values.shape[1] != steps.values.shape[1]:
        return None
    missing = _between(before, old[-1], new[0], steps)
    if missing is None or missing > longest:
        return None
    before = before.cut(max(0, len(before) - longest), len(before))
    own = np.concatenate([before.measured, np.zeros((missing, steps.values.shape[1]), bool), steps.measured])
    values = np.concatenate([before.values, np.full((missing, steps.values.shape[1]), np.nan), steps.values])
    count = len(before) + missing
    moments = _joined_moments(before, steps, missing)
    fields: dict[str, Any] = {
        name: _stacked(getattr(before, name), getattr(steps, name), len(before), missing)
        for name in ("future", "future_names", "past", "past_names")
    }
    found = dataclasses.replace(
        steps,
        values=carried(values, own | ~np.isnan(values)) if missing else carried(values, ~np.isnan(values)),
        known=own,
        observed=None,
        times=moments if steps.times is not None else None,
        numbers=moments if steps.numbers is not None else None,
        rowless=None,
        preceding=count,
        origin=None if steps.origin is None else steps.origin + count,
        **fields,
    )
    return found.unscored(count)


def _between(before: Steps, last: Any, first: Any, steps: Steps) -> int | None:
    """How many steps are missing between two times; None where that is no whole number."""
    frequency = steps.frequency or before.frequency
    if frequency is None:
        return 0
    group, starts = np.zeros(2, np.int64), np.zeros(1, np.int64)
    try:
        if steps.numbers is not None:
            return int(numbers_on_grid(frequency, np.array([last, first], float), group, starts)[1]) - 1
        clock = steps.clock or Clock()
        utc = np.array([last, first], "M8[us]").astype(np.int64)
        return _steps_apart(frequency, clock, utc, group, starts) - 1
    except OffGrid:
        return None


def _steps_apart(
    frequency: Frequency, clock: Clock, utc: NDArray[np.int64], group: NDArray[np.int64], starts: NDArray[np.int64]
) -> int:
    return int(on_grid(frequency, utc, clock.wall(utc), group, starts)[1])


def _joined_moments(before: Steps, steps: Steps, missing: int) -> NDArray[Any]:
    old, new = before.moments, steps.moments
    assert old is not None
    assert new is not None
    if not missing:
        return np.concatenate([old, new])
    places = np.arange(1, missing + 1)
    frequency = steps.frequency or before.frequency
    assert frequency is not None
    if steps.numbers is not None:
        return np.concatenate([old, old[-1] + places * frequency.count, new])
    clock = steps.clock or Clock()
    utc = old.astype("M8[us]").astype(np.int64)
    return np.concatenate([old, dates(after(frequency, clock, int(utc[-1]), places, anchor_of(clock.wall(utc)))), new])


def _stacked(old: Any, new: Any, length: int, missing: int) -> Any:
    """Covariates of both; those of missing steps are missing, and so are all that the one before does not have."""
    if new is None:
        return None
    fill: Any = "" if new.dtype == object else np.nan
    kept = np.full((length, *new.shape[1:]), fill, new.dtype) if old is None else old[:length]
    return np.concatenate([kept, np.full((missing, *new.shape[1:]), fill, new.dtype), new])
