"""Every cell computes SPEC's equations: checked against numpy, by finite differences, and by counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from torch import Tensor

from recurra import Padded, Recurrent
from recurra.cells import AnyCell, build
from recurra.cells.cell import fields
from recurra.stacks.recurrent import States
from tests.cells import equations
from tests.variants import CELLS, EVERY, WRAPPED, batch, flat, model, random_states

LENGTHS = [5, 1, 3]


def numbers(tensor: Tensor) -> equations.Array:
    return tensor.detach().numpy()


def by_hand(
    cell: AnyCell, spec: dict[str, Any], row: equations.Array, start: equations.Values
) -> list[equations.Values]:
    """Every step of one row in numpy."""
    parameters = {name: numbers(value) for name, value in cell.state_dict().items()}
    options = {name: value for name, value in spec.items() if name not in ("name", "wrap")}
    step: Callable[..., equations.Values] = getattr(equations, spec["name"])
    state, course = start, []
    for x in row:
        values = step(parameters, options, x, state, lambda h: h, lambda c: c)
        state = {name: values[name] for name in state}
        course.append(values)
    return course


@pytest.mark.parametrize("variant", CELLS)
@pytest.mark.parametrize("from_zero", [True, False], ids=["from zero", "from a state"])
def test_a_cell_is_its_equations(variant: str, from_zero: bool) -> None:
    spec = CELLS[variant]
    rnn = model(spec, engine="loop")
    x = batch(LENGTHS)
    start = rnn.start(3) if from_zero else random_states(rnn, 3)
    outputs, [[final]] = rnn(x, start)
    [[parts]] = rnn.parts(x, start)
    for row, length in enumerate(LENGTHS):
        before = {name: numbers(getattr(start[0][0], name)[row]) for name in fields(final)}
        course = by_hand(rnn._layers()[0][0], spec, numbers(x.values[row, :length]), before)
        for t, values in enumerate(course):
            np.testing.assert_allclose(numbers(outputs.values[row, t]), values["h"], rtol=0, atol=1e-12)
            for name, value in values.items():
                np.testing.assert_allclose(numbers(getattr(parts, name)[row, t]), value, rtol=0, atol=1e-12)
        for name in fields(final):
            np.testing.assert_allclose(numbers(getattr(final, name)[row]), course[-1][name], rtol=0, atol=1e-12)
        assert (outputs.values[row, length:] == 0).all()


@pytest.mark.parametrize(
    ("variant", "training"),
    [*((variant, True) for variant in EVERY), *((variant, False) for variant in WRAPPED)],  # others do the same in both
)
def test_gradients_are_those_of_finite_differences(variant: str, training: bool) -> None:
    size = 3 if "variables" in EVERY[variant] else 2  # a value, its mask and the elapsed time
    rnn = model(EVERY[variant], size, 4, engine="loop").train(training)
    x = batch([3, 1], size)
    start = random_states(rnn, 2)
    leaves = [tensor.detach().requires_grad_() for tensor in [x.values, *flat(start)]]

    def run(values: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        torch.manual_seed(1)  # the same masks each time
        states: States = ((type(start[0][0])(*rest[: len(start[0][0])]),),)
        outputs, final = rnn(Padded(values, x.lengths), states)
        return outputs.values, *flat(final)

    # Numbers are changed all at once in random directions; by `make slow-test` one by one, but for a memory's thousand.
    one_by_one = settings().max_examples >= 600 and "memory" not in fields(start[0][0])
    assert torch.autograd.gradcheck(run, [*leaves, *rnn.parameters()], atol=1e-6, fast_mode=not one_by_one)


def test_the_slstm_stays_finite_where_its_gates_overflow() -> None:
    rnn = Recurrent("slstm", 1, 1).double()
    with torch.no_grad():
        for name, parameter in rnn.named_parameters():
            parameter.zero_()
            if name.endswith("from_input.weight"):
                parameter.copy_(torch.tensor([[1.0], [0.0], [1.0], [1.0]]))
    far = torch.tensor([[[800.0], [-800.0]], [[-2000.0], [800.0]]], dtype=torch.double, requires_grad=True)
    outputs, states = rnn(Padded.full(far))
    outputs.values.sum().backward()
    assert all(torch.isfinite(value).all() for value in [outputs.values, *flat(states), far.grad])


@pytest.mark.parametrize(
    ("dtype", "input_gate"), [(torch.float16, -12.0), (torch.float32, -100.0), (torch.float64, -740.0)]
)
def test_the_slstm_is_right_where_its_normaliser_is_small(dtype: torch.dtype, input_gate: float) -> None:
    rnn = Recurrent("slstm", 1, 1).to(dtype)
    with torch.no_grad():
        rnn.get_parameter("cells.0.0.from_input.weight").zero_()
        rnn.get_parameter("cells.0.0.from_input.bias").copy_(torch.tensor([input_gate, 1.0, 2.0, 10.0]))
    y, _ = rnn.step(torch.zeros(1, 1, dtype=dtype))
    # The first step stores the candidate alone: h = σ(õ) tanh(z̃), whatever the input gate.
    assert y.item() == pytest.approx(np.tanh(2.0) / (1 + np.exp(-10.0)), rel=0.05)


def test_a_unitary_cell_is_silent_on_silence() -> None:
    rnn = Recurrent({"name": "orthogonal_elman", "unitary": True}, 3, 4)
    with torch.no_grad():
        rnn.get_parameter("cells.0.0.threshold").fill_(0.01)
    x = torch.randn(1, 8, 3)
    x[:, :3] = 0
    outputs, _ = rnn(Padded.full(x))
    outputs.values.sum().backward()
    assert (outputs.values[:, :3] == 0).all()
    assert all(torch.isfinite(p.grad).all() for p in rnn.parameters() if p.grad is not None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_min_lstm_stays_finite_where_both_gates_underflow(dtype: torch.dtype) -> None:
    rnn = Recurrent("min_lstm", 1, 1).to(dtype)
    with torch.no_grad():
        rnn.get_parameter("cells.0.0.from_input.weight").copy_(torch.tensor([[1.0], [1.0], [0.0]]))
        rnn.get_parameter("cells.0.0.from_input.bias").copy_(torch.tensor([0.0, 0.0, 1.0]))
    far = torch.tensor([[[-200.0], [-200.0]]], dtype=dtype, requires_grad=True)
    outputs, _ = rnn(Padded.full(far))
    outputs.values.sum().backward()
    assert outputs.values.flatten().tolist() == [0.5, 0.75]  # both gates alike: the mean of old and new
    assert far.grad is not None
    assert torch.isfinite(far.grad).all()


def count(spec: Any, input_size: int, hidden_size: int) -> int:
    return sum(parameter.numel() for parameter in build(spec, input_size, hidden_size).parameters())


@pytest.mark.parametrize(("I", "H"), [(1, 2), (3, 4), (10, 6), (128, 256)])
@pytest.mark.parametrize("bias", [True, False])
def test_parameter_counts_follow_the_equations(I: int, H: int, bias: bool) -> None:  # noqa: E741
    elman = count({"name": "elman", "bias": bias}, I, H)
    assert elman == I * H + H * H + bias * H
    assert count({"name": "lstm", "bias": bias}, I, H) == 4 * elman
    assert 4 * count({"name": "coupled_lstm", "bias": bias}, I, H) == 3 * count({"name": "lstm", "bias": bias}, I, H)
    assert count({"name": "gru", "bias": bias}, I, H) == 3 * elman
    assert count({"name": "gru", "reset": "after", "bias": bias}, I, H) == 3 * elman + bias * H
    assert count({"name": "peephole_lstm", "bias": bias}, I, H) == 4 * elman + 3 * H
    assert count({"name": "peephole_lstm", "peephole": "full", "bias": bias}, I, H) == 4 * elman + 3 * H * H
    assert count({"name": "layer_norm_lstm", "bias": bias}, I, H) == 4 * elman + 8 * H + H + bias * H
    assert count({"name": "min_gru", "bias": bias}, I, H) == 2 * (I * H + bias * H)
    assert count({"name": "min_lstm", "bias": bias}, I, H) == 3 * (I * H + bias * H)
    assert count({"name": "ind_rnn", "bias": bias}, I, H) == I * H + H + bias * H
    assert count({"name": "slstm", "heads": 2, "bias": bias}, I, H) == 4 * (I * H + H * H // 2 + bias * H)


def test_keep_is_take_with_the_gates_weights_negated() -> None:
    take, keep = model({"name": "gru"}), model({"name": "gru", "update": "keep"})
    weights = {name: value.clone() for name, value in take.state_dict().items()}
    for value in weights.values():
        value[4:8] *= -1  # z is the second of the gates r, z, ĥ
    keep.load_state_dict(weights)
    x = batch([6, 2])
    torch.testing.assert_close(take(x)[0].values, keep(x)[0].values, rtol=0, atol=1e-14)
