"""Steps of decoders by few kernels, one token after the other, with Triton's interpreter: against a wiring's own step.

Run by make triton-test.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from recurra.engines.triton_kernels import is_interpreted
from recurra.wirings import Source, WiringState
from recurra.wirings.advancing import Advance, Reading
from recurra.wirings.wiring import rows_like
from tests.attention.every import PLAIN, title
from tests.variants import EVERY
from tests.wirings.decoding import Decoding

if not is_interpreted():
    pytest.skip("make triton-test runs this with Triton's interpreter", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")

WIRINGS = ["feeding", "outside", "inside", "conditional"]
SCALE = 1.5


def repeated(tree: Any, each: int) -> Any:
    """Every row so many times."""
    if isinstance(tree, Tensor):
        return tree.repeat_interleave(each, dim=0)
    if not isinstance(tree, tuple):
        return tree
    parts = [repeated(part, each) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def selected(tree: Any, rows: Tensor) -> Any:
    if isinstance(tree, Tensor):
        return tree[rows]
    parts = [selected(part, rows) for part in tree] if isinstance(tree, tuple) else None
    if parts is None:
        return tree
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def begun(decoding: Decoding, each: int, has_summary: bool) -> tuple[Advance | None, Reading, WiringState, Source]:
    state, source = decoding.begun()
    size = decoding.wiring.shape.input_size
    summary = torch.randn(len(decoding.x), 2) if has_summary else None
    table = torch.randn(9, size - (2 if has_summary else 0))
    reading, state = Reading(table, SCALE, summary), repeated(state, each)
    return decoding.wiring.advancing(reading, state, source), reading, state, source


def agree(decoding: Decoding, *, each: int = 1, has_summary: bool = False) -> None:
    """Three steps, each after rows of the one before, which may be any of the same source."""
    decoding.wiring.eval()
    with torch.no_grad():
        found, reading, state, source = begun(decoding, each, has_summary)
        assert found is not None
        rows = len(state.cells[0][0])
        tokens = torch.arange(rows) % 9
        found.begin(tokens)
        for turn in range(3):
            x = SCALE * reading.table[tokens]
            if reading.summary is not None:
                x = torch.cat([x, rows_like(reading.summary, x)], dim=1)
            h, state = decoding.wiring.step(x, state, source)
            assert_close(found.step(), h, rtol=2e-5, atol=2e-5)
            same(found.state(), state)
            assert found.state().weights is not None
            tokens = (tokens * 5 + turn) % 9
            if each == 1:
                found.go_on(tokens)
            else:
                order = torch.arange(rows) // each * each + torch.randint(each, (rows,))
                found.go_on(tokens, order)
                state = selected(state, order)
            same(found.state(), state)


def same(one: WiringState, other: WiringState) -> None:
    assert_close(one.cells, other.cells, rtol=2e-5, atol=2e-5)
    if one.weights is not None:
        assert_close(one.weights, other.weights, rtol=2e-5, atol=2e-5)
    assert (one.fed is None) == (other.fed is None)
    if one.fed is not None and other.fed is not None:
        assert_close(one.fed, other.fed, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("wiring", "each"), [("feeding", 1), ("feeding", 3), ("inside", 3), ("conditional", 1)])
@pytest.mark.parametrize("attention", PLAIN, ids=title)
def test_every_score_agrees_with_the_step(wiring: str, attention: dict[str, Any], each: int) -> None:
    memory = 6 if attention.get("heads", 1) < 8 else 8
    agree(Decoding(wiring, "gru", attention, sizes=(5, 6, memory, 7)), each=each)


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("variant", ["lstm", "gru of torch", "peephole full", "slstm two heads", "lstm zoneout"])
def test_cells_agree_with_the_step(wiring: str, variant: str) -> None:
    agree(Decoding(wiring, EVERY[variant], "additive"), each=2)


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_layers_and_summaries_agree_with_the_step(wiring: str, cell: str) -> None:
    agree(Decoding(wiring, cell, "dot", layers=3, summary=3), each=2, has_summary=True)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_what_is_not_known_to_the_kernels_is_left_to_the_step(wiring: str) -> None:
    terms = Decoding(wiring, "gru", {"name": "dot", "terms": ["coverage"]})
    training, with_gradients, definition = (Decoding(wiring, "gru", "dot") for _ in range(3))
    terms.wiring.eval()
    with_gradients.wiring.eval()
    definition.wiring.eval()
    definition.wiring.shape = definition.wiring.shape._replace(engine="loop")
    with torch.no_grad():
        assert [begun(each, 1, False)[0] for each in (terms, training, definition)] == [None] * 3
    assert begun(with_gradients, 1, False)[0] is None
