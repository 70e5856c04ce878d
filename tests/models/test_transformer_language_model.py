"""A Transformer as language model: the same in one piece, in chunks and step by step; what it may see and what not."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recurra.config import LanguageModelDecoder, LanguageModelModel
from recurra.models.language_model import NextToken, TextBatch
from recurra.models.likelihood import carried, windowed
from recurra.padding import Padded

V = 7


def network(context: int | None = None, **changed: Any) -> NextToken:
    torch.manual_seed(1)
    decoder = LanguageModelDecoder(kind="transformer", heads=2, feed_forward=9, context=context)
    plain: dict[str, Any] = {"embedding": 5, "hidden": 8, "layers": 2, "token_dropout": 0.0, "dropout": 0.0}
    settings = LanguageModelModel(decoder=decoder, **{**plain, "output_dropout": 0.0, **changed})
    model = NextToken(settings, tokens=V).double()
    for name, parameter in model.named_parameters():  # far from their beginning, where attention is nearly even
        if "norm" not in name:
            torch.nn.init.normal_(parameter, std=0.5)
    return model


def random_tokens(*shape: int) -> Tensor:
    return torch.randint(0, V, shape, generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def by_prefixes(model: NextToken, tokens: Tensor) -> Tensor:
    """log p of each token but the first, the whole prefix read anew for each."""
    found = []
    for end in range(1, len(tokens)):
        _, logs = model.read(Padded.full(tokens[None, :end]))
        found.append(logs[0, tokens[end]])
    return torch.stack(found)


@torch.no_grad()
def by_steps(model: NextToken, tokens: Tensor) -> Tensor:
    """log p of each token but the first, a step at a time."""
    states, found = None, []
    for one, following in pairwise(tokens):
        logs, states = model.step(one.unsqueeze(0), states)
        found.append(logs[0, following])
    return torch.stack(found)


@pytest.mark.parametrize("context", [None, 3])
def test_the_whole_text_prefixes_of_it_and_single_steps_give_the_same(context: int | None) -> None:
    model = network(context).eval()
    tokens = random_tokens(13)
    batch = TextBatch(Padded.full(tokens[None, :-1]), tokens[None, 1:], None)
    whole, _ = model.log_likelihoods(batch)
    assert_close(whole[0], by_prefixes(model, tokens), atol=1e-9, rtol=0)
    assert_close(whole[0], by_steps(model, tokens), atol=1e-9, rtol=0)
    assert_close(model.loss(batch).total, -whole.sum(), atol=1e-9, rtol=0)


@pytest.mark.parametrize("context", [None, 5])
def test_chunks_with_a_carried_past_are_one_long_sequence(context: int | None) -> None:
    model = network(context)
    tokens = random_tokens(3, 20)
    whole, _ = model(Padded.full(tokens))
    states, parts = None, []
    for first, last in ((0, 7), (7, 8), (8, 20)):
        part, states = model(Padded.full(tokens[:, first:last]), states)
        flat = model.flat(states)
        assert not any(field.requires_grad for field in flat)
        assert context is None or states[0][0].keys.shape[2] <= context
        states = model.nested(flat, torch.ones(3, dtype=torch.bool))
        parts.append(part.values)
    assert_close(torch.cat(parts, 1), whole.values, atol=1e-9, rtol=0)


def test_rows_that_are_not_kept_have_an_empty_past() -> None:
    model = network(6).eval()
    tokens = random_tokens(3, 12)
    before, after = Padded.full(tokens[:, :5]), Padded.full(tokens[:, 5:])
    _, states = model(before)
    kept = torch.tensor([True, False, True])
    found, end = model(after, model.nested(model.flat(states), kept))
    fresh, _ = model(after)
    went_on, _ = model(after, states)
    assert_close(found.values[1], fresh.values[1], atol=1e-9, rtol=0)
    assert_close(found.values[kept], went_on.values[kept], atol=1e-9, rtol=0)
    again, _ = model(before, end)  # and what a row has begun anew is all that it sees later on
    alone, _ = model(Padded.full(torch.cat([tokens[1:2, 5:], tokens[1:2, :5]], 1)))
    assert_close(again.values[1], alone.values[0, 7:], atol=1e-9, rtol=0)


def test_a_token_is_seen_as_far_as_the_layers_reach_and_no_further() -> None:
    model = network(context=2).eval()  # two layers: four tokens back
    tokens = random_tokens(1, 12)
    changed = tokens.clone()
    changed[0, 3] = (changed[0, 3] + 1) % V
    differs = (model(Padded.full(tokens))[0].values != model(Padded.full(changed))[0].values).any(-1)[0]
    assert differs.tolist() == [False] * 3 + [True] * 5 + [False] * 4


def test_a_row_costs_the_same_whatever_rows_and_padding_are_beside_it() -> None:
    model = network(4).eval()
    tokens, lengths = random_tokens(3, 7), [6, 1, 4]
    prompt = Padded(tokens, torch.tensor(lengths))
    states, last = model.read(prompt)
    following, _ = model.step(tokens[:, -1], states)
    for row, length in enumerate(lengths):
        one, alone = model.read(Padded.full(tokens[row : row + 1, :length]))
        assert_close(last[row], alone[0], atol=1e-9, rtol=0)
        assert_close(following[row], model.step(tokens[row, -1:], one)[0][0], atol=1e-9, rtol=0)


@pytest.mark.parametrize(("text", "window", "stride"), [(30, 7, 3), (5, 7, 3), (29, 4, 9)])
def test_windows_are_those_of_a_plain_loop(text: int, window: int, stride: int) -> None:
    model = network(3).eval()
    tokens = random_tokens(text)
    size = min(window, text - 1)
    starts = range(0, text - size, stride)
    nats = -sum(float(by_prefixes(model, tokens[start : start + size + 1]).sum()) for start in starts)
    found = windowed(model, tokens, window=window, stride=stride)
    assert found.predicted == len(starts) * size
    assert found.nats == pytest.approx(nats, abs=1e-9)


def test_each_stream_begins_with_the_past_of_the_tokens_before_it() -> None:
    model = network(4).eval()
    tokens = random_tokens(24)
    nats = 0.0
    for start in range(0, 23, 8):  # 23 predictions in three streams
        ahead = min(5, start)
        nats -= float(by_prefixes(model, tokens[start - ahead : start + 9])[ahead:].sum())
    assert carried(model, tokens, streams=3, ahead=5).nats == pytest.approx(nats, abs=1e-9)


@pytest.mark.parametrize("text", [2, 41, 600])
def test_as_many_tokens_ahead_as_the_layers_reach_make_streams_one(text: int) -> None:
    model = network(context=3).eval()  # two layers: six tokens back
    tokens = random_tokens(text)
    one = carried(model, tokens, streams=1, ahead=6)
    several = carried(model, tokens, streams=5, ahead=6)
    assert one.predicted == several.predicted == text - 1
    assert one.nats == pytest.approx(-float(by_steps(model, tokens).sum()), abs=1e-8)
    assert several.nats == pytest.approx(one.nats, abs=1e-8)


def test_a_chunk_can_be_trained_in_bfloat16_and_its_past_carried() -> None:
    model = network(6, dropout=0.1, token_dropout=0.1, temporal_regularization=1.0).float().train()
    batch = TextBatch(Padded.full(random_tokens(2, 6)), random_tokens(2, 6), None)
    with torch.autocast("cpu", torch.bfloat16):
        states = model.nested(model.flat(model.loss(batch).states), torch.tensor([True, False]))
        total = model.loss(batch, states).total
    total.backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


def test_tied_weights_are_one_matrix() -> None:
    model = network(embedding=8, tied=True)
    assert model.output.readout.weight is model.embedding.weight  # type: ignore[union-attr]
    assert model.transformer is not None
    assert model.transformer.from_input is None
