"""What a task is told of the training it is in, and what it may tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recurra.runs import begin, resume, setup
from recurra.training.log import TrainLine, ValidLine, read_log
from recurra.training.progress import Silent
from recurra.training.trained import load
from tests.training.small import SMALL, small_setup
from tests.training.test_trainer import StopsAt, digest
from tests.training.told import NAME


@pytest.fixture(autouse=True)
def _often_and_own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("recurra.training.trainer.LOG_SECONDS", 0.0)


def begun(folder: Path, run: str, *overrides: str, progress: object = None) -> Path:
    small_setup(folder)
    given = {"train": str(folder / "train.conll"), "valid": str(folder / "valid.conll")}
    options = [*SMALL, "training.epochs=2", *overrides]
    begin(setup(NAME, given=given, overrides=options), folder / run, progress or Silent())  # type: ignore[arg-type]
    return folder / run


def told(run: Path) -> list[TrainLine]:
    return [line for line in read_log(run / "metrics.jsonl") if isinstance(line, TrainLine)]


def test_a_loss_knows_the_step_and_what_was_carried_and_its_numbers_are_logged(tmp_path: Path) -> None:
    lines = told(begun(tmp_path, "run"))
    assert [line.logged["share"] for line in lines] == pytest.approx([0.9 ** (line.step - 1) for line in lines])
    assert [line.logged["losses"] for line in lines] == [line.step for line in lines]
    assert ">share</text>" in (tmp_path / "run" / "report.html").read_text()


def test_batches_of_one_update_share_its_step(tmp_path: Path) -> None:
    lines = told(begun(tmp_path, "run", "training.accumulate=2", "training.epochs=1"))
    assert lines[0].logged["share"] == 1.0
    assert lines[0].logged["losses"] == 2.0


def test_a_loss_that_depends_on_the_step_is_resumed_exactly(tmp_path: Path) -> None:
    whole = begun(tmp_path, "whole")
    last = told(whole)[-1].step // 2
    with pytest.raises(MemoryError):
        begun(tmp_path, "broken", "training.save_minutes=0.0001", progress=StopsAt(last))
    resume(tmp_path / "broken", Silent())
    assert digest(tmp_path / "broken") == digest(whole)
    by_step = {line.step: line.logged for line in told(tmp_path / "broken")}
    assert all(line.logged == by_step[line.step] for line in told(whole))


def test_validation_may_be_quicker_in_training_and_the_scores_of_a_run_are_found_in_full(tmp_path: Path) -> None:
    run = begun(tmp_path, "run", "training.epochs=4", "training.learning_rate=0.02")
    model = load(run)
    in_full = model.evaluate(tmp_path / "valid.conll").values["accuracy"]
    examples = list(model.task.read([tmp_path / "valid.conll"]))
    always = model.task.tags[0].tokens[0]  # type: ignore[attr-defined]
    tags = [tag for example in examples for tag in example.tags[0]]
    quick = [line.scores["accuracy"] for line in read_log(run / "metrics.jsonl") if isinstance(line, ValidLine)]
    assert quick == pytest.approx([tags.count(always) / len(tags)] * 4)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["best"]["scores"]["accuracy"] == pytest.approx(in_full) != quick[-1]
    assert summary["quick_validation"] is True
    assert "the faster validation during training" in (run / "report.html").read_text()
    assert f"| accuracy | {in_full:.4f} |" in (run / "card.md").read_text()


def test_a_task_that_validates_as_it_answers_says_nothing_of_it(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.steps=2"), tmp_path / "run", Silent())
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["quick_validation"] is False
    assert "during training" not in (tmp_path / "run" / "report.html").read_text()


def test_a_loss_knows_for_how_many_validations_their_loss_has_not_fallen(tmp_path: Path) -> None:
    run = begun(tmp_path, "run", "training.validate=1", "training.learning_rate=0.5", "training.epochs=4")
    lowest, since, most, expected = float("inf"), 0, 0, {}
    for line in read_log(run / "metrics.jsonl"):
        if isinstance(line, ValidLine):
            lowest, since = (line.loss, 0) if line.loss < lowest else (lowest, since + 1)
            most = max(most, since)
            expected[line.step + 1] = most
    assert most >= 2
    assert {line.step: line.logged["stalled"] for line in told(run) if line.step > 1} == {
        step: count for step, count in expected.items() if step <= told(run)[-1].step
    }
