"""Looks and the doubly stochastic term in networks and runs: what teaches them, what is carried on or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from recurra.cli import main
from recurra.config import Seq2SeqDecoding
from recurra.models.forcing import Forced
from recurra.models.looking import doubly_stochastic
from recurra.models.searching import searched
from recurra.models.seq2seq import recurring_pairs
from recurra.runs import begin, resume
from recurra.search.decoding import SearchTokens
from recurra.search.graphs import marks_of
from recurra.training.progress import Silent
from tests.models.pairs import DRAWING, END, PAIRS, network
from tests.tasks.small_givens import pixels
from tests.tasks.small_pairs import small, words
from tests.training.test_trainer import StopsAt, digest

HARD = 'model.attention={name="additive", look="hard"}'


@pytest.mark.parametrize("wiring", ["outside", "between", "inside", "conditional", "feeding"])
@pytest.mark.parametrize("forced", [Forced(), Forced(0.5)], ids=["forced", "sampled"])
def test_every_wiring_learns_where_to_look_from_its_draws(wiring: str, forced: Forced) -> None:
    look = {"name": "hard", "soft": 0.0}
    model = network(attention={"name": "additive", "look": look}, wiring=wiring).train()
    costs = model.costs(PAIRS, forced=forced)
    assert costs.baseline is not None
    costs.total.backward()
    attention = model.decoder.attention
    assert attention is not None
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in attention.parameters())
    again = model.costs(PAIRS, forced=forced, baseline=costs.baseline)
    assert again.baseline is not None
    assert not torch.equal(again.baseline, costs.baseline)


def test_without_a_reward_draws_teach_nothing() -> None:
    look = {"name": "hard", "soft": 0.0, "reward": 0.0, "entropy": 0.0}
    model = network(attention={"name": "additive", "look": look}).train()
    model.costs(PAIRS).total.backward()
    attention = model.decoder.attention
    assert attention is not None
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in attention.parameters())


def test_in_evaluation_nothing_is_drawn_and_steps_may_be_recorded() -> None:
    model = network(**DRAWING)
    assert model.costs(PAIRS).baseline is None
    assert torch.equal(model.loss(PAIRS), model.costs(PAIRS, everywhere=3.0).total)
    assert marks_of(model).refusal is None
    assert "steps may draw random numbers" in (marks_of(model.train()).refusal or "")
    with torch.no_grad():  # a search of a model in training draws, and is answered all the same
        found = searched(model, PAIRS, Seq2SeqDecoding(max_length=4), SearchTokens(END), on_device=True)
    assert all(found)


@pytest.mark.parametrize("r_drop", [0.0, 1.0])
def test_the_doubly_stochastic_term_is_added_in_training(r_drop: float) -> None:
    model = network(wiring="inside").train()
    plain, costs = (model.costs(PAIRS, r_drop=r_drop, everywhere=each).total for each in (0.0, 2.0))
    assert PAIRS.target is not None
    led = model._led(PAIRS, Forced())
    assert led.features.weights is not None
    assert led.mask is not None
    term = doubly_stochastic(led.features.weights, led.mask, PAIRS.target.lengths)
    assert_close(costs - plain, 2.0 * term, rtol=0, atol=1e-10)


@pytest.mark.parametrize("look", [{"name": "local", "reach": 1}, {"name": "local", "centre": "monotonic", "reach": 1}])
def test_empty_rows_and_places_of_a_batch_that_is_recorded_cost_nothing(look: dict[str, Any]) -> None:
    model = network(
        wiring="inside", attention={"name": "additive", "look": look, "gate": True}, readout="maxout"
    ).train()
    wider = recurring_pairs(PAIRS)
    assert wider is not None
    plain, padded = (model.costs(each, everywhere=2.0).total for each in (PAIRS, wider))
    assert_close(padded, plain, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("own", "is_recorded"), [([HARD], False), (["model.decoder.kind=ctc"], False), ([], True)])
def test_steps_that_count_on_the_host_are_not_recorded(own: list[str], is_recorded: bool, tmp_path: Path) -> None:
    this = small(words(tmp_path), *own)
    task = this.kind.prepared(this.kind.resolved(this.settings))
    assert (task.recurring(PAIRS) is not None) == is_recorded


def test_the_mean_of_rewards_is_carried_on_exactly_when_resumed(tmp_path: Path) -> None:
    sets = (HARD, "model.wiring=inside", "training.batch_size=4", "training.steps=6")
    begin(small(words(tmp_path), *sets), tmp_path / "whole", Silent())
    with pytest.raises(MemoryError):
        begin(small(words(tmp_path), *sets, "training.save_minutes=0.0001"), tmp_path / "broken", StopsAt(4))
    resume(tmp_path / "broken", Silent())
    assert digest(tmp_path / "broken") == digest(tmp_path / "whole")


LOCAL = 'model.attention={name="dot", look="local"}'
REFUSED: list[tuple[str, list[str], str]] = [
    ("seq2seq", [LOCAL, "model.copy=true"], "but those of look = 'local' need not add up to 1: leave one of them out"),
    ("seq2seq", [HARD, "training.doubly_stochastic=1"], "but hard attention draws places, which have no gradient."),
    ("seq2seq", ["model.attention=none", "training.doubly_stochastic=1"], "but there is no attention. Leave it out."),
    ("seq2seq", ["training.doubly_stochastic=-1"], "training.doubly_stochastic must be at least 0, but is -1"),
    ("seq2seq", ['model.attention={name="dot", look="sof"}'], "there is no look 'sof'"),
    ("seq2seq", ['model.attention={name="dot", gate=1}'], "'dot': gate must be true or false, but is 1"),
    ("seq2seq", ["model.readout=max"], "model.readout"),
    (
        "seq2seq",
        ["model.decoder.kind=window", "model.layers=1", "model.readout=maxout"],
        "model.readout = 'maxout' has",
    ),
    ("seq2seq", ["model.decoder.kind=transformer", "model.readout=maxout"], "has its own output layer. Leave it out."),
    ("vec2seq", [LOCAL], "needs a sequence, but places of a picture have rows and columns: leave the look out."),
]


@pytest.mark.parametrize(("task", "sets", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_what_cannot_be_is_refused_in_a_sentence(
    task: str, sets: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    train = [words(tmp_path)] if task == "seq2seq" else [pixels(tmp_path), "--set", "data.image=image"]
    changed = [part for override in sets for part in ("--set", override)]
    assert main(["train", task, "--train", *train, "--out", "run", "--quiet", *changed]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.count("\n") == 1
