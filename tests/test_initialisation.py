"""Where the weights start."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from recurra import ConfigError
from recurra.cells import LSTM, AnyCell, build
from recurra.cells.ind_rnn import IndRNN
from recurra.cells.orthogonal_elman import Rotation


def weight(cell: AnyCell, name: str) -> Tensor:
    return cell.get_parameter(name).detach()


@pytest.mark.parametrize(
    ("name", "gate", "gates"),
    [("lstm", 1, 4), ("peephole_lstm", 1, 4), ("coupled_lstm", 0, 3), ("slstm", 1, 4), ("min_lstm", 0, 3)],
)
def test_the_forget_bias_starts_at_one_and_the_others_at_zero(name: str, gate: int, gates: int) -> None:
    for value, options in ((1.0, {}), (2.5, {"forget_bias": 2.5})):
        biases = weight(build({"name": name, **options}, 3, 4), "from_input.bias").chunk(gates)
        assert [bias.unique().tolist() for bias in biases] == [[value if n == gate else 0.0] for n in range(gates)]


def test_the_layer_norm_lstm_has_its_forget_bias_after_the_norm() -> None:
    assert weight(build("layer_norm_lstm", 3, 4), "bias").tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8


@pytest.mark.parametrize("name", ["gru", "min_gru"])
def test_the_update_bias_can_be_set(name: str) -> None:
    bias = weight(build({"name": name, "update_bias": -1.0}, 3, 4), "from_input.bias")
    assert -1.0 in bias
    assert (bias == -1.0).sum() == 4


@pytest.mark.parametrize(("name", "gates"), [("elman", 1), ("lstm", 4), ("coupled_lstm", 3), ("gru", 3)])
def test_each_u_starts_orthogonal_and_each_w_within_glorots_bound(name: str, gates: int) -> None:
    cell = build(name, 5, 7)
    for U in weight(cell, "from_state").chunk(gates):
        torch.testing.assert_close(U @ U.T, torch.eye(7), rtol=0, atol=1e-5)
    bound = math.sqrt(6 / (5 + 7))
    W = weight(cell, "from_input.weight")
    assert bound * 0.8 < W.abs().max() <= bound


@pytest.mark.parametrize(("init", "bound"), [("uniform", 7**-0.5), ("glorot", math.sqrt(6 / 14)), ("identity", 1.0)])
def test_the_start_of_u_can_be_switched(init: Any, bound: float) -> None:
    U = weight(build({"name": "lstm", "state_init": init}, 5, 7), "from_state")
    assert bound * 0.8 < U.abs().max() <= bound
    assert torch.equal(U, torch.eye(7).repeat(4, 1)) == (init == "identity")


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(ConfigError, match="initialisation = 'xavier' is not known"):
        LSTM(3, 4, state_init="xavier")  # type: ignore[arg-type]


def test_peepholes_start_at_zero() -> None:
    assert all((p == 0).all() for n, p in build("peephole_lstm", 3, 4).named_parameters() if "from_cell" in n)


def test_the_u_of_an_ind_rnn_is_bounded_and_may_come_back_from_beyond() -> None:
    cell = IndRNN(1, 4, horizon=4)
    bound = 2 ** (1 / 4)
    assert (weight(cell, "from_state") <= bound).all()
    assert (weight(cell, "from_state") >= 0).all()
    with torch.no_grad():
        cell.from_state.copy_(torch.tensor([2.0, 2.0, -2.0, -2.0]))
    U = cell.fixed(1, cell.from_state).U.weight
    torch.testing.assert_close(U.detach(), torch.tensor([bound, bound, -bound, -bound]))
    (U * torch.tensor([1.0, -1.0, 1.0, -1.0])).sum().backward()
    # A descent step u − gradient goes inwards for the first and the last; outwards is not allowed.
    assert cell.from_state.grad is not None
    assert cell.from_state.grad.tolist() == [1.0, 0.0, 0.0, -1.0]


@pytest.mark.parametrize("unitary", [False, True])
@pytest.mark.parametrize("start", ["random", "rotations", "identity"])
def test_a_rotation_is_orthogonal_wherever_it_has_turned(unitary: bool, start: Any) -> None:
    rotation = Rotation(6, unitary, start).double()
    with torch.no_grad():
        rotation.turn.normal_(0, 2)
    Q = rotation()
    torch.testing.assert_close(Q @ Q.T, torch.eye(6).double(), rtol=0, atol=1e-12)
    if unitary:
        torch.testing.assert_close(Q[:3, :3], Q[3:, 3:], rtol=0, atol=1e-12)
        torch.testing.assert_close(Q[:3, 3:], -Q[3:, :3], rtol=0, atol=1e-12)


def test_an_odd_rotation_is_orthogonal_too() -> None:
    Q = Rotation(5, False, "rotations").double()()
    torch.testing.assert_close(Q @ Q.T, torch.eye(5).double(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.5])
def test_singular_values_stay_within_the_margin(margin: float) -> None:
    cell = build({"name": "orthogonal_elman", "margin": margin}, 2, 6).double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.normal_(0, 5)
    s = torch.linalg.svdvals(cell.fixed(1, torch.zeros(1)).U.weight.detach())
    assert s.min() >= 1 - margin - 1e-12
    assert s.max() <= 1 + margin + 1e-12
    assert (s.max() - s.min() > 0.05) == (margin > 0)


@pytest.mark.parametrize("unitary", [False, True])
def test_what_an_orthogonal_identity_elman_holds_neither_fades_nor_grows_over_500_steps(unitary: bool) -> None:
    spec = {"name": "orthogonal_elman", "activation": "identity", "unitary": unitary}
    cell = build(spec, 2, 32).double()
    with torch.no_grad():
        cell.get_parameter("left.turn").normal_()
    fixed = cell.fixed(1, torch.zeros(1))
    inputs = cell.project(torch.randn(1, 500, 2).double(), fixed).unbind(1)

    def h_500(h_0: Tensor) -> Tensor:
        state = cell.State(h_0)
        for x in inputs:
            state = cell.step(x, state, fixed)
        return state[0]

    jacobian = torch.autograd.functional.jacobian(h_500, torch.zeros(1, 32).double()).view(32, 32)
    norm = torch.linalg.matrix_norm(jacobian, 2).item()
    assert norm == pytest.approx(1, abs=1e-6)
