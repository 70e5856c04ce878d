"""model.mix, model.skip and model.direction in every task: each is built, is learned, and changes what is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from recurra.errors import ConfigError
from recurra.padding import fitted
from recurra.runs import setup
from recurra.tasks.task import START
from recurra.training.preparation import prepared
from tests.tasks.contracts import CASES, SMALL

OWN = [case for case in CASES.values() if ":" not in case.task]
NAMES = [name for name, case in CASES.items() if case in OWN]

TWO = ["model.layers=2", "model.dropout=0"]
WAYS = ["mix=concat", "mix=mean", "mix=learned", "skip=residual", "skip=highway", "direction=backward"]


def settings_of(task: str, way: str) -> list[str]:
    """What a way of stacking needs beside it."""
    few = [each for each in TWO if task != "question_answering" or "dropout" not in each]
    if way == "direction=backward":
        few += ["model.bidirectional=false"] * (task in ("classification", "tagging", "seq2seq"))
        few += ["model.ahead=recursive"] * (task == "forecasting")
    return few


def loss_of(number: int, folder: Path, *settings: str) -> tuple[float, nn.Module]:
    """The loss of the first batch, with its gradients, of a network whose weights were drawn by a seed."""
    case = OWN[number]
    (folder / case.file).write_text(case.content, "utf-8")
    overrides = [*SMALL, *case.settings, *settings]
    found = setup(case.task, given={"train": str(folder / case.file)}, overrides=overrides)
    task, store = prepared(found.kind, found.settings, lambda _: None)
    torch.manual_seed(1)
    model = task.build().double()
    first = task.batches(store, 0)[0]
    torch.manual_seed(1)
    total = task.loss(model, fitted(task.batch(task.chosen(store, first)), model), START).total
    total.backward()
    return total.item(), model


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", range(len(OWN)), ids=NAMES)
def test_a_stack_is_as_said_in_every_task(number: int, way: str, tmp_path: Path) -> None:
    beside = settings_of(OWN[number].task, way)
    plain, _ = loss_of(number, tmp_path, *beside)
    found, model = loss_of(number, tmp_path, *beside, f"model.{way}")
    assert found != plain
    assert torch.isfinite(torch.tensor(found))
    unreached = [name for name, each in model.named_parameters() if each.grad is None]
    assert unreached == []


LAST = ["model.layers=2", "model.summary=last"]
CONDITIONAL = ["model.layers=2", "data.text=premise", "data.second=hypothesis", "model.pairing=conditional"]
STATES = ["model.attention=none", "model.encoder.layers=2"]
REFUSED = [
    ("tagging", ["model.encoder=transformer", "model.mix=mean"], "model.encoder = 'transformer' has no cells"),
    (
        "classification",
        ["model.encoder=transformer", "model.skip=residual"],
        "model.encoder = 'transformer' has no cells",
    ),
    ("classification", ["model.encoder=pyramid", "model.mix=mean"], "change the sequence length"),
    ("tagging", ["model.direction=backward"], "reads from the end only, but model.bidirectional = true reads both"),
    ("seq2seq", ["model.direction=backward"], "reads from the end only, but model.bidirectional = true reads both"),
    (
        "seq2seq",
        ["model.encoder.kind=transformer", "model.start=mean", "model.bidirectional=false", "model.direction=backward"],
        "at once",
    ),
    ("language_model", ["model.decoder.kind=transformer", "model.skip=highway"], "has no cells"),
    ("forecasting", ["model.ahead=direct", "model.direction=backward"], "predicts all steps at once"),
    ("question_answering", ["model.direction=backward"], "reads sentences without a cell"),
    ("vec2seq", ["model.mix=mean"], "there is one layer, and nothing to mix"),
    (
        "classification",
        [*LAST, "model.mix=mean"],
        "model.summary = 'last' takes the last layer's state, not what a mix",
    ),
    ("classification", [*LAST, "model.skip=residual"], "there is no third layer to see what is added to the second"),
    (
        "classification",
        [*CONDITIONAL, "model.mix=learned"],
        "'conditional' without attention takes the last layer's state",
    ),
    ("seq2seq", [*STATES, "model.mix=mean"], "takes of the encoder the states alone"),
    ("seq2seq", [*STATES, "model.skip=highway"], "the states alone .* which no way past the last layer enters"),
]


@pytest.mark.parametrize(("task", "settings", "why"), REFUSED)
def test_where_there_is_nothing_to_stack_it_is_said_why(task: str, settings: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        setup(task, overrides=settings)


ALLOWED = [
    ("classification", ["model.layers=3", "model.summary=last", "model.skip=residual"]),
    (
        "classification",
        [*CONDITIONAL[:3], 'model.pairing={name="conditional", attention="additive"}', "model.mix=mean"],
    ),
    ("seq2seq", [*STATES, "model.decoder.layers=2", "model.mix=mean"]),
    ("seq2seq", [*STATES, 'model.conditioning=["every"]', "model.summary=mean", "model.mix=mean"]),
    ("seq2seq", ["model.attention=none", "model.encoder.layers=3", "model.skip=highway"]),
]


@pytest.mark.parametrize(("task", "settings"), ALLOWED)
def test_where_something_sees_the_layers_they_may_be_mixed(task: str, settings: list[str]) -> None:
    model: Any = setup(task, overrides=settings).settings.model
    assert (model.mix, model.skip) != ("last", "none")
