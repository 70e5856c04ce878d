"""Forecasts that leave the house: as CSV, as pictures with bands, and step by step."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recurra.cli import main
from recurra.data.formats import rows
from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.padding import fitted
from recurra.runs import setup
from recurra.tasks.forecasting import Forecasting
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Prediction, Task
from recurra.training.explaining import explain
from recurra.training.trained import Trained, load
from recurra.views.kinds import view_of
from recurra.views.lines import Lines
from tests.tasks.test_direct_forecasts import trained
from tests.tasks.test_forecasting import SMALL, write
from tests.variants import CELLS

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


@pytest.mark.parametrize("how", [DIRECT, [*RECURSIVE, "decoding.horizon=4", "decoding.paths=40"]])
def test_a_csv_has_the_numbers_of_json_in_a_row_for_each_series_step_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    file = dated(tmp_path / "a.csv")
    model = trained(tmp_path, file, "data.series=shop", *how)
    out = tmp_path / "forecasts.csv"
    assert main(["predict", str(model.folder), file, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"2 answers written to {out}\n"
    assert main(["predict", str(model.folder), file, "--format", "csv"]) == 0
    assert capsys.readouterr().out == out.read_text()
    assert main(["predict", str(model.folder), file, "--json"]) == 0
    said = {each["series"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    with out.open(newline="") as opened:
        found = list(csv.DictReader(opened))
    mean = ["mean"] if how is not DIRECT else []  # quantiles alone tell none
    assert [*found[0]] == [
        *("series", "time", "step", "column", "forecast", *mean, "low", "high"),
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
    assert found[0] == ["series", "time", "step", "column", "forecast", "mean"]
    assert [row[:4] for row in found[1:]] == [["", f"{n}", f"{n}", "x"] for n in (1, 2, 3)]
    [answer] = model.predict([[float(line) for line in Path(file).read_text().split()[1:]]])
    np.testing.assert_allclose([float(row[4]) for row in found[1:]], np.ravel(answer.detail["values"]), rtol=1e-6)


@pytest.mark.parametrize("log", [False, True])
def test_the_mean_is_that_of_the_density_unless_logarithms_are_predicted(tmp_path: Path, log: bool) -> None:
    """Of a log-normal density: exp(mu + sigma^2 / 2), where the forecast is exp(mu)."""
    file = dated(tmp_path / "a.csv", shops=1)
    how = ["model.output=gaussian", "data.log=true"] if log else ["model.output=log_normal"]
    values = ["data.values=['sold']", "data.past=['price']"]
    model = trained(tmp_path, file, *DIRECT, *values, *how)
    [answer] = model.predict_file(file, [], detail=True)
    if log:
        assert "mean" not in answer.detail
        return
    task: Any = model.task
    network: Any = model.model
    [example] = task.read([file])
    batch: Any = fitted(task.batch([task.encode(example)]), network)
    [said] = network.predict(batch, horizon=4)
    middle, mean = np.array(answer.detail["values"]), np.array(answer.detail["mean"])
    unit = task.conventions.unit_of(example).scale.spread
    np.testing.assert_allclose(mean, said.means * unit, rtol=1e-6)
    # 0.95 of a normal distribution lies below 1.6449 of its spread.
    sigma = np.log(np.array(said.fan[:, -1]) / said.values) / 1.6448536
    np.testing.assert_allclose(np.log(mean / middle), sigma**2 / 2, rtol=1e-3)


def test_the_mean_of_sampled_paths_is_their_mean(tmp_path: Path) -> None:
    file = dated(tmp_path / "a.csv", shops=1)
    model = trained(tmp_path, file, "data.values=['sold']", *RECURSIVE, "data.past=['price']", "decoding.paths=25")
    task: Any = model.task
    network: Any = model.model
    [example] = task.read([file])
    [said] = network.predict(fitted(task.batch([task.encode(example)]), network), horizon=3, paths=25, seed=1)
    [answer] = model.predict_file(file, [], detail=True)
    scale = task.conventions.unit_of(example).scale
    np.testing.assert_allclose(answer.detail["mean"], (said.paths * scale.spread + scale.mean).mean(0), rtol=1e-6)


def test_formats_of_other_tasks_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = dated(tmp_path / "a.csv", days=12, shops=1)
    model = trained(tmp_path, file, *RECURSIVE)
    for options, said in (
        (["--format", "conllu"], "--format conllu is for taggers; forecasting prints plain answers"),
        (["--format", "xml"], "--format xml is not known: forecasters write csv, taggers conllu or conll."),
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


def close(one: Prediction, other: Prediction) -> None:
    """Two forecasts say the same, all of it."""
    assert one.detail.keys() == other.detail.keys()
    for name in ("values", "mean", "low", "high", "probabilities"):
        if name in one.detail:
            np.testing.assert_allclose(one.detail[name], other.detail[name], rtol=1e-5, atol=1e-5)
    for level, part in one.detail.get("quantiles", {}).items():
        np.testing.assert_allclose(part, other.detail["quantiles"][level], rtol=1e-5, atol=1e-5)
    assert one.detail.get("times") == other.detail.get("times")
    np.testing.assert_allclose(one.score, other.score, rtol=1e-4, atol=1e-4)


KINDS = {
    "direct": ["model.horizon=4", "decoding.horizon=6", "model.ahead=direct", "model.lags=12", "data.season=6"],
    "recursive": ["model.ahead=recursive", "model.layers=2", "model.cell=lstm"],
    "changes": ["model.ahead=recursive", "data.difference=true", "model.cell=min_gru", "model.embedding=5"],
    "paths": ["model.ahead=recursive", "model.output=student_t", "decoding.paths=7", "model.cell=slstm"],
    "attention": ["model.ahead=attention", "model.horizon=3", "model.lags=3", "data.season=2", "decoding.horizon=5"],
    "gaps": ["model.ahead=recursive", "model.cell=gru_d"],
    "transformer": [
        "model.ahead=recursive",
        "model.encoder=transformer",
        "model.transformer.context=4",
        "model.transformer.heads=2",
    ],
}


def untrained(file: str, *overrides: str, **model: Any) -> Trained:
    """A network with the weights that it starts with."""
    has_cells = "model.encoder=transformer" not in overrides
    given = [each for each in SMALL if not each.startswith("model.cell") and (has_cells or "engine" not in each)]
    this = setup("forecasting", given={"train": file}, overrides=[*given, *overrides])
    chosen = dataclasses.replace(this.settings.model, **model)
    task = Forecasting.prepared(Forecasting.resolved(dataclasses.replace(this.settings, model=chosen)))
    torch.manual_seed(1)
    return Trained(task, task.build(), Path())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return dated(tmp_path_factory.mktemp("streams") / "a.csv", shops=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_forecasts_after_each_row_what_predict_does_of_all_rows(table: str, kind: str) -> None:
    model = untrained(table, *KINDS[kind])
    rows_read: list[list[float | None]] = [[20.0 + 3 * np.sin(n), np.cos(2 * n)] for n in range(7)]
    if kind == "gaps":
        rows_read[4] = [None, 0.5]
    stream = model.stream()
    for count, row in enumerate(rows_read, 1):
        said = stream.read(row)
        close(said, model.predict([rows_read[:count]])[0])
        if count % 3 == 0:
            stream = model.stream(stream.state())
        assert stream.steps == count


def test_a_long_stream_remembers_no_more_than_it_needs(tmp_path: Path) -> None:
    file = dated(tmp_path / "a.csv", shops=1)
    model = trained(tmp_path, file, "training.steps=2", *KINDS["direct"], "decoding.coverage=0.9", valid=file)
    values = (20 + np.random.default_rng(1).normal(size=(320, 2))).tolist()
    stream = model.stream()
    stream.read({"values": values[:300]})
    size = len(stream.state())
    stream = load(tmp_path / "run").with_settings(["decoding.coverage=0.9"]).stream(stream.state())
    for row in values[300:]:
        said = stream.read(row)
    assert isinstance(model.task, Forecasting)
    scaled = model.task.with_unit("", model.task.conventions.unit_of(model.task.asked(values[:300], is_first=True)))
    whole = scaled.asked(values, is_first=True)
    [output] = scaled.predict(model.model, scaled.batch([scaled.encode(whole)]))
    close(said, scaled.answer(whole, output))
    assert len(stream.state()) == size


@pytest.mark.parametrize("beside", [["data.future=['price']"], ["data.elapsed=true", "data.past=['price']"]])
def test_a_stream_of_a_known_series_goes_on_with_training_and_reads_covariates_and_gaps(
    tmp_path: Path, beside: list[str]
) -> None:
    file = dated(tmp_path / "a.csv")
    options = ["data.series=shop", "data.values=['sold']", "data.calendar=['weekday']", *beside]
    model = trained(tmp_path, file, *options, *RECURSIVE)
    days = [str(np.datetime64("2026-02-10") + day) for day in (0, 1, 4, 5)]  # two days are missing
    prices = np.linspace(-1, 1, 7).tolist()
    role, ahead = ("future", 3) if "future" in beside[0] else ("past", 0)

    def row(first: int, last: int) -> dict[str, Any]:
        values = [50.0 + number for number in range(first, last)]
        return {"values": values, "times": days[first:last], role: {"price": prices[first : last + ahead]}}

    stream = model.stream()
    for count in range(1, 5):
        new = row(count - 1, count)
        said = stream.read({"series": "s1", **new} if count == 1 else new)
        stream = model.stream(stream.state())
        close(said, model.predict([{"series": "s1", **row(0, count)}])[0])
    assert said.detail["times"][0] == "2026-02-16"
    with pytest.raises(DataError, match="the row at 2026-02-15 does not go on with the stream, whose last time is 202"):
        stream.read(row(3, 4))
    with pytest.raises(DataError, match="the stream reads the series 's1', but the row is of 's0'"):
        stream.read({"series": "s0", **row(3, 4)})
    with pytest.raises(DataError, match="earlier rows had times, and this one had none: give times with every row"):
        stream.read({**row(3, 4), "times": None})


def test_frames_are_streamed_from_their_beginning(tmp_path: Path) -> None:
    frames = [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]]
    file = write(tmp_path / "a.jsonl", "".join(json.dumps({"frames": frames[n:]}) + "\n" for n in range(3)))
    model = trained(tmp_path, file, "training.steps=2")
    stream = model.stream()
    for count, frame in enumerate(frames, 1):
        close(stream.read(frame), model.predict([frames[:count]])[0])


def test_states_that_are_no_states_of_this_run_are_refused(tmp_path: Path) -> None:
    file = dated(tmp_path / "a.csv", shops=1)
    model = trained(tmp_path, file, *RECURSIVE)
    stream = model.stream()
    stream.read([1.0, 2.0])
    state = stream.state()
    other = trained(tmp_path / "other", file, *RECURSIVE, "training.seed=5")
    for given, said in (
        (b"PK\x03\x04", "are not the state of a stream"),
        (b"recurra stream 9\n" + state[17:], "has format 9, but this version of recurra reads format 1"),
        (state[:-1], "is damaged or cut off"),
        (state[:400] + bytes([state[400] ^ 1]) + state[401:], "is damaged or cut off"),
        (state[:17] + hashlib.sha256(b"x").digest() + b"x", r"cannot be read \("),
    ):
        with pytest.raises(CheckpointError, match=said):
            model.stream(given)
    with pytest.raises(CheckpointError, match="of a stream of another run, whose weights are not those of this one"):
        other.stream(state)
    with pytest.raises(DataError, match="the state of a stream is bytes"):
        model.stream("state.bin")  # type: ignore[arg-type]
    for row in ("text", [], [[1.0, 2.0]]):
        with pytest.raises(DataError, match="a row of a stream must be a number, a list of the values of one step"):
            stream.read(row)
    with pytest.raises(DataError, match=r"a row of a stream needs values, but {'values': \[\]} has none"):
        stream.read({"values": []})
    with pytest.raises(DataError, match="found 3 values per step, but the model expects 2"):
        stream.read([1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="this row had times, and earlier ones had none: give times with every row"):
        stream.read({"values": [[1.0, 2.0]], "times": ["2026-02-03"]})
    assert stream.steps == 1
    assert stream.state() == state  # as it was before the errors


def test_runs_that_cannot_be_streamed_say_so(tmp_path: Path) -> None:
    file = dated(tmp_path / "a.csv", shops=1)
    model = trained(tmp_path, file, *RECURSIVE, "model.direction=backward")
    with pytest.raises(ConfigError, match="a stream is read forward, but this run reads series from their end"):
        model.stream()


SPECS = {spec["name"]: spec for spec in reversed(CELLS.values())} | {"unitary": CELLS["unitary"]}
"""A variant of each cell."""


@pytest.mark.parametrize("ahead", ["recursive", pytest.param("direct", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SPECS)
def test_every_cell_goes_on_from_its_state_in_a_stream(table: str, name: str, ahead: str) -> None:
    known = ["model.lags=4", "data.season=2", "model.horizon=2"] if ahead == "direct" else []
    spec = {key: value for key, value in SPECS[name].items() if key != "variables"}
    model = untrained(table, f"model.ahead={ahead}", *known, cell=spec)
    values = np.random.default_rng(1).normal(10, 3, size=(4, 2)).tolist()
    stream = model.stream()
    for count, row in enumerate(values, 1):
        close(stream.read(row), model.predict([values[:count]])[0])
        stream = model.stream(stream.state())
