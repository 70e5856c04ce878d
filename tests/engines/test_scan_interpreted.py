"""Scans by Triton's interpreter: every linear cell against the loop. Run by make triton-test."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from recurra import Cell, Padded, Recurrent
from recurra.engines import scan_on_gpu
from recurra.engines.triton_kernels import is_interpreted
from recurra.stacks.recurrent import States
from tests.engines.comparison import assert_agree, everything
from tests.engines.test_scan import LINEAR, OneState
from tests.variants import EVERY, batch, flat, model, random_states

if not is_interpreted():
    pytest.skip("make triton-test runs this with Triton's interpreter", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")


class Normed(Cell[OneState, tuple[()]]):
    """A linear cell whose decay depends on all units of its input, and on a weight: no unit can be computed alone."""

    State = OneState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, hidden_size)
        self.gain = nn.Parameter(torch.rand(1))

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: OneState, fixed: tuple[()]) -> OneState:
        decay, inflow = self.coefficients(inputs, fixed)
        return OneState(decay * state.h + inflow)

    def coefficients(self, inputs: Tensor, fixed: tuple[()]) -> tuple[Tensor, Tensor]:
        return (self.gain * inputs).softmax(dim=-1), inputs


OWN = [f"tests.engines.test_scan:{name}" for name in ("Leaky", "Halving")] + [f"{__name__}:Normed"]


def cut(monkeypatch: pytest.MonkeyPatch, programs: int) -> None:
    """Share a sequence out among so many programs, in chunks of 8 steps at least."""
    monkeypatch.setattr(scan_on_gpu, "PROGRAMS", programs)
    monkeypatch.setattr(scan_on_gpu, "LEAST_STEPS", 8)


def single(rnn: Recurrent, lengths: list[int]) -> tuple[Padded, States]:
    """A batch and start states in float32."""
    x = batch(lengths, rnn.input_size)
    states = random_states(rnn, len(lengths))
    lowered = tuple(tuple(type(s)(*(field.float() for field in s)) for s in layer) for layer in states)
    return Padded(x.values.float(), x.lengths), lowered


@pytest.mark.parametrize("name", sorted(LINEAR))
def test_every_linear_cell_agrees_with_the_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 64)
    rnn = model(EVERY[name], 5, 6, bidirectional=name == "min gru").float()
    x, start = single(rnn, [19, 0, 9])
    assert_agree(everything(rnn, "scan", x, start), everything(rnn, "loop", x, start), 2e-5)


@pytest.mark.parametrize("name", OWN)
def test_a_users_own_cell_agrees_with_the_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 64)
    rnn = model(name, 4, 4).float()
    x, start = single(rnn, [17, 17])
    assert_agree(everything(rnn, "scan", x, start), everything(rnn, "loop", x, start), 2e-5)
    reader = rnn._readers(0, start, rnn.fixed(2, x.values))[0]
    assert isinstance(scan_on_gpu.scannable(reader, x.values), str) == name.endswith("Normed")


@pytest.mark.parametrize(("steps", "programs"), [(1, 64), (8, 64), (9, 64), (100, 1), (100, 1000)])
def test_any_number_of_steps_and_chunks_agrees_with_the_loop(
    steps: int, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(monkeypatch, programs)
    rnn = model("min_gru", 2, 3).float()
    x, start = single(rnn, [steps])
    assert_agree(everything(rnn, "scan", x, start), everything(rnn, "loop", x, start), 2e-5)


def test_more_units_than_a_program_computes_agree_with_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_on_gpu, "BLOCK", 16)
    rnn = model("min_gru", 2, 21).float()
    x, start = single(rnn, [9, 4])
    assert_agree(everything(rnn, "scan", x, start), everything(rnn, "loop", x, start), 2e-5)


@pytest.mark.parametrize("backward", [False, True])
def test_resets_agree_with_the_loop(backward: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 64)
    rnn = model("min_gru", 3, 4, direction="backward" if backward else "forward").float()
    x, start = single(rnn, [17, 9])
    resets = torch.zeros(2, 17, dtype=torch.bool)
    for row, step in [(0, 0), (0, 7), (0, 8), (0, 16), (1, 3)]:
        resets[row, step] = True
    found = []
    for rnn.engine in ("scan", "loop"):
        values = x.values.clone().requires_grad_()
        outputs, states = rnn(Padded(values, x.lengths), start, resets=resets)
        total = outputs.values.square().sum() + flat(states)[0].sum()
        found.append([outputs.values, *flat(states), *torch.autograd.grad(total, [values, *rnn.parameters()])])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_second_derivatives_are_those_of_the_loop() -> None:
    rnn = model("min_gru", 3, 4).float()
    x, start = single(rnn, [7, 3])
    found = []
    for rnn.engine in ("scan", "loop"):
        values = x.values.clone().requires_grad_()
        outputs = rnn(Padded(values, x.lengths), start)[0].values
        [first] = torch.autograd.grad(outputs.square().sum(), values, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), [values, *rnn.parameters()]))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_without_a_gradient_of_the_outputs_that_of_the_final_state_passes() -> None:
    rnn = model("min_gru", 3, 4).float()
    x, start = single(rnn, [7, 3])
    found = []
    for rnn.engine in ("scan", "loop"):
        _, states = rnn(x, start)
        found.append(torch.autograd.grad(flat(states)[0].square().sum(), list(rnn.parameters())))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_half_precision_is_summed_in_float32() -> None:
    rnn = Recurrent({"name": "min_gru", "update_bias": -4.0}, 8, 16, engine="scan").bfloat16()
    x = torch.randn(1, 200, 8).bfloat16()
    with torch.no_grad():
        found = rnn(Padded.full(x))[0].values
        exact = rnn.double()(Padded.full(x.double()))[0].values
    assert found.dtype == torch.bfloat16
    assert ((found.double() - exact).norm() / exact.norm()).item() < 5e-3
