"""Attention over a grid of places, as a picture gives it: windows of two dimensions, columns, padding on two sides."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from recurra.attention import Attention
from recurra.attention.terms.window import Window
from recurra.errors import ConfigError, DataError
from recurra.named import built
from recurra.padding import Grid
from tests.attention import equations
from tests.attention.every import Spec, asked, drawn, drawn_grid, remembered_grid, title
from tests.attention.test_contract import step_by_step

AROUND: Spec = {"name": "location", "filters": 2, "width": 3}
SPECS: list[Spec] = [
    {"name": "bilinear"},
    {"name": "bilinear", "terms": ["monotonic", "coverage"]},
    {"name": "bilinear", "terms": [AROUND]},
    {"name": "projected_dot", "heads": 2, "terms": [{**AROUND, "dimensions": 2}]},
    {"name": "bilinear", "terms": [{**AROUND, "dimensions": 2, "of": "all", "width": 5}]},
    {"name": "additive", "location": {"filters": 2, "width": 3, "of": "all"}},
    {"name": "additive", "location": {"filters": 3, "width": 3, "of": "last", "dimensions": 2}},
    {"name": "additive", "activation": "relu", "location": {"width": 5, "of": "all", "dimensions": 2}},
    {"name": "additive", "location": {"width": 3, "of": "all", "dimensions": 2}, "terms": ["monotonic"]},
]
every = pytest.mark.parametrize("spec", SPECS, ids=title)
SIZES = [(3, 4), (2, 2), (1, 3)]


def same(one: object, other: object) -> None:
    assert_close(one, other, rtol=0, atol=1e-12)


@every
def test_weights_and_contexts_are_those_of_the_equations(spec: Spec) -> None:
    torch.manual_seed(1)
    attention = drawn(spec)
    grid, queries = drawn_grid(SIZES), asked(attention, 3, 4)
    memory = remembered_grid(attention, grid)
    seen = attention(queries, memory)
    real = memory.mask.numpy()
    for row in range(3):
        places = grid.values[row].flatten(1).T.nan_to_num().numpy()
        contexts, weights = equations.attended(spec, attention, queries[row].numpy(), places, real[row], columns=4)
        np.testing.assert_allclose(seen.weights[row].detach(), weights, atol=1e-13)
        np.testing.assert_allclose(seen.context[row].detach(), contexts, atol=1e-13)
        assert (seen.weights[row][:, ~memory.mask[row]] == 0).all()


@settings(max_examples=settings().max_examples // 3)
@given(
    spec=st.sampled_from(SPECS),
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3),
    seed=st.integers(0, 99),
)
def test_a_grid_alone_gives_the_same_as_among_others_with_padding(
    spec: Spec, sizes: list[tuple[int, int]], seed: int
) -> None:
    torch.manual_seed(seed)
    attention = drawn(spec)
    grid, queries = drawn_grid([*sizes, (4, 5)]), asked(attention, len(sizes) + 1, 3)
    seen = attention(queries, remembered_grid(attention, grid))
    for row, (height, width) in enumerate(sizes):
        own = Grid(grid.values[row : row + 1, :, :height, :width], grid.sizes[row : row + 1])
        alone = attention(queries[row : row + 1], remembered_grid(attention, own))
        same(seen.context[row], alone.context[0])
        weights = seen.weights[row].unflatten(1, (-1, 5))[:, :height, :width]
        same(weights.flatten(1), alone.weights[0])


@every
def test_all_steps_at_once_are_one_step_after_the_other(spec: Spec) -> None:
    attention = drawn(spec)
    memory, queries = remembered_grid(attention, drawn_grid(SIZES)), asked(attention, 3, 5)
    same(attention(queries, memory), step_by_step(attention, queries, memory))


@every
def test_several_rows_of_a_picture_at_once_are_each_alone(spec: Spec) -> None:
    attention = drawn(spec)
    memory, queries = remembered_grid(attention, drawn_grid(SIZES)), asked(attention, 3, 2, 3)  # two hypotheses
    past = attention.start(memory, 6)
    alone = [step_by_step(attention, queries[:, each], memory) for each in range(2)]
    for t in range(3):
        seen = attention.step(queries[:, :, t].flatten(0, 1), memory, past)
        past = seen.past
        for each in range(2):
            same(seen.context.unflatten(0, (3, 2))[:, each], alone[each].context[:, t])


@every
def test_gradients_are_those_of_differences(spec: Spec) -> None:
    torch.manual_seed(2)
    attention = drawn(spec)
    mask = Grid(torch.zeros(2, 1, 2, 3), torch.tensor([[2, 3], [1, 2]])).mask.flatten(1)
    values = torch.randn(2, 6, 4, dtype=torch.float64, requires_grad=True)
    queries = asked(attention, 2, 3).requires_grad_()
    parameters = dict(attention.named_parameters())

    def run(values: torch.Tensor, queries: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return attention(queries, attention.remember(values, mask, 3))[:2]

    assert torch.autograd.gradcheck(run, (values, queries, *parameters.values()), fast_mode=True)


@every
def test_nothing_to_ask_or_to_see_gives_nothing(spec: Spec) -> None:
    attention = drawn(spec)
    memory = remembered_grid(attention, drawn_grid([(2, 3)]))
    assert attention(asked(attention, 1, 0), memory).weights.shape == (1, 0, 6)
    empty = attention.remember(torch.zeros(1, 0, 4).double(), torch.ones(1, 0, dtype=torch.bool), 3)
    assert (attention(asked(attention, 1, 2), empty).context == 0).all()
    nobody = attention.remember(torch.zeros(0, 6, 4).double(), torch.ones(0, 6, dtype=torch.bool), 3)
    assert attention(asked(attention, 0, 2), nobody).weights.shape == (0, 2, 6)


def test_a_window_of_two_dimensions_sees_above_and_below_but_not_round_the_edge() -> None:
    window = Window(filters=1, width=3, dimensions=2).double()
    looked = torch.zeros(1, 1, 3, 4, dtype=torch.float64)
    looked[0, 0, 1, 3] = 1.0  # in the last column: what follows it in memory is the first of the next row
    found = (window(looked.flatten(2), 4) - window.bias).view(3, 4)
    assert (found[:, 2:] != 0).all()
    assert (found[:, :2] == 0).all()


def test_a_window_of_two_dimensions_needs_a_grid() -> None:
    said = "dimensions = 2 needs a grid, .* is a sequence: set dimensions = 1"
    for spec in (
        {"name": "bilinear", "terms": [{"name": "location", "dimensions": 2}]},
        {"name": "additive", "location": {"dimensions": 2}},
    ):
        attention = built(Attention, spec, 3, 4)
        memory = attention.remember(torch.zeros(1, 6, 4), torch.ones(1, 6, dtype=torch.bool))
        with pytest.raises(ConfigError, match=said):
            attention(torch.zeros(1, 1, 3), memory)


@pytest.mark.parametrize("dimensions", [0, 3])
def test_other_numbers_of_dimensions_are_refused(dimensions: int) -> None:
    with pytest.raises(ConfigError, match=f"dimensions of a location term must be 1 or 2, but are {dimensions}"):
        Window(dimensions=dimensions)  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [0, 4, -3])
def test_rows_that_do_not_fill_a_grid_are_refused(columns: int) -> None:
    attention = built(Attention, "bilinear", 3, 4)
    with pytest.raises(DataError, match=f"6 places cannot be arranged in a grid with {columns} columns"):
        attention.remember(torch.zeros(1, 6, 4), torch.ones(1, 6, dtype=torch.bool), columns)
