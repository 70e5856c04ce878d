"""A Transformer that writes: its equations, all steps at once and one by one, beams of rows, padding and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.errors import ConfigError
from recurra.named import built
from recurra.padding import Padded
from recurra.search.search import selected
from recurra.transformer import Cache
from recurra.wirings import Shape, Source, Wiring
from tests.transformer import equations
from tests.wirings.every import FEATURES, INPUT, MEMORY, SUMMARY, inputs, step_by_step

WIDTH, HEADS = 4, 2
seeds = st.integers(0, 99)


def drawn(layers: int = 2, **options: Any) -> Wiring:
    """In float64, with weights as large as those of a trained one."""
    given = {
        "cell": "lstm",
        "input_size": INPUT,
        "widths": (WIDTH,) * layers,
        "memory_size": MEMORY,
        "summary_size": SUMMARY,
        "features": FEATURES,
        "attention": "bilinear",
        "heads": HEADS,
    }
    wiring = built(Wiring, "transformer", Shape(**{**given, **options})).double()
    for name, parameter in wiring.named_parameters():
        nn.init.normal_(parameter, mean=1.0 if "norm.weight" in name else 0.0, std=0.5)
    return wiring


def source_of(wiring: Wiring, places: Tensor, lengths: list[int], summary: Tensor) -> Source:
    mask = Padded(places, torch.tensor(lengths)).mask
    return Source(wiring.remember(places.masked_fill(~mask.unsqueeze(2), torch.nan), mask), summary)


def drawn_source(wiring: Wiring, lengths: list[int]) -> Source:
    places = torch.randn(len(lengths), max(lengths), MEMORY).double()
    return source_of(wiring, places, lengths, torch.randn(len(lengths), SUMMARY).double())


def same(one: object, other: object, tolerance: float = 1e-10) -> None:
    assert_close(one, other, rtol=0, atol=tolerance)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"layers": 1},
    {"attention": None},
    {"summary_size": 0},
    {"summary_size": 0, "features": WIDTH, "heads": 1},
    {"feed_forward": 3},
]
every = pytest.mark.parametrize("options", OPTIONS, ids=str)


@every
def test_all_steps_at_once_are_one_step_after_the_other_from_any_step_on(options: dict[str, Any]) -> None:
    wiring = drawn(**options)
    source, x = drawn_source(wiring, [5, 2, 1]), inputs(3, 5)
    state = wiring.start((), source)
    same(tuple(wiring(Padded.full(x), state, source)), tuple(step_by_step(wiring, x, state, source)))
    for _ in range(2):
        _, state = wiring.step(x[:, 0], state, source)
    same(tuple(wiring(Padded.full(x[:, 1:]), state, source)), tuple(step_by_step(wiring, x[:, 1:], state, source)))


def test_it_computes_what_its_docstring_says() -> None:
    wiring = drawn()
    places, summary, x = torch.randn(2, 3, MEMORY).double(), torch.randn(2, SUMMARY).double(), inputs(2, 4)
    lengths = [3, 1]
    source = source_of(wiring, places, lengths, summary)
    found = wiring(Padded.full(x), wiring.start((), source), source)
    w = equations.weights_of(wiring)
    for row, length in enumerate(lengths):
        h, weights = equations.stack(
            equations.below(w, "transformer."),
            x[row].numpy(),
            layers=2,
            heads=HEADS,
            causal=True,
            absolute=True,
            memory=places[row, :length].numpy(),
        )
        joined = np.concatenate([h, np.tile(summary[row].numpy(), (4, 1))], axis=1)
        same(found.values[row], torch.from_numpy(joined @ w["readout.weight"].T + w["readout.bias"]))
        assert found.weights is not None
        assert weights is not None
        same(found.weights[row, :, :length], torch.from_numpy(weights))


@every
def test_gradients_at_once_are_those_of_one_step_after_the_other(options: dict[str, Any]) -> None:
    wiring = drawn(**options).train()
    places, summary = torch.randn(3, 4, MEMORY).double().requires_grad_(), torch.randn(3, SUMMARY).double()
    x = inputs(3, 4).requires_grad_()
    given = [x, *([places] if options.get("attention", True) else []), *wiring.parameters()]
    drawn_weights, found = torch.randn(3, 4, wiring.shape.features).double(), []
    for run in (
        lambda s, source: wiring(Padded.full(x), s, source),
        lambda s, source: step_by_step(wiring, x, s, source),
    ):
        source = source_of(wiring, places, [4, 1, 3], summary)
        values = run(wiring.start((), source), source).values
        found.append(torch.autograd.grad((values * drawn_weights).sum(), given))
    same(found[0], found[1])
    assert all(bool(each.abs().sum() > 0) for each in found[0])


@settings(max_examples=25)
@given(options=st.sampled_from(OPTIONS), k=st.integers(1, 3), seed=seeds)
def test_several_rows_of_a_source_are_each_alone(options: dict[str, Any], k: int, seed: int) -> None:
    torch.manual_seed(seed)
    wiring = drawn(**options)
    source, x = drawn_source(wiring, [4, 1]), inputs(2 * k, 3)
    start = wiring.start((), source)
    together = step_by_step(wiring, x, selected(start, torch.arange(2).repeat_interleave(k)), source)
    for number in range(k):
        rows = torch.arange(number, 2 * k, k)
        alone = step_by_step(wiring, x[rows], start, source)
        same(together.values[rows], alone.values)
        if alone.weights is not None:
            assert together.weights is not None
            same(together.weights[rows], alone.weights)


@settings(max_examples=25)
@given(
    options=st.sampled_from(OPTIONS),
    lengths=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4),
    more=st.integers(0, 2),
    seed=seeds,
)
def test_a_row_alone_gives_the_same_as_among_others_with_padding(
    options: dict[str, Any], lengths: list[tuple[int, int]], more: int, seed: int
) -> None:
    torch.manual_seed(seed)
    wiring = drawn(**options)
    read, told = [list(each) for each in zip(*lengths, strict=True)]
    places, summary = (
        torch.randn(len(read), max(read) + more, MEMORY).double(),
        torch.randn(len(read), SUMMARY).double(),
    )
    x = inputs(len(read), max(told) + more)
    source = source_of(wiring, places, read, summary)
    together = wiring(Padded(x, torch.tensor(told)), wiring.start((), source), source)
    assert together.values.isfinite().all()
    for row, (length, steps) in enumerate(lengths):
        own = source_of(wiring, places[row : row + 1, :length], [length], summary[row : row + 1])
        alone = wiring(Padded.full(x[row : row + 1, :steps]), wiring.start((), own), own)
        same(together.values[row, :steps], alone.values[0], 1e-12)
        if alone.weights is not None:
            assert together.weights is not None
            same(together.weights[row, :steps, :length], alone.weights[0], 1e-12)
            assert (together.weights[row, :, length:] == 0).all()


def test_a_state_has_a_row_for_each_hypothesis_and_the_source_is_not_copied() -> None:
    wiring = drawn()
    source = drawn_source(wiring, [4, 3])
    state = selected(wiring.start((), source), torch.tensor([0, 0, 1, 1]))
    x = inputs(4, 2)
    _, state = wiring.step(x[:, 0], state, source)
    assert isinstance(state.cells[0], Cache)
    assert state.cells[0].keys.shape == (4, HEADS, 1, WIDTH // HEADS)
    order = torch.tensor([1, 0, 3, 2])
    one, _ = wiring.step(x[:, 1], state, source)
    other, _ = wiring.step(x[:, 1][order], selected(state, order), source)
    same(one[order], other)


def test_dropout_is_only_in_training() -> None:
    wiring = drawn(dropout=0.5)
    source, x = drawn_source(wiring, [4, 3]), Padded.full(inputs(2, 3))
    state = wiring.start((), source)
    assert len({wiring(x, state, source).values.sum().item() for _ in range(4)}) == 4
    wiring.eval()
    assert len({wiring(x, state, source).values.sum().item() for _ in range(3)}) == 1


def test_layers_of_different_widths_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"all layers of a Transformer must have the same size, but they have the sizes 4, 8\."
    ):
        drawn(widths=(4, 8))
