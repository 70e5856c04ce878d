"""Times of tables against Python's datetime: what is inferred, what comes next and what a clock on the wall shows."""

from __future__ import annotations

import calendar as python_calendar
import datetime
import math
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.config.frequency import Frequency, checked_zone
from recurra.data.calendar import features, read_holidays
from recurra.data.times import (
    DAY,
    SECOND,
    TOGETHER,
    Clock,
    OffGrid,
    after,
    anchor_of,
    clock_of,
    dates,
    inferred,
    on_grid,
)
from recurra.errors import ConfigError, DataError

EPOCH = datetime.datetime(1970, 1, 1)
DATES = st.datetimes(datetime.datetime(1975, 1, 1), datetime.datetime(2060, 1, 1)).map(
    lambda date: date.replace(microsecond=0)
)


def micros(date: datetime.datetime) -> int:
    return (date - EPOCH) // datetime.timedelta(microseconds=1)


def later(date: datetime.datetime, count: int, unit: str) -> datetime.datetime:
    """So many units later, one at a time where the calendar decides."""
    if unit in ("s", "min", "h", "d", "w"):
        name = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}[unit]
        return date + datetime.timedelta(**{name: count})
    if unit == "b":
        while count:
            date += datetime.timedelta(days=1)
            count -= date.weekday() < 5
        return date
    month = date.month - 1 + count * {"mo": 1, "q": 3, "y": 12}[unit]
    year, month = date.year + month // 12, month % 12 + 1
    return date.replace(year=year, month=month, day=min(date.day, python_calendar.monthrange(year, month)[1]))


@given(DATES, st.sampled_from(["s", "min", "h", "d", "w", "b", "mo", "q", "y"]), st.integers(1, 3), st.integers(6, 30))
def test_the_steps_of_a_frequency_are_those_of_the_calendar_and_are_found_again(
    start: datetime.datetime, unit: str, count: int, steps: int
) -> None:
    if unit in ("mo", "q", "y"):
        start = start.replace(day=min(start.day, 27))
    if unit == "b":
        start, count = later(start, 1, "b"), 1
    frequency = Frequency(count, unit)
    wanted = np.array([micros(later(start, number * count, unit)) for number in range(steps)])
    places = np.arange(steps)
    assert after(frequency, Clock(), int(wanted[0]), places).tolist() == wanted.tolist()
    group, starts = np.zeros(steps, np.int64), np.zeros(1, np.int64)
    found = inferred(wanted, wanted, group)
    assert found is not None
    assert after(found, Clock(), int(wanted[0]), places).tolist() == wanted.tolist(), str(found)
    holes = np.sort(np.random.default_rng(steps).choice(steps, steps - 2, replace=False))
    holes = np.unique([0, *holes.tolist()])
    some = wanted[holes]
    assert on_grid(frequency, some, some, group[: len(some)], starts).tolist() == holes.tolist()


def test_a_month_goes_by_its_last_day_where_each_time_does() -> None:
    ends = np.array(["2023-01-31", "2023-02-28", "2023-03-31", "2023-04-30"], "M8[us]").astype(np.int64)
    group = np.zeros(4, np.int64)
    assert str(inferred(ends, ends, group)) == "1mo"
    assert anchor_of(ends) == 31
    following = after(Frequency(1, "mo"), Clock(), int(ends[-1]), np.array([1, 10]), anchor_of(ends))
    assert Clock().written(following) == ["2023-05-31", "2024-02-29"]
    thirtieth = np.array(["2023-04-30", "2023-05-30"], "M8[us]").astype(np.int64)
    assert Clock().written(
        after(Frequency(1, "mo"), Clock(), int(thirtieth[0]), np.array([1]), anchor_of(thirtieth))
    ) == ["2023-05-30"]


def test_weekdays_and_irregular_times_are_told_apart() -> None:
    group = np.zeros(6, np.int64)
    week = np.array(["2024-03-04", "2024-03-05", "2024-03-06", "2024-03-07", "2024-03-08", "2024-03-11"], "M8[us]")
    assert str(inferred(week.astype(np.int64), week.astype(np.int64), group)) == "1b"
    odd = np.array([0, 7, 13, 21, 27, 36]) * SECOND
    assert inferred(odd, odd, group) is None
    with pytest.raises(OffGrid) as caught:
        on_grid(Frequency(7, "s"), odd, odd, group, np.zeros(1, np.int64))
    assert caught.value.row == 2


