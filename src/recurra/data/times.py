"""The times of a table: how they are written, how far apart they are, and which come after the last.

Times are whole numbers of microseconds since 1970: in UTC (u), and as a clock on the wall shows them (w).

    w = u + offset(u)                                   of a time zone, or one offset for all; without either w = u

    seconds, minutes, hours                             u_n = u_0 + n · step
    days, weeks                                         w_n = w_0 + n · step         so that noon stays noon
    weekdays                                            w_n = the n-th day from w_0 that is no Saturday and no Sunday
    months, quarters, years                             w_n = the same day n · m months later, or the last of the month
    numbers                                             x_n = x_0 + n · step
"""

from __future__ import annotations

import dataclasses
import datetime
import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config.frequency import DAYS, MONTHS, SECONDS, Frequency

Micros = NDArray[np.int64]

SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND

FIXED: Final = {unit: seconds * SECOND for unit, seconds in SECONDS.items()}

LEAST_MONTH: Final = 28 * DAY

WEEK: Final = 5
"""Days that must be there, none at a weekend, before days are taken for weekdays."""


TOGETHER: Final = 1 << 15
"""Rows, at least, of whole series that are looked at together: a table of millions takes no more memory than these."""


class OffGrid(Exception):
    """Times that are no whole number of steps from the first; the number of one such row."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row}")
        self.row = row


@dataclasses.dataclass(frozen=True)
class Clock:
    """How the dates of a table are read and written."""

    form: str = "ymd-"  # the order of year, month and day and what stands between them; "ym-" without days
    between: str = ""  # date and time of day; "" where there is only a date
    seconds: str = ""  # "min", "s" or "us": what the time of day ends with
    offset: int | None = None  # seconds ahead of UTC that are written with each time; None where none is
    suffix: str = ""  # "Z" where that is how UTC is written
    zone: str | None = None  # the time zone of the wall

    def wall(self, utc: Micros) -> Micros:
        """What the clock on the wall shows."""
        if self.zone is not None:
            return utc + offsets(utc, self.zone)
        return utc + (self.offset or 0) * SECOND

    def utc(self, wall: Micros) -> Micros:
        """The time at which the clock shows this; of an hour that comes twice the first, of one left out the next."""
        if self.zone is None:
            return wall - (self.offset or 0) * SECOND
        return wall - wall_offsets(wall, self.zone)

    def written(self, utc: Micros) -> list[str]:
        """Times as the table writes them.

        >>> [text] = Clock("dmy.", " ", "min").written(np.array([86_400 * SECOND]))
        >>> text
        '02.01.1970 00:00'
        """
        found = []
        wall = self.wall(utc)
        for number, instant in zip(wall.tolist(), utc.tolist(), strict=True):
            moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=number)
            parts = {"y": f"{moment.year:04}", "m": f"{moment.month:02}", "d": f"{moment.day:02}"}
            text = self.form[-1].join(parts[part] for part in self.form[:-1])
            if self.between:
                spec = {"min": "minutes", "s": "seconds"}.get(self.seconds, "microseconds")
                text += self.between + moment.time().isoformat(spec)
            if self.suffix:
                text += self.suffix
            elif self.offset is not None:
                ahead = (number - instant) // SECOND // 60
                text += f"{'-' if ahead < 0 else '+'}{abs(ahead) // 60:02}:{abs(ahead) % 60:02}"
            found.append(text)
        return found

    def to_json(self) -> dict[str, object]:
        return dataclasses.asdict(self)


_WRITTEN = re.compile(
    r"(\d+)(?P<by>[./-])(\d+)(?:(?P=by)(\d+))?"
    r"(?:(?P<between>[ T])\d{1,2}(?::\d\d(?P<s>:\d\d(?P<us>[.,]\d+)?)?)?)?\s*(?P<zone>Z|[+-]\d\d:?\d\d)?"
)


def clock_of(text: str, order: str, zone: str | None) -> Clock:
    """How a date is written, where the order of its parts is known.

    >>> clock_of("2016-07-01 00:00:00", "ymd", None)
    Clock(form='ymd-', between=' ', seconds='s', offset=None, suffix='', zone=None)
    >>> clock_of("31.12.2023", "dmy", "Europe/Berlin").form
    'dmy.'
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:  # such as 20160701, which Python reads as well
        return Clock(between="T", seconds="s", zone=zone)
    form = (order if found[4] else "ym") + found["by"]
    seconds = "us" if found["us"] else "s" if found["s"] else "min"
    between = found["between"] or ""
    offset = None
    if found["zone"]:
        sign, digits = found["zone"][:1], re.sub(r"\D", "", found["zone"])
        offset = 0 if sign == "Z" else (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if sign == "-" else 1)
    suffix = "Z" if found["zone"] == "Z" and zone is None else ""
    return Clock(form, between, seconds if between else "", offset, suffix, zone)


