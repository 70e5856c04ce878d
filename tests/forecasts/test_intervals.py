"""Intervals that follow a series after its training data: in scores, and in answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recurra.errors import CheckpointError
from recurra.forecasts.intervals import PATHS, POINT, Intervals
from recurra.metrics.conformal import COVERAGES, Calibration
from recurra.opening import SMALL
from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load

KEYS = ["model.hidden=2", "training.steps=1", "data.cache=false", "decoding.horizon=2", "decoding.coverage=0.9"]


def written(path: Path, values: Any, first: int) -> str:
    rows = [f"{first + number},{value:.6f}" for number, value in enumerate(values)]
    path.write_text("\n".join(["time,x", *rows]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, str]:
    """A run on noise, and a file that goes on with half of that noise."""
    folder = tmp_path_factory.mktemp("calm")
    draw = np.random.default_rng(5)
    train, valid, test = (
        written(folder / f"{name}.csv", size * draw.normal(size=count), first)
        for name, size, count, first in (("a", 1.0, 300, 0), ("b", 1.0, 600, 300), ("c", 0.5, 900, 900))
    )
    begin(setup("forecasting", given={"train": train, "valid": valid}, overrides=KEYS), folder / "run", Silent())
    return load(folder / "run").preceded_by(valid), test


def without_adaptation(model: Trained, test: str) -> Trained:
    return model.with_settings(["decoding.adaptation=0"]).preceded_by(Path(test).parent / "b.csv")


def test_intervals_of_a_series_that_becomes_calmer_become_narrower(calm: tuple[Trained, str]) -> None:
    model, test = calm
    adapted = model.evaluate(test).values
    fixed = without_adaptation(model, test).evaluate(test).values
    assert fixed["calibrated_coverage"] > 0.97  # of errors half as large, 0.999 of normal ones
    assert adapted["calibrated_coverage"] == pytest.approx(0.9, abs=0.03)
    assert adapted["calibrated_width"] < 0.8 * fixed["calibrated_width"]


def test_an_answer_has_the_interval_that_scores_would_have_after_its_last_step(calm: tuple[Trained, str]) -> None:
    model, test = calm
    task: Any = model.task
    [answer] = model.predict_file(test, [], detail=True)
    examples, [review] = model.to_score([test])
    [again] = examples
    last = len(again)
    low, high = task.intervals.of_review(again, review)
    assert review.origins[-1] == last - 1
    # One step earlier the same interval was given, but for the value that has become known since.
    usual = np.array(answer.detail["high"]) - np.array(answer.detail["low"])
    assert usual == pytest.approx(high[-1] - low[-1], rel=0.05)
    [fixed] = without_adaptation(model, test).predict_file(test, [], detail=True)
    assert (usual < 0.8 * (np.array(fixed.detail["high"]) - np.array(fixed.detail["low"]))).all()


def test_steps_that_training_saw_move_nothing(calm: tuple[Trained, str]) -> None:
    model, test = calm
    task: Any = model.task
    whole = str(Path(test).parent / "a.csv")
    [example] = task.questions(whole, [])
    assert task.intervals.first_unseen(example) is None
    assert task.encode(example)["unseen"].tolist() == [-1]
    [after] = task.questions(test, [])
    assert task.intervals.first_unseen(after) == after.preceding > 0


def test_what_corrects_a_long_horizon_is_read_again_though_it_takes_more_than_other_files(
    calm: tuple[Trained, str], tmp_path: Path
) -> None:
    task: Any = calm[0].with_settings(["decoding.horizon=800"]).task
    conventions = task.conventions
    numbers = -np.random.default_rng(0).random((len(COVERAGES), 800, 1)) * 1e-100  # written as long as numbers can be
    one = Calibration(numbers, np.full((800, 1), 2**40))
    Intervals(conventions, {POINT: one, PATHS: one}).save(tmp_path)
    assert (tmp_path / "calibration.json").stat().st_size > SMALL
    again = Intervals.load(conventions, tmp_path).calibrations
    np.testing.assert_array_equal(again[PATHS].quantiles, numbers)
    with (tmp_path / "calibration.json").open("ab") as file:
        file.write(b" " * SMALL)
    with pytest.raises(CheckpointError, match="it is larger than 5,120,000 bytes"):
        Intervals.load(conventions, tmp_path)
