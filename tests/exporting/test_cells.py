"""Layers of cells, recorded: every cell there is, and one of a user's own, over rows of different lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from recurra.cells import Cell
from recurra.exporting.joining import program_of, relative_error
from recurra.exporting.recording import record, samples
from recurra.named import catalogue
from recurra.padding import Padded
from recurra.programs.in_numpy import InNumpy
from recurra.programs.inputs import Input, Recordable
from recurra.stacks.recurrent import Recurrent

INPUTS = [Input("x", ("B", "T", 3)), Input("lengths", ("B",), "lengths", along="T")]

LEFT_OUT = {"gru_d", "dnc"}
"""gru_d reads something else than plain inputs; dnc sorts numbers that are equal but for rounding, and goes on from the
order: `recurra export` finds out that it says something else, and refuses it."""


def read(rnn: Recurrent) -> Recordable:
    """Outputs and all last states of a stack."""

    def call(x: Tensor, lengths: Tensor) -> Mapping[str, Tensor]:
        outputs, states = rnn(Padded(x, lengths))
        leaves = [field for layer in states for state in layer for field in state]
        return {"outputs": outputs.values, **{f"state{number}": leaf for number, leaf in enumerate(leaves)}}

    return Recordable("read", INPUTS, call)


def furthest(rnn: Recurrent) -> float:
    """How far NumPy is from the reference, the loop in float64, on rows of different lengths."""
    rnn = rnn.eval()
    function = read(rnn)
    program, weights = program_of({"read": record(rnn, function)})
    given_ = samples(INPUTS, {"B": 3, "T": 8}, 5)
    found = InNumpy(program, weights).run("read", [each.numpy() for each in given_])
    with torch.no_grad():
        reference = read(rnn.double()).call(given_[0].double(), given_[1])
    right: list[NDArray[Any]] = [each.numpy() for each in reference.values()]
    assert all(not np.any(found[0][row, length:]) for row, length in enumerate(given_[1].tolist())), "0 on padding"
    return max(relative_error(one, other) for one, other in zip(found, right, strict=True))


@pytest.mark.parametrize("name", sorted(set(catalogue(Cell)) - LEFT_OUT))
def test_every_cell_is_recorded_as_it_is(name: str) -> None:
    assert furthest(Recurrent(name, 3, 4)) < 1e-4


class Leaky(NamedTuple):
    h: Tensor
    mean: Tensor


class OwnCell(Cell[Leaky, Any]):
    """A cell that nobody here has seen: h' = tanh(W x + U h), less half its running mean."""

    State = Leaky

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W, self.U = nn.Linear(input_size, hidden_size), nn.Linear(hidden_size, hidden_size, bias=False)

    def project(self, x: Tensor, fixed: Any) -> Tensor:
        projected: Tensor = self.W(x)
        return projected

    def parts(self, inputs: Tensor, state: Leaky, fixed: Any) -> Leaky:
        h = torch.tanh(inputs + self.U(state.h)) - 0.5 * state.mean
        return Leaky(h, 0.9 * state.mean + 0.1 * h)


def test_a_cell_of_ones_own_needs_no_exporter() -> None:
    assert furthest(Recurrent("tests.exporting.test_cells:OwnCell", 3, 4, layers=2, bidirectional=True)) < 1e-5


@settings(max_examples=30 if settings().max_examples < 600 else 600)
@given(
    cell=st.sampled_from(["lstm", "gru", "elman", "peephole_lstm", "coupled_lstm", "min_gru", "ind_rnn", "slstm"]),
    layers=st.integers(1, 3),
    direction=st.sampled_from(["forward", "backward", "both"]),
    merge=st.sampled_from(["concat", "sum", "mean"]),
    mix=st.sampled_from(["last", "concat", "mean", "learned"]),
    skip=st.sampled_from(["none", "residual", "highway"]),
    hidden=st.integers(1, 5),
)
def test_random_stacks_agree_with_the_reference(
    cell: str, layers: int, direction: Any, merge: str, mix: Any, skip: Any, hidden: int
) -> None:
    is_two = direction == "both"
    rnn = Recurrent(
        cell,
        3,
        hidden,
        layers=layers,
        bidirectional=is_two,
        direction="forward" if is_two else direction,
        merge=merge if is_two else "concat",
        mix=mix,
        skip=skip,
    )
    assert furthest(rnn) < 3e-5
