"""Streams of exported forecasters: the forecasts of the run's own stream, and states that either goes on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from recurra.errors import CheckpointError, ConfigError
from recurra.exported import load_exported
from recurra.exporting.joining import recorded_functions
from recurra.models.saved import fingerprint
from recurra.programs.in_numpy import InNumpy
from recurra.tasks.task import Prediction
from recurra.training.trained import load
from tests.exporting.agreeing import built
from tests.exporting.test_forecasters import RUNS, TABLE, exported_forecasters, table
from tests.exporting.test_without_torch import without_torch

PRICES = [0, 2, 1, 1, 0, 2, 2, 1, 0, 1, 2]
SOLD: list[float | None] = [21.5, 24.0, 31.25, 36.0, 19.0, None, 30.0, 35.5]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported_forecasters(tmp_path_factory)


def rows(name: str, first: int, last: int) -> dict[str, Any]:
    """Some steps of a series that training did not have."""
    found: dict[str, Any] = {"series": "z", "times": [*range(90 + first, 90 + last)], "values": SOLD[first:last]}
    if name == "direct":
        found |= {"future": {"price": PRICES[first : last + 3]}, "static": {"size": 3, "town": "y"}}
        found["values"] = [26.0 if value is None else value for value in SOLD[first:last]]  # else it is a coming step
    if name == "counts":
        found["values"] = [None if value is None else round(value) for value in SOLD[first:last]]
    if name == "attention":
        found["past"] = {"price": PRICES[first:last]}
    return found


def assert_close(found: Prediction, right: Prediction) -> None:
    """The same forecast, to 1e-5."""
    assert found.score == pytest.approx(right.score, rel=1e-5, abs=1e-5)
    assert found.detail.keys() == right.detail.keys()
    for name, value in right.detail.items():
        for one, other in zip(leaves(found.detail[name]), leaves(value), strict=True):
            wanted = other if isinstance(other, str | None) else pytest.approx(other, rel=1e-5, abs=1e-5)
            assert one == wanted, name


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = [*tree.values()]
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, list | tuple) else [tree]


@pytest.mark.parametrize("by", ["c", "numpy"])
@pytest.mark.parametrize("name", RUNS)
def test_a_stream_forecasts_as_that_of_the_run_and_each_goes_on_with_states_of_the_other(
    runs: Path, name: str, by: Any
) -> None:
    run, exported = load(runs / name / "run"), load_exported(runs / name / "exported", by=by)
    one, other, ends = run.stream(), exported.stream(), (3, 4, 5, 6, 7, 8)
    for first, last in zip((0, *ends), ends, strict=False):
        right = one.read(rows(name, first, last))
        found = other.read(rows(name, first, last))
        assert one.steps == other.steps == last
        assert_close(found, right)
        one, other = run.stream(other.state()), exported.stream(one.state())


@pytest.mark.parametrize("name", ["recursive", "attention"])
def test_a_fresh_process_without_torch_goes_on_with_a_state(runs: Path, tmp_path: Path, name: str) -> None:
    stream = load(runs / name / "run").stream()
    stream.read(rows(name, 0, 4))
    (tmp_path / "before").write_bytes(stream.state())
    code = (
        "import json, pathlib, recurra\n"
        "here, folder, row = sys.argv[1:]\n"
        "here = pathlib.Path(here)\n"
        "stream = recurra.load(folder, by='numpy').stream((here / 'before').read_bytes())\n"
        "said = stream.read(json.loads(row))\n"
        "(here / 'after').write_bytes(stream.state())\n"
        "assert not any(name.split('.')[0] == 'torch' and each for name, each in sys.modules.items())\n"
        "print(json.dumps([said.score, said.output]))\n"
    )
    folder = runs / name / "exported"
    done = without_torch(code, str(tmp_path), str(folder), json.dumps(rows(name, 4, 6)))
    assert done.returncode == 0, done.stderr
    right = stream.read(rows(name, 4, 6))
    score, output = json.loads(done.stdout)
    assert score == pytest.approx(right.score, rel=1e-5, abs=1e-5)
    assert [*map(float, output.replace(",", " ").split())] == pytest.approx(
        [*map(float, right.output.replace(",", " ").split())], rel=1e-5, abs=1e-5
    )
    again = load_exported(folder, by="numpy").stream((tmp_path / "after").read_bytes())
    assert_close(again.read(rows(name, 6, 7)), stream.read(rows(name, 6, 7)))


KINDS: dict[str, dict[str, Any]] = {
    "two layers": {"model.cell": "lstm", "model.layers": 2},
    "residual slstm": {"model.cell": "slstm", "model.layers": 2, "model.skip": "residual", "model.embedding": 3},
    "quantiles": {"model.cell": "min_gru", "model.ahead": "direct", "model.horizon": 2, "model.lags": 4},
    "longer than trained": {"model.ahead": "attention", "model.horizon": 2, "model.lags": 3, "decoding.horizon": 5},
    "changes": {"model.cell": "elman", "data.difference": True},
}


def streams_of(kind: Any, model: Any) -> tuple[Any, Any]:
    """The stream of a model, and that of its program."""
    predictor = kind.predictor()
    program, weights = recorded_functions(model, predictor.functions(model))
    return kind.stream(model), predictor.stream(kind, InNumpy(program, weights), fingerprint(model))


@pytest.mark.parametrize("name", KINDS)
def test_other_networks_are_streamed_as_they_are_in_torch(tmp_path: Path, name: str) -> None:
    draw = np.random.default_rng(2)
    values = 20 + draw.normal(size=(40, 2))
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{a:.3f},{b:.3f}\n" for a, b in values))
    asked = {"model.hidden": 4, "model.ahead": "recursive", "data.season": 2, "decoding.horizon": 3, **KINDS[name]}
    kind, model = built(tmp_path / "a.csv", "forecasting", asked, 1, times=2.0)
    one, other = streams_of(kind, model)
    for row in values[:7].tolist():
        assert_close(other.read(row), one.read(row))


def test_frames_are_streamed_from_their_beginning(tmp_path: Path) -> None:
    frames = [[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"frames": frames[n:]}) + "\n" for n in range(3)))
    kind, model = built(tmp_path / "a.jsonl", "forecasting", {"model.hidden": 4}, 1, times=2.0)
    one, other = streams_of(kind, model)
    for frame in frames:
        assert_close(other.read(frame), one.read(frame))


def test_states_that_do_not_fit_are_refused(runs: Path) -> None:
    exported = load_exported(runs / "attention" / "exported", by="numpy")
    stream = exported.stream()
    stream.read(rows("attention", 0, 5))
    reader = cast(Any, stream)._members[0][1]
    arrays = reader.arrays(cast(Any, stream)._kept[0])
    for name, wrong in (("state_0_0_h", np.zeros((1, 7))), ("memory", np.zeros((1, 99, 6)))):
        with pytest.raises(ValueError, match=r"not (those|that) of this model"):
            reader.kept({**arrays, name: wrong})
    with pytest.raises(CheckpointError, match="is of a stream of another run"):
        load_exported(runs / "recursive" / "exported", by="numpy").stream(stream.state())


def test_why_a_forecaster_has_no_stream_is_said(runs: Path, tmp_path: Path) -> None:
    file = table(tmp_path / "a.csv", 20)
    for changes, words in (
        ({"model.direction": "backward"}, "a stream is read forward, but the run reads series from their end"),
        (
            {"model.encoder": "transformer", "model.hidden": 8, "model.transformer.heads": 2},
            "the states of a Transformer have one column more after",
        ),
    ):
        asked = {**TABLE, "model.ahead": "recursive", "decoding.horizon": 2, **changes}
        kind, model = built(Path(file), "forecasting", asked, 1, times=1.0)
        predictor = kind.predictor()
        program, weights = recorded_functions(model, predictor.functions(model))
        assert [*program.functions] == ["forecast"]
        with pytest.raises(ConfigError, match=f"this exported model cannot read a stream: {words}"):
            predictor.stream(kind, InNumpy(program, weights), "a run")
        with pytest.raises(ConfigError, match=f"by which forecasters are scored, need the run or a stream: {words}"):
            predictor.scored_whole(InNumpy(program, weights), [])
    exported = load_exported(runs / "recursive" / "exported", by="numpy")
    cast(Any, exported.running.program.functions).pop("go_on")
    with pytest.raises(ConfigError, match="an earlier version exported it: export the run again"):
        exported.stream()
