"""What a task is told of the training it is in, and what it may tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from recurra.runs import begin, resume, setup
from recurra.training.log import TrainLine, read_log
from recurra.training.progress import Silent
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
