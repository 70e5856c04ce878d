"""Sequences of vectors out of files: one a row, or a table with a row for each step, every number checked."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingData
from recurra.config.share import FilePart
from recurra.data.formats import Row, rows
from recurra.data.roles import IDS, MOMENTS, SERIES, is_called, is_date, kind_of, number_in, order_of, when
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.once import panel_read_once
from recurra.reading.panel import Panel, column_of, is_missing, is_number, panel_of, series_of
from recurra.reading.parts import drawn, nothing_left
from recurra.reading.sentences import matrix, shown
from recurra.reading.steps import Steps

__all__ = ["SHORTEST", "Steps", "compared", "filled", "of_frames", "sequences", "table_rows", "with_columns"]

WINDOW = 128

SHORTEST = 2
"""Steps of a series that training can learn from, at least."""

LOOKED_AT = 1000
"""Rows that are looked at to see which columns hold numbers."""

FEWEST = 5
"""Rows in which a column of numbers must ascend by equal steps to be taken for the time."""

DATED = 0.9
"""Share of the cells that are dates in a column of times."""


def with_columns(data: ForecastingData, path: str | Path) -> ForecastingData:
    """The settings with the columns that the first row has, where none were named."""
    ahead = list(itertools.islice(table_rows(path, data), LOOKED_AT))
    row = ahead[0]
    columns = list(row.values)
    place = f"{path}:{row.line}"
    is_table = data.time is not None or data.series is not None or data.values is not None
    if data.frames is not None or (not is_table and "frames" in columns):
        data = dataclasses.replace(data, frames=data.frames or "frames")
        column_of(row, data.frames or "", place)
        return data
    moments = [name for name in columns if name.lower() in MOMENTS]
    moments = [
        name for name in moments if name.lower() != "step" or name not in (data.values or ())
    ]  # it may be a value
    time = data.time or next(iter(moments), None) or _dates(columns, ahead) or _even_numbers(columns, ahead)
    series = data.series or next((name for name in columns if name.lower() in SERIES), None)
    for name in (time, series, *(data.values or ())):
        if name is not None:
            column_of(row, name, place)
    for name in data.covariates:
        column_of(row, name, place)
    others = [name for name in columns if name not in (time, series, *data.covariates)]
    numbers = [name for name in others if _holds_numbers(name, ahead)]
    values = data.values or [name for name in numbers if not is_called(name, IDS)] or numbers
    if not values:
        whole = [name for name in others if isinstance(row.values[name], list)]
        aside = f" If '{whole[0]}' holds a whole sequence, set data.frames = \"{whole[0]}\"." if whole else ""
        raise DataError(
            f"{place}: forecasting needs a column of numbers, but the columns are {', '.join(columns)}. "
            f'Name them: data.values = ["…"].{aside}'
        )
    if twice := {time, series} & {*values}:
        raise DataError(f"data.values names '{twice.pop()}', which is already used as the time or the series column.")
    if shared := {time} & {*data.covariates}:
        raise DataError(f"'{shared.pop()}' is the time: parts of it are read by data.calendar. Name no covariate so.")
    if time is None and (asked := [name for name in ("calendar", "elapsed", "timezone") if getattr(data, name)]):
        raise DataError(f"{place}: data.{asked[0]} needs a column of times, and none was found: name it by data.time.")
    categories = data.categories
    if categories is None:
        categories = [name for name in data.covariates if not _holds_numbers(name, ahead)]
    return dataclasses.replace(
        data,
        time=time,
        series=series,
        values=values,
        categories=categories if data.covariates else None,
    )


def sequences(files: Sequence[str | Path], data: ForecastingData) -> Iterator[Steps]:
    """The sequences of some files, each checked.

    A share that is held out is drawn from whole sequences, and taken from the end of each series of a table.
    """

    def whole() -> Iterator[Steps]:
        for number, path in enumerate(files):
            for row in rows(path, format=data.format, columns=data.columns):
                yield of_frames(row.values, data, number, row.line, f"{path}:{row.line}")

    if data.frames is not None:
        return drawn(files, whole, lambda steps: steps.values.tobytes())
    return _in_time(files, _of_tables(files, data), lead=data.window or WINDOW)


def _of_tables(files: Sequence[str | Path], data: ForecastingData) -> Iterator[Steps]:
    for number, path in enumerate(files):
        panel = panel_read_once(path, data, lambda: _panel(path, data))  # noqa: B023
        found = series_of(panel, path, data, number)
        yield from map(partial(_without_last, data.drop_last), found) if data.drop_last else found


def _panel(path: str | Path, data: ForecastingData) -> Panel:
    return panel_of(table_rows(path, data), path, data, _order(path, data))


def _without_last(count: int, steps: Steps) -> Steps:
    """A series without its last steps, of which enough must be left to learn from."""
    left = len(steps) - count
    if left < SHORTEST:
        named = f"the series '{steps.name}'" if steps.name else "the series"
        raise DataError(
            f"{steps.place}: {named} has {len(steps)} steps, of which data.drop_last = {count} leaves fewer than "
            f"{SHORTEST}. Remove the series, or drop fewer steps."
        )
    return steps.cut(0, left)


def _in_time(files: Sequence[str | Path], found: Iterator[Steps], *, lead: int) -> Iterator[Steps]:
    """The part of each series that is asked for: the last steps are held out.

    So many steps before them are read as well, so that forecasts begin with what is known by then, but are not scored.
    A series that is too short to be cut is all training.
    """
    parts = [file for file in files if isinstance(file, FilePart)]
    if not parts:
        yield from found
        return
    count, is_empty = 0, True
    for steps in found:
        count += len(steps)
        part = parts[steps.file]
        train = FilePart(part, "train", part.shares).span(len(steps))
        first, last = part.span(len(steps))
        if train[1] < SHORTEST:
            first, last = (0, len(steps)) if part.name == "train" else (0, 0)
        if first == last:
            continue
        is_empty = False
        start = first if part.name == "train" else max(0, first - lead)
        yield steps.cut(start, last).unscored(first - start)
    if is_empty:
        raise nothing_left(parts, f"{count:,} steps")


def of_frames(values: Mapping[str, object], data: ForecastingData, file: int, line: int, place: str) -> Steps:
    """A sequence out of one row."""
    name = data.frames or "frames"
    if name not in values:
        raise DataError(f"{place}: there is no column '{name}'. {did_you_mean(name, values)}")
    frames = matrix(values[name], place, name, np.float64, missing=data.missing == "previous")
    if len(frames) == 0 and data.empty == "refuse":
        raise DataError(f'{place}: this example has no frames. Remove it, or set data.empty = "keep".')
    known = ~np.isnan(frames)
    return Steps("", filled(frames, known, place, name), known, file, line, place)


def compared(known: NDArray[np.bool_], *, difference: bool) -> NDArray[np.bool_]:
    """(T, d): where what was predicted can be compared. Of a change, both steps must be known.

    >>> compared(np.array([[True], [False], [True], [True]]), difference=True)[:, 0].tolist()
    [True, False, False, True]
    """
    return known & np.concatenate([known[:1], known[:-1]]) if difference else known


def filled(values: NDArray[np.float64], known: NDArray[np.bool_], place: str, name: str) -> NDArray[np.float64]:
    """Each missing value replaced by the one before it.

    >>> filled(np.array([[1.0], [np.nan], [3.0]]), np.array([[True], [False], [True]]), "a.csv:2", "x").tolist()
    [[1.0], [1.0], [3.0]]
    """
    if known.all():
        return values
    if not known[0].all():
        raise DataError(
            f"{place}: '{name}' begins with a missing value, and there is no earlier value to fill it with. Remove "
            f"the row."
        )
    last = np.maximum.accumulate(np.where(known, np.arange(len(values))[:, None], 0), axis=0)
    return np.take_along_axis(values, last, axis=0)


def table_rows(path: str | Path, data: ForecastingData) -> Iterator[Row]:
    """The rows of a table."""
    return rows(path, format=data.format, columns=data.columns)


def _dates(columns: Sequence[str], ahead: Sequence[Row]) -> str | None:
    """The only column of dates, whatever it is called; None where there is none, or more than one.

    A few cells may be something else, such as "Total" in the last row: reading the times then refuses that row.
    """
    dates = []
    for name in columns:
        cells = [row.values.get(name) for row in ahead]
        if sum(isinstance(cell, str) and is_date(cell) for cell in cells) >= DATED * len(cells):
            dates.append(name)
    return dates[0] if len(dates) == 1 else None


def _even_numbers(columns: Sequence[str], ahead: Sequence[Row]) -> str | None:
    """The first column, where its numbers ascend by equal steps and other columns hold numbers too; or None."""
    first = columns[0]
    cells = [row.values.get(first) for row in ahead]
    if len(ahead) < FEWEST or not all(is_number(cell) for cell in cells) or is_called(first, IDS):
        return None
    steps = np.diff([number_in(str(cell)) for cell in cells])
    is_even = steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-6)
    return first if is_even and any(_holds_numbers(name, ahead) for name in columns[1:]) else None


def _holds_numbers(name: str, ahead: Sequence[Row]) -> bool:
    """Whether the first cell of a column that is not missing is a number."""
    cells = (row.values.get(name) for row in ahead)
    first = next((cell for cell in cells if not is_missing(cell)), None)
    return first is not None and (kind_of(first) == "number" or is_number(first)) and not isinstance(first, list)


def _order(path: str | Path, data: ForecastingData) -> str:
    """The order of day, month and year in the column of times."""
    if data.time is None:
        return "ymd"
    seen = list(itertools.islice(table_rows(path, data), LOOKED_AT))
    cells = [str(row.values.get(data.time, "")).strip() for row in seen]
    found = order_of(cells) if all(map(is_date, cells)) else "ymd"
    if found is None and order_of(cells[:1]) is None and all(when(cell, "dmy") for cell in cells):
        raise DataError(
            f"{path}:{seen[0].line}: '{data.time}' is {shown(cells[0])}: the day and the month cannot be told "
            "apart in this file. Write dates as 2026-11-15."
        )
    return found or "ymd"
