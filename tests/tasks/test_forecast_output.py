"""Forecasts that leave the house: as CSV, as pictures with bands, and step by step."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from recurra.cli import main
from recurra.data.formats import rows
from recurra.errors import ConfigError
from recurra.reports.explaining import explain
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Prediction, Task
from recurra.views.kinds import view_of
from recurra.views.lines import Lines
from tests.tasks.test_direct_forecasts import trained
from tests.tasks.test_forecasting import write

DIRECT = ["model.horizon=4", "decoding.horizon=4", "model.ahead=direct", "training.steps=3"]
RECURSIVE = ["decoding.horizon=3", "model.ahead=recursive", "training.steps=3"]


def dated(path: Path, days: int = 40, shops: int = 2) -> str:
    """Two columns of two shops, with dates."""
    lines = ["date,shop,sold,price"]
    for shop in range(shops):
        for day in range(days):
            date = np.datetime64("2026-01-01") + day
            lines.append(f"{date},s{shop},{(10 + 3 * np.sin(day)) * 5**shop:.4f},{np.cos(day):.4f}")
    return write(path, "\n".join(lines) + "\n")


def test_a_csv_has_the_numbers_of_json_in_a_row_for_each_series_step_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = dated(tmp_path / "a.csv")
    model = trained(tmp_path, file, "data.series=shop", *DIRECT)
    out = tmp_path / "forecasts.csv"
    assert main(["predict", str(model.folder), file, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"2 answers written to {out}\n"
    assert main(["predict", str(model.folder), file, "--format", "csv"]) == 0
    assert capsys.readouterr().out == out.read_text()
    assert main(["predict", str(model.folder), file, "--json"]) == 0
    said = {each["series"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    with out.open(newline="") as opened:
        found = list(csv.DictReader(opened))
    assert [*found[0]] == [
        *("series", "time", "step", "column", "forecast", "low", "high"),
        *("q0.1", "q0.25", "q0.5", "q0.75", "q0.9"),
    ]
    assert len(found) == 2 * 4 * 2
    for row in found:
        answer, step, column = said[row["series"]], int(row["step"]) - 1, ["sold", "price"].index(row["column"])
        assert row["time"] == str(np.datetime64("2026-02-10") + step) == answer["times"][step]
        for name, part in (("forecast", "values"), ("low", "low"), ("high", "high")):
            np.testing.assert_allclose(float(row[name]), answer[part][step][column], rtol=1e-8)
        levels = [float(row[name]) for name in ("low", "q0.1", "q0.25", "q0.5", "q0.75", "q0.9", "high")]
        assert levels == sorted(levels)
        for level, part in answer["quantiles"].items():
            np.testing.assert_allclose(float(row[f"q{level}"]), part[step][column], rtol=1e-8)
    assert [row.values["time"] for row in rows(out)] == [row["time"] for row in found]


def test_a_csv_without_times_and_intervals_numbers_the_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "a.csv", "x\n" + "".join(f"{t % 5}.5\n" for t in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5)))
    model = trained(tmp_path, file, *RECURSIVE)
    assert main(["predict", str(model.folder), file, "--format", "csv"]) == 0
    printed = capsys.readouterr().out
    found = list(csv.reader(printed.splitlines()))
    assert found[0] == ["series", "time", "step", "column", "forecast"]
    assert [row[:4] for row in found[1:]] == [["", f"{n}", f"{n}", "x"] for n in (1, 2, 3)]
    [answer] = model.predict([[float(line) for line in Path(file).read_text().split()[1:]]])
    np.testing.assert_allclose([float(row[4]) for row in found[1:]], np.ravel(answer.detail["values"]), rtol=1e-6)


def test_formats_of_other_tasks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = dated(tmp_path / "a.csv", days=12, shops=1)
    model = trained(tmp_path, file, *RECURSIVE)
    for options, said in (
        (["--format", "conllu"], "--format conllu is for taggers; forecasting prints plain answers"),
        (["--format", "xml"], "--format xml is not known: forecasters write csv, taggers conllu."),
        (["--format", "csv", "--json"], "--format csv and --json exclude each other."),
        (["--format", "csv", "--out", str(tmp_path / "b.tsv")], "the file must end in .csv"),
    ):
        assert main(["predict", str(model.folder), file, *options]) == 2
        assert said in capsys.readouterr().err

    class Other(Tagging):
        name = "other"

    with pytest.raises(ConfigError, match="--format csv is for forecasters; other prints plain answers"):
        Task.printed(Other.__new__(Other), Prediction("", "", 0.0, 1, {}), "csv", 1)


@pytest.mark.parametrize("ahead", [[*DIRECT, "data.values=['sold']"], [*RECURSIVE, "model.output=gaussian"]])
def test_a_forecast_is_drawn_with_bands_inside_of_each_other(tmp_path: Path, ahead: list[str]) -> None:
    file = dated(tmp_path / "a.csv", shops=1)
    model = trained(tmp_path, file, *ahead)
    found = explain(model, f"{file}:2", show="forecast").view
    assert isinstance(found, Lines)
    for panel in found.panels:
        wide, middle, narrow = panel.bands
        assert [band.name for band in panel.bands] == ["90 % interval", "80 % interval", "50 % interval"]
        ends = [wide.low, middle.low, narrow.low, narrow.high, middle.high, wide.high]
        assert (np.diff(ends, axis=0) >= 0).all()
        assert (np.array(wide.high) > wide.low).all()
    again = view_of(found.json())
    assert isinstance(again, Lines)
    assert again.json() == found.json()
    assert found.json()["intervals"][2]["coverage"] == 0.5
    svg = found.svg()
    assert svg.count("% interval</text>") == 3 * len(found.panels)
    assert "50 % interval " in svg  # of the step that is pointed at
