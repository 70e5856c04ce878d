"""Loops of decoders by few kernels, with Triton's interpreter: outputs and gradients against the wiring's own loop.

Run by make triton-test.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from recurra.attention import Attention
from recurra.engines.triton_kernels import is_interpreted
from recurra.errors import EngineError
from recurra.wirings.fused import FeedingLoop
from tests.attention.every import PLAIN, title
from tests.variants import EVERY
from tests.wirings.decoding import Decoding, assert_alike

if not is_interpreted():
    pytest.skip("make triton-test runs this with Triton's interpreter", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")

WIRINGS = ["feeding", "inside", "conditional"]


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("attention", PLAIN, ids=title)
def test_every_score_agrees_with_the_loop(wiring: str, attention: dict[str, Any]) -> None:
    memory = 6 if attention.get("heads", 1) < 8 else 8
    decoding = Decoding(wiring, "gru", attention, sizes=(5, 6, memory, 7))
    assert decoding.is_fused()
    assert_alike(decoding.answers(), decoding.answers("loop"), 2e-5)


FEW = [
    "lstm",
    "gru",
    "gru of torch",
    "peephole full",
    "min gru",
    "slstm two heads",
    "lstm zoneout",
    "elman without bias",
]
OF_GAPS = ["gru d", "gru d without bias", "gru d all at once"]
"""Cells that fill in what they read from their state."""

EVERY_WAY = [("feeding", variant) for variant in EVERY] + [(each, name) for each in WIRINGS[1:] for name in FEW]
EVERY_WAY.append(("conditional", "layer norm"))


@pytest.mark.parametrize(("wiring", "variant"), EVERY_WAY)
def test_every_cell_agrees_with_the_loop(wiring: str, variant: str) -> None:
    decoding = Decoding(wiring, EVERY[variant], "additive")
    decoding.wiring.eval()  # masks of single steps are drawn in another order than in the loop
    # Where a cell does more to its inputs than W x + b, as one with a memory does, steps are not fused.
    does_more = any(word in variant for word in ("ntm", "dnc")) or variant in OF_GAPS
    assert decoding.is_fused() == (not does_more)
    assert_alike(decoding.answers(), decoding.answers("loop"), 2e-5)


@pytest.mark.parametrize("variant", ["lstm weight drop", "gru weight drop"])
def test_weights_that_are_dropped_are_those_of_the_loop(variant: str) -> None:
    decoding = Decoding("inside", EVERY[variant], "bilinear")
    assert decoding.is_fused()
    found = {}
    for engine in ("auto", "loop"):
        torch.manual_seed(3)
        found[engine] = decoding.answers(engine)
    assert_alike(found["auto"], found["loop"], 2e-5)


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_layers_and_a_summary_agree_with_the_loop(wiring: str, cell: str) -> None:
    decoding = Decoding(wiring, cell, "dot", layers=3, summary=3)
    assert decoding.is_fused()
    assert_alike(decoding.answers(), decoding.answers("loop"), 2e-5)


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("cell", ["lstm", "gru", "gru of torch"])
def test_products_in_partial_sums_agree_with_the_loop(wiring: str, cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.engines.stepping.PART", 1)
    decoding = Decoding(wiring, EVERY[cell], "additive", sizes=(6, 6, 6, 6))
    assert_alike(decoding.answers(), decoding.answers("loop"), 2e-5)


def test_a_memory_larger_than_a_tile_agrees_with_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recurra.attention.stepping.TILE", {2: 256, 4: 256})
    for attention in ("bilinear", "additive"):
        decoding = Decoding("inside", "gru", attention, sizes=(3, 37, 37, 5))
        assert_alike(decoding.answers(), decoding.answers("loop"), 2e-5)


@pytest.mark.parametrize("layers", [1, 2])
def test_dropout_is_that_of_the_masks_drawn(layers: int) -> None:
    decoding = Decoding("feeding", "lstm", "dot", layers=layers, dropout=0.5)
    wiring = decoding.wiring
    state, source = decoding.begun()
    loop = FeedingLoop(wiring, decoding.x, state, source, wiring.cells, wiring.readout)
    masks, last = loop.masks, loop.mask
    assert last is not None
    features, weights = loop.run()
    outputs = []
    states: list[Any] = list(state.cells)
    fed = state.fed
    assert fed is not None
    for t, x in enumerate(decoding.x.unbind(1)):
        y = torch.cat([x, fed], dim=1)
        for n, [cell] in enumerate(wiring.cells.cells):
            if n:
                mask = masks[n - 1]
                assert mask is not None
                y = 2 * y * mask[t]
            fixed = cell.fixed(len(x), x)
            states[n] = cell.step(cell.project(y, fixed), states[n], fixed)
            y = states[n].h
        seen = wiring.attention.step(y, source.memory)
        fed = 2 * wiring.readout.mix(torch.cat([y, seen.context], dim=1)).tanh() * last[t]
        outputs.append(fed)
    expected = torch.stack(outputs, dim=1)
    sources = list(decoding.sources.values())

    def gradients(values: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad((values * decoding.random[0]).sum(), sources, retain_graph=True))

    assert weights.shape == decoding.mask.unsqueeze(1).expand(-1, features.shape[1], -1).shape
    for a, b in zip([features, *gradients(features)], [expected, *gradients(expected)], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert 0.2 < (features == 0).float().mean() < 0.8


def test_without_gradients_nothing_is_kept_and_the_answers_are_the_same() -> None:
    for wiring in WIRINGS:
        decoding = Decoding(wiring, "gru", "additive")
        with torch.no_grad():
            found = decoding.run()
        expected = decoding.run("loop")
        assert found.chance is expected.chance is None
        for a, b in zip(found[:2], expected[:2], strict=True):
            assert a is not None
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
            assert not a.requires_grad


def test_only_the_gradients_that_are_asked_for_are_computed() -> None:
    decoding = Decoding("conditional", "gru", "additive")
    for name, parameter in decoding.wiring.named_parameters():
        parameter.requires_grad_("second" in name)
    expected = torch.autograd.grad(decoding.run("loop").values.sum(), decoding.x)[0]
    torch.testing.assert_close(torch.autograd.grad(decoding.run().values.sum(), decoding.x)[0], expected)


def test_a_loss_of_the_weights_alone_reaches_everything_it_depends_on() -> None:
    for wiring in WIRINGS:
        decoding = Decoding(wiring, "lstm", "bilinear")
        found: dict[str, dict[str, Tensor | None]] = {}
        for engine in ("auto", "loop"):
            weights = decoding.run(engine).weights
            assert weights is not None
            total = (weights * decoding.random[1]).sum()
            gradients = torch.autograd.grad(total, list(decoding.sources.values()), allow_unused=True)
            found[engine] = dict(zip(decoding.sources, gradients, strict=True))
        assert_alike(found["auto"], found["loop"], 5e-5)


def test_a_second_backward_pass_gives_the_same_gradients() -> None:
    decoding = Decoding("inside", "gru", "additive")
    total = decoding.run().values.square().sum()
    sources = list(decoding.sources.values())
    first = torch.autograd.grad(total, sources, retain_graph=True, allow_unused=True)
    for a, b in zip(first, torch.autograd.grad(total, sources, allow_unused=True), strict=True):
        assert a is b is None or torch.equal(a, b)


def test_second_derivatives_are_refused_in_words() -> None:
    decoding = Decoding("feeding", "lstm", "dot")
    with pytest.raises(EngineError, match=r"second derivatives .* Set model.engine = 'loop'"):
        torch.autograd.grad(decoding.run().values.sum(), decoding.x, create_graph=True)


@pytest.mark.parametrize(
    ("wiring", "cell", "attention"),
    [
        ("feeding", "lstm", {"name": "dot", "terms": ["coverage"]}),
        ("inside", "gru", {"name": "additive", "location": {"width": 3}}),
        ("inside", "gru", "tests.wirings.test_fused_interpreted:Nearest"),
        ("inside", EVERY["gru variational"], "dot"),
    ],
)
def test_what_the_kernels_do_not_know_runs_in_the_loop(wiring: str, cell: Any, attention: Any) -> None:
    decoding = Decoding(wiring, cell, attention)
    assert not decoding.is_fused()
    decoding.wiring.eval()
    assert_alike(decoding.answers(), decoding.answers("loop"), 2e-5)


def test_a_decoder_that_is_watched_runs_in_the_loop() -> None:
    decoding = Decoding("feeding", "lstm", "dot")
    handle = decoding.wiring.readout.register_forward_hook(lambda *_: None)
    assert not decoding.is_fused()
    handle.remove()
    assert decoding.is_fused()


class Nearest(Attention):
    """A score of one's own: -|q - k|²."""

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return -torch.cdist(query, keys).square()
