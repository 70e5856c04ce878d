"""Exported forecasters answer as their runs do: covariates, gaps, intervals that adapt; what they lack is said."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recurra
from recurra.cli import main
from recurra.errors import ConfigError
from recurra.exported import load_exported
from recurra.exporting.folder import export
from recurra.training.trained import load
from tests.exporting.exports import OLD, answers_of, assert_alike
from tests.once import made_once

FEW = {"training.steps": 12, "model.hidden": 6, "decoding.horizon": 3, "data.season": 4, "data.cache": False}
TABLE = {"data.time": "time", "data.series": "shop", "data.values": ["sold"]}
RUNS: dict[str, dict[str, Any]] = {
    "direct": {"data.future": ["price"], "data.static": ["size", "town"], "data.categories": ["town"]},
    "attention": {"model.ahead": "attention", "data.past": ["price"], "model.output": "gaussian"},
    "recursive": {"model.ahead": "recursive", "model.output": "gaussian", "model.cell": "gru_d", "model.embedding": 0},
    "student_t": {"model.output": "student_t"},
    "counts": {"model.output": "negative_binomial", "model.ahead": "direct"},
}


def table(path: Path, steps: int, first: int = 0, *, ahead: int = 0, whole: bool = False) -> str:
    """A table of two shops; of the last steps, `ahead` many, the price alone is known."""
    draw = np.random.default_rng(first)
    lines = ["shop,time,sold,price,size,town"]
    for shop, town in (("a", "x"), ("b", "y")):
        for t in range(first, first + steps):
            is_lost = (draw.random() < 0.1 and t > first) or t >= first + steps - ahead
            sold = "" if is_lost else f"{20 + 5 * (t % 4) + draw.normal():.{0 if whole else 3}f}"
            lines.append(f"{shop},{t},{sold},{draw.integers(0, 3)},{len(town) + first % 7},{town}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def exported_forecasters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small forecasters, and what was exported from them."""
    # Each worker begins with another, so that two make them side by side.
    first = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) * 2 % len(RUNS)
    names = [*RUNS][first:] + [*RUNS][:first]
    found = [made_once(tmp_path_factory, f"forecasters/{name}", partial(make, name)) for name in names]
    return found[0].parent


def make(name: str, here: Path) -> None:
    whole = name == "counts"
    train, valid = (
        table(here / f"{part}.csv", steps, first, whole=whole)
        for part, steps, first in (("train", 60, 0), ("valid", 20, 60))
    )
    recurra.train("forecasting", train=train, valid=valid, out=here / "run", settings={**FEW, **TABLE, **RUNS[name]})
    export(here / "run", here / "exported")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported_forecasters(tmp_path_factory)


@pytest.mark.parametrize("by", ["c", "numpy"])
@pytest.mark.parametrize("name", RUNS)
def test_an_exported_forecaster_predicts_as_its_run_does(runs: Path, tmp_path: Path, name: str, by: Any) -> None:
    run, exported = load(runs / name / "run"), load_exported(runs / name / "exported", by=by)
    whole = name == "counts"
    later = Path(table(tmp_path / "later.csv", 30, first=80, ahead=3 if name == "direct" else 0, whole=whole))
    for changes in ([], ["decoding.coverage=0.8", "decoding.adaptation=0.1"], ["decoding.horizon=2"]):
        one, other = run.with_settings(changes), exported.with_settings(changes)
        for found, right in zip(other.predict_file(later, []), one.predict_file(later, []), strict=True):
            assert found.score == pytest.approx(right.score, rel=1e-4, abs=1e-4)
            assert_alike(found.detail, right.detail)


@pytest.mark.parametrize("name", RUNS)
def test_an_exported_forecaster_is_scored_as_its_run_is(runs: Path, tmp_path: Path, name: str) -> None:
    run, exported = load(runs / name / "run"), load_exported(runs / name / "exported")
    file = table(tmp_path / "later.csv", 14, first=60, whole=name == "counts")
    lacking = {"direct": set(), **{each: {"nll"} for each in ("attention", "student_t", "counts")}}
    changes = ["evaluation.context=3", "evaluation.stride=2", "decoding.coverage=0.8"]
    found, right = (model.with_settings(changes).evaluate(file) for model in (exported, run))
    assert right.values.keys() - found.values.keys() == lacking.get(name, {"nll", "coverage", "next_crps"})
    assert ("mae" in found.values, found.values.keys() - right.values.keys()) == (True, set())
    for score in found.values.keys() - {"seconds"}:
        assert found.values[score] == pytest.approx(right.values[score], rel=1e-4, nan_ok=True), score
    said = [note for note in found.notes if "not of an exported model" in note]
    assert len(said) == (name != "direct")
    assert name == "direct" or said[0].startswith("nll")


def test_frames_are_not_scored_without_the_run(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"frames": [[1, 0], [0, 1], [1, 1]][n:]}) + "\n" for n in range(2)))
    few = {"training.steps": 1, "model.hidden": 2, "data.cache": False}
    recurra.train("forecasting", train=str(file), out=tmp_path / "run", settings=few)
    export(tmp_path / "run", tmp_path / "exported")
    with pytest.raises(ConfigError, match="frames are scored by −log p, which needs the run"):
        load_exported(tmp_path / "exported", by="numpy").evaluate(file)


def test_a_forecaster_of_an_earlier_version_is_exported(tmp_path: Path) -> None:
    export(OLD / "forecasting" / "run", tmp_path / "exported")
    run, exported = load(OLD / "forecasting" / "run"), load_exported(tmp_path / "exported")
    for found, right in zip(answers_of(exported, "forecasting"), answers_of(run, "forecasting"), strict=True):
        assert_alike(found.detail, right.detail)


def test_what_needs_the_run_is_said(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, file = str(runs / "recursive" / "exported"), table(tmp_path / "later.csv", 30, first=80)
    for arguments, words in (
        (["predict", folder, file, "--set", "decoding.horizon=4"], "exported for 3 steps ahead"),
        (["predict", folder, file, "--set", "decoding.paths=5"], "decoding.paths needs the run"),
        (["evaluate", folder, file, "--set", "evaluation.paths=5"], "evaluation.paths needs the run"),
    ):
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    for setting, words in (
        ("decoding.horizon=4", "exported for 3 steps ahead"),
        ("decoding.paths=5", "decoding.paths needs the run"),
    ):
        with pytest.raises(ConfigError, match=words):
            load_exported(runs / "recursive" / "exported", by="numpy").with_settings([setting]).stream()
