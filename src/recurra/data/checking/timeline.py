"""When the steps of a table's series are: how many series there are, how far apart their steps, and what is missing."""

from __future__ import annotations

import datetime
import itertools
import math
from array import array
from collections.abc import Iterable

import numpy as np

from recurra.data.checking.series import SeriesTable
from recurra.data.formats.reader import Row
from recurra.data.roles import number_in, order_of, when
from recurra.data.times import DAY, OffGrid, inferred, inferred_of_numbers, numbers_on_grid, on_grid

LOOKED_AT = 1000
"""Rows whose dates tell the order of day, month and year."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def timeline_in_words(rows: Iterable[Row], table: SeriesTable) -> str | None:
    """What forecasting takes the rows of a table for; None where its names are not those of the rows.

    >>> rows = [Row({"date": f"2026-01-0{day}", "x": "1"}, day) for day in (1, 2, 4)]
    >>> timeline_in_words(rows, SeriesTable("date", None, ["x"], [], False, []))
    'one series of 3 rows; time: date, a step is a day; 1 step has no row and is read as missing; values: x'
    """
    stream = iter(rows)
    ahead = list(itertools.islice(stream, LOOKED_AT))
    names = [table.time, *([table.series] if table.series is not None else [])]
    if not ahead or any(name not in ahead[0].values for name in names):
        return None
    texts = [str(row.values.get(table.time, "")).strip() for row in ahead]
    is_number = not math.isnan(number_in(texts[0]))
    order = "ymd" if is_number else order_of(texts) or "ymd"
    codes: dict[str, int] = {}
    group, times = array("q"), array("d")
    for row in itertools.chain(ahead, stream):
        cell = str(row.values.get(table.time, "")).strip()
        date = None if is_number else when(cell, order)
        if date is None and not is_number:
            return None
        if date is not None:
            date = date if date.tzinfo is not None else date.replace(tzinfo=datetime.UTC)
        times.append(number_in(cell) if date is None else (date - _EPOCH) / datetime.timedelta(microseconds=1))
        series = "" if table.series is None else str(row.values.get(table.series, ""))
        group.append(codes.setdefault(series, len(codes)))
    which, when_ = np.array(group, np.int64), np.array(times)
    order_in_series = np.lexsort((when_, which))
    which, when_ = which[order_in_series], when_[order_in_series]
    return "; ".join([_series_in_words(table, codes, len(which)), *_steps(table, which, when_, is_number)])


def _series_in_words(table: SeriesTable, codes: dict[str, int], rows: int) -> str:
    return f"one series of {rows:,} rows" if table.series is None else f"{len(codes):,} series ({table.series})"


def _steps(table: SeriesTable, group: np.ndarray, times: np.ndarray, is_number: bool) -> list[str]:
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    same = group[1:] == group[:-1]
    values = f"values: {', '.join(table.values)}"
    if (np.diff(times)[same] <= 0).any():
        return [f"time: {table.time}, in which a time is there twice", values]
    whole = times.round().astype(np.int64)
    frequency = inferred_of_numbers(times, group) if is_number else inferred(whole, whole, group)
    if frequency is None:
        if not same.any():
            return [f"time: {table.time}", values]
        return [f"time: {table.time}, irregular: rows are counted", values]
    try:
        places = (
            numbers_on_grid(frequency, times, group, starts)
            if is_number
            else on_grid(frequency, whole, whole, group, starts)
        )
    except OffGrid:
        return [f"time: {table.time}, irregular: rows are counted", values]
    ends = np.concatenate([starts[1:], [len(group)]])
    lengths = ends - starts
    gaps = int((places[ends - 1] + 1 - lengths).sum())
    said = [f"time: {table.time}, a step is {frequency.in_words()}"]
    if gaps:
        said.append(
            f"{gaps:,} step{'s have' if gaps > 1 else ' has'} no row and {'are' if gaps > 1 else 'is'} read as missing"
        )
    if table.series is not None:
        said.append(f"{int(lengths.min()):,} to {int(lengths.max()):,} rows in a series")
    if not is_number and (whole % DAY).any() and frequency.unit in ("h", "min"):
        said.append("data.calendar can read the hour and the weekday")
    return [*said, values]
