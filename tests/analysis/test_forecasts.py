"""Forecasts beside what came, as views."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recurra.analysis.forecasts import Forecast
from recurra.cli import main
from recurra.runs import begin, setup
from recurra.runtime.hosted import Hosted
from recurra.training.progress import Silent


def test_columns_that_are_not_drawn_are_counted() -> None:
    line = np.arange(12.0).reshape(3, 4)
    view = Forecast("a", ["w", "x", "y", "z"], line, line, line).view()
    assert view.caption == "a, the first 3 of 4 columns"
    assert [panel.title for panel in view.panels] == ["w", "x", "y"]
    assert Forecast("a", ["w"], line[:, :1], line[:, :1], line[:, :1]).view().caption == "a"


def test_a_series_without_a_name_or_a_file_goes_by_its_steps(tmp_path: Path) -> None:
    (tmp_path / "levels.csv").write_text("level\n" + "".join(f"{day % 5}\n" for day in range(28)))
    few = ["model.hidden=4", "training.steps=1", "training.device=cpu", "training.threads=1", "data.cache=false"]
    given = {"train": str(tmp_path / "levels.csv")}
    begin(setup("forecasting", given=given, overrides=[*few, "decoding.horizon=4"]), tmp_path / "run", Silent())
    found = Hosted("run", tmp_path / "run").explain([[0.0], [1.0], [2.0], [3.0]] * 3, {}, show=["forecast"])
    assert found["views"]["forecast"]["caption"] == "steps 9 to 12"


def test_a_series_is_asked_for_by_its_name_and_goes_by_its_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"2026-01-{day:02d},{name},{day % 5}" for name in ("north", "west") for day in range(1, 25)]
    (tmp_path / "a.csv").write_text("\n".join(["date,shop,sold", *rows]) + "\n")
    (tmp_path / "one.csv").write_text("\n".join(["date,shop,sold", *rows[24:]]) + "\n")
    (tmp_path / "more.csv").write_text(
        "date,shop,sold\n" + "".join(f"2026-01-{d},west,{d % 5}\n" for d in range(25, 32))
    )
    few = ["model.hidden=4", "training.steps=1", "training.device=cpu", "training.threads=1", "data.cache=false"]
    few += ["data.series=shop", "decoding.horizon=4"]
    begin(setup("forecasting", given={"train": str(tmp_path / "a.csv")}, overrides=few), tmp_path / "run", Silent())

    def said(given: str, code: int = 0) -> str:
        assert main(["explain", str(tmp_path / "run"), str(tmp_path / given), "--show", "forecast"]) == code
        printed = capsys.readouterr()
        return (printed.err if code else printed.out).replace(f"{tmp_path}/", "")

    by_name = said("a.csv:west")
    assert by_name.startswith("west, 2026-01-21 to 2026-01-24\n")
    assert by_name == said("a.csv:26") == said("one.csv")
    # Steps of training that are read before those of the file are not counted.
    assert said("more.csv:west").startswith("west, 2026-01-28 to 2026-01-31\n")
    assert said("a.csv", 2) == "recurra: a.csv has several series, but explain takes one: name it, as a.csv:north.\n"
    assert said("a.csv:wets", 2) == "recurra: a.csv has no series 'wets'. Did you mean 'west'?\n"
    assert said("a.csv:x", 2) == "recurra: a.csv has no series 'x'. The first of its 2 series is 'north'.\n"
    assert said("a.csv:7", 2) == (
        "recurra: a.csv:7: no series starts on this line; 'west' starts on line 26. A series may also be named, as "
        "a.csv:west.\n"
    )


def test_a_series_without_a_name_is_not_found_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "levels.csv").write_text("level\n" + "".join(f"{day % 5}\n" for day in range(28)))
    few = ["model.hidden=4", "training.steps=1", "training.device=cpu", "training.threads=1", "data.cache=false"]
    given = {"train": str(tmp_path / "levels.csv")}
    begin(setup("forecasting", given=given, overrides=[*few, "decoding.horizon=4"]), tmp_path / "run", Silent())
    run, file = str(tmp_path / "run"), f"{tmp_path}/levels.csv"
    assert main(["explain", run, file, "--show", "forecast"]) == 0
    assert capsys.readouterr().out.startswith("levels.csv:2, steps 25 to 28\n")
    assert main(["explain", run, f"{file}:north", "--show", "forecast"]) == 2
    assert capsys.readouterr().err.endswith("the series of this file have no names: give the number of a line.\n")
