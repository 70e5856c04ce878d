"""Tables of many series against a plain loop over their rows: gaps, missing values, covariates, and what goes on."""

from __future__ import annotations

import dataclasses
import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.config import ForecastingData
from recurra.config.frequency import Frequency
from recurra.data.normal import Normal
from recurra.errors import DataError
from recurra.reading.facts import Facts, FactsCounted, Manner
from recurra.reading.history import continued
from recurra.reading.series import Steps, sequences, with_columns

DAY0 = datetime.date(2024, 2, 20)


def read(folder: Path, text: str, **options: Any) -> list[Steps]:
    file = folder / "a.csv"
    file.write_text(text, "utf-8")
    return list(sequences([file], with_columns(ForecastingData(train=str(file), **options), file)))


CELLS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.integers(0, 12)),
    st.tuples(st.one_of(st.none(), st.integers(-50, 50)), st.integers(0, 9)),
    min_size=4,
)


@settings(max_examples=25)
@given(CELLS, st.booleans())
def test_a_panel_is_what_a_plain_loop_over_its_rows_gives(
    tmp_path_factory: pytest.TempPathFactory, cells: dict[tuple[str, int], tuple[int | None, int]], is_mixed: bool
) -> None:
    keys = sorted(cells, key=lambda key: (key[1], key[0]) if is_mixed else key)
    lines = [
        f"{name},{DAY0 + datetime.timedelta(day)},{'' if cells[name, day][0] is None else cells[name, day][0]},"
        f"{cells[name, day][1]}"
        for name, day in keys
    ]
    text = "series,date,x,price\n" + "\n".join(lines) + "\n"
    found = {
        steps.name: steps
        for steps in read(
            tmp_path_factory.mktemp("panel"), text, frequency="1d", future=["price"], values=["x"], categories=[]
        )
    }
    for name in {key[0] for key in keys}:
        days = sorted(day for each, day in keys if each == name)
        every = range(days[0], days[-1] + 1)
        values = [cells.get((name, day), (None, 0))[0] for day in every]
        prices = [cells[name, day][1] if (name, day) in cells else math.nan for day in every]
        steps = found[name]
        there = [number for number, value in enumerate(values) if value is not None]
        first, last = (there[0], there[-1] + 1) if there else (0, 0)
        assert steps.gaps == sum((name, day) not in cells for day in every[first:last])
        assert len(steps) == last - first
        carried: float = math.nan
        for number in range(first, last):
            value = values[number]
            carried = carried if value is None else value
            assert steps.values[number - first, 0] == carried
            assert steps.known[number - first, 0] == (value is not None)
            assert steps.times is not None
            assert str(steps.times[number - first])[:10] == str(DAY0 + datetime.timedelta(every[number]))
        assert steps.future is not None
        np.testing.assert_array_equal(steps.future[:, 0], prices[first:])


def test_gaps_of_months_are_filled_and_the_line_of_a_row_is_kept(tmp_path: Path) -> None:
    text = "when,x\n2020-01-31,1\n2020-02-29,2\n2020-05-31,5\n"
    [steps] = read(tmp_path, text)
    assert str(steps.frequency) == "1mo"
    assert steps.values[:, 0].tolist() == [1, 2, 2, 2, 5]
    assert steps.known[:, 0].tolist() == [True, True, False, False, True]
    assert steps.times is not None
    assert [str(time)[:10] for time in steps.times] == [
        "2020-01-31",
        "2020-02-29",
        "2020-03-31",
        "2020-04-30",
        "2020-05-31",
    ]
    ahead = steps.moments_ahead(2)
    assert ahead is not None
    assert steps.written(ahead) == ["2020-06-30", "2020-07-31"]


def test_an_hour_that_comes_twice_is_two_hours_in_a_time_zone(tmp_path: Path) -> None:
    hours = ["00:00", "01:00", "02:00", "02:00", "03:00"]
    text = "time,x\n" + "".join(f"2024-10-27 {hour},{number}\n" for number, hour in enumerate(hours))
    [steps] = read(tmp_path, text, timezone="Europe/Berlin")
    assert steps.times is not None
    assert np.diff(steps.times).astype(int).tolist() == [3600] * 4
    ahead = steps.moments_ahead(1)
    assert ahead is not None
    assert steps.written(ahead) == ["2024-10-27 04:00"]
    with pytest.raises(DataError, match=r"a\.csv:5: the time '2024-10-27 02:00' is there twice\..*set data\.timezone"):
        read(tmp_path, text)
    with pytest.raises(DataError, match=r"a\.csv:3: the time '2024-03-31 02:30' does not exist in Europe/Berlin"):
        read(tmp_path, "time,x\n2024-03-31 01:30,1\n2024-03-31 02:30,1\n2024-03-31 03:30,1\n", timezone="Europe/Berlin")


def test_times_with_offsets_are_one_time_line(tmp_path: Path) -> None:
    text = "time,x\n2024-10-27T01:00:00+02:00,1\n2024-10-27T02:00:00+02:00,2\n2024-10-27T02:00:00+01:00,3\n"
    [steps] = read(tmp_path, text)
    assert steps.times is not None
    assert np.diff(steps.times).astype(int).tolist() == [3600] * 2


