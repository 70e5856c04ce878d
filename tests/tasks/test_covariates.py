"""Covariates from a table to an answer: what is known ahead helps, what is missing is named, what is new is read."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from recurra.cli import main
from recurra.errors import ConfigError, DataError, RecurraError
from recurra.runs import setup
from recurra.tasks.task import Task
from recurra.training.explaining import explain
from recurra.training.preparation import prepared
from recurra.training.trained import Trained
from recurra.views.lines import Lines
from tests.tasks.test_forecasting import trained, write, write_frames

HORIZON = 3


def prices(count: int, *, start: int = 0, seed: int = 0) -> list[tuple[str, float, float]]:
    """Days on which 8 are sold at price 1 and 2 at price 2, drawn anew each day, and a little noise."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + np.arange(start, start + count)
    price = rng.integers(1, 3, count)
    sold = np.where(price == 1, 8, 2) + rng.normal(size=count) * 0.3
    return [(str(day), round(float(x), 3), float(p)) for day, x, p in zip(days, sold, price, strict=True)]


def table(rows: list[tuple[str, float, float]], coming: int = 0) -> str:
    cells = [
        f"{day},{'' if number >= len(rows) - coming else sold},{price:g}"
        for number, (day, sold, price) in enumerate(rows)
    ]
    return "date,sold,price\n" + "\n".join(cells) + "\n"


QUICK = ("training.steps=60", "data.window=20", "training.batch_size=8", "training.learning_rate=0.05")


