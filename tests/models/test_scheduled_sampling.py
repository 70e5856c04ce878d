"""What a network reads while it learns: the right token by chance, and otherwise its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from recurra.models.seq2seq import Forced, SequenceToSequence
from recurra.search.greedy import greedy
from tests.models.pairs import CONTEXTS, PAIRS, START, batch, network, tokens_read

every = pytest.mark.parametrize("options", CONTEXTS, ids=str)


@pytest.mark.parametrize("options", [{}, {"wiring": "feeding"}, {"wiring": "inside", "cell": "gru"}])
def test_where_the_right_token_is_always_read_it_is_teacher_forcing_bit_for_bit(options: Any) -> None:
    model = network(**options, dropout=0.3, token_dropout=0.1).train()
    found = []
    for forced in (Forced(), Forced(1.0, "sequence", "sampled")):
        torch.manual_seed(5)
        found.append(model.loss(PAIRS, forced=forced))
    torch.manual_seed(5)
    assert torch.equal(found[0], model.loss(PAIRS))
    assert torch.equal(*found)


@every
def test_read_one_by_one_the_right_tokens_give_the_same_loss(options: Any) -> None:
    model = network(**options).train()
    almost = Forced(1 - 1e-16 * 2)  # below 1, but no coin will ever say no
    assert almost.p < 1
    assert_close(model.loss(PAIRS, forced=almost), model.loss(PAIRS), rtol=0, atol=1e-10)


@every
def test_where_the_right_token_is_never_read_the_network_runs_free(options: Any) -> None:
    model = network(**options)
    assert PAIRS.target is not None
    tokens, state, fixed = model.start(PAIRS)
    steps, own, expected = PAIRS.target.values.shape[1], [tokens], []
    for number in range(steps):
        log_p, state = model.step(own[-1], state, fixed)
        expected.append(log_p.gather(1, PAIRS.target.values[:, number : number + 1]).squeeze(1))
        own.append(log_p.argmax(1))
    read = tokens_read(model)
    model.train()
    loss = model.loss(PAIRS, forced=Forced(0.0))
    assert torch.equal(torch.stack(read), torch.stack(own[:-1]))
    assert_close(-loss, (torch.stack(expected, 1) * PAIRS.target.mask).sum(), rtol=0, atol=1e-10)
    model.eval()
    for row, found in enumerate(greedy(model.step, *model.start(PAIRS), length=steps)):
        assert found.tokens == [int(each[row]) for each in own[1:]]
    assert torch.equal(model.loss(PAIRS, forced=Forced(0.0)), model.loss(PAIRS))  # only in training


def certain_of(token: int) -> SequenceToSequence:
    """A network that always answers one token."""
    model = network().train()
    with torch.no_grad():
        model.output.readout.bias[token] += 100.0
    return model


@pytest.mark.parametrize("replacement", ["greedy", "sampled"])
@pytest.mark.parametrize("p", [0.25, 0.7])
def test_a_coin_is_thrown_for_each_token(p: float, replacement: Any) -> None:
    model, rows, steps = certain_of(5), 150, 9
    read = tokens_read(model)
    model.loss(batch([[3, 4]] * rows, [[4] * steps] * rows), forced=Forced(p, "token", replacement))
    told = torch.stack(read, 1)
    assert (told[:, 0] == START).all()
    right = told[:, 1:] == 4
    assert (right | (told[:, 1:] == 5)).all()
    sigma = (p * (1 - p) / right.numel()) ** 0.5
    assert abs(float(right.double().mean()) - p) < 3 * sigma
    both = right[:, 1:] & right[:, :-1]  # coins of one row are thrown apart
    assert abs(float(both.double().mean()) - p * p) < 4 * (p * p * (1 - p * p) / both.numel()) ** 0.5 + 0.02


@pytest.mark.parametrize("p", [0.25, 0.7])
def test_a_coin_is_thrown_for_a_whole_sequence(p: float) -> None:
    model, rows = certain_of(5), 900
    read = tokens_read(model)
    model.loss(batch([[3, 4]] * rows, [[4] * 3] * rows), forced=Forced(p, "sequence"))
    right = torch.stack(read, 1)[:, 1:] == 4
    assert (right == right[:, :1]).all()
    assert abs(float(right[:, 0].double().mean()) - p) < 3 * (p * (1 - p) / rows) ** 0.5


def test_what_is_drawn_follows_the_network() -> None:
    model = network().train()
    with torch.no_grad():
        model.output.readout.weight.zero_()
        p = model.output.readout.bias.softmax(0)
    read, rows = tokens_read(model), 600
    model.loss(batch([[3]] * rows, [[4] * 4] * rows), forced=Forced(0.0, "token", "sampled"))
    drawn = torch.stack(read, 1)[:, 1:].flatten()
    counts, expected = torch.bincount(drawn, minlength=6), p * len(drawn)
    assert float(((counts - expected).square() / expected).sum()) < 20.5  # 99.9 % of χ² with five degrees of freedom


def test_a_choice_has_no_gradient_but_what_follows_it_has() -> None:
    model = network(wiring="feeding").train()
    model.loss(PAIRS, forced=Forced(0.5, "token", "sampled")).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
