"""What was exported from runs of earlier versions, once for all tests, and how its answers are compared with theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.exported import Exported
from recurra.exporting.folder import export
from recurra.manifest import seal
from recurra.tasks.task import Prediction
from recurra.training.trained import Trained
from tests.once import made_once

OLD = Path(__file__).parent.parent / "old_runs" / "0.1"
TASKS = ("tagging", "classification", "language_model", "seq2seq", "vec2seq")


def exported_once(factory: pytest.TempPathFactory) -> Path:
    """A folder with every exportable one of the old runs, by the name of its task."""

    def make(here: Path) -> None:
        for task in TASKS:
            export(OLD / task / "run", here / task)

    return made_once(factory, "exported", make)


def inputs_of(task: str) -> tuple[Path, list[str]]:
    data = OLD / task / "data"
    [file] = [*data.glob("inputs.*")] or [*data.glob("valid.*")]
    return file, file.read_text("utf-8").splitlines()


def answers_of(model: Trained | Exported, task: str) -> list[Prediction]:
    file, lines = inputs_of(task)
    return list(model.predict_file(file, lines, detail=True))


def assert_alike(found: Any, right: Any, where: str = "") -> None:
    """The same texts, and numbers that hardly differ."""
    if isinstance(right, dict):
        assert found.keys() == right.keys(), where
        for name, value in right.items():
            assert_alike(found[name], value, f"{where}.{name}")
    elif isinstance(right, str | type(None) | bool):
        assert found == right, where
    elif isinstance(right, list | tuple) and any(isinstance(each, str | dict | list | tuple) for each in right):
        assert len(found) == len(right), where
        for number, (one, other) in enumerate(zip(found, right, strict=True)):
            assert_alike(one, other, f"{where}[{number}]")
    else:
        assert np.allclose(found, right, rtol=1e-4, atol=1e-5), where


def assert_answers_and_scores_as(exported: Exported, run: Trained, task: str) -> None:
    """An exported model gives the answers and the scores of its run."""
    for found, right in zip(answers_of(exported, task), answers_of(run, task), strict=True):
        assert found.output == right.output
        assert found.score == pytest.approx(right.score, rel=1e-4, abs=1e-5)
        assert_alike(found.detail, right.detail)
    [valid] = (OLD / task / "data").glob("valid.*")
    scores, wanted = exported.evaluate(valid).values, run.evaluate(valid).values
    assert scores.keys() == wanted.keys()
    for name in wanted.keys() - {"seconds"}:
        assert scores[name] == pytest.approx(wanted[name], rel=1e-4, nan_ok=True), name


def sealed(folder: Path, name: str, content: bytes) -> Path:
    """A folder whose maker has put something else in a file, with the digests to match."""
    (folder / name).write_bytes(content)
    (folder / "manifest.json").unlink()
    seal(folder)
    return folder
