"""Batches that are built ahead: the same as without, errors where they were, no thread left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from recurra.data.store import Encoded, Store
from recurra.errors import DataError, TrainingError
from recurra.models.tagger import TaggerBatch
from recurra.tasks.tagging import Tagging
from recurra.training import ahead as module
from recurra.training.ahead import Ahead, may_draw
from recurra.training.log import Log
from recurra.training.preparation import HeldOut, prepared
from recurra.training.progress import Silent
from recurra.training.trainer import Trainer
from tests.training.small import small_setup

NAME = "building batches"


class Broken(Tagging):
    """A task whose second batch cannot be read."""

    def chosen(self, store: Any, numbers: Any) -> Sequence[Encoded]:
        if 0 in numbers:
            raise DataError("train.conll:3: this row is broken.")
        return super().chosen(store, numbers)


class Waiting(Tagging):
    """A task that waits for something that does not come."""

    come = threading.Event()

    def chosen(self, store: Any, numbers: Any) -> Sequence[Encoded]:
        self.come.wait()
        return super().chosen(store, numbers)


class Drawing(Tagging):
    """A task that hides words as it makes a batch, and does not say that it draws."""

    threads: list[str]

    def batch(self, rows: Sequence[Encoded]) -> TaggerBatch:
        self.threads.append(threading.current_thread().name)
        made = super().batch(rows)
        assert made.words is not None
        hidden = torch.rand(made.words.values.shape) < 0.3
        return made._replace(words=made.words._replace(values=made.words.values.masked_fill(hidden, 0)))


class Unmade(Tagging):
    """A task that cannot make tensors."""

    def batch(self, rows: Sequence[Encoded]) -> TaggerBatch:
        raise DataError("these rows make no batch.")

    @property
    def draws_in_batch(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def _no_thread_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))
    yield
    Waiting.come.set()
    for thread in threading.enumerate():
        if thread.name == NAME:
            thread.join(5)
            assert not thread.is_alive()


def task_of(folder: Path, kind: type[Tagging], *overrides: str) -> tuple[Any, Store]:
    this = small_setup(folder, *overrides)
    task, store = prepared(Tagging, this.settings, lambda _: None)
    assert isinstance(task, Tagging)
    task.__class__ = kind
    return task, store


def started(task: Any, store: Store, **place: Any) -> Ahead:
    given: dict[str, Any] = {"epoch": 0, "batch": 0, "accumulate": 1, "epochs": None, "say": lambda _: None}
    return Ahead(task, store, **{**given, **place}, device=torch.device("cpu"))


def trainer_of(folder: Path, kind: type[Tagging], *overrides: str) -> Trainer:
    task, store = task_of(folder, kind, *overrides)
    return Trainer(task, store, HeldOut([], []), folder / "run", Silent())


@pytest.mark.parametrize(("first", "accumulate"), [(0, 1), (2, 1), (3, 2)])
def test_steps_come_in_order_with_the_batches_of_their_place(first: int, accumulate: int, tmp_path: Path) -> None:
    task, store = task_of(tmp_path, Tagging)
    epoch, batch = 1, first
    with started(task, store, epoch=epoch, batch=batch, accumulate=accumulate) as ahead:
        for _ in range(15):
            batches = task.batches(store, epoch)
            if batch >= len(batches):
                epoch, batch = epoch + 1, 0
                batches = task.batches(store, epoch)
            found = ahead.step(epoch, batch)
            wanted = [store.take(numbers) for numbers in batches[batch : batch + accumulate]]
            assert len(found.batches) == len(batches)
            assert found.elements == sum(int(rows.lengths("words").sum()) for rows in wanted)
            for part, rows in zip(found.parts, wanted, strict=True):
                torch.testing.assert_close(part.batch.words.values, task.batch(rows).words.values)
                assert [row["place"].tolist() for row in part.rows] == [row["place"].tolist() for row in rows]
            batch += accumulate
    assert epoch > 1


def test_nothing_is_built_after_the_last_epoch(tmp_path: Path) -> None:
    task, store = task_of(tmp_path, Tagging)
    with started(task, store, epochs=1) as ahead:
        for batch in range(len(task.batches(store, 0))):
            ahead.step(0, batch)
        ahead._thread.join(5)
        assert not ahead._thread.is_alive()


def test_an_error_of_reading_comes_out_of_the_step_as_it_was_raised(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, Broken)
    with Log(tmp_path / "run") as log, pytest.raises(DataError, match=r"^train.conll:3: this row is broken\.$"):
        trainer.run(log)
    assert NAME not in [thread.name for thread in threading.enumerate()]


def test_an_error_of_making_a_batch_is_left_to_the_step(tmp_path: Path) -> None:
    with started(*task_of(tmp_path, Unmade)) as ahead:
        assert ahead.step(0, 0).parts[0].batch is None
    trainer = trainer_of(tmp_path, Unmade)
    with Log(tmp_path / "run") as log, pytest.raises(DataError, match="these rows make no batch"):
        trainer.run(log)


def test_a_task_that_overrides_batch_in_silence_makes_it_in_the_step(tmp_path: Path) -> None:
    weights = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        trainer = trainer_of(tmp_path / name, Drawing, "training.steps=5", "training.validate=none")
        trainer.task.threads = []  # type: ignore[attr-defined]
        assert may_draw(trainer.task)
        with Log(tmp_path / name / "run") as log:
            trainer.run(log)
        assert {*trainer.task.threads} == {threading.current_thread().name}  # type: ignore[attr-defined]
        weights.append(torch.cat([each.detach().flatten() for each in trainer.model.parameters()]))
    assert torch.equal(*weights)


def test_a_task_that_says_that_it_draws_nothing_is_believed(tmp_path: Path) -> None:
    assert not may_draw(task_of(tmp_path, Tagging)[0])


def test_a_stuck_thread_is_told_of_and_then_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW_SECONDS", 0.2)
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.5)
    monkeypatch.setattr(module, "CLOSING_SECONDS", 0.1)
    Waiting.come.clear()
    said: list[str] = []
    with (
        started(*task_of(tmp_path, Waiting), say=said.append) as ahead,
        pytest.raises(TrainingError, match=r"no data for epoch 1, batch 1 after .* is stuck \(reading examples\)"),
    ):
        ahead.step(0, 0)
    assert len(said) == 1
    assert said[0].startswith("still waiting for the data of epoch 1, batch 1 after ")


@pytest.mark.parametrize("ending", [lambda: None, KeyboardInterrupt])
def test_however_training_ends_the_thread_ends(ending: Callable[[], BaseException | None], tmp_path: Path) -> None:
    task, store = task_of(tmp_path, Tagging)
    try:
        with started(task, store) as ahead:
            ahead.step(0, 0)
            if (stop := ending()) is not None:
                raise stop
    except KeyboardInterrupt:
        pass
    assert NAME not in [thread.name for thread in threading.enumerate()]
