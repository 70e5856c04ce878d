"""What is known of a series beside its values, as arrays of numbers near 1.

    future   (T + h, ·)   of step t: columns scaled, words as one of n, parts of the date, log of the time since t − 1
    past     (T, ·)       of step t: columns scaled, words as one of n, then for each column 1 where known, else 0
    static   (s,), (c,)   columns scaled; words by their number, 0 for one that training did not have

A word as one of n is a vector with a single 1: what the network multiplies it with is its embedding. A missing number
is that before it, or the mean of its column; a missing or unknown word is all zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingData
from recurra.data import calendar
from recurra.data.normal import Normal
from recurra.data.store import Encoded
from recurra.data.times import Clock
from recurra.errors import DataError
from recurra.reading.facts import Facts
from recurra.reading.panel import carried
from recurra.reading.steps import Names, Steps

LONGEST = 20.0
"""The most that the logarithm of a time since the last step may be."""


class Widths(NamedTuple):
    """How many numbers a network reads of each kind."""

    future: int = 0
    past: int = 0
    masks: int = 0  # the last of `past`, which say what was known
    static: int = 0
    categories: tuple[int, ...] = ()  # words of each column, with the unknown one

    @property
    def are_any(self) -> bool:
        return any((self.future, self.past, self.static, self.categories))


def widths(data: ForecastingData, facts: Facts) -> Widths:
    """What `encoded` gives."""
    if data.frames is not None:
        return Widths()
    sizes = {role: sum(len(facts.words[name]) for name in names) for role, names in data.words_by_role.items()}
    return Widths(
        len(data.future_numbers) + sizes["future"] + calendar.width(data.calendar) + data.elapsed,
        len(data.past_numbers) + sizes["past"] + len(data.past),
        len(data.past),
        len(data.static_numbers),
        tuple(len(facts.words[name]) + 1 for name in data.static_words),
    )


def encoded(steps: Steps, data: ForecastingData, facts: Facts, horizon: int) -> Encoded:
    """The covariates of a series and of the steps up to the horizon; nothing where there are none."""
    found: dict[str, NDArray[Any]] = {}
    wanted = widths(data, facts)
    if wanted.future:
        found["future"] = _future(steps, data, facts, horizon).astype(np.float32)
    if wanted.past:
        found["past"] = _past(steps, data, facts).astype(np.float32)
    if wanted.static:
        assert steps.static_numbers is not None
        scaled = facts.covariates["static"].scaled(steps.static_numbers)
        found["static_numbers"] = np.nan_to_num(scaled).astype(np.float32)
    if wanted.categories:
        pairs = zip(data.static_words, steps.static_names, strict=True)
        found["static_names"] = np.array([_number(facts.words[name], word) for name, word in pairs], np.int64)
    return found


def _number(words: Sequence[str], word: str) -> int:
    return words.index(word) + 1 if word in words else 0


def _scaled(array: NDArray[np.float64], scale: Normal) -> NDArray[np.float64]:
    return np.nan_to_num(scale.scaled(carried(array, ~np.isnan(array))))


def _one_of_n(names: Names, columns: Sequence[str], facts: Facts) -> NDArray[np.float64]:
    """(T, ·): each word of each column as a vector with a single 1."""
    parts = []
    for column, cells in zip(columns, names.T, strict=True):
        known = np.array(facts.words[column], dtype=object)
        parts.append((cells[:, None] == known[None]).astype(np.float64).reshape(len(cells), len(known)))
    return np.concatenate(parts, axis=1)


def _future(steps: Steps, data: ForecastingData, facts: Facts, horizon: int) -> NDArray[np.float64]:
    length = len(steps) + horizon
    parts = []
    if data.future_numbers:
        assert steps.future is not None
        parts.append(_extended(_scaled(steps.future, facts.covariates["future"]), length))
    if names := data.words_by_role["future"]:
        assert steps.future_names is not None
        parts.append(_extended(_one_of_n(steps.future_names, names, facts), length))
    if data.calendar or data.elapsed:
        moments = _moments(steps, horizon)
        if data.calendar:
            wall = (steps.clock or facts.clock or Clock()).wall(moments.astype("M8[us]").astype(np.int64))
            parts.append(calendar.features(wall, data.calendar, facts.holidays))
        if data.elapsed:
            is_date = moments.dtype.kind == "M"
            numbers = moments.astype("M8[us]").astype(np.float64) / 1e6 if is_date else moments
            apart = np.diff(numbers, prepend=numbers[:1] - facts.step)
            parts.append(np.log(np.maximum(apart, 1e-9) / facts.step).clip(-LONGEST, LONGEST)[:, None])
    return np.concatenate(parts, axis=1)


def _moments(steps: Steps, horizon: int) -> NDArray[Any]:
    times = steps.times if steps.times is not None else steps.numbers
    if times is None:
        raise DataError(f"{steps.place}: this model reads the times of steps, and there are none. Give them with it.")
    ahead = steps.moments_ahead(horizon)
    if ahead is None:  # of a single step, or none
        ahead = np.repeat(times[-1:], horizon) if len(times) else np.zeros(horizon, times.dtype)
    return np.concatenate([times, ahead])


def _extended(array: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """So many rows: the last one again and again where there are fewer, for steps that nobody scores."""
    if len(array) >= length:
        return array[:length]
    last = array[-1:] if len(array) else np.zeros((1, array.shape[1]))
    return np.concatenate([array, np.repeat(last, length - len(array), axis=0)])


def _past(steps: Steps, data: ForecastingData, facts: Facts) -> NDArray[np.float64]:
    parts, masks = [], []
    if data.past_numbers:
        assert steps.past is not None
        parts.append(_scaled(steps.past, facts.covariates["past"]))
        masks.append(~np.isnan(steps.past))
    if names := data.words_by_role["past"]:
        assert steps.past_names is not None
        parts.append(_one_of_n(steps.past_names, names, facts))
        masks.append(steps.past_names != "")
    return np.concatenate([*parts, *masks], axis=1)


def check_ahead(steps: Steps, data: ForecastingData, horizon: int) -> None:
    """Refuse a series of which too little is known ahead for a forecast over the horizon."""
    for columns, array in ((data.future_numbers, steps.future), (data.words_by_role["future"], steps.future_names)):
        if not columns or array is None:
            continue
        coming = array[len(steps) :]
        # An empty cell is no number, but among words it may say that there is nothing: no promotion, no event.
        is_there = np.ones(coming.shape, bool) if coming.dtype == object else ~np.isnan(coming)
        for number, column in enumerate(columns):
            known = np.flatnonzero(is_there[:, number])
            lacking = horizon - (int(known[-1]) + 1 if len(known) else 0)  # one between others is that before it
            if lacking > 0:
                named = f"of the series '{steps.name}' " if steps.name else ""
                raise DataError(
                    f"{steps.place}: a forecast {named}over {horizon} steps needs '{column}' of the coming {horizon} "
                    f"steps, but {lacking} {'is' if lacking == 1 else 'are'} missing. Add rows after the last value, "
                    f"with '{column}' and without values, or set a smaller --set decoding.horizon=…."
                )