def dates(utc: Micros) -> NDArray[np.datetime64]:
    """Times as dates, in whole seconds where that loses nothing."""
    found = utc.astype("M8[us]")
    return found.astype("M8[s]") if not (utc % SECOND).any() else found


def offsets(utc: Micros, zone: str) -> Micros:
    """How far a zone is ahead of UTC at some times, in microseconds."""
    return _by_day(utc, lambda number: _offset_at(number, zone))


def wall_offsets(wall: Micros, zone: str, *, later: bool = False) -> Micros:
    """How far a zone is ahead of UTC when its clocks show this; `later`: the second time, where they do so twice."""
    return _by_day(wall, lambda number: _wall_offset(number, zone, later))


def _by_day(times: Micros, offset: Callable[[int], int]) -> Micros:
    """Offsets are looked up once for a day on which they do not change."""
    days, which = np.unique(times // DAY, return_inverse=True)
    first = np.array([offset(int(day) * DAY) for day in days], np.int64)
    last = np.array([offset((int(day) + 1) * DAY - 1) for day in days], np.int64)
    found = first[which]
    for row in np.flatnonzero((first != last)[which]):
        found[row] = offset(int(times[row]))
    return found


_EPOCH = datetime.datetime(1970, 1, 1)


def _offset_at(utc: int, zone: str) -> int:
    moment = (_EPOCH + datetime.timedelta(microseconds=utc)).replace(tzinfo=datetime.UTC)
    return _micros(moment.astimezone(zoneinfo.ZoneInfo(zone)).utcoffset())


def _wall_offset(wall: int, zone: str, later: bool) -> int:
    moment = (_EPOCH + datetime.timedelta(microseconds=wall)).replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=int(later))
    return _micros(moment.utcoffset())


def _micros(delta: datetime.timedelta | None) -> int:
    return 0 if delta is None else delta // datetime.timedelta(microseconds=1)


def inferred_of_numbers(numbers: NDArray[np.float64], group: NDArray[np.int64]) -> Frequency | None:
    """The step that most numbers are apart, where all others are whole multiples of it; None where none is.

    >>> str(inferred_of_numbers(np.array([0.0, 0.5, 1.5, 7.0, 7.5]), np.array([0, 0, 0, 1, 1])))
    '0.5'
    """
    apart = np.diff(numbers)[group[1:] == group[:-1]]
    if not len(apart):
        return None
    steps, counts = np.unique(apart.round(9), return_counts=True)
    step = float(steps[counts.argmax()])
    shares = steps / step
    is_whole = np.abs(shares - shares.round()).max() < 1e-6
    return Frequency(step, "") if is_whole and _is_usual(shares.round(), counts) else None


def _is_usual(steps: NDArray[Any], counts: NDArray[np.int64]) -> bool:
    """Whether times of which so many are so many steps apart are regular with gaps: half are one, or are there."""
    return bool(counts[steps == 1].sum() >= 0.5 * counts.sum() or counts.sum() >= 0.5 * (steps * counts).sum())


def _blocks(group: NDArray[np.int64]) -> Iterator[slice]:
    """Rows that are looked at together, of whole series: `group` ascends.

    >>> list(_blocks(np.repeat([0, 1, 2], TOGETHER // 2)))
    [slice(0, 32768, None), slice(32768, 49152, None)]
    """
    first = 0
    while first < len(group):
        last = min(first + TOGETHER, len(group))
        last = int(np.searchsorted(group, group[last - 1], side="right"))
        yield slice(first, last)
        first = last


