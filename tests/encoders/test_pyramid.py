"""The pyramid against its equations in numpy, with padding, rows of any length, every engine and every gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn
from torch.testing import assert_close

from recurra.encoders.pyramid import Pyramid, paired
from recurra.encoders.summaries import state_sizes
from recurra.errors import ConfigError, DataError
from recurra.padding import Padded
from tests.cells import equations
from tests.variants import batch, flat, rows_of

Array = NDArray[np.float64]
LENGTHS = [7, 0, 1, 4, 5, 2]


def pyramid(cell: Any = "lstm", size: int | list[int] = 3, **options: Any) -> Pyramid:
    """A small one in float64 whose parameters all matter."""
    layers = None if isinstance(size, list) else 3
    made = Pyramid(cell, 3, size, **{"layers": layers, "engine": "loop", **options}).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.6)
    return made


def read_by_numpy(cell: Any, xs: Array, backward: bool) -> list[dict[str, Array]]:
    """The states after each step, in the order of the steps."""
    w = {name: value.detach().numpy() for name, value in cell.state_dict().items()}
    state, states = {name: np.zeros(cell.hidden_size) for name in cell.State._fields}, []
    for x in xs[::-1] if backward else xs:
        values = getattr(equations, cell.name)(w, {}, x, state, lambda a: a, lambda a: a)
        state = {name: values[name] for name in state}
        states.append(state)
    return states[::-1] if backward else states


def by_numpy(made: Pyramid, xs: Array) -> tuple[Array, list[list[list[dict[str, Array]]]]]:
    """The outputs, and the states of each layer, direction and step."""
    every = []
    for number, cells in enumerate(made.cells):
        if number:
            xs = np.concatenate([xs, np.zeros((len(xs) % 2, xs.shape[1]))])
            xs = np.stack([np.concatenate([xs[2 * i], xs[2 * i + 1]]) for i in range(len(xs) // 2)])
        every.append([read_by_numpy(cell, xs, way == 1) for way, cell in enumerate(cells)])
        xs = np.stack([np.concatenate([way[t]["h"] for way in every[-1]]) for t in range(len(xs))])
    return xs, every


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("size", [[3], [3, 2], [2, 4, 3], 2])
def test_each_layer_reads_two_steps_of_the_one_below_as_one(cell: str, bidirectional: bool, size: Any) -> None:
    made = pyramid(cell, size, bidirectional=bidirectional)
    x = batch(LENGTHS)
    outputs, states = made(x)
    _, steps = made(x, every=True)
    halvings = len(made.layers) - 1
    assert outputs.lengths.tolist() == [-(-length // 2**halvings) for length in LENGTHS]
    assert made.steps(x.lengths)[-1].tolist() == outputs.lengths.tolist()
    assert outputs.values.shape[2] == made.output_size
    for row, length in enumerate(LENGTHS):
        assert (outputs.values[row, int(outputs.lengths[row]) :] == 0).all()
        if length == 0:
            assert all((field[row] == 0).all() for field in flat(states))
            continue
        expected, every = by_numpy(made, x.values[row, :length].numpy())
        np.testing.assert_allclose(outputs.values[row, : len(expected)].detach().numpy(), expected, atol=1e-12)
        for layer, layer_steps, expected_layer in zip(states, steps, every, strict=True):
            for way, (state, each, known) in enumerate(zip(layer, layer_steps, expected_layer, strict=True)):
                for name in state._fields:
                    last = known[0 if way else -1][name]
                    np.testing.assert_allclose(getattr(state, name)[row].detach().numpy(), last, atol=1e-12)
                    found = getattr(each, name)[row, : len(known)].detach().numpy()
                    np.testing.assert_allclose(found, np.stack([step[name] for step in known]), atol=1e-12)


@settings(max_examples=30)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    extra=st.integers(0, 3),
    layers=st.integers(1, 4),
    bidirectional=st.booleans(),
    cell=st.sampled_from(["gru", "lstm", "min_gru"]),
    merge=st.sampled_from(["concat", "projection", "mean"]),
    seed=st.integers(0, 99),
)
def test_neither_padding_nor_other_rows_change_anything(
    lengths: list[int], extra: int, layers: int, bidirectional: bool, cell: str, merge: str, seed: int
) -> None:
    torch.manual_seed(seed)
    made = pyramid(cell, layers=layers, bidirectional=bidirectional, merge=merge)
    x = batch(lengths, extra=extra)
    x = Padded(x.values.masked_fill(~x.mask.unsqueeze(2), torch.nan), x.lengths)
    outputs, states = made(x)
    for row, length in enumerate(lengths):
        alone, own = made(Padded.full(x.values[row : row + 1, :length]))
        assert_close(outputs.values[row, : alone.values.shape[1]], alone.values[0], rtol=0, atol=1e-12)
        assert (outputs.values[row, alone.values.shape[1] :] == 0).all()
        assert_close(flat(rows_of(states, [row])), flat(own), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cell", ["lstm", "min_gru"])
def test_every_engine_gives_the_numbers_of_the_loop(cell: str) -> None:
    found = []
    for engine in ("loop", "auto", "planned"):
        torch.manual_seed(1)
        made = pyramid(cell, bidirectional=True, engine=engine)
        x = batch(LENGTHS)
        leaf = x.values.requires_grad_()
        outputs, states = made(x)
        total = torch.stack([value.square().sum() for value in (outputs.values, *flat(states))]).sum()
        found.append([outputs.values, *flat(states), *torch.autograd.grad(total, [leaf, *made.parameters()])])
    for other in found[1:]:
        assert_close(other, found[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_gradients_are_those_of_differences(bidirectional: bool) -> None:
    made = pyramid("gru", 2, layers=2, bidirectional=bidirectional)
    lengths = torch.tensor([3, 4, 1])
    assert torch.autograd.gradcheck(
        lambda values: made(Padded(values, lengths))[0].values, (batch([3, 4, 1]).values.requires_grad_(),)
    )


def test_dropout_falls_between_layers_in_training_alone() -> None:
    x = batch([8, 5])
    for layers, locked in ((1, False), (2, False), (2, True)):
        made = pyramid(layers=layers, dropout=0.5, locked=locked, bidirectional=True)
        assert torch.equal(made.train()(x)[0].values, made.eval()(x)[0].values) == (layers == 1)


def test_states_have_the_shapes_that_start_has() -> None:
    made = pyramid("lstm", [2, 5], bidirectional=True)
    _, states = made(batch([3, 2]))
    assert [field.shape for field in flat(made.start(2))] == [field.shape for field in flat(states)]
    assert state_sizes(made) == [[5, 5], [5, 5]]


def test_a_batch_without_a_step_has_outputs_without_one() -> None:
    outputs, _ = pyramid(bidirectional=True)(Padded(torch.zeros(2, 0, 3).double(), torch.tensor([0, 0])))
    assert outputs.values.shape == (2, 0, 6)
    assert paired(Padded.full(torch.ones(1, 1, 2))).values.tolist() == [[[1, 1, 0, 0]]]


def test_what_a_pyramid_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"hidden_size = \[3, 2\] gives 2 widths, but a pyramid has 3 layers"):
        Pyramid("gru", 3, [3, 2], layers=3)
    with pytest.raises(DataError, match=r"needs inputs of shape \(rows, steps, 3\)"):
        pyramid()(Padded.full(torch.zeros(1, 4, 2).double()))
