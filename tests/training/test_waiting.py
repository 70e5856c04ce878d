"""On a GPU, a step of training gives orders and waits for nothing: not for a number, not for a copy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from recurra.padding import fitted
from recurra.runs import setup
from recurra.training.preparation import HeldOut, prepared
from recurra.training.progress import Silent
from recurra.training.trainer import Trainer
from tests.tasks.contracts import CASES, SMALL, Case
from tests.training.small import write_sentences

LETTERS = ["data.source.tokens=characters", "data.target.tokens=symbols"]
OWN_TOKENS = 'training.forcing={name="constant", k=0.5, replacement="sampled"}'


class Variant(NamedTuple):
    """Other settings of a case."""

    case: str
    settings: tuple[str, ...] = ()


VARIANTS = {
    "a CRF": Variant("tagging", ("model.head=crf",)),
    "a softmax and spelling": Variant("tagging", ("model.head=softmax", "model.characters.cell=lstm")),
    "classes": Variant("classification"),
    "lines of text": Variant("language_model"),
    "a running text": Variant("language_model", ("data.independent=false", "reading.steps=5")),
    "forecasts": Variant("forecasting"),
    "sequences, attention outside": Variant("seq2seq", (*LETTERS, "training.r_drop=1", "model.label_smoothing=0.1")),
    "sequences, attention fed": Variant("seq2seq", (*LETTERS, "model.wiring=feeding", "model.attention=additive")),
    "sequences, own tokens": Variant("seq2seq", (*LETTERS, OWN_TOKENS)),
    "vectors": Variant("vec2seq"),
    "pictures": Variant("vec2seq of pictures"),
}


@pytest.fixture
def _no_waiting() -> Iterator[None]:
    yield
    torch.cuda.set_sync_debug_mode("default")


def trainer_of(case: Case, folder: Path, *settings: str) -> Trainer:
    data = folder / case.file
    data.write_text(case.content, "utf-8")
    if case.task == "tagging":
        write_sentences(data, 40)
    given = [each for each in (*SMALL, *case.settings) if not each.startswith(("training.device", "model.engine"))]
    this = setup(
        case.task, given={"train": str(data)}, overrides=[*given, "training.device=cuda", "training.clip=1", *settings]
    )
    task, store = prepared(this.kind, this.settings, lambda _: None)
    return Trainer(task, store, HeldOut([], []), folder / "run", Silent())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.usefixtures("_no_waiting")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning")  # torch calls it a prototype
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_step_waits_for_nothing(variant: Variant, tmp_path: Path) -> None:
    trainer = trainer_of(CASES[variant.case], tmp_path, *variant.settings)
    trainer.model.train()
    batch = epoch = 0
    with trainer._ahead() as ahead:
        for number in range(6):
            if number == 3:  # by then, whatever is prepared once is prepared
                torch.cuda.synchronize()
                torch.cuda.set_sync_debug_mode("error")
            ready = ahead.step(epoch, batch)
            trainer._step(ready, 0.0)
            epoch, batch = (epoch, batch + 1) if batch + 1 < len(ready.batches) else (epoch + 1, 0)
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_loss_asks_for_no_number_of_the_device(
    variant: Variant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device meta knows shapes and no numbers: whoever asks it for one gets an error, with a GPU or without."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)  # torch knows none for this device
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
    trainer = trainer_of(CASES[variant.case], tmp_path, *variant.settings, "training.device=cpu", "model.engine=loop")
    model = trainer.model.to("meta").train()
    with trainer._ahead() as ahead:
        found = trainer.task.loss(model, fitted(ahead.step(0, 0).parts[0].batch, model))
    found.total.backward()
    assert found.labels > 0
    assert found.total.device.type == "meta"