def test_each_column_of_a_wide_table_is_a_series(tmp_path: Path) -> None:
    text = "date,north,south,wind\n2024-01-01,1,,5\n2024-01-02,2,7,6\n2024-01-03,3,8,7\n2024-01-04,,,8\n"
    north, south = read(tmp_path, text, layout="wide", values=["north", "south"], future=["wind"])
    assert (north.name, south.name) == ("north", "south")
    assert north.values[:, 0].tolist() == [1, 2, 3]
    assert south.values[:, 0].tolist() == [7, 8]
    assert south.future is not None
    assert south.future[:, 0].tolist() == [6, 7, 8]


def test_words_are_names_and_rows_without_values_are_coming_steps(tmp_path: Path) -> None:
    text = "date,x,promo,kind\n2024-01-01,1,none,shop\n2024-01-02,2,flyer,shop\n2024-01-03,,radio,shop\n"
    [steps] = read(tmp_path, text, future=["promo"], static=["kind"])
    assert len(steps) == 2
    assert steps.future_names is not None
    assert steps.future_names[:, 0].tolist() == ["none", "flyer", "radio"]
    assert steps.static_names == ("shop",)
    assert steps.later is not None
    assert [str(each)[:10] for each in steps.later] == ["2024-01-03"]


def facts_of(series: list[Steps], **options: Any) -> Facts:
    counted = FactsCounted(ForecastingData(train="a.csv", values=["x"], **options), Manner())
    for steps in series:
        counted.add(steps)
    return counted.finished(Normal(np.array([10.0]), np.array([5.0])), is_binary=False)


def plain(name: str, values: list[float], start: int = 0) -> Steps:
    x = np.array(values)[:, None]
    return Steps(
        name,
        x,
        np.ones_like(x, bool),
        0,
        2,
        "a.csv:2",
        numbers=np.arange(start, start + len(x), dtype=float),
        frequency=None,
    )


def test_each_series_has_its_own_scale_and_a_new_one_gets_one_of_what_it_has(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    series = [plain(name, (rng.normal(size=50) * size + 10 * size).tolist()) for name, size in (("a", 1), ("b", 1000))]
    facts = facts_of(series)
    usual = np.median([np.std(each.values) / np.mean(np.abs(each.values)) for each in series])
    for each in series:
        scale = facts.unit(each, Normal(np.array([10.0]), np.array([5.0])), Manner()).scale
        expected = usual * np.mean(np.abs(each.values))
        spread = math.sqrt((50 * np.var(each.values) + 2 * expected**2) / 52)
        assert scale.mean[0] == pytest.approx(np.mean(each.values))
        assert scale.spread[0] == pytest.approx(spread)
    new = plain("c", [5000.0])
    scale = facts.unit(new, Normal(np.array([10.0]), np.array([5.0])), Manner()).scale
    assert scale.mean[0] == 5000
    assert scale.spread[0] == pytest.approx(usual * 5000 * math.sqrt(2 / 3))
    facts.save(tmp_path)
    again = Facts.load(tmp_path)
    assert again.names == facts.names
    np.testing.assert_array_equal(again.spreads, facts.spreads)
    assert again.ends["b"].values.tolist() == facts.ends["b"].values.tolist()
    assert again.ends["b"].numbers is not None


def test_what_comes_after_the_first_origin_does_not_change_the_scale_of_a_new_series() -> None:
    facts = facts_of([plain("a", [1.0, 2.0, 4.0]), plain("b", [3.0, 1.0, 5.0])])
    column = Normal(np.array([10.0]), np.array([5.0]))
    scales = [
        facts.unit(dataclasses.replace(plain("c", [7.0, 9.0, end]), origin=2), column, Manner()).scale
        for end in (8.0, 1e6)
    ]
    assert scales[0] == scales[1]


@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 8), st.integers(1, 8))
def test_a_series_that_goes_on_is_read_after_the_end_of_the_first(old: int, new: int, gap: int, longest: int) -> None:
    step = Frequency(1, "")
    before = dataclasses.replace(plain("a", list(range(old))), frequency=step)
    steps = dataclasses.replace(plain("a", list(range(100, 100 + new)), start=old + gap), frequency=step)
    [joined] = continued([steps], {"a": before}, longest=longest)
    if gap > longest:
        assert joined is steps
        return
    kept = min(old, longest)
    wanted = [*range(old - kept, old), *[old - 1] * gap, *range(100, 100 + new)]
    assert joined.values[:, 0].tolist() == wanted
    assert joined.known[:, 0].tolist() == [False] * (kept + gap) + [True] * new
    assert joined.measured[:, 0].tolist() == [True] * kept + [False] * gap + [True] * new
    assert joined.numbers is not None
    assert joined.numbers.tolist() == list(range(old - kept, old + gap + new))
    [other] = continued([steps], {"b": before}, longest=longest)
    assert other is steps
    assert steps.numbers is not None
    overlapping = dataclasses.replace(steps, numbers=steps.numbers - old - gap)
    assert next(continued([overlapping], {"a": before}, longest=longest)) is overlapping
