"""Forecasts beside what came, as views."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recurra.analysis.forecasts import Forecast
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
