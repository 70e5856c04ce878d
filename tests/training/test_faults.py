"""What goes wrong inside of a training: no memory, weights that are not numbers. What was saved stays usable."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from recurra.cells.elman import Elman, ElmanFixed
from recurra.errors import TrainingError
from recurra.models.saved import read_tensors
from recurra.runs import begin, resume
from recurra.training.log import Log
from recurra.training.preparation import HeldOut, prepared
from recurra.training.progress import PlainLines, Progress, Silent
from recurra.training.trained import load
from recurra.training.trainer import Trainer
from tests.training.small import small_setup


class Hungry(Elman):
    """An Elman cell whose memory suffices for so many rows."""

    most: ClassVar[int] = 10**9
    error: ClassVar[type[Exception]] = MemoryError

    def fixed(self, rows: int, like: Tensor) -> ElmanFixed:
        if self.training and torch.is_grad_enabled() and rows > self.most:
            raise self.error("DefaultCPUAllocator: can't allocate memory")
        return super().fixed(rows, like)


class WrongShapes(RuntimeError):
    """Says something else than the error it is given."""

    def __str__(self) -> str:
        return "shapes do not fit"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECURRA_CACHE", str(tmp_path / "cache"))


OWN = ["model.cell=tests.training.test_faults:Hungry", "model.engine=loop", "model.dropout=0", "model.word_dropout=0"]
OWN += ["training.steps=4", "training.precision=float64"]  # Adam enlarges what rounding changes


def trained(folder: Path, name: str, progress: Progress) -> dict[str, Tensor]:
    begin(small_setup(folder, *OWN), folder / name, progress)
    return read_tensors(folder / name / "model.safetensors")[0]


@pytest.mark.parametrize("kind", [RuntimeError, torch.OutOfMemoryError])
def test_a_batch_that_does_not_fit_is_computed_in_halves_with_the_same_result(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(tmp_path, "whole", Silent())
    monkeypatch.setattr(Hungry, "most", 8)
    monkeypatch.setattr(Hungry, "error", kind)
    out = io.StringIO()
    halves = trained(tmp_path, "halves", PlainLines(out))
    for name, tensor in whole.items():
        torch.testing.assert_close(halves[name], tensor, rtol=1e-7, atol=1e-9)
    [said] = [line for line in out.getvalue().splitlines() if "out of memory" in line]
    assert "its batch was computed in two halves" in said


def test_a_batch_that_does_not_fit_in_halves_either_is_named_with_its_lengths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hungry, "most", 1)
    with pytest.raises(TrainingError) as error:
        trained(tmp_path, "run", Silent())
    said = str(error.value)
    assert "out of memory at step 1, also with the batch in two halves: the batch has" in said
    assert "elements, the longest is " in said
    assert "train.conll:" in said
    assert "training.batch_tokens" in said
    monkeypatch.setattr(Hungry, "most", 10**9)
    resume(tmp_path / "run", Silent())  # from its first checkpoint
    assert load(tmp_path / "run").predict(["they run"])[0].output


def test_another_error_of_the_model_is_not_taken_for_a_lack_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hungry, "most", 0)
    monkeypatch.setattr(Hungry, "error", WrongShapes)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        trained(tmp_path, "run", Silent())


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path) -> None:
    begin(small_setup(tmp_path, "training.steps=2"), tmp_path / "run", Silent())
    checkpoint = (tmp_path / "run" / "last" / "checkpoint.safetensors").read_bytes()
    this = small_setup(tmp_path)
    task, store = prepared(this.kind, this.settings, lambda _: None)
    trainer = Trainer(task, store, HeldOut([], []), tmp_path / "run", Silent())
    trainer.position.step = 7
    with torch.no_grad():
        next(trainer.model.parameters()).view(-1)[0] = math.inf
    with (
        Log(tmp_path / "run") as log,
        pytest.raises(TrainingError, match="became infinite or NaN by step 7 and are not"),
    ):
        trainer.save(log)
    assert (tmp_path / "run" / "last" / "checkpoint.safetensors").read_bytes() == checkpoint
