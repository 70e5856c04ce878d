"""Whether a table holds series: a time, and numbers that belong to it."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recurra.data.formats.reader import Value
from recurra.data.roles import IDS, MOMENTS, ORDERS, SERIES, TIMES, is_called, number_in, when

MISSING = ("", "na", "nan", "null", "none")
"""How tables write that a value is not known."""

FEWEST = 3
"""Rows that a series needs before a column that grows is taken for its time."""


class SeriesTable(NamedTuple):
    """The columns of a table whose rows are steps of one series, or of several."""

    time: str
    series: str | None  # says which series a row belongs to
    values: list[str]
    others: list[str]  # numbers too, but no values, such as an id
    has_missing: bool
    left_out: list[str]  # columns that are neither
    is_guess: bool = False  # the time is a column of numbers that ascend, not called a time

    @property
    def has_more(self) -> bool:
        return bool(self.left_out)


class SeriesSurvey:
    """Sees the rows of a table, one by one.

    >>> survey = SeriesSurvey()
    >>> for row in [("month", "rain"), ("2026-01", "31"), ("2026-02", "12.5"), ("2026-03", "")]:
    ...     survey.see(dict(zip(["column1", "column2"], row)))
    >>> survey.found("csv", [])
    SeriesTable(time='month', series=None, values=['rain'], others=[], has_missing=True, left_out=[], is_guess=False)
    """

    def __init__(self) -> None:
        self.rows = 0
        self.first: Mapping[str, Value] = {}
        self.cells: dict[str, _Cells] = {}
        self.below_first: dict[str, _Cells] = {}

    def see(self, values: Mapping[str, Value]) -> None:
        if not self.rows:
            self.first = values
            self.cells = {name: _Cells() for name in values}
            self.below_first = {name: _Cells() for name in values}
        for name in self.first:
            value = values.get(name)
            self.cells[name].see(value)
            if self.rows:
                self.below_first[name].see(value)
        self.rows += 1

    def found(self, format: str, labels: Sequence[str]) -> SeriesTable | None:
        """What the table holds, or None; labels are the columns whose values recur."""
        has_header = self._has_header(format)
        if self.rows - has_header < FEWEST:
            return None
        cells = self.below_first if has_header else self.cells
        called = {name: str(value).strip() if has_header else name for name, value in self.first.items()}
        time = _time(cells, called)
        if time is None:
            return None
        texts = [name for name, seen in cells.items() if seen.kinds == {"text"}]
        series = next((name for name in cells if called[name].lower() in SERIES and name != time), None)
        if series is None and not cells[time].grows:
            series = next((name for name in texts if name in labels), None)
        numbers = [
            name
            for name, seen in cells.items()
            if seen.kinds - {"missing"} == {"number"} and name not in (time, series)
        ]
        values = [name for name in numbers if not is_called(called[name], IDS)]
        left_out = [called[name] for name in cells if name not in (time, series, *numbers)]
        is_guess = cells[time].kinds == {"number"} and not is_called(called[time], (*TIMES, *MOMENTS))
        if not values or (series is None and not cells[time].grows) or (is_guess and left_out):
            return None
        return SeriesTable(
            called[time],
            None if series is None else called[series],
            [called[name] for name in values],
            [called[name] for name in numbers if name not in values],
            any("missing" in cells[name].kinds for name in values),
            left_out,
            is_guess,
        )

    def _has_header(self, format: str) -> bool:
        """Whether the first row of a table reads like names: no number is in it, though there are below."""
        is_unnamed = format in ("csv", "tsv") and all(re.fullmatch("column[0-9]+", name) for name in self.first)
        return is_unnamed and all(_cell(value)[0] == "text" for value in self.first.values())


def _time(cells: Mapping[str, _Cells], called: Mapping[str, str]) -> str | None:
    """The column that is called a time, or else dates that grow from row to row, or else numbers in the first one."""
    timely = [name for name, seen in cells.items() if seen.kinds in ({"date"}, {"number"})]
    for usual in MOMENTS:
        if (found := next((name for name in timely if called[name].lower() == usual), None)) is not None:
            return found
    growing = [name for name in timely if cells[name].grows and not is_called(called[name], IDS)]
    dated = [name for name in timely if cells[name].kinds == {"date"}]
    dates = [name for name in growing if name in dated] or (dated if len(dated) == 1 else [])
    return next(iter(dates or [name for name in growing if name == next(iter(cells))]), None)


class _Cells:
    """What kinds of cells a column has, and whether each is greater than the one before."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.last = dict.fromkeys(ORDERS, -math.inf)  # by the order of day, month and year; of a number by any

    @property
    def grows(self) -> bool:
        return bool(self.last)

    def see(self, value: Value) -> None:
        if "text" in self.kinds:  # no series, whatever else it holds
            return
        kind, numbers = _cell(value)
        self.kinds.add(kind)
        self.last = {order: numbers[order] for order, last in self.last.items() if numbers.get(order, last) > last}


def _cell(value: Value) -> tuple[str, dict[str, float]]:
    """What a cell holds, number, date, missing, or text, which is all else; and as a number, by each order of dates.

    >>> _cell("1970-01-02"), _cell("2.5")[1]["ymd"], _cell("a")[0], _cell("NA")[0]
    (('date', {'ymd': 86400.0}), 2.5, 'text', 'missing')
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in MISSING):
        return "missing", {}
    if isinstance(value, list):
        return "text", {}
    if not math.isnan(number := number_in(str(value))):
        return "number", dict.fromkeys(ORDERS, number)
    found = {order: when(str(value), order) for order in ORDERS}
    dates = {order: date for order, date in found.items() if date is not None}
    return ("date" if dates else "text"), {
        order: (date if date.tzinfo is not None else date.replace(tzinfo=datetime.UTC)).timestamp()
        for order, date in dates.items()
    }
