"""Newton's method over all steps against the loop, in float64: outputs, final states and every gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import recurra
from recurra import EngineError, Padded
from recurra.cells import Cell
from recurra.cells.elman import ElmanState


class Squashed(Cell[ElmanState, tuple[()]]):
    """A user's own: h' = h/2 + sin(h) tanh(x) / 2 + x."""

    State = ElmanState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.w = torch.nn.Parameter(torch.randn(hidden_size, input_size) / 2)

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return torch.nn.functional.linear(x, self.w)

    def parts(self, inputs: Tensor, state: ElmanState, fixed: tuple[()]) -> ElmanState:
        return ElmanState(h=state.h / 2 + state.h.sin() * inputs.tanh() / 2 + inputs)


CELLS: list[Any] = [
    {"name": "ind_rnn", "activation": "tanh"},
    {"name": "ind_rnn", "activation": "relu"},
    {"name": "ind_rnn", "activation": "sigmoid", "bias": False},
    f"{__name__}:Squashed",
]


def answers(spec: Any, engine: str, direction: str) -> list[Tensor]:
    """Outputs, final states, and the gradients of inputs, start states and parameters."""
    torch.manual_seed(0)
    rnn = recurra.Recurrent(spec, 3, 5, bidirectional=direction == "both", engine=engine).double()
    x = torch.randn(4, 37, 3, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([37, 36, 1, 19])
    directions = 2 if direction == "both" else 1
    starts = [torch.randn(4, 5, dtype=torch.float64, requires_grad=True) for _ in range(directions)]
    out, last = rnn(Padded(x, lengths), (tuple(ElmanState(each) for each in starts),))
    ends = [state.h for state in last[0]]
    total = (out.values * torch.randn_like(out.values)).sum() + sum(each.square().sum() for each in ends)
    return [out.values, *ends, *torch.autograd.grad(total, [x, *starts, *rnn.parameters()])]


@pytest.mark.parametrize("direction", ["forward", "both"])
@pytest.mark.parametrize("spec", CELLS, ids=str)
def test_it_finds_what_the_loop_computes(spec: Any, direction: str) -> None:
    for one, other in zip(answers(spec, "newton", direction), answers(spec, "loop", direction), strict=True):
        assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_a_linear_step_needs_no_second_look() -> None:
    rnn = recurra.Recurrent({"name": "ind_rnn", "activation": "identity"}, 3, 5, engine="newton").double()
    x = torch.randn(2, 50, 3, dtype=torch.float64)
    expected = recurra.Recurrent({"name": "ind_rnn", "activation": "identity"}, 3, 5, engine="loop").double()
    expected.load_state_dict(rnn.state_dict())
    assert_close(rnn(Padded.full(x))[0].values, expected(Padded.full(x))[0].values)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("gru", "units of 'gru' see the states of others"),
        ("lstm", "it supports one state, but 'lstm' has 2"),
        ({"name": "ind_rnn", "wrap": [{"name": "zoneout", "rate": 0.5}]}, "changes the step of a cell"),
    ],
    ids=str,
)
def test_it_says_which_cells_it_cannot_run(spec: Any, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        recurra.Recurrent(spec, 3, 5, engine="newton")(Padded.full(torch.randn(2, 4, 3)))


def test_it_says_when_it_finds_no_states() -> None:
    """h' = 3.9 h (1 - h) forgets nothing: it is chaotic."""
    rnn = recurra.Recurrent(f"{__name__}:Chaotic", 1, 2, engine="newton").double()
    with pytest.raises(EngineError, match=r"has not found the states of .* over 3,000 steps after going over them 64"):
        rnn(Padded.full(torch.full((1, 3000, 1), 0.3, dtype=torch.float64)))


class Chaotic(Cell[ElmanState, tuple[()]]):
    State = ElmanState

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return x.expand(*x.shape[:-1], self.hidden_size)

    def parts(self, inputs: Tensor, state: ElmanState, fixed: tuple[()]) -> ElmanState:
        h = (state.h + 0.001 * inputs).clamp(0.01, 0.99)
        return ElmanState(h=3.9 * h * (1 - h))


def test_second_derivatives_are_left_to_the_loop() -> None:
    rnn = recurra.Recurrent("ind_rnn", 2, 3, engine="newton")
    x = torch.randn(1, 4, 2, requires_grad=True)
    with pytest.raises(EngineError, match="second derivatives are not supported by the engine 'newton'"):
        torch.autograd.grad(rnn(Padded.full(x))[0].values.sum(), x, create_graph=True)


def test_it_runs_only_where_it_is_asked_for() -> None:
    spec = {"name": "ind_rnn", "activation": "tanh"}
    assert "newton" not in str(recurra.Recurrent(spec, 3, 5).engine_report())
    assert recurra.Recurrent(spec, 3, 5, engine="newton").engine_report().layers[0].engine.name == "newton"
