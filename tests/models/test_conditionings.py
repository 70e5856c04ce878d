"""Where a vector enters a decoder, against equations written out with numpy: log p of a target, to ten digits."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from recurra.config import ImageModel, Vec2SeqModel
from recurra.config.vec2seq import GivenModel
from recurra.models.seq2seq import PairBatch, SequenceToSequence, Sizes
from recurra.padding import Grid, Padded, gridded, pad

Numbers = NDArray[np.float64]

START, VOCABULARY = 1, 7
PLACES = ("initial", "first", "every", "output")


def network(numbers: int = 3, *, pictures: bool = False, **settings: Any) -> SequenceToSequence:
    torch.manual_seed(5)
    given = {"hidden": 5, "embedding": 4, "attention": "none", "engine": "loop", **settings}
    sizes = Sizes(None, VOCABULARY, None if pictures else numbers, 0, START, 1 if pictures else None)
    model = SequenceToSequence(Vec2SeqModel(**given), sizes).double().eval()
    with torch.no_grad():
        for weight in model.parameters():  # larger than they begin, so that all of them matter
            weight.add_(0.3 * torch.randn_like(weight))
    return model


def sigmoid(x: Numbers) -> Numbers:
    return 1 / (1 + np.exp(-x))


def log_softmax(x: Numbers) -> Numbers:
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


class Written:
    """The same network by hand, for one source of places (S, F)."""

    def __init__(self, model: SequenceToSequence, conditioning: list[str], cell: str, direct: bool) -> None:
        self.w = {name: value.detach().numpy() for name, value in model.state_dict().items()}
        self.conditioning, self.cell, self.direct = conditioning, cell, direct

    def linear(self, name: str, x: Numbers) -> Numbers:
        found: Numbers = x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]
        return found

    def step(self, x: Numbers, h: Numbers, c: Numbers) -> tuple[Numbers, Numbers]:
        at = "decoder.wiring.cells.cells.0.0.from_"
        gates = self.linear(f"{at}input", x) + self.w[f"{at}state"] @ h
        if self.cell == "elman":
            return np.tanh(gates), c
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def log_p(self, source: Numbers, target: list[int], *, attends: bool = False) -> float:
        m = source
        layer = 0
        while f"encoder.maps.{layer}.weight" in self.w:
            m = np.tanh(self.linear(f"encoder.maps.{layer}", m))
            layer += 1
        s = m.mean(0)
        hidden = self.w["decoder.wiring.cells.cells.0.0.from_state"].shape[1]
        h, c = np.zeros(hidden), np.zeros(hidden)
        if "initial" in self.conditioning and self.direct:
            h = s
        elif "initial" in self.conditioning:
            h = np.tanh(self.linear("decoder.bridge.maps.0.h", s))
            if self.cell == "lstm":
                c = self.linear("decoder.bridge.maps.0.c", s)
        if "first" in self.conditioning:
            h, c = self.step(s if self.direct else self.linear("decoder.first", s), h, c)
        total, before = 0.0, START
        for token in target:
            x = self.w["decoder.embedding.weight"][before]
            h, c = self.step(np.concatenate([x, s]) if "every" in self.conditioning else x, h, c)
            parts = [h]
            if attends:
                scores = m @ self.w["decoder.wiring.attention.project.weight"].T @ h
                parts.append(np.exp(log_softmax(scores)) @ m)
            if "output" in self.conditioning:
                parts.append(s)
            mixed = np.tanh(self.linear("decoder.wiring.readout.mix", np.concatenate(parts)))
            total += float(log_softmax(self.linear("output.readout", mixed))[token])
            before = token
        return total


def batch_of(sources: list[Any], targets: list[list[int]]) -> PairBatch:
    return PairBatch(
        pad([torch.tensor(source) for source in sources]), pad([torch.tensor(target) for target in targets]), None
    )


def log_p(model: SequenceToSequence, batch: PairBatch) -> list[float]:
    assert batch.target is not None
    each = model.token_log_likelihoods(batch).detach()
    return [float(part.sum()) for part in each.split(batch.target.lengths.tolist())]


ALL = [list(places) for count in range(5) for places in combinations(PLACES, count)]
TARGETS = [[4, 5, 6, 2], [3, 2], [6, 6, 2]]


@pytest.mark.parametrize("cell", ["elman", "lstm"])
@pytest.mark.parametrize("conditioning", ALL, ids="+".join)
def test_a_vector_enters_by_a_learned_map_as_its_equation_says(conditioning: list[str], cell: str) -> None:
    sources = np.random.default_rng(1).normal(size=(3, 1, 3))
    for layers in (0, 1, 2):
        model = network(cell=cell, conditioning=conditioning, encoder=GivenModel(layers=layers, hidden=6))
        by_hand = Written(model, conditioning, cell, direct=False)
        expected = [by_hand.log_p(source, target) for source, target in zip(sources, TARGETS, strict=True)]
        assert log_p(model, batch_of(list(sources), TARGETS)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("cell", ["elman", "lstm"])
@pytest.mark.parametrize("layers", [0, 1])
@pytest.mark.parametrize(
    ("conditioning", "sizes"),
    [
        (["initial"], {"hidden": 5, "embedding": 4}),
        (["first"], {"hidden": 8, "embedding": 5}),
        (["initial", "first", "output"], {"hidden": 5, "embedding": 5}),
    ],
    ids=["initial", "first", "both and output"],
)
def test_a_vector_enters_as_it_is_where_sizes_agree(
    conditioning: list[str], sizes: dict[str, Any], layers: int, cell: str
) -> None:
    sources = np.random.default_rng(2).normal(size=(3, 1, 5))
    own = GivenModel(layers=layers, hidden=5)
    model = network(5, cell=cell, conditioning=conditioning, direct=True, encoder=own, **sizes)
    assert not any("bridge" in name or "first" in name for name, _ in model.named_parameters())
    by_hand = Written(model, conditioning, cell, direct=True)
    expected = [by_hand.log_p(source, target) for source, target in zip(sources, TARGETS, strict=True)]
    assert log_p(model, batch_of(list(sources), TARGETS)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("conditioning", [[], ["initial"], ["every", "output"]], ids=lambda each: "+".join(each))
def test_places_are_attended_to_as_the_equation_says(conditioning: list[str]) -> None:
    draw = np.random.default_rng(3)
    sources = [draw.normal(size=(places, 3)) for places in (4, 1, 6)]
    model = network(conditioning=conditioning, attention="bilinear")
    by_hand = Written(model, conditioning, "lstm", direct=False)
    expected = [by_hand.log_p(source, target, attends=True) for source, target in zip(sources, TARGETS, strict=True)]
    assert log_p(model, batch_of(sources, TARGETS)) == pytest.approx(expected, abs=1e-10)
    maps = [torch.tensor(source.reshape(1, -1, 3)).permute(2, 0, 1) for source in sources]
    in_a_row = PairBatch(gridded(maps), batch_of(sources, TARGETS).target, None)
    assert log_p(model, in_a_row) == pytest.approx(expected, abs=1e-10)


def test_without_conditioning_and_attention_nothing_depends_on_the_vector() -> None:
    model = network(conditioning=[])
    one, other = (batch_of([np.full((1, 3), value)] * 3, TARGETS) for value in (-7.0, 90.0))
    assert log_p(model, one) == log_p(model, other)
    for places in (["initial"], ["first"], ["every"], ["output"]):
        assert log_p(network(conditioning=places), one) != pytest.approx(log_p(network(conditioning=places), other))


@pytest.mark.parametrize("wiring", ["outside", "between", "inside", "feeding", "conditional"])
@pytest.mark.parametrize("kind", ["places", "grid", "picture"])
def test_a_source_is_the_same_alone_and_in_any_padded_batch(kind: str, wiring: str) -> None:
    draw = torch.Generator().manual_seed(4)
    sizes = [(3, 5), (1, 1), (6, 2)]
    settings = {"attention": "additive", "wiring": wiring, "conditioning": ["initial", "every"]}
    image = ImageModel(widths=[3, 4], layers=1)
    model = network(2, pictures=kind == "picture", image=image, **settings)
    sources = [torch.rand(1 if kind == "picture" else 2, *size, generator=draw).double() for size in sizes]

    def packed(numbers: list[int]) -> Padded | Grid:
        some = [sources[number] for number in numbers]
        return pad([each.flatten(1).T for each in some]) if kind == "places" else gridded(some)

    together = log_p(model, PairBatch(packed([0, 1, 2]), pad([torch.tensor(each) for each in TARGETS]), None))
    for number in range(3):
        alone = PairBatch(packed([number]), pad([torch.tensor(TARGETS[number])]), None)
        assert log_p(model, alone) == pytest.approx([together[number]], abs=1e-9)
