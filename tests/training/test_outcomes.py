"""Steps that are looked at late: the same weights, the same log, and the same refusal as when each is waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from recurra.errors import TrainingError
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import START, Loss, Moment
from recurra.training.log import Log, TrainLine, read_log
from recurra.training.outcomes import Arriving, Outcomes
from recurra.training.preparation import HeldOut, prepared
from recurra.training.progress import Silent
from recurra.training.trainer import Trainer
from tests.training.small import small_setup

WRONG = 4
"""The step, from 1, at which something is not finite."""


class NoLoss(Tagging):
    """A task whose loss is not a number at one step."""

    def loss(self, model: Any, batch: Any, moment: Moment = START) -> Loss:
        found = super().loss(model, batch, moment)
        return found._replace(total=found.total * torch.nan) if moment.step == WRONG - 1 else found


class NoGradient(Tagging):
    """A task whose loss is finite, but not its gradient, at one step."""

    def loss(self, model: Any, batch: Any, moment: Moment = START) -> Loss:
        found = super().loss(model, batch, moment)
        steep = (0 * next(model.parameters()).sum()).sqrt()
        return found._replace(total=found.total + steep) if moment.step == WRONG - 1 else found


class Slow:
    """A copy that is done only when it is waited for, as from a device that is busy."""

    def __init__(self) -> None:
        self.was_waited_for = False

    def query(self) -> bool:
        return self.was_waited_for

    def synchronize(self) -> None:
        self.was_waited_for = True


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))


def trainer_of(folder: Path, kind: type[Tagging], name: str, *overrides: str, late: bool) -> Trainer:
    usual = ("training.epochs=none", "training.steps=15", "training.schedule=constant", "training.warmup=0")
    this = small_setup(folder, *usual, *overrides)
    task, store = prepared(Tagging, this.settings, lambda _: None)
    task.__class__ = kind
    trainer = Trainer(task, store, HeldOut([], []), folder / name, Silent())
    if late:
        trainer.looks_late = True
        trainer.outcomes = Outcomes(lambda numbers: Arriving(numbers, Slow()))
    return trainer


def weights(trainer: Trainer) -> Tensor:
    return torch.cat([each.detach().flatten() for each in trainer.model.parameters()])


@pytest.mark.parametrize(
    "overrides",
    [
        ("training.clip=0.5",),
        ("training.accumulate=2", "training.average=ema"),
        ('training.optimizer={name="sgd", momentum=0.9}', "training.clip=1000"),
    ],
)
def test_looking_late_changes_neither_weights_nor_log(overrides: tuple[str, ...], tmp_path: Path) -> None:
    found = []
    for late in (False, True):
        trainer = trainer_of(tmp_path, Tagging, f"run-{late}", *overrides, late=late)
        with Log(tmp_path / f"run-{late}") as log:
            trainer.run(log)
        lines = [line for line in read_log(tmp_path / f"run-{late}" / "metrics.jsonl") if isinstance(line, TrainLine)]
        found.append((weights(trainer), [(line.step, line.loss, line.gradient_norm) for line in lines[:1]]))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (NoLoss, rf"the loss became nan at step {WRONG} \(epoch 1\): the outputs of all layers are finite, but the "),
        (NoGradient, rf"the gradient became nan at step {WRONG} \(epoch 1\): the loss is finite, but the gradient of "),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_step_that_goes_wrong_changes_no_weight_and_is_named(
    kind: type[Tagging], said: str, late: bool, tmp_path: Path
) -> None:
    before = trainer_of(tmp_path, Tagging, "before", f"training.steps={WRONG - 1}", late=False)
    with Log(tmp_path / "before") as log:
        before.run(log)
    trainer = trainer_of(tmp_path, kind, "run", late=late)
    with Log(tmp_path / "run") as log, pytest.raises(TrainingError, match=said) as error:
        trainer.run(log)
    assert "The batch was " in str(error.value)
    assert "train.conll:" in str(error.value)
    assert torch.equal(weights(trainer), weights(before))
    assert trainer.position.step == (12 if late else WRONG - 1)  # the step was looked at when eight others had begun


def test_what_went_wrong_is_seen_before_anything_is_saved(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, NoLoss, "run", f"training.steps={WRONG + 1}", late=True)
    with Log(tmp_path / "run") as log, pytest.raises(TrainingError, match="the loss became nan"):
        trainer.run(log)
    assert trainer.saved_step == 0