def test_a_price_that_is_known_ahead_halves_the_error(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", table(prices(160)))
    test = write(tmp_path / "test.csv", table(prices(60, start=160, seed=1)))
    errors = {}
    for name, options in {"alone": ["data.values=sold"], "known": ["data.future=price"]}.items():
        (tmp_path / name).mkdir()
        model = trained(tmp_path / name, train, *options, *QUICK)
        errors[name] = model.evaluate(test).values["mae"]
    assert errors["known"] < 0.5 * errors["alone"], errors


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A model that knows a price ahead, the weather up to now, and the size and kind of a shop."""
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(2)
    lines = ["shop,date,sold,price,promo,rain,size,kind"]
    for name, size, kind in (("a", 2, "corner"), ("b", 30, "mall")):
        for day in range(40):
            price, promo = int(rng.integers(1, 4)), rng.choice(["no", "flyer"])
            sold = size * (5 - price) + size * (promo == "flyer")
            date = np.datetime64("2024-01-01") + day
            lines.append(f"{name},{date},{sold},{price},{promo},{rng.integers(0, 9)},{size},{kind}")
    file = write(folder / "train.csv", "\n".join(lines) + "\n")
    options = ["data.series=shop", 'data.future=["price", "promo"]', "data.past=rain", 'data.static=["size", "kind"]']
    return trained(folder, file, *options, 'data.calendar=["weekday"]', "training.steps=5", "data.window=16")


def asked(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "values": [6, 4, 8],
        "times": ["2024-03-01", "2024-03-02", "2024-03-03"],
        "future": {"price": [2, 3, 1, 1, 1, 2], "promo": ["no", "no", "no", "flyer", "no", "no"]},
        "past": {"rain": [1, 0, 2]},
        "static": {"size": 2, "kind": "corner"},
        "series": "a",
    }
    return {**found, **changes}


def test_covariates_of_every_kind_reach_the_network(shop: Trained) -> None:
    task: Any = shop.task
    assert task.conventions.widths == (1 + 2 + 2, 2, 1, 1, (3,))
    [answer] = shop.predict([asked()], detail=True)
    assert answer.detail["times"] == ["2024-03-04", "2024-03-05", "2024-03-06"]
    assert answer.detail["series"] == "a"
    base = answer.detail["values"]
    changes: list[dict[str, Any]] = [
        {"future": {"price": [2, 3, 1, 1, 1, 3], "promo": asked()["future"]["promo"]}},
        {"future": {"price": asked()["future"]["price"], "promo": ["no", "no", "no", "flyer", "no", "flyer"]}},
        {"past": {"rain": [1, 0, 8]}},
        {"static": {"size": 30, "kind": "corner"}},
        {"static": {"size": 2, "kind": "mall"}},
        {"times": ["2024-03-02", "2024-03-03", "2024-03-04"]},
    ]
    for change in changes:
        [other] = shop.predict([asked(**change)], detail=True)
        assert other.detail["values"] != base, change
        is_last = "future" in change
        assert (other.detail["values"][:2] == base[:2]) == is_last, "what is known of a step is read for that step"


def test_a_line_of_json_and_a_table_give_the_same_answer(shop: Trained, tmp_path: Path) -> None:
    given = asked()
    lines = ["shop,date,sold,price,promo,rain,size,kind"]
    days = [*given["times"], "2024-03-04", "2024-03-05", "2024-03-06"]
    for number, day in enumerate(days):
        sold, rain = (given["values"][number], given["past"]["rain"][number]) if number < 3 else ("", "")
        price, promo = given["future"]["price"][number], given["future"]["promo"][number]
        lines.append(f"a,{day},{sold},{price},{promo},{rain},2,corner")
    file = write(tmp_path / "b.csv", "\n".join(lines) + "\n")
    [of_table] = shop.predict_file(file, [], detail=True)
    [of_json] = shop.predict([json.dumps(given)], detail=True)
    [steps] = shop.task.questions(None, [json.dumps(given)])
    again: Any = shop.task.sent(steps)
    [of_sent] = shop.predict([again], detail=True)
    assert of_table.detail["values"] == of_json.detail["values"]
    assert of_sent.detail["values"] == pytest.approx(np.array(of_json.detail["values"]))
    assert of_table.detail["times"] == of_json.detail["times"]


def test_a_missing_cell_between_others_is_that_before_it(shop: Trained) -> None:
    future = asked()["future"]
    gap, same = ({**future, "price": [2, 3, 1, 2, each, 2]} for each in (None, 2))
    [one], [other] = (shop.predict([asked(future=each)], detail=True) for each in (gap, same))
    assert one.detail["values"] == other.detail["values"]


def test_an_empty_word_that_is_known_ahead_says_that_there_is_nothing(shop: Trained, tmp_path: Path) -> None:
    lines = ["shop,date,sold,price,promo,rain,size,kind"]
    lines += [f"a,2024-03-0{day},{'6' if day < 4 else ''},2,,{'1' if day < 4 else ''},2,corner" for day in range(1, 7)]
    file = write(tmp_path / "b.csv", "\n".join(lines) + "\n")
    [empty] = shop.predict_file(file, [], detail=True)
    named = write(tmp_path / "c.csv", "\n".join(lines).replace(",2,,", ",2,never seen,") + "\n")
    [unknown] = shop.predict_file(named, [], detail=True)
    assert empty.detail["values"] == unknown.detail["values"], "both are all zeros"


def test_rows_of_coming_steps_alone_cannot_be_scored(shop: Trained, tmp_path: Path) -> None:
    lines = ["shop,date,sold,price,promo,rain,size,kind"]
    lines += [f"a,2024-02-{day},,2,no,,2,corner" for day in range(10, 14)]  # after the training data
    with pytest.raises(DataError, match=r"nothing to score: no row has a value in sold\. Rows of coming steps are for"):
        shop.evaluate(write(tmp_path / "b.csv", "\n".join(lines) + "\n"))


def test_an_unseen_category_and_a_new_series_are_answered(shop: Trained) -> None:
    [answer] = shop.predict([asked(series="new", static={"size": 5, "kind": "kiosk"})], detail=True)
    assert np.isfinite(answer.detail["values"]).all()
    [missing] = shop.predict([asked(static={}, past={})], detail=True)
    assert np.isfinite(missing.detail["values"]).all()


REFUSED: dict[str, tuple[Any, str]] = {
    "too few coming rows": (
        asked(future={"price": [1, 2, 3, 1], "promo": ["no"] * 6}),
        r"input:1: a forecast of the series 'a' over 3 steps needs 'price' of the coming 3 steps, but 2 are missing\.",
    ),
    "too few coming words": (
        asked(future={"price": [1, 2, 3, 1, 2, 3], "promo": ["no"] * 4}),
        r"input:1: 'promo' has 4 cells in future, but 6 steps are known or coming\. Give one for each step",
    ),
    "a list alone": ([[1], [2]], r"input:1: this model reads price, promo, rain, size, kind, times beside the values"),
    "no values": ({"times": []}, r'input:1: a series needs its values: {"values": \[…\]}'),
    "another key": (asked(futur={}), r"input:1: there is no 'futur' in a series\. Did you mean 'future'\?"),
    "another column": (asked(future={"prize": [1]}), r"input:1: there is no column 'prize' in future\. Did you mean"),
    "no list": (asked(future={"price": 3}), r"input:1: each column of future must be a list of its steps"),
    "no object": (asked(past=3), r"input:1: past must be an object of columns"),
    "cells": (asked(past=[[1, 2]]), r"input:1: each step of past must have 1 cells: rain"),
    "static": (asked(static=[2]), r"input:1: static must be an object"),
    "times": (asked(times="2024"), r"input:1: times must be a list"),
    "few times": (asked(times=["2024-03-01"]), r"input:1: there are 3 values, but only 1 times"),
    "widths": (asked(values=[[1, 2]]), r"input:1: found 2 values per step, but the model expects 1"),
    "no times": (asked(times=None), r"input:1: this model reads the times of steps, and there are none"),
    "a word": (asked(past={"rain": ["wet"]}), r"input:1: 'rain' must be a number, but is 'wet'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_with_a_series_is_said(shop: Trained, name: str) -> None:
    given, message = REFUSED[name]
    with pytest.raises(DataError, match=message):
        shop.predict([json.dumps(given)])


SETTINGS: dict[str, tuple[list[str], str]] = {
    "two roles": (
        ["data.future=price", "data.past=price"],
        r"'price' is named by data\.future and by data\.past: a column has one role",
    ),
    "twice": (['data.future=["price", "price"]'], r"data\.future names 'price' twice"),
    "category": (["data.categories=price"], r"data\.categories names 'price', which is not in data\.future"),
    "frequency": (["data.frequency=hourly"], r"data\.frequency = 'hourly' is not a step between times"),
    "zone": (["data.timezone=Mars"], r"data\.timezone = 'Mars' is not a known time zone"),
    "holidays": (["data.calendar=holiday"], r"data\.calendar names holiday, so data\.holidays must name the file"),
    "idle holidays": (["data.holidays=a.txt"], r"data\.holidays = 'a\.txt' has no effect"),
    "calendar twice": (['data.calendar=["hour", "hour"]'], r"data\.calendar names a part of the date twice"),
    "wide series": (["data.layout=wide", "data.series=a"], r'data\.layout = "wide" makes each column a series'),
    "frames": (["data.frames=a", "data.future=b"], r"data\.frames and data\.future cannot be used together"),
    "backward": (
        ["model.direction=backward", "data.future=price"],
        r"model\.direction = 'backward' reads no covariates",
    ),
    "no such column": (["data.future=prize"], r"a\.csv:2: there is no column 'prize'\. Did you mean 'price'\?"),
    "the time": (["data.future=date"], r"'date' is the time: parts of it are read by data\.calendar"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, name: str) -> None:
    options, message = SETTINGS[name]
    file = write(tmp_path / "a.csv", table(prices(8)))
    with pytest.raises(RecurraError, match=message):
        trained(tmp_path, file, *options, "training.steps=1")


def test_what_was_found_in_a_table_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line for number, line in enumerate(table(prices(30)).splitlines()) if number not in (7, 8)]
    rows[4] = rows[4].split(",")[0] + ",,1"
    file = write(tmp_path / "a.csv", "\n".join(rows) + "\n")
    small = ["--set", "training.steps=1", "--set", "model.hidden=4", "--set", "data.cache=false"]
    assert main(["train", "forecasting", "--train", file, "--out", str(tmp_path / "run"), *small,
                 "--set", "data.future=price"]) == 0  # fmt: skip
    said = capsys.readouterr().err
    assert (
        "a step is, by its times, a day; 2 steps without a row are read as missing; 1 missing value is filled" in said
    )
    assert "known ahead: price" in said


def test_what_is_missing_is_counted_in_the_share_that_is_learned_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table(prices(40)).splitlines()
    rows[5] = rows[5].split(",")[0] + ",,1"
    del rows[37:39]  # two days without a row, in the share that is held out
    file = write(tmp_path / "a.csv", "\n".join(rows) + "\n")
    small = ["--set", "training.steps=1", "--set", "model.hidden=4", "--set", "data.cache=false"]
    assert main(["train", "forecasting", "--train", file, "--valid", "20%", "--out", str(tmp_path / "run"), *small,
                 "--set", "data.future=price"]) == 0  # fmt: skip
    said = capsys.readouterr().err
    assert "a step is, by its times, a day; 1 missing value is filled with the one before; known ahead" in said


def test_a_file_that_goes_on_is_read_after_the_training_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = prices(60)
    train, after = write(tmp_path / "a.csv", table(rows[:50])), write(tmp_path / "b.csv", table(rows[50:]))
    whole = write(tmp_path / "c.csv", table(rows))
    model = trained(tmp_path, train, "data.values=sold", "training.steps=3", "data.window=50")
    [joined], [long] = model.task.read([after]), model.task.read([whole])
    np.testing.assert_array_equal(joined.values, long.values)
    assert joined.lead == 50
    assert model.evaluate(after).values["count"] == 10
    [short], [other] = model.predict_file(after, [], detail=True), model.predict_file(whole, [], detail=True)
    assert short.detail["values"] == pytest.approx(np.array(other.detail["values"]), rel=1e-6)
    assert main(["evaluate", str(tmp_path / "run"), after]) == 0
    said = capsys.readouterr().err
    assert "the series goes on with the training data: up to 50 steps before are read and not scored" in said
    later = write(tmp_path / "d.csv", table(prices(10, start=60)))
    assert main(["predict", str(tmp_path / "run"), later, "--history", after]) == 0
    assert f"goes on with '{after}'" in capsys.readouterr().err
    [joined] = model.preceded_by(after).task.read([later])
    assert joined.lead == 50, "of which the last ten are those of the file between"
    assert joined.values[40:50, 0].tolist() == [sold for _, sold, _ in rows[50:]]


def test_only_series_with_times_go_on_with_a_file(tmp_path: Path) -> None:
    model = trained(tmp_path, write_frames(tmp_path / "a.jsonl", [[[1, 0], [0, 1]]] * 3), "training.steps=1")
    with pytest.raises(ConfigError, match=r"--history needs series with times that are read forward"):
        model.preceded_by("b.csv")
    other: Any = SimpleNamespace(name="tagging")
    with pytest.raises(ConfigError, match=r"--history is for series that go on with another file: tagging has none"):
        Task.preceded_by(other, "b.csv")


def test_a_file_goes_on_with_what_was_held_out_too(tmp_path: Path) -> None:
    rows = prices(60)
    train, after = write(tmp_path / "a.csv", table(rows[:50])), write(tmp_path / "b.csv", table(rows[50:]))
    options = ("data.values=sold", "training.steps=1", "data.window=20")
    model = trained(tmp_path, train, *options, valid="20%")
    [joined] = model.task.read([after])
    assert joined.values[:, 0].tolist() == [sold for _, sold, _ in rows[30:]]
    assert joined.lead == 20


def test_coming_rows_alone_are_forecast_where_the_run_knows_what_came_before(tmp_path: Path) -> None:
    rows = prices(40)
    train = write(tmp_path / "a.csv", table(rows[:36]))
    coming = write(tmp_path / "b.csv", table(rows[36:], coming=4))
    whole = write(tmp_path / "c.csv", table(rows, coming=4))
    model = trained(tmp_path, train, "data.future=price", "data.values=sold", "training.steps=3", "data.window=36")
    [alone], [together] = model.predict_file(coming, [], detail=True), model.predict_file(whole, [], detail=True)
    assert alone.detail["values"] == pytest.approx(np.array(together.detail["values"]), rel=1e-6)
    gone = write(tmp_path / "d.csv", table(prices(4, start=900), coming=4))
    with pytest.raises(DataError, match=r"d\.csv:2: there is no value of the series '' to start from"):
        list(model.predict_file(gone, []))


def test_irregular_times_are_counted_and_the_time_between_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.integers(1, 9, 40))
    file = write(tmp_path / "a.csv", "time,x\n" + "".join(f"{t},{rng.normal():.3f}\n" for t in times))
    model = trained(tmp_path, file, "data.elapsed=true", "training.steps=2")
    task: Any = model.task
    assert task.conventions.facts.frequency == "irregular"
    [steps] = task.read([file])
    row = task.encode(steps)
    usual = np.median(np.diff(times))
    wanted = np.log(np.diff(times) / usual)
    np.testing.assert_allclose(row["future"][1 : len(times), 0], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(row["future"][len(times) :, 0], 0, atol=1e-6)
    later = dataclasses.replace(steps, later=np.array([times[-1] + 2.0 * usual]))
    assert task.encode(later)["future"][len(times), 0] == pytest.approx(np.log(2), rel=1e-5)


def test_one_network_learns_all_columns_of_a_wide_table(tmp_path: Path) -> None:
    lines = [f"{day},{5 + day % 2},{500 + 100 * (day % 2)},{day % 3}" for day in range(40)]
    text = "day,small,large,price\n" + "\n".join(lines) + "\n"
    file = write(tmp_path / "a.csv", text)
    options = ("data.layout=wide", 'data.values=["small", "large"]', "data.time=day", "data.past=price")
    model = trained(tmp_path, file, *options, "training.steps=60", "training.learning_rate=0.05", "data.window=10")
    assert model.task.described() == "series of 1 value with price, GRU 12, quantiles output"
    small, large = model.predict_file(file, [], detail=True)
    assert (small.input, large.input) == ("small", "large")
    assert np.array(small.detail["values"])[:, 0] == pytest.approx([5, 6, 5], abs=0.3)
    assert np.array(large.detail["values"])[:, 0] == pytest.approx([500, 600, 500], abs=30)
    assert model.task.schema().columns == ["value"]
    asked = {"values": [5, 6, 5, 6], "past": {"price": [0, 1, 2, 0]}, "series": "small"}
    [answer] = model.predict([asked], detail=True)
    assert answer.detail["values"][0] == pytest.approx([5], abs=0.5)
    assert isinstance(
        explain(model, json.dumps(asked | {"values": [5, 6] * 5, "past": {}}), show="forecast").view, Lines
    )


def test_short_series_are_used_where_they_can_be_and_the_rest_is_counted(tmp_path: Path) -> None:
    lines = [f"{name},{step},{step % 3}.5" for name, steps in (("a", 30), ("b", 4), ("c", 1)) for step in range(steps)]
    file = write(tmp_path / "a.csv", "series,step,x\n" + "\n".join(lines) + "\n")
    model = trained(tmp_path, file, "training.steps=2", "data.window=8")
    task: Any = model.task
    said: list[str] = []
    prepared(type(task), task.settings, said.append)
    assert "left out 1 of 3 examples: a series needs at least 2 steps to learn from" in said
    assert [len(steps) for steps in task.read([file])] == [30, 4, 1]
    assert {*task.conventions.facts.names} == {"a", "b", "c"}
    answers = list(model.predict_file(file, [], detail=True))
    assert all(np.isfinite(answer.detail["values"]).all() for answer in answers)


def test_the_calendar_and_holidays_are_read_for_coming_days_too(tmp_path: Path) -> None:
    holidays = write(tmp_path / "days.txt", "2024-02-12\n")
    rows = prices(40)
    file = write(tmp_path / "a.csv", table(rows))
    options = ['data.calendar=["weekday", "holiday"]', f"data.holidays={holidays}", "data.values=sold"]
    model = trained(tmp_path, file, *options, "training.steps=2")
    Path(holidays).unlink()  # the run keeps the dates
    task: Any = model.task
    [steps] = task.read([file])
    future = task.encode(steps)["future"]
    days = np.datetime64("2024-01-01") + np.arange(40 + HORIZON)
    weekday = (days - np.datetime64("2024-01-01")).astype(int) % 7  # which was a Monday
    np.testing.assert_allclose(future[:, 0], np.sin(2 * np.pi * weekday / 7), atol=1e-6)
    assert np.flatnonzero(future[:, 2]).tolist() == np.flatnonzero(days == np.datetime64("2024-02-12")).tolist() == [42]


def test_settings_of_a_table_are_part_of_the_config() -> None:
    this = setup("forecasting", given={"train": "a.csv"}, overrides=["data.future=price", "data.frequency=1d"])
    assert this.settings.data.future == ["price"]
    assert this.settings.data.missing == "previous"
