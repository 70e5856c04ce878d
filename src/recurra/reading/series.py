"""Sequences of vectors out of files: one a row, or a table with a row for each step, every number checked."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingData
from recurra.config.share import FilePart
from recurra.data.formats import Row, rows
from recurra.data.roles import IDS, MOMENTS, SERIES, is_called, is_date, kind_of, number_in, order_of, when
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.parts import drawn, nothing_left
from recurra.reading.sentences import matrix, shown

MISSING = ("", "na", "nan", "null", "none")
"""How tables write that a value is not known."""

WINDOW = 128

SHORTEST = 2
"""Steps of a series that training can learn from, at least."""

LOOKED_AT = 1000
"""Rows that are looked at to see which columns hold numbers."""

FEWEST = 5
"""Rows in which a column of numbers must ascend by equal steps to be taken for the time."""

DATED = 0.9
"""Share of the cells that are dates in a column of times."""


@dataclasses.dataclass(frozen=True)
class Steps:
    """One example: the values of successive steps, and where they stand."""

    name: str  # of the series; "" where there is but one
    values: NDArray[np.float64]  # (T, d); a missing value is that of the step before, NaN where there is none
    known: NDArray[np.bool_]  # (T, d): False where the value was missing, or is read and not scored
    file: int
    line: int
    place: str
    observed: NDArray[np.bool_] | None = None  # (T, d): False where the value was missing; None: as known
    times: NDArray[np.datetime64] | None = None  # (T,) in UTC; None where steps are only counted
    numbers: NDArray[np.float64] | None = None  # (T,): times that are numbers
    future: NDArray[np.float64] | None = None  # (T', k), T' ≥ T: known ahead; from T on, those of coming steps
    past: NDArray[np.float64] | None = None  # (T, p): known up to now; NaN where missing
    static_numbers: NDArray[np.float64] | None = None  # (s,): of the whole series; NaN where missing
    static_names: tuple[str, ...] = ()  # (c): of the whole series

    def __len__(self) -> int:
        return len(self.values)

    def cut(self, start: int, end: int) -> Steps:
        """Some steps; what is known ahead at `end` stays known."""

        def part(array: Any) -> Any:
            return None if array is None else array[start:end]

        return dataclasses.replace(
            self,
            values=self.values[start:end],
            known=self.known[start:end],
            observed=part(self.observed),
            times=part(self.times),
            numbers=part(self.numbers),
            future=None if self.future is None else self.future[start:],
            past=part(self.past),
        )

    def unscored(self, count: int) -> Steps:
        """The same steps, so many of the first of which are read and not scored."""
        known = self.known.copy()
        known[:count] = False
        return dataclasses.replace(self, known=known, observed=self.known if self.observed is None else self.observed)

    def reversed(self) -> Steps:
        """The same steps from the last to the first."""

        def turned(array: Any) -> Any:
            return None if array is None else array[::-1].copy()

        return dataclasses.replace(
            self,
            values=turned(self.values),
            known=turned(self.known),
            observed=turned(self.observed),
            times=turned(self.times),
            numbers=turned(self.numbers),
            future=None if self.future is None else turned(self.future[: len(self)]),
            past=turned(self.past),
        )


def with_columns(data: ForecastingData, path: str | Path) -> ForecastingData:
    """The settings with the columns that the first row has, where none were named."""
    ahead = list(itertools.islice(table_rows(path, data), LOOKED_AT))
    row = ahead[0]
    columns = list(row.values)
    place = f"{path}:{row.line}"
    is_table = data.time is not None or data.series is not None or data.values is not None
    if data.frames is not None or (not is_table and "frames" in columns):
        data = dataclasses.replace(data, frames=data.frames or "frames")
        _column(row, data.frames or "", place)
        return data
    moments = [name for name in columns if name.lower() in MOMENTS]
    moments = [
        name for name in moments if name.lower() != "step" or name not in (data.values or ())
    ]  # it may be a value
    time = data.time or next(iter(moments), None) or _dates(columns, ahead) or _even_numbers(columns, ahead)
    series = data.series or next((name for name in columns if name.lower() in SERIES), None)
    for name in (time, series, *(data.values or ())):
        if name is not None:
            _column(row, name, place)
    others = [name for name in columns if name not in (time, series)]
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
    return dataclasses.replace(
        data, time=time, series=series, values=values, window=WINDOW if data.window is None else data.window
    )


def sequences(files: Sequence[str | Path], data: ForecastingData, *, shortest: int = 2) -> Iterator[Steps]:
    """The sequences of some files, each checked. A series of a table has at least so many steps.

    A share that is held out is drawn from whole sequences, and taken from the end of each series of a table.
    """

    def whole() -> Iterator[Steps]:
        for number, path in enumerate(files):
            for row in rows(path, format=data.format, columns=data.columns):
                yield of_frames(row.values, data, number, row.line, f"{path}:{row.line}")

    if data.frames is not None:
        return drawn(files, whole, lambda steps: steps.values.tobytes())
    return _in_time(files, _of_tables(files, data, shortest), lead=data.window or WINDOW)


def _of_tables(files: Sequence[str | Path], data: ForecastingData, shortest: int) -> Iterator[Steps]:
    for number, path in enumerate(files):
        for steps in _of_table(path, data, number):
            if len(steps) < shortest:
                named = f"the series '{steps.name}'" if steps.name else "the series"
                raise DataError(
                    f"{steps.place}: {named} has only one step, so there is nothing to predict. Remove it, or add "
                    f"steps."
                )
            yield steps


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


def _is_number(cell: object) -> bool:
    try:
        number = number_in(cell) if isinstance(cell, str) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not math.isnan(number) and not _is_missing(cell)


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
    if len(ahead) < FEWEST or not all(_is_number(cell) for cell in cells) or is_called(first, IDS):
        return None
    steps = np.diff([number_in(str(cell)) for cell in cells])
    is_even = steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-6)
    return first if is_even and any(_holds_numbers(name, ahead) for name in columns[1:]) else None


def _holds_numbers(name: str, ahead: Sequence[Row]) -> bool:
    """Whether the first cell of a column that is not missing is a number."""
    cells = (row.values.get(name) for row in ahead)
    first = next((cell for cell in cells if not _is_missing(cell)), None)
    return first is not None and (kind_of(first) == "number" or _is_number(first)) and not isinstance(first, list)


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def _column(row: Row, name: str, place: str) -> object:
    if name not in row.values:
        raise DataError(f"{place}: there is no column '{name}'. {did_you_mean(name, row.values)}")
    return row.values[name]


@dataclasses.dataclass
class _Growing:
    """A series while its rows are read."""

    line: int
    numbers: array[float]
    time: float = -math.inf


def _of_table(path: str | Path, data: ForecastingData, file: int) -> Iterator[Steps]:
    columns = data.values or []
    found: dict[str, _Growing] = {}
    were_dates: bool | None = None
    order = _order(path, data)
    for row in table_rows(path, data):
        place = f"{path}:{row.line}"
        name = "" if data.series is None else str(_column(row, data.series, place) or "").strip()
        if data.series is not None and not name:
            raise DataError(f"{place}: the row has no series name: '{data.series}' is empty.")
        growing = found.setdefault(name, _Growing(row.line, array("d")))
        if data.time is not None:
            cell = _column(row, data.time, place)
            time, was_date = moment(cell, place, data.time, order), not _is_number(cell)
            if were_dates not in (None, was_date):
                raise DataError(
                    f"{place}: '{data.time}' is {shown(cell)}, but earlier rows contain another kind of time."
                )
            were_dates = was_date
            if time <= growing.time:
                what = "is there twice" if time == growing.time else "comes after a later one"
                of = f" of '{name}'" if name else ""
                raise DataError(
                    f"{place}: the time {shown(cell)}{of} {what}. Sort the rows by '{data.time}', and give each "
                    "time only once"
                    + ("." if data.series else ', or name the column that identifies the series: data.series = "…".')
                )
            growing.time = time
        growing.numbers.extend(_number(_column(row, column, place), place, column, data) for column in columns)
    for name, growing in found.items():
        values = np.array(growing.numbers).reshape(-1, len(columns))
        known = ~np.isnan(values)
        place = f"{path}:{growing.line}"
        first = next((column for column, is_known in zip(columns, known[0], strict=True) if not is_known), "")
        yield Steps(name, filled(values, known, place, first), known, file, growing.line, place)


def _number(cell: object, place: str, column: str, data: ForecastingData) -> float:
    if _is_missing(cell):
        if data.missing == "previous":
            return math.nan
        raise DataError(f"{place}: the value of '{column}' is missing. Fill it in, or set data.missing = \"previous\".")
    try:
        number = number_in(cell) if isinstance(cell, str) and "," in cell else float(cell)  # type: ignore[arg-type]
        if math.isnan(number) and "," in str(cell):
            raise DataError(
                f"{place}: '{column}' is {shown(cell)}: the comma could be a decimal point or a thousands "
                "separator. Write numbers as 1234.5."
            )
    except (TypeError, ValueError) as error:
        aside = f' If a row holds a whole sequence, set data.frames = "{column}".' if isinstance(cell, list) else ""
        raise DataError(f"{place}: '{column}' must be a number, but is {shown(cell)}.{aside}") from error
    if not math.isfinite(number):
        raise DataError(f"{place}: '{column}' must be a finite number, but is {shown(cell)}.")
    return number


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


def moment(cell: object, place: str, column: str, order: str = "ymd") -> float:
    """A time as a number: itself, or the seconds of a date as ISO 8601 writes it, or in another order of its parts.

    >>> moment("1970-01-02", "a.csv:2", "date"), moment("1970-02", "a.csv:3", "date"), moment("12", "a.csv:4", "t")
    (86400.0, 2678400.0, 12.0)
    >>> moment("02.01.1970", "a.csv:2", "date", "dmy")
    86400.0
    """
    if _is_number(cell) and math.isfinite(number := number_in(str(cell))):
        return number
    found = when(str(cell), order)
    if found is None:
        raise DataError(
            f"{place}: '{column}' must be a number or a date such as 2026-11-15 or 2026-11-15T08:30, "
            f"but is {shown(cell)}."
        )
    return (found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)).timestamp()
