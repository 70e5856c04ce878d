"""Backtests: each window forecast from what lies before it alone, scored beside simple rules."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from recurra.cli import main
from recurra.errors import ConfigError, DataError
from recurra.metrics.forecast_errors import LEVELS
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from recurra.views.lines import Lines
from tests.tasks.test_forecasting import SMALL, trained, write, write_frames

HORIZON = 3
SERIES = {"a": 40, "b": 31}


def table(path: Path, *, tail: float = 0.0, last: int = 0) -> str:
    """Two series with a season of 4 steps; `tail` is added to the last steps."""
    lines = ["series,x"]
    for number, (name, steps) in enumerate(SERIES.items()):
        draw = np.random.default_rng(number)
        values = 10.0**number * (20 + 5 * np.sin(np.pi * np.arange(steps) / 2) + draw.normal(size=steps))
        values[steps - last :] += tail
        lines += [f"{name},{value!r}" for value in values.tolist()]
    return write(path, "\n".join(lines) + "\n")


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def values_of(path: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows_of(Path(path)):
        found.setdefault(row["series"], []).append(float(row["x"]))
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("backtest")
    options = ("training.steps=5", "evaluation.season=4", "training.precision=float64")
    return trained(folder, table(folder / "a.csv"), *options, valid="20%")


def test_each_window_is_forecast_from_what_lies_before_it_alone(model: Trained, tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv")
    found = model.backtest(file, windows=3, step=2)
    whole = values_of(file)
    assert [(each.series, each.window) for each in found.forecasts] == [(n, w) for n in "ab" for w in (1, 2, 3)]
    for each in found.forecasts:
        values = whole[each.series]
        assert each.origin == len(values) - HORIZON - 2 * (3 - each.window)
        cut = write(
            tmp_path / "cut.csv", "series,x\n" + "".join(f"{each.series},{v!r}\n" for v in values[: each.origin])
        )
        [alone] = model.predict_file(cut, [], detail=True)
        np.testing.assert_allclose(each.said["model"], alone.detail["values"], rtol=1e-6)
        np.testing.assert_array_equal(each.actual[:, 0], values[each.origin : each.origin + HORIZON])
        assert list(each.moments) == [str(each.origin + k) for k in (1, 2, 3)]
        assert each.said["last value"][:, 0].tolist() == [values[each.origin - 1]] * HORIZON
        np.testing.assert_array_equal(each.said["seasonal"][:, 0], values[each.origin - 4 : each.origin - 1])
    other = model.backtest(table(tmp_path / "b.csv", tail=1000.0, last=HORIZON), windows=3, step=3)
    same = model.backtest(file, windows=3, step=3)
    for changed, each in zip(other.forecasts, same.forecasts, strict=True):
        np.testing.assert_array_equal(changed.said["model"], each.said["model"])
        assert (changed.fan == each.fan).all()  # type: ignore[union-attr]


def test_a_backtest_shows_itself_as_tables_and_becomes_a_data_frame(model: Trained, tmp_path: Path) -> None:
    found = model.backtest(table(tmp_path / "a.csv"), windows=2, step=2)
    assert repr(found) == found.text()
    # Of all windows, of what is drawn, and by window, step and series.
    assert found._repr_html_().count("<table") == 5
    pytest.importorskip("narwhals")
    pytest.importorskip("pandas")
    frame = found.to_frame("pandas")
    assert [str(name) for name in frame.columns] == [str(name) for name in next(iter(found.rows()))]
    first = found.forecasts[0]
    assert frame["forecast"][:HORIZON].tolist() == first.said["model"][:, 0].tolist()
    assert frame["value"][:HORIZON].tolist() == first.actual[:, 0].tolist()
    with pytest.raises(
        ConfigError, match=r"to_frame\('excel'\) is not known: the libraries are pandas, polars, pyarrow"
    ):
        found.to_frame("excel")


def test_scores_of_a_step_and_of_a_series_are_those_of_a_plain_loop(model: Trained, tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv")
    found = model.backtest(file, windows=2, step=5)
    whole = values_of(file)
    apart: dict[tuple[str, int], list[float]] = {}
    held: dict[int, list[bool]] = {}
    for each in found.forecasts:
        values = whole[each.series]
        scale = np.mean([abs(values[t] - values[t - 4]) for t in range(4, each.origin)])
        assert each.ends is not None
        for step in range(HORIZON):
            actual = values[each.origin + step]
            apart.setdefault((each.series, step + 1), []).append(abs(each.said["model"][step, 0] - actual) / scale)
            low, high = (end[step, 0] for end in each.ends)
            held.setdefault(step + 1, []).append(low <= actual <= high)
    for step in (1, 2, 3):
        scores = found.scores_of_step(step)
        assert scores["model"]["mase"] == pytest.approx(np.mean([np.mean(apart[name, step]) for name in "ab"]))
        assert scores["model"]["coverage"] == pytest.approx(np.mean(held[step]))
    for name in "ab":
        wanted = np.mean([apart[name, step] for step in (1, 2, 3)])
        assert found.scores_of_series(name)["model"]["mase"] == pytest.approx(wanted)
    assert [row[0] for row in found.by_step().rows] == ["1", "2", "3"]
    assert [row[0] for row in found.by_series().rows] == ["a", "b"]
    [worst] = found.by_series(1).rows
    assert worst[2] == max(row[2] for row in found.by_series().rows)
    numbers = found.json()
    assert [each["step"] for each in numbers["steps"]] == [1, 2, 3]
    assert numbers["steps"][1]["scores"]["model"]["mase"] == found.scores_of_step(2)["model"]["mase"]
    assert {each["series"]: each["scores"]["model"]["mae"] for each in numbers["series"]} == {
        name: found.scores_of_series(name)["model"]["mae"] for name in "ab"
    }
    for by in ("step", "series"):
        assert f"\n\n{by:6} mae" in found.text() or f"\n\n{by} " in found.text()


def test_scores_by_window_step_and_series_become_data_frames(model: Trained, tmp_path: Path) -> None:
    pytest.importorskip("narwhals")
    pytest.importorskip("pandas")
    found = model.backtest(table(tmp_path / "a.csv"), windows=2, step=2)
    steps, series = found.to_frame("pandas", by="step"), found.to_frame("pandas", by="series")
    assert steps["step"].tolist() == [1, 2, 3]
    assert steps["mase"].tolist() == [found.scores_of_step(step)["model"]["mase"] for step in (1, 2, 3)]
    assert series["series"].tolist() == ["a", "b"]
    assert series["theta mase"].tolist() == [found.scores_of_series(name)["theta"]["mase"] for name in "ab"]
    assert found.to_frame("pandas", by="window")["window"].tolist() == [1, 2]
    with pytest.raises(ConfigError, match=r"to_frame\(by='day'\) is not known: by is window, step, series, or nothing"):
        found.to_frame("pandas", by="day")


def test_scores_are_those_of_a_plain_loop(model: Trained, tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv")
    found = model.backtest(file, windows=2, step=5)
    whole = values_of(file)
    for window in (1, 2, None):
        per_series, every, held = [], [], []
        for name, values in whole.items():
            errors = []
            for each in found.forecasts:
                if each.series == name and window in (None, each.window):
                    scale = np.mean([abs(values[t] - values[t - 4]) for t in range(4, each.origin)])
                    apart = abs(each.said["model"][:, 0] - np.array(values[each.origin : each.origin + HORIZON]))
                    errors += (apart / scale).tolist()
                    every += apart.tolist()
                    assert each.ends is not None
                    held += ((each.ends[0] <= each.actual) & (each.actual <= each.ends[1])).ravel().tolist()
            per_series.append(np.mean(errors))
        scores = found.scores(window)["model"]
        assert scores["mase"] == pytest.approx(np.mean(per_series))
        assert scores["mae"] == pytest.approx(np.mean(every))
        assert scores["coverage"] == pytest.approx(np.mean(held))
    assert found.scores()["theta"]["mase"] > 0
    assert [row[0] for row in found.by_window().rows] == ["1", "2"]
    assert [row[0] for row in found.table().rows] == ["model", "seasonal", "last value", "drift", "theta"]


def test_the_command_prints_scores_and_writes_a_picture_and_a_table(
    model: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, picture, forecasts = table(tmp_path / "a.csv"), tmp_path / "b.svg", tmp_path / "b.csv"
    run = str(model.folder)
    options = ["--windows", "2", "--step", "4", "--horizon", "2", "--set", "decoding.coverage=0.8"]
    assert main(["backtest", run, file, *options, "--out", str(picture), "--csv", str(forecasts)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 series, 2 windows of 2 steps, with the weights of the run\n\nwindow ")
    assert "\ntheta " in printed
    assert "80 % interval" in picture.read_text("utf-8")
    rows = rows_of(forecasts)
    assert len(rows) == 2 * 2 * 2
    assert " ".join(rows[0]).startswith("series window origin time step column value forecast low high q0.05 q0.1 ")
    assert [float(rows[0][f"q{level:g}"]) for level in LEVELS] == sorted(float(rows[0][f"q{u:g}"]) for u in LEVELS)
    assert float(rows[0]["value"]) == pytest.approx(values_of(file)["a"][int(rows[0]["origin"])])
    assert main(["backtest", run, file, "--windows", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["scores"]["model"].keys() >= {"mae", "mase", "rmsse", "smape", "mape", "crps", "coverage", "width"}
    assert [each["window"] for each in found["windows"]] == [1, 2]


def dated(path: Path, sizes: dict[str, int]) -> str:
    """Series of other lengths that begin at the same time."""
    lines = [f"{t},{name},{value:.4f}" for name, n in sizes.items() for t, value in enumerate(np.sin(np.arange(n) * 2))]
    return write(path, "\n".join(["time,series,x", *lines]) + "\n")


def test_forecasts_of_what_the_run_was_trained_on_are_counted_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    early, late = dated(tmp_path / "a.csv", {"a": 40, "b": 30}), dated(tmp_path / "b.csv", {"a": 44, "b": 40})
    run = str(trained(tmp_path, early, "training.steps=1", valid="20%").folder)
    head = "2 series, 2 windows of 3 steps, with the weights of the run\n"
    which = {early: "all 4", late: "1 of 4"}  # of b all steps are new, of a those after the 40th
    for file, how_many in which.items():
        assert main(["backtest", run, file, "--windows", "2", "--step", "2"]) == 0
        said = (
            f"the run's training file has steps of {how_many} forecasts: new ones may be forecast less well; --refit "
        )
        assert capsys.readouterr().out.startswith(f"{head}{said}trains anew for each window\n\n")
    assert [each.was_seen for each in load(run).backtest(late, windows=2, step=2).forecasts] == [True, *[False] * 3]
    assert load(run).preceded_by(early).backtest(late, windows=1, step=1).json()["seen"] == 0
    found = load(run).backtest(late, windows=1, step=1)
    assert "training file" not in found.text()
    anew = dataclasses.replace(load(run).backtest(early, windows=1, step=1), refitted=True)
    assert anew.json()["seen"] == 0


def test_series_of_other_lengths_are_drawn_with_their_ends_one_below_the_other(tmp_path: Path) -> None:
    file = dated(tmp_path / "a.csv", {"a": 40, "b": 70})
    model = trained(tmp_path, file, "training.steps=1")
    whole: Lines = model.backtest(file, windows=2, step=3).view()
    assert whole.x == "step, counted from the last one of each series"
    for panel in whole.panels:
        assert max(panel.curves[0].x) == 0
        assert [list(curve.x) for curve in panel.curves[1:]] == [[-5, -4, -3], [-2, -1, 0]]
    alone: Lines = model.backtest(dated(tmp_path / "b.csv", {"a": 40}), windows=2, step=3).view()
    assert alone.x == "step of the series"
    assert list(alone.panels[0].curves[-1].x) == [38, 39, 40]


@pytest.mark.parametrize("windows", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_refitting_trains_on_what_lies_before_each_origin(
    model: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str], windows: int
) -> None:
    file, forecasts = table(tmp_path / "a.csv"), tmp_path / "b.csv"
    options = ["--windows", str(windows), "--step", "4", "--refit", "--csv", str(forecasts)]
    assert main(["backtest", str(model.folder), file, *options]) == 0
    assert re.search(r"[12] windows? of 3 steps, trained anew for each", capsys.readouterr().out)
    rows = rows_of(forecasts)
    every = [(name, str(window + 1)) for name in "ab" for window in range(windows)]
    assert [(row["series"], row["window"]) for row in rows[::3]] == every
    # The same by hand: a file that ends before the first window.
    short = tmp_path / "short.csv"
    lines = ["series,x"] + [
        f"{name},{v!r}" for name, each in values_of(file).items() for v in each[: -HORIZON - 4 * (windows - 1)]
    ]
    write(short, "\n".join(lines) + "\n")
    overrides = [*SMALL, "training.steps=5", "evaluation.season=4", "training.precision=float64"]
    begin(
        setup("forecasting", given={"train": str(short), "valid": "20%"}, overrides=overrides), tmp_path / "r", Silent()
    )
    for answer in load(tmp_path / "r").predict_file(short, [], detail=True):
        said = [float(row["forecast"]) for row in rows if row["series"] == answer.input and row["window"] == "1"]
        assert said == pytest.approx([value for [value] in answer.detail["values"]], rel=1e-6)


def test_fans_and_intervals_are_drawn_and_windows_apart_leave_a_gap(model: Trained, tmp_path: Path) -> None:
    view = model.backtest(table(tmp_path / "a.csv"), windows=2, step=8).view()
    assert isinstance(view, Lines)
    first = view.panels[0]
    assert [panel.title for panel in view.panels] == ["a", "b"]
    assert [curve.name for curve in first.curves] == ["actual", "forecast", ""]
    assert [band.name for band in first.bands] == ["90 % interval", "50 % interval", "", ""]
    actual = dict(zip(first.curves[0].places, first.curves[0].y, strict=True))
    assert [place for place, value in actual.items() if math.isnan(value)] == [-7, -6, -5, -4, -3]  # from the last


def test_series_that_are_too_short_are_named_with_how_many_steps_are_missing(model: Trained, tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv")
    with pytest.raises(
        DataError,
        match=r"a\.csv:42: the series 'b' has 31 steps, but the first of 8 windows begins 31 steps before its end and "
        r"needs at least 4 steps before it: 4 steps are missing\. Use fewer --windows",
    ):
        model.backtest(file, windows=8, step=4)
    with pytest.raises(DataError, match=r"the series 'a' has 40 steps.* missing \(2 of 2 series are too short\)"):
        model.backtest(file, windows=20, step=4)


def test_what_cannot_be_tested_back_is_refused_in_words(
    model: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, run = table(tmp_path / "a.csv"), str(model.folder)
    assert main(["backtest", run, file, "--windows", "0"]) == 2
    assert "--windows must be at least 1, but is 0." in capsys.readouterr().err
    assert main(["backtest", run, file, "--out", "b.pdf"]) == 2
    assert "b.pdf" in capsys.readouterr().err
    assert main(["backtest", run, file, "--windows", "2", "--csv", str(tmp_path / "no" / "b.csv")]) == 2
    assert "b.csv cannot be written: No such file or directory." in capsys.readouterr().err
    frames = trained(tmp_path, write_frames(tmp_path / "f.jsonl", [[[0, 1], [1, 1]]] * 3), "training.steps=1")
    with pytest.raises(
        ConfigError, match="is for series of real values out of a table, but this run predicts zeros and"
    ):
        frames.backtest(str(tmp_path / "f.jsonl"))


def test_the_last_steps_can_be_dropped_but_not_all(tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv")
    few = trained(tmp_path, file, "data.drop_last=10", "training.steps=1")
    assert [len(steps) for steps in few.task.read([file])] == [30, 21]
    with pytest.raises(
        DataError, match=r"a\.csv:42: the series 'b' has 31 steps, of which data\.drop_last = 30 leaves few"
    ):
        trained(tmp_path / "other", file, "data.drop_last=30", "training.steps=1")
    with pytest.raises(ConfigError, match=r"data\.drop_last works only for series in a table, not with data\.frames"):
        setup("forecasting", overrides=["data.frames=x", "data.drop_last=1"])


def test_other_tasks_have_no_backtest() -> None:
    from recurra.tasks.tagging import Tagging

    task = object.__new__(Tagging)
    with pytest.raises(ConfigError, match="recurra backtest is for forecasting, but this is a tagging model"):
        task.origins_back([], windows=1, step=1)
    with pytest.raises(ConfigError, match="recurra backtest is for forecasting, but this is a tagging model"):
        task.rolling(None, [], windows=1, step=1)  # type: ignore[arg-type]
