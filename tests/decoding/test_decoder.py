"""The decoder: what it reads at each step, where it starts, and that it steps as it runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recurra.attention import Attention
from recurra.decoding.decoder import Decoder, Started
from recurra.encoders.memory import Read
from recurra.errors import ConfigError
from recurra.padding import Padded
from recurra.search.search import selected
from recurra.wirings import Features
from tests.models.pairs import CONTEXTS, PAIRS, SIZES, network

every = pytest.mark.parametrize("options", CONTEXTS, ids=str)
TOKENS = torch.tensor([[1, 3, 4, 5], [1, 4, 0, 0], [1, 3, 2, 0]])
LENGTHS = [4, 2, 3]


def started(**options: Any) -> tuple[Decoder, Read, Started]:
    model = network(**options)
    read = model.read(PAIRS.source)
    return model.decoder, read, model.decoder.start(read)


def step_by_step(decoder: Decoder, tokens: Tensor, begun: Started) -> Features:
    state, source = begun
    features, weights = [], []
    for each in tokens.unbind(1):
        h, state = decoder.step(each, state, source)
        features.append(h)
        weights.append(state.weights)
    seen = [each for each in weights if each is not None]
    return Features(torch.stack(features, 1), torch.stack(seen, 1) if seen else None)


def same(one: object, other: object) -> None:
    assert_close(one, other, rtol=0, atol=1e-10)


@every
def test_all_tokens_at_once_are_one_after_the_other(options: Any) -> None:
    decoder, _, begun = started(**options)
    expected = step_by_step(decoder, TOKENS, begun)
    found = decoder(Padded(TOKENS, torch.tensor(LENGTHS)), begun)
    led = decoder.led(TOKENS[:, 0], 4, begun, lambda h, weights, number: TOKENS[:, number + 1])
    same(tuple(led), tuple(expected))
    for row, length in enumerate(LENGTHS):
        same(found.values[row, :length], expected.values[row, :length])


@every
def test_several_hypotheses_of_a_source_are_each_alone(options: Any) -> None:
    decoder, _, begun = started(**options)
    tokens = torch.randint(6, (6, 3))
    rows = torch.arange(3).repeat_interleave(2)
    many = Started(selected(begun.state, rows), begun.source)
    together = step_by_step(decoder, tokens, many)
    for number in (0, 1):
        same(together.values[number::2], step_by_step(decoder, tokens[number::2], begun).values)


@pytest.mark.parametrize(
    "conditioning", [list(c) for n in range(4) for c in itertools.combinations(["first", "every", "output"], n)]
)
@pytest.mark.parametrize("attention", ["none", "dot"])
def test_a_summary_enters_where_it_is_told_to(conditioning: list[str], attention: str) -> None:
    decoder, read, begun = started(conditioning=conditioning, attention=attention, cell="gru")
    w = {name: value.detach().numpy() for name, value in decoder.state_dict().items()}
    E, prefix = w["embedding.weight"], "wiring.cells.cells.0.0."
    sizes = E.shape[1], 4 if "every" in conditioning else 0, 4 if "output" in conditioning else 0
    assert w[prefix + "from_input.weight"].shape[1] == sizes[0] + sizes[1]
    assert w["wiring.readout.mix.weight"].shape[1] == 4 + (4 if attention == "dot" else 0) + sizes[2]
    assert (read.summary is None) == (not conditioning)
    source, h = begun.source, decoder.bridge(read, tuple(c.start(3, read.memory.values) for c in decoder.wiring.layers))
    summary = np.zeros((3, 0)) if read.summary is None else read.summary.detach().numpy()
    state = decoder.wiring.start(h, source)
    if "first" in conditioning:
        x = summary @ w["first.weight"].T + w["first.bias"]
        _, state = decoder.wiring.step(torch.from_numpy(x), state, source)
    same(begun.state.cells, state.cells)
    found = decoder(Padded.full(TOKENS), begun).values
    vectors = np.stack([E[row] for row in TOKENS.numpy()])
    if "every" in conditioning:
        vectors = np.concatenate([vectors, np.repeat(summary[:, None], 4, axis=1)], axis=2)
    same(found, decoder.wiring(Padded.full(torch.from_numpy(vectors)), state, source).values)


def test_a_summary_at_the_output_is_joined_to_every_step() -> None:
    decoder, read, begun = started(conditioning=["output"], attention="none", cell="gru")
    assert read.summary is not None
    other = Started(begun.state, begun.source._replace(summary=read.summary + 1))
    before = decoder(Padded.full(TOKENS), begun).values.atanh()
    shift = decoder.wiring.readout.mix.weight[:, 4:].sum(1)  # type: ignore[union-attr,index]  # of a summary plus 1
    same(decoder(Padded.full(TOKENS), other).values.atanh() - before, shift.expand_as(before))


@pytest.mark.parametrize("options", [{"wiring": "outside"}, {"wiring": "inside"}, {"attention": "none"}])
def test_an_empty_source_is_answered_too(options: Any) -> None:
    model = network(**options)
    read = model.read(Padded(torch.zeros(1, 0, dtype=torch.long), torch.tensor([0])))
    assert model.decoder(Padded.full(TOKENS[:1]), model.decoder.start(read)).values.isfinite().all()


def test_it_says_what_looks_at_the_source() -> None:
    assert isinstance(started()[0].attention, Attention)
    assert started(attention="none")[0].attention is None


def test_tokens_vectors_are_dropped_at_their_own_rate() -> None:
    for locked, rate in ((False, 0.3), (True, 0.5)):
        model = network(dropout=0.0, embedding_dropout=rate, locked=locked, attention="none", embedding=50).train()
        read: list[Tensor] = []
        model.decoder.wiring.register_forward_pre_hook(lambda _, given, read=read: read.append(given[0].values))
        tokens = torch.randint(6, (40, 8))
        model.decoder(Padded.full(tokens), model.decoder.start(model.read(Padded.full(tokens))))
        gone = read[0] == 0
        assert abs(float(gone.double().mean()) - rate) < (0.06 if locked else 0.02)
        assert bool((gone == gone[:, :1]).all()) == locked
        model.eval().decoder(Padded.full(tokens), model.decoder.start(model.read(Padded.full(tokens))))
        assert torch.equal(read[1], model.decoder.embedding(tokens))


@pytest.mark.parametrize(("tied", "scales"), [("none", (1, 1)), ("output", (1, 3)), ("all", (3, 3))])
def test_vectors_that_are_also_the_outputs_are_read_larger(tied: str, scales: tuple[int, int]) -> None:
    model = network(SIZES._replace(source=6), tied=tied, attention="none", embedding=9)
    read: list[Tensor] = []
    for part in (model.encoder, model.decoder.wiring):
        part.register_forward_pre_hook(lambda _, given: read.append(given[0].values))
    model.decoder(Padded.full(TOKENS), model.decoder.start(model.read(Padded.full(TOKENS))))
    assert model.embedding is not None
    for found, embedding, scale in zip(read, (model.embedding, model.decoder.embedding), scales, strict=True):
        same(found, scale * embedding(TOKENS))


def test_a_product_of_unequal_sizes_is_refused() -> None:
    with pytest.raises(ConfigError, match="dot"):
        network(attention="dot", hidden=4, decoder={"hidden": 6})


def test_a_decoder_may_have_cells_and_layers_of_its_own() -> None:
    decoder, _, begun = started(cell="gru", layers=1, decoder={"cell": "lstm", "hidden": [3, 5]}, attention="additive")
    assert [tuple(value.shape for value in state) for state in begun.state.cells] == [((3, 3),) * 2, ((3, 5),) * 2]
    assert decoder.output_size == 5
    assert started(tied="output", embedding=7)[0].output_size == 7