@given(DATES, st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"]))
def test_a_clock_on_the_wall_shows_what_zoneinfo_says(start: datetime.datetime, zone: str) -> None:
    clock = Clock(zone=zone)
    utc = np.array([micros(start) + number * 17 * 3600 * SECOND for number in range(12)])
    wall = [
        (EPOCH + datetime.timedelta(microseconds=each))
        .replace(tzinfo=datetime.UTC)
        .astimezone(ZoneInfo(zone))
        .replace(tzinfo=None)
        for each in utc.tolist()
    ]
    assert clock.wall(utc).tolist() == [micros(each) for each in wall]
    noon = np.array([micros(each.replace(hour=12, minute=0, second=0)) for each in wall])
    assert clock.wall(clock.utc(noon)).tolist() == noon.tolist()


def test_days_of_a_zone_begin_at_its_midnight_through_summer_time() -> None:
    clock = Clock(between=" ", seconds="min", zone="Europe/Berlin")
    start = int(clock.utc(np.array([micros(datetime.datetime(2024, 3, 30))]))[0])
    assert clock.written(after(Frequency(1, "d"), clock, start, np.arange(3))) == [
        "2024-03-30 00:00",
        "2024-03-31 00:00",
        "2024-04-01 00:00",
    ]
    hours = after(Frequency(1, "h"), clock, start, np.arange(25, 28))
    assert clock.written(hours) == ["2024-03-31 01:00", "2024-03-31 03:00", "2024-03-31 04:00"]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("2016-07-01 00:00:00", "ymd"),
        ("2016-07-01T08:30", "ymd"),
        ("2016-07", "ymd"),
        ("31.12.2023", "dmy"),
        ("12/31/2023 10:05", "mdy"),
        ("2016-07-01T08:30:00Z", "ymd"),
        ("2016-07-01T08:30:00+02:00", "ymd"),
        ("2016-07-01T08:30:00-03:30", "ymd"),
    ],
)
def test_times_are_written_as_the_table_writes_them(text: str, order: str) -> None:
    from recurra.data.roles import when

    date = when(text, order)
    assert date is not None
    utc = micros(date.replace(tzinfo=None)) - micros(EPOCH + (date.utcoffset() or datetime.timedelta()))
    assert clock_of(text, order, None).written(np.array([utc])) == [text]


def test_dates_are_kept_in_seconds_unless_they_have_parts_of_one() -> None:
    assert dates(np.array([SECOND])).dtype == "M8[s]"
    assert dates(np.array([SECOND + 1])).dtype == "M8[us]"


@given(DATES)
def test_parts_of_a_date_are_the_angles_that_datetime_gives(date: datetime.datetime) -> None:
    parts = ["hour", "weekday", "day", "day_of_year", "week", "month", "quarter"]
    [found] = features(np.array([micros(date)]), parts)
    length = 366 if python_calendar.isleap(date.year) else 365
    day = date.timetuple().tm_yday - 1
    seconds = date.hour * 3600 + date.minute * 60 + date.second
    shares = [
        seconds / 86400,
        date.weekday() / 7,
        (date.day - 1) / python_calendar.monthrange(date.year, date.month)[1],
        day / length,
        math.floor(day / length * 53) / 53,
        (date.month - 1) / 12,
        (date.month - 1) // 3 / 4,
    ]
    wanted = [each(2 * math.pi * share) for share in shares for each in (math.sin, math.cos)]
    assert found.tolist() == pytest.approx(wanted, abs=1e-9)


def test_holidays_are_read_from_a_file_and_marked(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "holidays.csv"
    file.write_text("date,name\n2024-12-25,Christmas\n# a remark\n2024-01-01\n")
    days = read_holidays(file)
    wall = np.array([micros(datetime.datetime(2024, 12, 25, 13)), micros(datetime.datetime(2024, 12, 26))])
    assert features(wall, ["holiday"], days).tolist() == [[1.0], [0.0]]
    assert wall[0] // DAY in days
    file.write_text("2024-12-25\nsoon\n")
    with pytest.raises(DataError, match=r"holidays\.csv:2: a holiday must be a date such as 2026-12-25, but is 'soon'"):
        read_holidays(file)
    file.write_text("# none\n")
    with pytest.raises(DataError, match=r"lists no holidays: it needs a date"):
        read_holidays(file)


@pytest.mark.parametrize("text", ["hourly", "0h", "1.5mo", "h1", "1 fortnight", ""])
def test_a_frequency_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a step between times\. Write a number and a unit: 30s, 15min"):
        Frequency.of(text)


def test_a_time_zone_that_nobody_knows_is_refused() -> None:
    checked_zone("Europe/Istanbul")
    with pytest.raises(ConfigError, match=r"data\.timezone = 'Mars/Phobos' is not a known time zone"):
        checked_zone("Mars/Phobos")


@pytest.mark.parametrize(("step", "count", "name"), [("1mo", 60, "1mo"), ("5min", 24_000, "5min"), ("1b", 700, "1b")])
def test_series_of_a_large_table_stand_where_each_stands_alone(step: str, count: int, name: str) -> None:
    """More rows than are looked at together, of series that begin at different times and have gaps."""
    frequency, draw = Frequency.of(step), np.random.default_rng(1)
    start = int(np.datetime64("2001-01-01", "us").astype(np.int64))
    rows, places = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
    while sum(len(each) for each in rows) <= 2.5 * TOGETHER:
        place = np.flatnonzero(draw.random(count) > 0.1)
        begin = int(after(frequency, Clock(), start, draw.integers(0, 50, 1))[0])
        rows.append(after(frequency, Clock(), begin, place))
        places.append(place - place[0])
    whole, group = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    assert str(inferred(whole, whole, group)) == name
    np.testing.assert_array_equal(on_grid(frequency, whole, whole, group, starts), np.concatenate(places))
    odd = whole.copy()
    odd[-2] += SECOND
    with pytest.raises(OffGrid) as error:
        on_grid(frequency, odd, odd, group, starts)
    assert error.value.row == len(odd) - 2