class _Apart(NamedTuple):
    """How far apart times of a series are, and how many of them."""

    values: NDArray[np.int64]  # ascending
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, times: NDArray[np.int64], group: NDArray[np.int64]) -> _Apart:
        return cls(*np.unique(np.diff(times)[group[1:] == group[:-1]], return_counts=True))

    @classmethod
    def together(cls, parts: Iterable[_Apart]) -> _Apart:
        values, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
        found, which = np.unique(values, return_inverse=True)
        return cls(found, np.bincount(which, counts, len(found)).astype(np.int64))


def inferred(utc: Micros, wall: Micros, group: NDArray[np.int64]) -> Frequency | None:
    """The step that fits all times, of ascending rows that stand series by series; None where none does.

    >>> days = np.array([0, 31, 59, 90]) * DAY
    >>> str(inferred(days, days, np.zeros(4, int))), str(inferred(days[:3] * 2, days[:3] * 2, np.zeros(3, int)))
    ('1mo', 'None')
    """
    blocks = list(_blocks(group))
    if not blocks:
        return None
    apart, on_wall = (_Apart.together(_Apart.of(each[rows], group[rows]) for rows in blocks) for each in (utc, wall))
    if not len(apart.values):
        return None
    if on_wall.values[0] >= LEAST_MONTH and (months := _months_apart(wall, group, blocks)) is not None:
        step = int(np.gcd.reduce(months.values))
        if not _is_usual(months.values // step, months.counts):
            return None
        unit = "y" if step % 12 == 0 else "q" if step % 3 == 0 else "mo"
        return Frequency(step // MONTHS[unit], unit)
    if (on_wall.values % DAY == 0).all():
        days, counts = on_wall.values // DAY, on_wall.counts
        step = int(days[counts.argmax()])
        if (days % step == 0).all() and _is_usual(days // step, counts):
            is_long = step == 1 and len(wall) >= WEEK and days[-1] > 1
            if is_long and all(np.is_busday(_days(wall[rows])).all() for rows in blocks):
                return Frequency(1, "b")
            return Frequency(step // 7, "w") if step % 7 == 0 else Frequency(step, "d")
    fixed = int(apart.values[apart.counts.argmax()])
    if (apart.values % fixed != 0).any() or not _is_usual(apart.values // fixed, apart.counts):
        return None
    unit = next(unit for unit in ("h", "min", "s") if fixed % FIXED[unit] == 0 or unit == "s")
    return Frequency(fixed / FIXED[unit], unit)


def _months_apart(wall: Micros, group: NDArray[np.int64], blocks: Iterable[slice]) -> _Apart | None:
    parts = []
    for rows in blocks:
        months = _months(wall[rows], group[rows])
        if months is None:
            return None
        parts.append(_Apart.of(months, group[rows]))
    return _Apart.together(parts)


def on_grid(
    frequency: Frequency, utc: Micros, wall: Micros, group: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(N,): how many steps after the first of its series each row comes; OffGrid where that is no whole number."""
    found = np.empty(len(group), np.int64)
    for rows in _blocks(group):
        first, code = rows.start, group[rows.start]
        begin = starts[code : group[rows.stop - 1] + 1] - first
        try:
            found[rows] = _on_grid(frequency, utc[rows], wall[rows], group[rows] - code, begin)
        except OffGrid as error:
            raise OffGrid(first + error.row) from None
    return found


def _on_grid(
    frequency: Frequency, utc: Micros, wall: Micros, group: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    unit, count = frequency.unit, int(frequency.count)
    if unit in MONTHS:
        months = _months(wall, group)
        if months is None:
            raise OffGrid(_odd_day(wall, group))
        return _whole(months - months[starts][group], count * MONTHS[unit])
    if unit in DAYS:
        return _whole(wall - wall[starts][group], count * DAYS[unit] * DAY)
    if unit == "b":
        days = _days(wall)
        is_off = ~np.is_busday(days) | ((wall - wall[starts][group]) % DAY != 0)
        if is_off.any():
            raise OffGrid(int(is_off.argmax()))
        counted: NDArray[np.int64] = np.busday_count(days[starts][group], days).astype(np.int64)
        return _whole(counted, count)
    return _whole(utc - utc[starts][group], round(frequency.count * FIXED[unit]))


def numbers_on_grid(
    frequency: Frequency, numbers: NDArray[np.float64], group: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The same of times that are numbers."""
    steps = (numbers - numbers[starts][group]) / frequency.count
    is_off = np.abs(steps - steps.round()) > 1e-6
    if is_off.any():
        raise OffGrid(int(is_off.argmax()))
    return steps.round().astype(np.int64)


def after(
    frequency: Frequency, clock: Clock, start: int, places: NDArray[np.int64], anchor: int | None = None
) -> Micros:
    """The times, in UTC, so many steps after a first one; months are counted by the day `anchor`, or that of the first.

    >>> leap = int(np.datetime64("2024-01-31", "us").astype(int))
    >>> [text[5:] for text in Clock().written(after(Frequency(1, "mo"), Clock(), leap, np.array([0, 1, 2])))]
    ['01-31', '02-29', '03-31']
    """
    unit, count = frequency.unit, int(frequency.count)
    if unit in FIXED:
        return start + places * round(frequency.count * FIXED[unit])
    first = int(clock.wall(np.array([start]))[0])
    if unit in DAYS:
        return clock.utc(first + places * count * DAYS[unit] * DAY)
    day = np.datetime64(first // DAY, "D")
    of_day = first % DAY
    if unit == "b":
        days = np.busday_offset(day, places * count, roll="forward").astype(np.int64)
        return clock.utc(days * DAY + of_day)
    anchor = anchor_of(np.array([first])) if anchor is None else anchor
    return clock.utc(_month_days(day.astype("M8[M]"), anchor, places * count * MONTHS[unit]) * DAY + of_day)


def anchor_of(wall: Micros) -> int:
    """The day of the month that times stand on; 31 where each is on the last of its month.

    >>> days = np.array(["2023-02-28", "2023-04-30"], "M8[D]").astype(int) * DAY
    >>> anchor_of(days), anchor_of(days[:1] - DAY)
    (31, 27)
    """
    _, day, longest, _ = _parts(wall)
    return 31 if (day == longest).all() else int(day.max())


def _month_days(month: np.datetime64, anchor: int, later: NDArray[np.int64]) -> NDArray[np.int64]:
    months = month + later
    first, after = months.astype("M8[D]"), (months + 1).astype("M8[D]")
    longest = (after - first).astype(np.int64)
    found: NDArray[np.int64] = first.astype(np.int64) + np.minimum(anchor, longest) - 1
    return found


def _days(wall: Micros) -> NDArray[np.datetime64]:
    return (wall // DAY).astype("M8[D]")


def _parts(wall: Micros) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of each time the month since 1970, the day in it, its number of days, and the time of day."""
    days = _days(wall)
    months = days.astype("M8[M]")
    first, after = months.astype("M8[D]"), (months + 1).astype("M8[D]")
    number = (days - first).astype(np.int64) + 1
    return months.astype(np.int64), number, (after - first).astype(np.int64), wall % DAY


def _is_odd(wall: Micros, group: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which times do not stand on the day of the month, or at the time of day, that is usual in their series."""
    _, day, longest, of_day = _parts(wall)
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    anchor = np.maximum.reduceat(day, starts)[np.cumsum(np.isin(np.arange(len(group)), starts)) - 1]
    first = np.repeat(of_day[starts], np.diff([*starts, len(group)]))
    found: NDArray[np.bool_] = (day != np.minimum(anchor, longest)) | (of_day != first)
    return found


def _months(wall: Micros, group: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The month of each time, where all stand on the same day of it, or on its last one; else None."""
    return None if _is_odd(wall, group).any() else _parts(wall)[0]


def _odd_day(wall: Micros, group: NDArray[np.int64]) -> int:
    return int(_is_odd(wall, group).argmax())


def _whole(apart: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    is_off = apart % step != 0
    if is_off.any():
        raise OffGrid(int(is_off.argmax()))
    return apart // step
