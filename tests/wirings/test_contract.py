"""What holds for every wiring: at once and step by step, of one row and of many, of padding, of gradients."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.errors import ConfigError
from recurra.models.saved import put_weights, read_tensors, write_tensors
from recurra.named import built
from recurra.padding import Padded
from recurra.search.search import selected
from recurra.wirings import Wiring, WiringState
from tests.variants import VARIATIONAL
from tests.wirings.every import (
    ATTENTIONS,
    CELLS,
    FEATURES,
    MEMORY,
    SUMMARY,
    VARIANTS,
    Variant,
    drawn,
    drawn_source,
    drawn_starts,
    inputs,
    source_of,
    step_by_step,
)

every = pytest.mark.parametrize("variant", VARIANTS, ids=str)
variants, cells, attentions = st.sampled_from(VARIANTS), st.sampled_from(CELLS), st.sampled_from(ATTENTIONS)
seeds = st.integers(0, 99)


def same(one: object, other: object, tolerance: float = 1e-10) -> None:
    assert_close(one, other, rtol=0, atol=tolerance)


@every
def test_all_steps_at_once_are_one_step_after_the_other(variant: Variant) -> None:
    attentions_ = ATTENTIONS[:1] if variant.name == "alone" else ATTENTIONS
    for number, (cell, spec) in enumerate(product(CELLS, attentions_)):
        wiring = drawn(variant, cell, 1 + (number + number // 6) % 2, spec)
        source, x = drawn_source(wiring, [5, 2, 1]), inputs(3, 4)
        state = wiring.start(drawn_starts(wiring, 3), source)
        same(tuple(wiring(Padded.full(x), state, source)), tuple(step_by_step(wiring, x, state, source)))


@pytest.mark.parametrize("cell", CELLS)
@every
def test_gradients_at_once_are_those_of_one_step_after_the_other(variant: Variant, cell: str) -> None:
    wiring = drawn(variant, cell, 2, ATTENTIONS[-1]).train()
    places, summary = torch.randn(3, 4, MEMORY).double().requires_grad_(), torch.randn(3, SUMMARY).double()
    x, starts = inputs(3, 4).requires_grad_(), drawn_starts(wiring, 3)
    given, found = [x, *([] if variant.name == "alone" else [places]), *wiring.parameters()], []
    weights = torch.randn(3, 4, FEATURES).double()
    for run in (
        lambda s, source: wiring(Padded.full(x), s, source),
        lambda s, source: step_by_step(wiring, x, s, source),
    ):
        source = source_of(wiring, places, [4, 1, 3], summary)
        values = run(wiring.start(starts, source), source).values
        found.append(torch.autograd.grad((values * weights).sum(), given))
    same(found[0], found[1])


@pytest.mark.parametrize("skip", ["residual", "highway"])
@every
def test_steps_agree_where_there_is_a_way_past_a_layer(variant: Variant, skip: str) -> None:
    wiring = drawn(variant, "lstm", 3, skip=skip)
    source, x = drawn_source(wiring, [5, 2]), inputs(2, 4)
    state = wiring.start(drawn_starts(wiring, 2), source)
    same(tuple(wiring(Padded.full(x), state, source)), tuple(step_by_step(wiring, x, state, source)))


@pytest.mark.parametrize("skip", ["none", "residual"])
@every
def test_all_that_is_left_may_be_read_at_once_from_any_step_on(variant: Variant, skip: str) -> None:
    wiring = drawn(variant, "lstm", 3, ATTENTIONS[-1], skip=skip)
    source, x = drawn_source(wiring, [5, 2]), inputs(2, 4)
    _, state = wiring.step(x[:, 0], wiring.start(drawn_starts(wiring, 2), source), source)
    same(tuple(wiring(Padded.full(x[:, 1:]), state, source)), tuple(step_by_step(wiring, x[:, 1:], state, source)))


@every
def test_engines_agree(variant: Variant) -> None:
    wiring, other = drawn(variant, "lstm", 2), drawn(variant, "lstm", 2, engine="vendor")
    other.load_state_dict(wiring.state_dict())
    source, x = drawn_source(wiring, [5, 2, 1]), Padded(inputs(3, 4), torch.tensor([4, 1, 2]))
    state = wiring.start(drawn_starts(wiring, 3), source)
    found, expected = other(x, state, source).values, wiring(x, state, source).values
    for row, length in enumerate([4, 1, 2]):
        same(found[row, :length], expected[row, :length])


@settings(max_examples=40)
@given(variant=variants, cell=cells, spec=attentions, k=st.integers(1, 3), layers=st.integers(1, 2), seed=seeds)
def test_several_rows_of_a_source_are_each_alone(
    variant: Variant, cell: str, spec: Any, k: int, layers: int, seed: int
) -> None:
    torch.manual_seed(seed)
    wiring = drawn(variant, cell, layers, spec)
    source, x = drawn_source(wiring, [4, 1]), inputs(2 * k, 3)
    starts = drawn_starts(wiring, 2 * k)
    # Each hypothesis of a source has a state of its own.
    first = wiring.start(selected(starts, torch.arange(0, 2 * k, k)), source)
    many = selected(first, torch.arange(2).repeat_interleave(k))._replace(cells=starts)
    if many.fed is not None and variant.query == "previous":
        many = many._replace(fed=starts[-1][0])
    together = step_by_step(wiring, x, many, source)
    for number in range(k):
        rows = torch.arange(number, 2 * k, k)
        alone = step_by_step(wiring, x[rows], wiring.start(selected(starts, rows), source), source)
        same(together.values[rows], alone.values)
        if alone.weights is not None:
            assert together.weights is not None
            same(together.weights[rows], alone.weights)


@settings(max_examples=40)
@given(
    variant=variants,
    cell=cells,
    spec=attentions,
    lengths=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4),
    more=st.integers(0, 2),
    seed=seeds,
)
def test_a_row_alone_gives_the_same_as_among_others_with_padding(
    variant: Variant, cell: str, spec: Any, lengths: list[tuple[int, int]], more: int, seed: int
) -> None:
    torch.manual_seed(seed)
    wiring = drawn(variant, cell, 2, spec)
    read, told = [list(each) for each in zip(*lengths, strict=True)]
    places, summary = (
        torch.randn(len(read), max(read) + more, MEMORY).double(),
        torch.randn(len(read), SUMMARY).double(),
    )
    starts, x = drawn_starts(wiring, len(read)), inputs(len(read), max(told) + more)
    source = source_of(wiring, places, read, summary)
    together = wiring(Padded(x, torch.tensor(told)), wiring.start(starts, source), source)
    assert together.values.isfinite().all()
    for row, (length, steps) in enumerate(lengths):
        own = source_of(wiring, places[row : row + 1, :length], [length], summary[row : row + 1])
        state = wiring.start(selected(starts, torch.tensor([row])), own)
        alone = wiring(Padded.full(x[row : row + 1, :steps]), state, own)
        same(together.values[row, :steps], alone.values[0], 1e-12)
        if alone.weights is not None:
            assert together.weights is not None
            same(together.weights[row, :steps, :length], alone.weights[0], 1e-12)


class Whole(nn.Module):
    def __init__(self, wiring: Wiring, starts: Any) -> None:
        super().__init__()
        self.wiring, self.starts = wiring, starts

    def forward(self, x: Tensor, places: Tensor, summary: Tensor) -> Any:
        source = source_of(self.wiring, places, [3, 1], summary)
        found = self.wiring(Padded.full(x), self.wiring.start(self.starts, source), source)
        return found.values if found.weights is None else (found.values, found.weights)


@pytest.mark.parametrize("spec", [ATTENTIONS[0], *ATTENTIONS[-2:]], ids=str)
@every
def test_gradients_are_those_of_differences_and_reach_every_parameter(variant: Variant, spec: Any) -> None:
    wiring = drawn(variant, "lstm" if spec["name"] == "additive" else "gru", 2, spec)
    whole = Whole(wiring, drawn_starts(wiring, 2))
    names = [name for name, _ in whole.named_parameters()]

    def run(x: Tensor, places: Tensor, summary: Tensor, *weights: Tensor) -> Any:
        return torch.func.functional_call(whole, dict(zip(names, weights, strict=True)), (x, places, summary))

    sizes = ((2, 3, 3), (2, 3, MEMORY), (2, SUMMARY))
    x, places, summary = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes)
    weights = [parameter.detach().requires_grad_() for parameter in whole.parameters()]
    assert torch.autograd.gradcheck(run, (x, places, summary, *weights), fast_mode=True)
    values = whole(x, places, summary)
    values = values[0] if isinstance(values, tuple) else values
    (values * torch.randn_like(values)).sum().backward()
    for name, parameter in whole.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@every
def test_what_was_saved_is_what_is_loaded(variant: Variant, tmp_path: Path) -> None:
    wiring, other = drawn(variant, "lstm", 2, ATTENTIONS[-1]), drawn(variant, "lstm", 2, ATTENTIONS[-1])
    write_tensors(tmp_path / "wiring.safetensors", wiring.state_dict())
    put_weights(other, read_tensors(tmp_path / "wiring.safetensors")[0], tmp_path)
    places, summary = torch.randn(2, 3, MEMORY).double(), torch.randn(2, SUMMARY).double()
    starts, x = drawn_starts(wiring, 2), Padded.full(inputs(2, 3))
    found = []
    for each in (wiring, other):
        source = source_of(each, places, [3, 2], summary)
        found.append(each(x, each.start(starts, source), source).values)
    assert torch.equal(*found)


@pytest.mark.parametrize("locked", [False, True])
@every
def test_dropout_is_between_all_layers_and_only_in_training(variant: Variant, locked: bool) -> None:
    for layers in (1, 2):
        wiring = drawn(variant, "gru", layers, dropout=0.5, locked=locked and variant.name != "feeding")
        wiring.readout.dropout.rate = 0.0  # type: ignore[union-attr]  # that of the output is another's
        source, x = drawn_source(wiring, [4, 3]), Padded.full(inputs(2, 3))
        state = wiring.start(drawn_starts(wiring, 2), source)
        changes = len({wiring(x, state, source).values.sum().item() for _ in range(5)}) > 1
        assert changes == (len(wiring.layers) > 1)
        if not locked:
            stepped = {step_by_step(wiring, x.values, state, source).values.sum().item() for _ in range(5)}
            assert (len(stepped) > 1) == (len(wiring.layers) > 1)
        assert len({wiring.eval()(x, state, source).values.sum().item() for _ in range(3)}) == 1


@every
def test_dropout_before_the_output_has_its_rate_and_is_locked_if_told(variant: Variant) -> None:
    for locked in (False, True):
        wiring = drawn(variant, "gru", 1, dropout=0.25, locked=locked and variant.name != "feeding")
        source, x = drawn_source(wiring, [4] * 40), Padded.full(inputs(40, 10))
        values = wiring(x, wiring.start(drawn_starts(wiring, 40), source), source).values
        dropped = values == 0
        assert abs(float(dropped.double().mean()) - 0.25) < (0.1 if locked else 0.04)
        assert bool((dropped == dropped[:, :1]).all()) == (locked and variant.name != "feeding")


@every
def test_masks_that_last_a_sequence_are_the_same_step_by_step(variant: Variant) -> None:
    wiring = drawn(variant, {"name": "lstm", "wrap": [VARIATIONAL]}, 2)
    source, x = drawn_source(wiring, [4, 3]), inputs(2, 4)
    state = wiring.start(drawn_starts(wiring, 2), source)
    torch.manual_seed(7)
    at_once = wiring(Padded.full(x), state, source).values
    torch.manual_seed(7)
    fixed = wiring.fixed(2, x)
    same(step_by_step(wiring, x, state, source, fixed).values, at_once)
    torch.manual_seed(8)
    assert not torch.allclose(step_by_step(wiring, x, state, source, wiring.fixed(2, x)).values, at_once)


def test_between_layers_there_are_at_least_two() -> None:
    shape = drawn(Variant("between")).shape._replace(widths=(4,))
    with pytest.raises(ConfigError, match=r"needs at least two of them: set decoder.layers = 2"):
        built(Wiring, "between", shape)


@every
def test_a_state_has_a_row_for_each_hypothesis_on_every_leaf(variant: Variant) -> None:
    wiring = drawn(variant, "lstm", 2, ATTENTIONS[-1])
    source = drawn_source(wiring, [4, 3])
    state = wiring.start(drawn_starts(wiring, 2), source)
    for now in (state, wiring.step(inputs(2, 1)[:, 0], state, source)[1]):
        turned: WiringState = selected(now, torch.tensor([1, 0]))
        back = selected(turned, torch.tensor([1, 0]))
        same(back.cells, now.cells)
        assert turned.cells[0][0].shape == now.cells[0][0].shape
