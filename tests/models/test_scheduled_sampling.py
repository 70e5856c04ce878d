"""What a network reads while it learns: the right token by chance, and otherwise its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from recurra.config import ForecastingModel, LanguageModelModel
from recurra.config.transformer import CausalTransformerModel
from recurra.models.forcing import Forced
from recurra.models.forecaster import Forecaster
from recurra.models.language_model import NextToken, TextBatch, lines_batched
from recurra.models.seq2seq import SequenceToSequence
from recurra.models.series_batch import ForecasterBatch
from recurra.padding import Padded
from recurra.search.greedy import greedy
from recurra.settings import settings_from
from tests.models.pairs import CONTEXTS, PAIRS, START, batch, network, tokens_read

ALMOST = Forced(1 - 1e-16 * 2)
"""Below 1, but no coin will ever say no."""

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
    assert ALMOST.p < 1
    assert_close(model.loss(PAIRS, forced=ALMOST), model.loss(PAIRS), rtol=0, atol=1e-10)


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


# Language models: every token, and no source

LINES = lines_batched([np.array([5, 6, 2, 1]), np.array([3, 1]), np.array([4, 4, 1])], end=1)
STACKS = [
    {"cell": "lstm"},
    {"cell": "gru", "skip": "highway", "mix": "mean"},
    {"decoder": {"kind": "transformer", "heads": 2}, "hidden": 8},
]


def next_token(**options: Any) -> NextToken:
    torch.manual_seed(3)
    plain = {"hidden": 5, "layers": 2, "embedding": 4, "token_dropout": 0.0, "dropout": 0.0, "output_dropout": 0.0}
    drops = {} if "decoder" in options else {"weight_drop": 0.0}
    return NextToken(settings_from(LanguageModelModel, {**plain, **drops, **options}), tokens=7).double().train()


@pytest.mark.parametrize("options", STACKS, ids=str)
def test_a_language_model_that_reads_right_tokens_one_by_one_has_the_same_loss(options: Any) -> None:
    model = next_token(**options, activation_regularization=0.5, temporal_regularization=0.5)
    one, states = model.loss(LINES, forced=ALMOST)
    all_at_once, expected = model.loss(LINES)
    assert_close(one, all_at_once, rtol=0, atol=1e-10)
    chunk = TextBatch(Padded.full(torch.tensor([[5, 6, 2]])), torch.tensor([[6, 2, 1]]), torch.tensor([True]))
    (_, states), (_, expected) = model.loss(chunk, forced=ALMOST), model.loss(chunk)
    assert_close(model.flat(states), model.flat(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", STACKS, ids=str)
def test_a_language_model_that_never_reads_right_tokens_runs_free(options: Any) -> None:
    model = next_token(**options)
    loss = model.loss(LINES, forced=Forced(0.0)).total
    total = torch.zeros((), dtype=torch.float64)
    for row, length in enumerate(LINES.inputs.lengths.tolist()):
        states, token = model.start(1), LINES.inputs.values[row, :1]
        for number in range(length):
            log_p, states = model.step(token, states)
            total -= log_p[0, LINES.targets[row, number]]
            token = log_p.argmax(1)
    assert_close(loss, total, rtol=0, atol=1e-10)
    model.eval()
    assert torch.equal(model.loss(LINES, forced=Forced(0.0)).total, model.loss(LINES).total)  # only in training


def test_masks_of_a_language_model_are_drawn_once_for_a_sequence_and_gradients_reach_all() -> None:
    rates = {"dropout": 0.5, "output_dropout": 0.5, "input_dropout": 0.5, "weight_drop": 0.5, "token_dropout": 0.2}
    model = next_token(**rates, embedding_dropout=0.2)
    recurrent = model.recurrent
    assert recurrent is not None
    seen: list[Any] = []
    advance = recurrent.advance

    def watched(*given: Any, masks: Any, **named: Any) -> Any:
        seen.append(masks)
        return advance(*given, masks=masks, **named)

    setattr(recurrent, "advance", watched)  # noqa: B010  # mypy has no name for it
    model.loss(LINES, forced=Forced(0.5, "sequence", "sampled")).total.backward()
    assert len(seen) == LINES.inputs.values.shape[1]
    assert all(masks is seen[0] for masks in seen)
    assert seen[0][0] is None
    assert set(seen[0][1].unique().tolist()) <= {0.0, 2.0}
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


# Forecasting: values in place of tokens


SIZES: dict[str, Any] = {"rnn": {}, "transformer": {"hidden": 8, "transformer": CausalTransformerModel(dropout=0.0)}}


def forecaster(output: str = "gaussian", **options: Any) -> Forecaster:
    torch.manual_seed(3)
    settings = ForecastingModel(**{"hidden": 4, "layers": 2, "dropout": 0.0, **options})
    return Forecaster(settings, output=output, size=2, from_nothing=output == "bernoulli").double().train()


def series(output: str = "gaussian") -> ForecasterBatch:
    torch.manual_seed(4)
    values = torch.randn(2, 6, 2).double()
    values = (values > 0).double() if output == "bernoulli" else values
    known = torch.ones_like(values, dtype=torch.bool)
    known[0, 2, 1] = False
    return ForecasterBatch(Padded(values, torch.tensor([6, 4])), known)


@pytest.mark.parametrize("encoder", ["rnn", "transformer"])
@pytest.mark.parametrize("output", ["gaussian", "squared_error", "bernoulli"])
def test_a_forecaster_reads_right_values_or_its_own(output: str, encoder: str) -> None:
    model, batch = forecaster(output, embedding=3, encoder=encoder, **SIZES[encoder]), series(output)
    assert_close(model.loss(batch, forced=ALMOST)[0], model.loss(batch)[0], rtol=0, atol=1e-10)
    loss, count = model.loss(batch, forced=Forced(0.0))
    first = 0 if output == "bernoulli" else 1
    assert count == 10 - 2 * first
    total = torch.zeros((), dtype=torch.float64)
    for row, length in enumerate(batch.values.lengths.tolist()):
        states = model.stack.start(1)
        read = batch.values.values[row : row + 1, 0] if first else torch.zeros(1, 2, dtype=torch.float64)
        for step in range(first, length):
            features, states = model.step(read, states)
            target = batch.values.values[row, step].masked_fill(~batch.known[row, step], torch.nan)
            total += model.density.loss(features.unsqueeze(1), target.view(1, 1, 2), torch.ones(1, 1) > 0).sum()
            read = model.density.best(features)
    assert_close(loss, total, rtol=0, atol=1e-10)
    model.eval()
    assert torch.equal(model.loss(batch, forced=Forced(0.0))[0], model.loss(batch)[0])


@pytest.mark.parametrize("output", ["gaussian", "bernoulli"])
def test_a_forecaster_may_read_what_it_draws(output: str) -> None:
    model = forecaster(output, dropout=0.4, input_dropout=0.2, embedding=3)
    model.loss(series(output), forced=Forced(0.3, "token", "sampled"))[0].backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
