"""Tables with a row for each step: columns of numbers, times and words, cut into series.

Rows are read some thousands at a time and each column of them as one array, so that a table of ten thousand short
series is read as fast as a single long one.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingData
from recurra.config.frequency import IRREGULAR, Frequency
from recurra.data.formats import Row
from recurra.data.roles import MISSING, number_in, when
from recurra.data.times import (
    DAY,
    Clock,
    OffGrid,
    after,
    anchor_of,
    clock_of,
    dates,
    inferred,
    inferred_of_numbers,
    numbers_on_grid,
    on_grid,
    wall_offsets,
)
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.sentences import shown
from recurra.reading.steps import Names, Steps

AT_ONCE = 8192
"""Rows whose cells are made arrays together."""

MOST_FILLED = 20
"""Steps without a row, for each row of a table, up to which gaps are filled."""

FEW = 1000
"""So many may be filled in any table."""


def is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def is_number(cell: object) -> bool:
    try:
        number = number_in(cell) if isinstance(cell, str) else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not math.isnan(number) and not is_missing(cell)


def column_of(row: Row, name: str, place: str) -> object:
    if name not in row.values:
        raise DataError(f"{place}: there is no column '{name}'. {did_you_mean(name, row.values)}")
    return row.values[name]


def number_of(cell: object, place: str, column: str, *, refuse: bool) -> float:
    """The number in a cell; NaN for one that is missing, unless that is refused."""
    if is_missing(cell):
        if not refuse:
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


@dataclasses.dataclass
class _Growing:
    """The columns of a table while its rows are read, as lists of arrays."""

    lines: list[NDArray[np.int64]] = dataclasses.field(default_factory=list)
    codes: list[NDArray[np.int64]] = dataclasses.field(default_factory=list)
    times: list[NDArray[Any]] = dataclasses.field(default_factory=list)
    numbers: dict[str, list[NDArray[np.float64]]] = dataclasses.field(default_factory=dict)
    words: dict[str, list[NDArray[np.int64]]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Panel:
    """All rows of a table, series by series, each in the order of time."""

    names: list[str]  # of the series
    lines: NDArray[np.int64]  # (N,)
    group: NDArray[np.int64]  # (N,): the series that a row belongs to
    starts: NDArray[np.int64]  # where each series begins
    numbers: dict[str, NDArray[np.float64]]  # of each column of numbers, NaN where one is missing
    words: dict[str, Names]  # of each column of words
    times: NDArray[np.int64] | None  # (N,) microseconds in UTC
    steps: NDArray[np.float64] | None  # (N,): times that are numbers
    clock: Clock | None


def panel_of(rows: Iterable[Row], path: object, data: ForecastingData, order: str) -> Panel:
    """Read a table; what is wrong with a cell is refused with its line."""
    growing, codes = _Growing(), dict[str, int]()
    spellings: dict[str, dict[str, int]] = {name: {} for name in data.words}
    wanted = [*(data.values or []), *data.covariates]
    reader = _Times(path, data, order)
    is_first = True
    stream = iter(rows)
    while chunk := list(itertools.islice(stream, AT_ONCE)):
        if is_first:
            for name in (*wanted, data.time, data.series):
                if name is not None:
                    column_of(chunk[0], name, f"{path}:{chunk[0].line}")
            is_first = False
        lines = [row.line for row in chunk]
        growing.lines.append(np.array(lines, np.int64))
        growing.codes.append(_series(chunk, path, data, codes))
        if data.time is not None:
            growing.times.append(reader.read(_cells(chunk, data.time, path), lines))
        for name in dict.fromkeys(wanted):
            cells = _cells(chunk, name, path, lenient=data.missing == "previous")
            if name in spellings:
                growing.words.setdefault(name, []).append(_spelled(cells, spellings[name]))
            else:
                refuse = data.missing == "refuse" and name in (data.values or ()) and not data.has_coming
                found = _numbers(cells, lines, path, name, refuse=refuse)
                growing.numbers.setdefault(name, []).append(found)
    group = _joined(growing.codes, None)
    by_series = None if bool((group[1:] >= group[:-1]).all()) else np.argsort(group, kind="stable")
    group = group if by_series is None else group[by_series]
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    words = {}
    for name, parts in growing.words.items():
        known = np.array([*spellings[name]], dtype=object)
        words[name] = known[_joined(parts, by_series)]
    panel = Panel(
        [*codes],
        _joined(growing.lines, by_series),
        group,
        starts,
        {name: _joined(parts, by_series) for name, parts in growing.numbers.items()},
        words,
        None,
        None,
        None,
    )
    if data.time is not None:
        times = _joined(growing.times, by_series)
        if reader.is_date:
            panel.clock = reader.clock
            panel.times = reader.in_utc(times, panel)
        else:
            panel.steps = times
        _check_order(panel, path, data)
    return panel


def _joined(parts: list[NDArray[Any]], order: NDArray[np.int64] | None) -> NDArray[Any]:
    """The parts of a column as one array, in some order; the parts are dropped, so that no column is there twice."""
    found = np.concatenate(parts)
    parts.clear()
    return found if order is None else found[order]


def _series(chunk: Sequence[Row], path: object, data: ForecastingData, codes: dict[str, int]) -> NDArray[np.int64]:
    """The number of the series that each row belongs to; new ones are counted on."""
    if data.series is None:
        codes.setdefault("", 0)
        return np.zeros(len(chunk), np.int64)
    cells = _cells(chunk, data.series, path)
    names = [cell.strip() if isinstance(cell, str) else "" if cell is None else str(cell) for cell in cells]
    if "" in names:
        place = f"{path}:{chunk[names.index('')].line}"
        raise DataError(f"{place}: the row has no series name: '{data.series}' is empty.")
    return np.fromiter((codes.setdefault(name, len(codes)) for name in names), np.int64, len(names))


def _cells(chunk: Sequence[Row], name: str, path: object, *, lenient: bool = False) -> list[Any]:
    try:
        return [row.values[name] for row in chunk]
    except KeyError:
        if lenient:
            return [row.values.get(name) for row in chunk]
        return [column_of(row, name, f"{path}:{row.line}") for row in chunk]


def _numbers(cells: list[Any], lines: Sequence[int], path: object, name: str, *, refuse: bool) -> NDArray[np.float64]:
    try:
        found = np.fromiter(map(float, cells), np.float64, len(cells))
        if np.isfinite(found).all():
            return found
    except (TypeError, ValueError):
        pass
    each = (number_of(cell, f"{path}:{line}", name, refuse=refuse) for cell, line in zip(cells, lines, strict=True))
    return np.fromiter(each, np.float64, len(cells))


def _spelled(cells: list[Any], spellings: dict[str, int]) -> NDArray[np.int64]:
    words = ("" if cell is None else str(cell).strip() for cell in cells)  # "none" may be a name
    return np.fromiter((spellings.setdefault(word, len(spellings)) for word in words), np.int64, len(cells))


class _Times:
    """Reads the column of times; the first cell tells whether these are numbers or dates."""

    def __init__(self, path: object, data: ForecastingData, order: str) -> None:
        self.path, self.data, self.order = path, data, order
        self.is_date: bool | None = None
        self.clock: Clock | None = None
        self.has_offset: bool | None = None  # whether times are written with one

    def read(self, cells: list[Any], lines: Sequence[int]) -> NDArray[Any]:
        """Numbers, or microseconds: in UTC where offsets are written, else as the clock on the wall shows them."""
        if self.is_date is None:
            self.is_date = not is_number(cells[0])
        if not self.is_date:
            try:
                numbers = np.fromiter(map(float, cells), np.float64, len(cells))
                if np.isfinite(numbers).all():
                    return numbers
            except (TypeError, ValueError):
                pass
            return np.fromiter(map(self._number, cells, lines), np.float64, len(cells))
        found = self._iso(cells)
        if found is None:
            found = np.fromiter(map(self._date, cells, lines), np.int64, len(cells))
        longest = max(cells[0], cells[-1], key=lambda cell: len(str(cell)))
        clock = clock_of(str(longest), self.order, self.data.timezone)
        if self.clock is None or len(clock.seconds) + len(clock.between) > len(self.clock.seconds) + len(
            self.clock.between
        ):
            self.clock = clock
        return found

    def _iso(self, cells: list[Any]) -> NDArray[np.int64] | None:
        """Dates as ISO 8601 writes them, without an offset; None where one is something else."""
        if self.has_offset or not all(
            isinstance(cell, str) and cell[4:5] == "-" and 7 <= len(cell) <= 26 and cell[-1].isdecimal()
            for cell in cells
        ):
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of an offset after the time, which NumPy would leave out
                found = np.array(cells, dtype="M8[us]").astype(np.int64)
                self.has_offset = False
                return found
        except (ValueError, Warning):
            return None

    def _number(self, cell: object, line: int) -> float:
        place = f"{self.path}:{line}"
        if is_number(cell) and math.isfinite(number := number_in(str(cell))):
            return number
        if when(str(cell), self.order) is not None:
            raise self._other_kind(cell, place)
        raise self._no_time(cell, place)

    def _date(self, cell: object, line: int) -> int:
        place = f"{self.path}:{line}"
        found = None if is_number(cell) else when(str(cell), self.order)
        if found is None:
            raise self._other_kind(cell, place) if is_number(cell) else self._no_time(cell, place)
        if self.has_offset not in (None, found.tzinfo is not None):
            raise self._other_kind(cell, place)
        self.has_offset = found.tzinfo is not None
        plain = found.replace(tzinfo=None) - (found.utcoffset() or np.timedelta64(0, "us").astype(object))
        return int(np.datetime64(plain, "us").astype(np.int64))

    def _other_kind(self, cell: object, place: str) -> DataError:
        return DataError(
            f"{place}: '{self.data.time}' is {shown(cell)}, but earlier rows contain another kind of time."
        )

    def _no_time(self, cell: object, place: str) -> DataError:
        if is_missing(cell):
            return DataError(
                f"{place}: the row has no time: '{self.data.time}' is empty. Fill it in, or remove the row."
            )
        return DataError(
            f"{place}: '{self.data.time}' must be a number or a date such as 2026-11-15 or 2026-11-15T08:30, "
            f"but is {shown(cell)}."
        )

    def in_utc(self, times: NDArray[np.int64], panel: Panel) -> NDArray[np.int64]:
        """Times on the wall of a zone in UTC: where clocks are set back, an hour comes twice, the second one later."""
        assert self.clock is not None
        zone = self.clock.zone
        if self.has_offset or zone is None:
            return times
        early, late = wall_offsets(times, zone), wall_offsets(times, zone, later=True)
        found = times - early
        is_left_out = early < late  # clocks were put forward over it
        if is_left_out.any():
            row = int(is_left_out.argmax())
            [text] = dataclasses.replace(self.clock, zone=None).written(times[row : row + 1])
            raise DataError(
                f"{self.path}:{panel.lines[row]}: the time {shown(text)} does not exist in {zone}: clocks were put "
                "forward over it. If the clock of this table is never changed, set data.timezone to a zone without "
                "summer time, such as UTC."
            )
        for row in np.flatnonzero(early != late).tolist():
            is_later = row > 0 and panel.group[row - 1] == panel.group[row] and found[row] <= found[row - 1]
            found[row] = times[row] - (late if is_later else early)[row]
        return found


def _check_order(panel: Panel, path: object, data: ForecastingData) -> None:
    """Refuse a time that is there twice, or after a later one."""
    times: NDArray[Any] = panel.steps if panel.steps is not None else panel.times  # type: ignore[assignment]
    is_bad = (panel.group[1:] == panel.group[:-1]) & (np.diff(times) <= 0)
    if not is_bad.any():
        return
    bad = np.flatnonzero(is_bad) + 1
    row = int(bad[panel.lines[bad].argmin()])  # the first in the file
    what = "is there twice" if times[row] == times[row - 1] else "comes after a later one"
    name = panel.names[panel.group[row]]
    text = _text_of(panel, row)
    aside = "." if data.series else ', or name the column that identifies the series: data.series = "…".'
    clock = panel.clock
    if what == "is there twice" and clock is not None and clock.zone is None and clock.offset is None and clock.between:
        aside += " If clocks were set back at that hour, set data.timezone."
    raise DataError(
        f"{path}:{panel.lines[row]}: the time {shown(text)}{f' of {name!r}' if name else ''} {what}. Sort the rows by "
        f"'{data.time}', and give each time only once{aside}"
    )


def _text_of(panel: Panel, row: int) -> str:
    if panel.steps is not None:
        number = float(panel.steps[row])
        return str(int(number)) if number % 1 == 0 else f"{number:.12g}"
    assert panel.clock is not None
    assert panel.times is not None
    [text] = panel.clock.written(panel.times[row : row + 1])
    if not panel.clock.between and panel.clock.wall(panel.times[row : row + 1])[0] % DAY:
        return dataclasses.replace(panel.clock, between=" ", seconds="min").written(panel.times[row : row + 1])[0]
    return text


def frequency_of(panel: Panel, path: object, data: ForecastingData) -> Frequency | None:
    """The step between times that the settings name, or else what fits all of them; None where none does."""
    if (panel.times is None and panel.steps is None) or data.frequency == IRREGULAR:
        return None
    if data.frequency is not None:
        frequency = Frequency.of(str(data.frequency))
        if bool(frequency.unit) != (panel.times is not None):
            what = "numbers" if panel.times is None else "dates"
            unit = "be a number alone, such as 1" if panel.times is None else "have a unit, such as 1h"
            raise DataError(
                f"{path}:{panel.lines[0]}: the times of '{data.time}' are {what}, so data.frequency must {unit}, "
                f"but is '{data.frequency}'."
            )
        return frequency
    if panel.steps is not None:
        return inferred_of_numbers(panel.steps, panel.group)
    assert panel.clock is not None
    assert panel.times is not None
    return inferred(panel.times, panel.clock.wall(panel.times), panel.group)


def places_of(panel: Panel, frequency: Frequency | None, path: object) -> NDArray[np.int64]:
    """(N,): the step at which each row of a series stands."""
    if frequency is None:
        return np.arange(len(panel.group)) - panel.starts[panel.group]
    try:
        if panel.steps is not None:
            found = numbers_on_grid(frequency, panel.steps, panel.group, panel.starts)
        else:
            assert panel.clock is not None
            assert panel.times is not None
            found = on_grid(frequency, panel.times, panel.clock.wall(panel.times), panel.group, panel.starts)
    except OffGrid as error:
        raise DataError(
            f"{path}:{panel.lines[error.row]}: the time {shown(_text_of(panel, error.row))} is no whole number of "
            f"steps after the first one of its series: a step is {frequency.in_words()}. Correct it, or set "
            f'data.frequency = "{IRREGULAR}" to count rows.'
        ) from error
    ends = np.concatenate([panel.starts[1:], [len(found)]])
    missing = int((found[ends - 1] + 1).sum()) - len(found)
    if missing > max(FEW, MOST_FILLED * len(found)):
        apart = np.diff(found) * (panel.group[1:] == panel.group[:-1])
        row = int(apart.argmax()) + 1
        raise DataError(
            f"{path}:{panel.lines[row]}: {int(apart[row - 1]) - 1:,} steps are missing before the time "
            f"{shown(_text_of(panel, row))}: a step is {frequency.in_words()}. Correct the time, or set data.frequency."
        )
    return found


@dataclasses.dataclass(frozen=True)
class _Span:
    """The rows of one series, and the steps that they stand at."""

    rows: slice
    places: NDArray[np.int64]
    length: int  # steps, with those that have no row

    def __call__(self, array: Any, fill: Any) -> Any:
        """What the rows of an array hold, step by step."""
        if array is None or self.length == len(self.places):
            return None if array is None else array[self.rows]
        found = np.full((self.length, *array.shape[1:]), fill, array.dtype)
        found[self.places] = array[self.rows]
        return found

    @property
    def gaps(self) -> int:
        return self.length - len(self.places)

    @property
    def rowless(self) -> NDArray[np.bool_]:
        """(length,): True where no row stands."""
        found = np.ones(self.length, bool)
        found[self.places] = False
        return found


def series_of(panel: Panel, path: object, data: ForecastingData, file: int) -> Iterator[Steps]:
    """The series of a table; steps that it has no row for are missing."""
    frequency = frequency_of(panel, path, data)
    places = places_of(panel, frequency, path)
    ends = np.concatenate([panel.starts[1:], [len(panel.group)]])
    _check_static(panel, path, data)
    values, future, past = (
        np.stack([panel.numbers[name] for name in names], axis=1) if names else None
        for names in (data.values, data.future_numbers, data.past_numbers)
    )
    words = {
        role: np.stack([panel.words[name] for name in names], axis=1) if names else None
        for role, names in data.words_by_role.items()
    }
    for start, end, last in zip(panel.starts.tolist(), ends.tolist(), places[ends - 1].tolist(), strict=True):
        span = _Span(slice(start, end), places[start:end], last + 1)
        x = span(values, np.nan)
        is_known = ~np.isnan(x)
        T = span.length
        if data.has_coming:
            T = int(np.flatnonzero(is_known.any(1))[-1]) + 1 if is_known.any() else 0
        moments = _moments(panel, span, frequency)
        line = int(panel.lines[start])
        found = Steps(
            panel.names[panel.group[start]],
            x[:T],
            is_known[:T],
            file,
            line,
            f"{path}:{line}",
            times=moments[:T] if panel.times is not None and moments is not None else None,
            numbers=moments[:T] if panel.steps is not None and moments is not None else None,
            later=moments[T:] if moments is not None and span.length > T else None,
            future=span(future, np.nan),
            future_names=span(words["future"], ""),
            past=None if past is None else span(past, np.nan)[:T],
            past_names=None if words["past"] is None else span(words["past"], "")[:T],
            static_numbers=np.array([panel.numbers[name][start] for name in data.static_numbers]),
            static_names=tuple(panel.words[name][start] for name in data.static_words),
            clock=panel.clock,
            frequency=frequency,
            rowless=span.rowless[:T] if span.gaps else None,
        )
        yield from _apart(found, data) if data.layout == "wide" else [trimmed(found)]


def _moments(panel: Panel, span: _Span, frequency: Frequency | None) -> NDArray[Any] | None:
    """The time of each step of a series, also of those that have no row."""
    count = np.arange(span.length)
    if panel.steps is not None:
        steps = panel.steps[span.rows]
        return steps[0] + count * frequency.count if span.gaps and frequency is not None else steps
    if panel.times is None or panel.clock is None:
        return None
    times = panel.times[span.rows]
    if span.gaps and frequency is not None:
        times = after(frequency, panel.clock, int(times[0]), count, anchor_of(panel.clock.wall(times)))
    return dates(times)


def _apart(steps: Steps, data: ForecastingData) -> Iterator[Steps]:
    """Each column as a series of its own."""
    for column, name in enumerate(data.values or []):
        only = slice(column, column + 1)
        alone = dataclasses.replace(steps, name=name, values=steps.values[:, only], known=steps.known[:, only])
        if alone.known.any():
            yield trimmed(alone)


def trimmed(steps: Steps) -> Steps:
    """The steps from the first on at which anything is known, each missing value being that of the step before."""
    is_known = np.flatnonzero(steps.known.any(1))
    if len(is_known) and is_known[0]:
        steps = steps.cut(int(is_known[0]), len(steps))
    if steps.known.all():
        return steps
    return dataclasses.replace(steps, values=carried(steps.values, steps.known))


def carried(values: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Each missing value replaced by the one before it; NaN where there is none.

    >>> carried(np.array([[np.nan], [1.0], [np.nan]]), np.array([[False], [True], [False]]))[:, 0].tolist()
    [nan, 1.0, 1.0]
    """
    last = np.maximum.accumulate(np.where(known, np.arange(len(values))[:, None], -1), axis=0)
    found = np.take_along_axis(values, np.maximum(last, 0), axis=0)
    found[last < 0] = np.nan
    return found


def _check_static(panel: Panel, path: object, data: ForecastingData) -> None:
    """Refuse a column that should be the same for a whole series and changes."""
    same = panel.group[1:] == panel.group[:-1]
    for name in (*data.static_numbers, *data.static_words):
        column: Any = panel.numbers[name] if name in panel.numbers else panel.words[name]
        differs: NDArray[np.bool_] = np.not_equal(column[1:], column[:-1]).astype(np.bool_)
        if name in panel.numbers:
            differs &= ~(np.isnan(column[1:]) & np.isnan(column[:-1]))
        if (differs & same).any():
            row = int(np.flatnonzero(differs & same)[0]) + 1
            of = panel.names[panel.group[row]]
            old, new = column[row - 1 : row + 1].tolist()
            raise DataError(
                f"{path}:{panel.lines[row]}: '{name}' changes from {shown(old)} to {shown(new)} "
                f"within the series{f' {of!r}' if of else ''}, but data.static names it as the same for all of it. "
                "Name it in data.future or data.past."
            )
