"""Jacobians of steps and their products, against finite differences, autograd and what can be reckoned by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from recurra import Padded, Recurrent
from recurra.analysis.jacobian import Products, products, stack_seen, step_jacobian, step_jacobians
from recurra.analysis.matrices import recurrent_matrices
from recurra.cells import AnyCell, Cell, Elman
from recurra.named import catalogue
from tests.variants import CELLS, EVERY, batch, model


def looked(rnn: Recurrent, x: Padded) -> Products:
    [seen] = stack_seen(rnn, x)
    return products(seen)


def elman(matrix: Tensor, *, input_size: int, scale: float = 1.0) -> Recurrent:
    rnn = Recurrent("elman", input_size, len(matrix)).double()
    cell = rnn.cells[0][0]  # type: ignore[index]
    assert isinstance(cell, Elman)
    with torch.no_grad():
        cell.from_state.copy_(matrix)
        cell.from_input.weight.mul_(scale)
    return rnn


@pytest.mark.parametrize("name", [*catalogue(Cell), "gru after", "peephole full", "layer norm per gate", "unitary"])
def test_the_jacobian_of_a_step_is_what_small_differences_make_of_it(name: str) -> None:
    torch.manual_seed(1)
    cell: AnyCell = model(EVERY.get(name, name)).eval().cells[0][0]  # type: ignore[index]
    x = torch.randn(2, 3).double()
    before = tuple(torch.randn_like(field) for field in cell.start(2, x))
    found = step_jacobian(cell, x, before)

    def stepped(state: Tensor) -> Tensor:
        fixed = cell.fixed(2, x)
        split = state.split([field.shape[1] for field in before], dim=1)
        return torch.cat(cell.step(cell.project(x, fixed), cell.State(*split), fixed), 1)

    state, step = torch.cat(before, 1), 1e-5
    with torch.no_grad():
        for column in range(state.shape[1]):
            change = torch.zeros_like(state)
            change[:, column] = step
            # Of the fourth order, so that the differences themselves are right to 1e-10 or so.
            near, far = (stepped(state + n * change) - stepped(state - n * change) for n in (1, 2))
            expected = (8 * near - far) / (12 * step)
            assert torch.allclose(found.state[:, :, column], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", [*catalogue(Cell), "lstm zoneout each", "all at once", "yours"])
def test_products_of_every_cell_are_those_of_autograd_through_all_steps(name: str) -> None:
    torch.manual_seed(2)
    rnn = model("tests.own_cells:Matchbox" if name == "yours" else EVERY.get(name, name)).eval()
    x = batch([5, 3])
    found = looked(rnn, x)
    cell: AnyCell = rnn.cells[0][0]  # type: ignore[index]

    def last(h: Tensor, state: tuple[Tensor, ...], row: int, after: int) -> Tensor:
        state = cell.State(h, *state[1:])
        for t in range(after, int(x.lengths[row])):
            inputs = x.values[row : row + 1, t]
            fixed = cell.fixed(1, inputs)
            state = cell.step(cell.project(inputs, fixed), state, fixed)
        return state[0]

    for row, length in enumerate(x.lengths.tolist()):
        for lag in (0, 1, length - 1):
            _, [[state]] = rnn(Padded.full(x.values[row : row + 1, : length - lag]))
            jacobian = torch.autograd.functional.jacobian(
                lambda h, s=state, r=row, a=length - lag: last(h, s, r, a), state[0].detach()
            )[0, :, 0]
            values = torch.linalg.svdvals(jacobian)
            assert math.exp(found.largest["h"][row, lag]) == pytest.approx(float(values[0]), rel=1e-8, abs=1e-8)
            assert math.exp(found.norm["h"][row, lag]) == pytest.approx(float(jacobian.norm()), rel=1e-8, abs=1e-8)
            smallest = found.smallest["h"][row, lag]
            assert smallest.isnan() or math.exp(smallest) == pytest.approx(float(values[-1]), rel=1e-6, abs=1e-8)
        assert found.largest["h"][row, length:].isnan().all()


def test_a_single_unit_is_the_product_of_slope_and_weight() -> None:
    torch.manual_seed(3)
    w = 0.8
    rnn = elman(torch.full((1, 1), w, dtype=torch.float64), input_size=1)
    x = Padded.full(torch.randn(1, 12, 1).double())
    found = looked(rnn, x)
    h, _ = rnn(x)
    gamma = (1 - h.values.detach()[0, :, 0] ** 2).tolist()
    for lag in range(12):
        expected = math.prod(gamma[12 - k] * w for k in range(1, lag + 1))
        assert math.exp(found.largest["h"][0, lag]) == pytest.approx(expected, rel=1e-12)
        assert found.bound is not None
        assert math.exp(found.bound[0, lag]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["lstm", "coupled", "layer norm", "lstm sigmoid"])
def test_the_direct_way_through_the_memory_is_the_forget_gate(name: str) -> None:
    rnn = model(EVERY[name]).eval()
    x = batch([4, 4])
    [[parts]] = rnn.parts(x)
    for t, found in enumerate(step_jacobians(rnn, x)):
        assert torch.allclose(found.state[:, 4:, 4:], parts.f[:, t].diag_embed(), atol=1e-12)


def test_a_backward_reader_looks_from_the_first_step_to_the_last() -> None:
    rnn = model("gru", direction="backward")
    forward = model("gru")
    forward.load_state_dict(rnn.state_dict())
    x = batch([5, 3])
    one, other = looked(rnn, x), looked(forward, x.reversed())
    assert torch.allclose(one.largest["h"], other.largest["h"], equal_nan=True)
    assert torch.allclose(one.inputs, other.inputs, equal_nan=True)


def test_a_limit_of_steps_leaves_the_rest_as_it_is() -> None:
    rnn, x = model("lstm"), batch([7, 3])
    [seen] = stack_seen(rnn, x)
    whole, part = products(seen), products(seen, steps=4)
    assert torch.equal(whole.largest["c"][:, :4].nan_to_num(), part.largest["c"].nan_to_num())


def test_products_leave_the_range_of_numbers_without_harm() -> None:
    found = looked(
        elman(1e-3 * torch.eye(2).double(), input_size=1, scale=0.0), Padded.full(torch.zeros(1, 200, 1).double())
    )
    assert found.largest["h"][0, -1] == pytest.approx(199 * math.log(1e-3))
    assert found.smallest["h"][0, -1] == pytest.approx(199 * math.log(1e-3))
    none = looked(elman(torch.zeros(2, 2), input_size=1), Padded.full(torch.ones(1, 3, 1).double()))
    assert none.largest["h"][0].tolist() == [0, -math.inf, -math.inf]


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["elman", "elman sigmoid", "elman relu", "ind rnn tanh", "orthogonal", "orthogonal margin"]),
    st.floats(0.1, 4.0),
)
def test_what_is_measured_never_exceeds_the_bound(seed: int, name: str, scale: float) -> None:
    torch.manual_seed(seed)
    rnn = model(CELLS[name])
    found = looked(rnn, Padded(scale * torch.randn(2, 5, 3).double(), torch.tensor([5, 4])))
    assert found.bound is not None
    measured = found.largest["h"]
    assert bool((measured <= found.bound + 1e-9)[~measured.isnan()].all())


def test_matrices_are_named_after_their_gates() -> None:
    names = {
        "lstm": ["U_i", "U_f", "U_candidate", "U_o"],
        "coupled": ["U_f", "U_candidate", "U_o"],
        "peephole full": ["U_i", "U_f", "U_candidate", "U_o"],
        "layer norm": ["U_i", "U_f", "U_candidate", "U_o"],
        "slstm two heads": ["U_i", "U_f", "U_candidate", "U_o"],
        "gru after": ["U_r", "U_z", "U_candidate"],
        "elman": ["U"],
        "ind rnn": ["U"],
        "min gru": [],
    }
    for name, expected in names.items():
        rnn = model(CELLS[name])
        [seen] = stack_seen(rnn, batch([2]))
        assert list(recurrent_matrices(seen)) == expected, name
    [seen] = stack_seen(rnn := model("gru"), batch([2]))
    blocks = rnn.cells[0][0].from_state.chunk(3)  # type: ignore[index]
    values = [float(torch.linalg.matrix_norm(block.detach(), 2)) for block in blocks]
    assert list(recurrent_matrices(seen).values()) == pytest.approx(values)
