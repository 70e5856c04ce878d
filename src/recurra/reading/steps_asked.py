"""A series that is asked about as JSON: a list of steps, or an object with what else is known of them.

    [[100.0, 1.0], [105.0, 0.87]]
    {"values": [7, 8, 9], "times": ["2026-11-16", …], "future": {"price": [3, 3, 4, 4, 4]}, "past": {…},
     "static": {"size": 2}, "series": "north"}

Lists of `times` and `future` that are longer than `values` go on with the coming steps.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingData
from recurra.data.formats import Row
from recurra.data.roles import is_date, order_of
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.panel import panel_of, series_of, trimmed
from recurra.reading.sentences import matrix, shown
from recurra.reading.steps import Steps

KEYS = ("values", "times", "future", "past", "static", "series")


def asked_steps(given: Any, data: ForecastingData, number: int, place: str) -> Steps:
    """The series that some JSON means; `number` is its line."""
    if isinstance(given, Mapping):
        return _of_object(given, data, number, place)
    values = matrix(
        list(given) if isinstance(given, list | tuple) else given,
        place,
        "input",
        np.float64,
        missing=data.missing == "previous",
    )
    if data.frames is None and (data.covariates or data.calendar or data.elapsed):
        also = [*data.covariates, *(["times"] if data.calendar or data.elapsed else [])]
        raise DataError(
            f"{place}: this model reads {', '.join(also)} beside the values. Send an object, such as "
            '{"values": […], "times": […], "future": {"column": […]}}.'
        )
    known = ~np.isnan(values)
    if data.frames is not None and len(known) and not known[0].all():
        raise DataError(f"{place}: 'input' begins with a missing value, and there is no earlier one to fill it with.")
    return trimmed(Steps("", values, known, 0, number, place))


def _of_object(given: Mapping[str, Any], data: ForecastingData, number: int, place: str) -> Steps:
    for key in given:
        if key not in KEYS:
            raise DataError(f"{place}: there is no '{key}' in a series. {did_you_mean(str(key), KEYS)}")
    if data.frames is not None:
        raise DataError(f"{place}: this model takes a list of frames, without times or covariates.")
    if "values" not in given:
        raise DataError(f'{place}: a series needs its values: {{"values": […]}}.')
    columns = (data.values or [])[:1] if data.layout == "wide" else data.values or []
    values = matrix(given["values"], place, "values", np.float64, missing=data.missing == "previous")
    if len(values) and values.shape[1] != len(columns):
        raise DataError(f"{place}: found {values.shape[1]} values per step, but the model expects {len(columns)}.")
    ahead = {name: _columns(given.get(name), getattr(data, name), place, name) for name in ("future", "past")}
    times = given.get("times")
    if times is not None and not isinstance(times, list):
        raise DataError(f"{place}: times must be a list, but are {shown(times)}.")
    count = max(len(values), len(times or ()), *map(len, ahead["future"].values()), 0)
    if len(values) > len(times if times is not None else values):
        raise DataError(f"{place}: there are {len(values)} values, but only {len(times or ())} times.")
    for name in data.words_by_role["future"]:  # of a table an empty cell says that there is nothing; here it is absent
        if len(values) < count > (given_cells := len(ahead["future"][name])):
            raise DataError(
                f"{place}: '{name}' has {given_cells} cells in future, but {count} steps are known or coming. Give one "
                'for each step, "" where there is nothing.'
            )
    static = given.get("static") or {}
    if not isinstance(static, Mapping):
        raise DataError(f'{place}: static must be an object, such as {{"size": 2}}, but is {shown(static)}.')
    rows = []
    for step in range(count):
        row: dict[str, Any] = {column: _cell(values, step, at) for at, column in enumerate(columns)}
        for columns_of in ahead.values():
            row |= {column: cells[step] if step < len(cells) else None for column, cells in columns_of.items()}
        row |= {column: static.get(column) for column in data.static}
        if times is not None and step < len(times):
            row["time"] = times[step]
        rows.append(Row(row, number))
    own = dataclasses.replace(
        data,
        time=None if times is None else "time",
        series=None,
        values=list(columns),
        layout="long",
        missing="previous",
    )
    name = str(given.get("series") or "")
    path = place.rpartition(":")[0]
    if not rows:
        empty = np.zeros((0, len(columns)))
        return Steps(name, empty, empty.astype(bool), 0, number, place)
    texts = [str(time).strip() for time in times or ()]
    order = (order_of(texts) if texts and all(map(is_date, texts)) else "ymd") or "ymd"
    timed = len(rows) if times is None else len(times)
    [steps] = series_of(panel_of(rows[:timed], path, own, order), path, own, 0)
    if timed < len(rows):  # the times of coming steps need not be given
        counted = dataclasses.replace(own, time=None)
        [more] = series_of(panel_of(rows[timed:], path, counted, order), path, counted, 0)
        fields = ("future", "future_names")
        joined: dict[str, Any] = {
            field: np.concatenate([getattr(steps, field), getattr(more, field)])
            for field in fields
            if getattr(steps, field) is not None
        }
        steps = dataclasses.replace(steps, **joined)
    return dataclasses.replace(steps, name=name)


def _cell(values: NDArray[np.float64], step: int, column: int) -> float | None:
    if step >= len(values) or math.isnan(values[step, column]):
        return None
    return float(values[step, column])


def _columns(given: Any, names: list[str], place: str, role: str) -> dict[str, list[Any]]:
    """The cells of each column: given by its name, or as rows in the order of the settings."""
    if given is None:
        return {name: [] for name in names}
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise DataError(f"{place}: there is no column '{name}' in {role}. {did_you_mean(str(name), names)}")
        found = {name: given.get(name, []) for name in names}
        if not all(isinstance(cells, list) for cells in found.values()):
            raise DataError(f"{place}: each column of {role} must be a list of its steps.")
        return found
    if not isinstance(given, list):
        raise DataError(f'{place}: {role} must be an object of columns, such as {{"price": [3, 4]}}.')
    rows = [row if isinstance(row, list) else [row] for row in given]
    if any(len(row) != len(names) for row in rows):
        raise DataError(f"{place}: each step of {role} must have {len(names)} cells: {', '.join(names)}.")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def sent_steps(steps: Steps, data: ForecastingData) -> object:
    """A series as `asked_steps` takes it: a list of steps where nothing else is read."""
    values = _plain(steps.values)
    if data.frames is not None or not (data.covariates or data.calendar or data.elapsed):
        return values
    found: dict[str, Any] = {"values": _plain(np.where(steps.measured, steps.values, np.nan))}
    times = steps.times if steps.times is not None else steps.numbers
    if times is not None:
        whole = times if steps.later is None else np.concatenate([times, steps.later])
        found["times"] = steps.written(whole)
    for role in ("future", "past"):
        columns: dict[str, Any] = {}
        for names, array in (
            (getattr(data, f"{role}_numbers"), getattr(steps, role)),
            (data.words_by_role[role], getattr(steps, f"{role}_names")),
        ):
            if array is not None:
                columns |= {name: _plain(array[:, at]) for at, name in enumerate(names)}
        if columns:
            found[role] = columns
    static = dict(zip(data.static_words, steps.static_names, strict=True))
    if data.static_numbers and steps.static_numbers is not None:
        static |= dict(zip(data.static_numbers, _plain(steps.static_numbers), strict=True))
    if static:
        found["static"] = static
    if steps.name:
        found["series"] = steps.name
    return found


def _plain(array: NDArray[Any]) -> Any:
    """An array as lists, null where a number is missing."""
    if array.dtype == object or not np.isnan(array).any():
        return array.tolist()
    found = array.astype(object)
    found[np.isnan(array)] = None
    return found.tolist()
