"""Parts of a date as numbers that a network can read: where in its cycle each one stands, and whether it is a holiday.

    a part with n values that is at p (from 0)      sin 2π p/n,  cos 2π p/n

so that December stands beside January and 23 h beside 0 h. Hours count their minutes in; a day of the month or of the
year is measured by the length of its own month or year. A holiday is 1, any other day 0.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recurra.data.files import lines
from recurra.data.roles import when
from recurra.data.times import DAY
from recurra.errors import DataError

HOLIDAY = "holiday"


def width(parts: Sequence[str]) -> int:
    """How many numbers some parts of a date are.

    >>> width(["hour", "holiday"])
    3
    """
    return sum(1 if part == HOLIDAY else 2 for part in parts)


def features(wall: NDArray[np.int64], parts: Sequence[str], holidays: Collection[int] = ()) -> NDArray[np.float64]:
    """(T, width): the parts of some times, in microseconds as the clock on the wall shows them.

    >>> noon = np.array([DAY // 2])
    >>> features(noon, ["hour"]).round(6).tolist()
    [[0.0, -1.0]]
    """
    found: list[NDArray[np.float64]] = []
    for part in parts:
        if part == HOLIDAY:
            found.append(np.isin(wall // DAY, np.array(sorted(holidays), np.int64)).astype(np.float64))
        else:
            angle = 2 * np.pi * _phase(wall, part)
            found += [np.sin(angle), np.cos(angle)]
    return np.stack(found, axis=1) if found else np.zeros((len(wall), 0))


def _phase(wall: NDArray[np.int64], part: str) -> NDArray[np.float64]:
    """p/n of each time: from 0 up to 1."""
    if part == "hour":
        return (wall % DAY) / DAY
    day = wall // DAY
    if part == "weekday":
        return ((day + 3) % 7) / 7  # the first of January 1970 was a Thursday; a week begins on Monday
    days = day.astype("M8[D]")
    months, years = days.astype("M8[M]"), days.astype("M8[Y]")
    if part == "month":
        return (months.astype(np.int64) % 12) / 12
    if part == "quarter":
        return (months.astype(np.int64) % 12 // 3) / 4
    if part == "day":
        return _share(days, months)
    of_year = _share(days, years)
    return of_year if part == "day_of_year" else np.floor(of_year * 53) / 53


def _share(days: NDArray[np.datetime64], spans: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """How much of its month, or year, was over when each day began."""
    first, after = spans.astype("M8[D]"), (spans + 1).astype("M8[D]")
    return (days - first).astype(np.float64) / (after - first).astype(np.float64)


def read_holidays(path: str | Path) -> list[int]:
    """The days since 1970 that a file lists, one a line, a name after a comma or a tab; "#" begins a remark."""
    found = []
    for number, line in lines(path):
        text = line.split("#")[0].replace("\t", ",").split(",")[0].strip()
        if not text:
            continue
        day = when(text)
        if day is None:
            if number == 1 and text.replace("_", "").isalpha():  # the name of the column
                continue
            raise DataError(f"{path}:{number}: a holiday must be a date such as 2026-12-25, but is '{text:.40}'.")
        found.append((day.date() - datetime.date(1970, 1, 1)).days)
    if not found:
        raise DataError(f"'{path}' lists no holidays: it needs a date such as 2026-12-25 on each line.")
    return sorted({*found})
