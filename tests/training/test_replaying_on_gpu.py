"""Training steps that are replayed from CUDA graphs: what they learn, and how they are resumed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from recurra.models.saved import read_tensors
from recurra.runs import begin, setup
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Recurring
from recurra.training.position import CHECKPOINT
from recurra.training.preparation import HeldOut, prepared
from recurra.training.progress import Progress, Silent
from recurra.training.trainer import Trainer
from tests.training.breaking import weights_of_a_broken_run
from tests.training.test_replaying import CASES, written

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SMALL = ["model.embedding=8", "model.hidden=16", "training.device=cuda", "training.validate=1000"]


class Told(Progress):
    """What a training has said."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def start(self, first_step: int, total_steps: int | None, epochs: int | None, seconds: float | None = None) -> None:
        pass

    def step(self, step: int, epoch: float, loss: float, learning_rate: float, tokens: int) -> None:
        pass

    def validating(self, done: int, total: int) -> None:
        pass

    def valid(self, step: int, scores: Mapping[str, float], first: str, best: bool) -> None:
        pass

    def stop(self) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


def given(case: str, folder: Path, *settings: str) -> Any:
    kind, _, own = CASES[case]
    batches = [] if "stream" in case else ["training.batch_size=7"]
    small = [each for each in SMALL if kind != "forecasting" or "embedding" not in each]
    return setup(kind, given={"train": str(written(case, folder))}, overrides=[*small, *own, *batches, *settings])


def weights(run: Path) -> dict[str, torch.Tensor]:
    return read_tensors(run / CHECKPOINT)[0]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_a_training_of_replayed_steps_resumes_bit_for_bit(case: str, precision: str, tmp_path: Path) -> None:
    chosen = f"training.precision={precision}"
    told = Told()
    begin(given(case, tmp_path, chosen, "training.steps=40"), tmp_path / "whole", told)
    assert any("recorded as CUDA graphs" in note for note in told.notes), told.notes
    assert not any("kernel by kernel" in note for note in told.notes), told.notes
    broken = weights_of_a_broken_run(given(case, tmp_path, chosen, "training.steps=40"), tmp_path / "broken", last=17)
    assert broken == (tmp_path / "whole" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_replayed_steps_learn_what_launched_ones_learn(case: str, tmp_path: Path) -> None:
    plain = ["model.dropout=0", "training.steps=30", "training.precision=float64"]
    plain += ["model.token_dropout=0", "training.r_drop=0"] if CASES[case][0] == "seq2seq" else []
    plain += ["model.word_dropout=0"] if CASES[case][0] in ("tagging", "classification") else []
    if CASES[case][0] == "language_model":
        plain += [f"model.{name}=0" for name in ("weight_drop", "input_dropout", "output_dropout", "token_dropout")]
    begin(given(case, tmp_path, *plain), tmp_path / "replayed", Silent())
    begin(given(case, tmp_path, *plain, "training.replay=false"), tmp_path / "launched", Silent())
    one, other = weights(tmp_path / "replayed"), weights(tmp_path / "launched")
    for name, value in one.items():
        if name.startswith("model."):
            torch.testing.assert_close(value, other[name], rtol=0, atol=1e-6)


def test_a_training_says_what_its_graphs_hold_and_how_long_the_first_step_took(tmp_path: Path) -> None:
    told = Told()
    begin(given(next(iter(CASES)), tmp_path, "training.steps=40"), tmp_path / "run", told)
    said = "\n".join(told.notes)
    assert re.search(r"^the first step took [\d.]+ s, in which the kernels", said, re.MULTILINE)
    assert re.search(r"at most \d+: the first took [\d.]+ s, and they hold [\d,]+ MiB of the GPU$", said, re.MULTILINE)
    assert re.search(r"the GPU busy \d+% of the time; engines: .*; graphs of \d+ sizes of batches", said)


def test_a_loss_that_reads_numbers_of_python_is_not_replayed(tmp_path: Path) -> None:
    """The first labels of a batch, as Python counts them, multiply the loss: that cannot be in a graph."""

    class Counting(Tagging):
        def loss(self, model: Any, batch: Any, moment: Any = None) -> Any:
            found = super().loss(model, batch)
            return found._replace(total=found.total * float(batch.words.lengths[0]))

        def recurring(self, batch: Any) -> Recurring:
            return super().recurring(batch)

    this = given("tags", tmp_path, "training.steps=60", "training.batch_size=5")
    task, store = prepared(this.kind, this.settings, lambda _: None)
    task.__class__ = Counting
    told = Told()
    trainer = Trainer(task, store, HeldOut([], []), tmp_path / "run", told)
    task.initialise(trainer.model)
    from recurra.training.log import Log

    with Log(tmp_path / "run") as log:
        trainer.run(log)
    assert any("kernel by kernel" in note and "other gradients" in note for note in told.notes), told.notes
