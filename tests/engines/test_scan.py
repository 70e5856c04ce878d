"""The scan: against closed forms and a numpy loop, at its limits, and the cells that it runs or refuses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from recurra import Cell, EngineError, Padded, Recurrent
from recurra.cells import AnyCell, MinGRU, build
from recurra.engines import DirectedCell, scan
from tests.engines.comparison import assert_agree, everything
from tests.variants import EVERY, batch, flat, model, random_states

Array = NDArray[np.float64]
LINEAR = {
    "min gru",
    "min gru positive",
    "min gru candidate",
    "min gru zoneout",
    "min lstm",
    "min lstm positive",
    "ind rnn identity",
    "ind rnn identity variational",
    "ind rnn identity weight drop",
    "min lstm all at once",
}


class OneState(NamedTuple):
    h: Tensor


class Leaky(Cell[OneState, tuple[()]]):
    """h' = λ ∘ h + W x: a user's own cell, whose λ is a parameter that its coefficients read from the cell itself."""

    State = OneState

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, hidden_size)
        self.decay = nn.Parameter(torch.rand(hidden_size))

    def project(self, x: Tensor, fixed: tuple[()]) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: OneState, fixed: tuple[()]) -> OneState:
        return OneState(self.decay * state.h + inputs)

    def coefficients(self, inputs: Tensor, fixed: tuple[()]) -> tuple[Tensor, Tensor]:
        return self.decay, inputs


class Halving(Cell[OneState, tuple[()]]):
    """h' = h / 2 + x, without a single weight."""

    State = OneState

    def parts(self, inputs: Tensor, state: OneState, fixed: tuple[()]) -> OneState:
        return OneState(state.h / 2 + inputs)

    def coefficients(self, inputs: Tensor, fixed: tuple[()]) -> tuple[Tensor, Tensor]:
        return inputs.new_tensor(0.5), inputs


class Louder(MinGRU):
    """A cell that changes the equations it inherits."""

    def parts(self, inputs: Tensor, state: Any, fixed: Any) -> Any:
        parts = super().parts(inputs, state, fixed)
        return parts._replace(h=2 * parts.h)


class Boxed(MinGRU):
    """A cell whose fixed holds its tensors in a box that no one opens."""

    def fixed(self, rows: int, like: Tensor) -> Any:
        return {"drop": super().fixed(rows, like)}

    def coefficients(self, inputs: Tensor, fixed: Any) -> tuple[Tensor, Tensor]:
        return super().coefficients(inputs, fixed["drop"])

    def parts(self, inputs: Tensor, state: Any, fixed: Any) -> Any:
        return super().parts(inputs, state, fixed["drop"])


class TwoStates(NamedTuple):
    h: Tensor
    n: Tensor


class Pair(Cell[TwoStates, tuple[()]]):
    """Two states, and coefficients that can mean only one."""

    State = TwoStates

    def parts(self, inputs: Tensor, state: TwoStates, fixed: tuple[()]) -> TwoStates:
        return TwoStates(state.h / 2 + inputs, state.n + 1)

    def coefficients(self, inputs: Tensor, fixed: tuple[()]) -> tuple[Tensor, Tensor]:
        return inputs.new_tensor(0.5), inputs


def ran(decay: Array, inflow: Array, start: Array, reverse: bool = False) -> Array:
    """The engine's scan on numpy arrays."""
    out = torch.full(inflow.shape, torch.nan, dtype=torch.float64)
    scan.scan(torch.from_numpy(decay), torch.from_numpy(inflow), torch.from_numpy(start), out, reverse)
    return out.numpy()


def stepped(decay: Array, inflow: Array, start: Array) -> Array:
    h, course = start, np.empty_like(inflow)
    for t in range(inflow.shape[1]):
        h = decay[:, t] * h + inflow[:, t]
        course[:, t] = h
    return course


@given(B=st.integers(1, 3), T=st.integers(1, 300), H=st.integers(1, 4), seed=st.integers(0, 1000))
def test_a_scan_is_the_recurrence_step_by_step_and_from_the_end(B: int, T: int, H: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    decay, inflow, start = random.normal(size=(B, T, H)), random.normal(size=(B, T, H)), random.normal(size=(B, H))
    decay /= np.maximum(1, np.abs(decay))  # both signs, up to ±1
    np.testing.assert_allclose(ran(decay, inflow, start), stepped(decay, inflow, start), rtol=1e-10, atol=1e-12)
    mirrored = stepped(decay[:, ::-1], inflow[:, ::-1], start)[:, ::-1]
    np.testing.assert_allclose(ran(decay, inflow, start, reverse=True), mirrored, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("T", [1, 2, 3, 4, 17, 100, 257])
def test_a_constant_decay_gives_the_geometric_sum(T: int) -> None:
    t = np.arange(1, T + 1)
    found = ran(np.full((1, T, 1), 0.9), np.full((1, T, 1), 2.0), np.full((1, 1), 5.0))
    np.testing.assert_allclose(found[0, :, 0], 5 * 0.9**t + 2 * (1 - 0.9**t) / (1 - 0.9), rtol=1e-13)


def test_a_decay_of_one_sums_up_and_a_decay_of_zero_forgets() -> None:
    inflow = np.arange(1.0, 51).reshape(1, 50, 1)
    start = np.full((1, 1), 7.0)
    assert np.array_equal(ran(np.ones((1, 50, 1)), inflow, start), 7 + np.cumsum(inflow, axis=1))
    assert np.array_equal(ran(np.zeros((1, 50, 1)), inflow, start), inflow)


@pytest.mark.parametrize("tiny", [0.0, 5e-324, 1e-300, 1e-30])
def test_products_that_underflow_leave_what_came_in_since(tiny: float) -> None:
    random = np.random.default_rng(0)
    decay = random.choice([tiny, 1.0, 1 - 1e-15], size=(2, 400, 3))
    inflow, start = random.normal(size=(2, 400, 3)), random.normal(size=(2, 3)) * 1e3
    np.testing.assert_allclose(ran(decay, inflow, start), stepped(decay, inflow, start), rtol=1e-11, atol=1e-11)
    far = ran(np.full((1, 400, 1), 1e-3), np.ones((1, 400, 1)), np.ones((1, 1)))
    np.testing.assert_allclose(far[0, -1, 0], 1 / (1 - 1e-3), rtol=1e-15)


def test_a_growing_state_overflows_no_sooner_than_in_the_loop() -> None:
    decay, inflow, start = np.full((1, 1000, 1), 2.0), np.ones((1, 1000, 1)), np.zeros((1, 1))
    assert np.array_equal(ran(decay, inflow, start), stepped(decay, inflow, start))  # up to 2^1000


class Given(Cell[OneState, tuple[()]]):
    """Decay and inflow side by side as the inputs."""

    State = OneState

    def parts(self, inputs: Tensor, state: OneState, fixed: tuple[()]) -> OneState:
        decay, inflow = inputs.chunk(2, dim=-1)
        return OneState(decay * state.h + inflow)

    def coefficients(self, inputs: Tensor, fixed: tuple[()]) -> tuple[Tensor, Tensor]:
        decay, inflow = inputs.chunk(2, dim=-1)
        return decay, inflow


@pytest.mark.parametrize("T", [1, 2, 5, 12])
@pytest.mark.parametrize("steps_at_a_time", [1, 3, 100])
def test_its_gradients_are_those_of_finite_differences(
    T: int, steps_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scan.STRETCH, "cpu", steps_at_a_time * 2 * 3)
    inputs = torch.randn(2, T, 6).double().requires_grad_()
    start = torch.randn(2, 3).double().requires_grad_()
    beyond = torch.zeros(2, T, 1, dtype=torch.bool)
    beyond[1, 4:] = True
    coefficients = scan.Coefficients(Given(6, 3), (), beyond, torch.float64)
    assert torch.autograd.gradcheck(lambda *given: scan.Course.apply(coefficients, *given), (inputs, start))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("steps_at_a_time", [1, 2, 5, 64])
@pytest.mark.parametrize("name", sorted(LINEAR))
def test_stretches_of_any_length_agree_with_the_loop(
    name: str, steps_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scan.STRETCH, "cpu", steps_at_a_time * 4 * 6)
    rnn = model(EVERY[name], 5, 6, layers=2, bidirectional=True)
    x, start = batch([23, 0, 1, 9], 5), random_states(rnn, 4)
    assert_agree(everything(rnn, "scan", x, start), everything(rnn, "loop", x, start))


@pytest.mark.parametrize("cell", [Leaky, Halving])
@pytest.mark.parametrize("ways", [{}, {"direction": "backward"}, {"bidirectional": True}])
def test_a_users_own_cell_gets_the_scan_by_its_coefficients_alone(cell: type[AnyCell], ways: dict[str, Any]) -> None:
    rnn = model(f"{__name__}:{cell.__name__}", 4, 4, **ways)
    x = batch([30, 0, 1, 12], 4)
    assert dict(rnn.engine_report(x).layers[0].refusals)["scan"] is None
    start = random_states_of(rnn, 4)
    assert_agree(everything(rnn, "scan", x, start), everything(rnn, "loop", x, start))
    assert_agree(everything(rnn, "scan", x, start, every=True), everything(rnn, "loop", x, start, every=True))


def random_states_of(rnn: Recurrent, rows: int) -> Any:
    like = torch.zeros(()).double()
    return tuple(
        tuple(type(state)(*(torch.randn_like(field) for field in state)) for state in layer)
        for layer in rnn.start(rows, like)
    )


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", EVERY)
def test_a_linear_step_is_decay_times_h_plus_inflow_and_no_other_cell_claims_it(name: str, training: bool) -> None:
    cell = build(EVERY[name], 3, 4).double().train(training)
    x, state = torch.randn(2, 5, 3).double(), cell.start(2, torch.zeros(()).double())
    state = type(state)(*(torch.randn_like(field) for field in state))
    fixed = cell.fixed(2, x)
    inputs = cell.project(x, fixed)
    found = cell.coefficients(inputs, fixed)
    assert (found is not None) == (name in LINEAR)
    if found is not None:
        decay, inflow = (each.expand(2, 5, 4) for each in found)
        for t in range(5):
            stepped = cell.step(inputs[:, t], state, fixed)[0]
            torch.testing.assert_close(decay[:, t] * state[0] + inflow[:, t], stepped, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", sorted(LINEAR))
def test_a_scan_is_expected_to_beat_the_loop_unless_there_are_few_steps(name: str) -> None:
    rnn = model(EVERY[name], bidirectional=True)
    short = batch([3])
    for x in (None, batch([40]), short):
        [layer] = rnn.engine_report(x).layers
        assert dict(layer.refusals)["scan"] is None
        costs = dict(layer.costs)
        assert (costs["scan"] < costs["loop"]) == (x is not short)
    rnn.engine = "scan"
    assert str(rnn.engine_report(short)).splitlines()[0].endswith("scan (asked for)")
    rnn(short)


def test_asking_whether_a_cell_is_linear_draws_no_random_numbers() -> None:
    rnn = model({"name": "min_gru", "wrap": [{"name": "zoneout", "rate": 0.3}, EVERY["min gru candidate"]["wrap"][0]]})
    x, [reader] = batch([9, 4]), rnn._readers(0, rnn.start(2), rnn.fixed(2))
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    assert scan.Scan().refusal([reader], x) is None
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("lstm", "the step of 'lstm' is not known to be linear in its state"),
        ("ind_rnn", "the step of 'ind_rnn' is not known to be linear in its state"),
        ({"name": "elman", "activation": "identity"}, "the step of 'elman' is not known to be linear in its state"),
        ({"name": "gru", "wrap": [{"name": "zoneout", "rate": 0.1}]}, "the step of 'gru' is not known to be linear"),
        (f"{__name__}:Pair", f"a scan supports one state, but '{__name__}:Pair' has 2"),
        (f"{__name__}:Louder", f"'{__name__}:Louder' changes the step of a cell, but not its coefficients"),
        (
            f"{__name__}:Boxed",
            f"gradients are enabled, but `fixed` of '{__name__}:Boxed' returns more than tuples of tensors",
        ),
    ],
)
def test_what_cannot_be_scanned_is_refused_in_words(spec: Any, reason: str) -> None:
    rnn = Recurrent(spec, 4, 4, engine="scan")
    with pytest.raises(EngineError) as refusal:
        rnn(Padded.full(torch.zeros(1, 20, 4)))
    assert "the engine 'scan' cannot run the cell" in str(refusal.value)
    assert reason in str(refusal.value)
    rnn.engine = "auto"
    rnn(Padded.full(torch.zeros(1, 20, 4)))


def test_a_batch_without_steps_is_refused_in_words() -> None:
    rnn = Recurrent("min_gru", 3, 4, engine="scan")
    for shape in ((2, 0, 3), (0, 2, 3)):
        with pytest.raises(EngineError, match="there is no step to run"):
            rnn(Padded.full(torch.zeros(shape)))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)])
def test_lower_precision_is_close_to_double(dtype: torch.dtype, tolerance: float) -> None:
    rnn = Recurrent({"name": "min_gru", "update_bias": -4.0}, 8, 16, engine="scan").to(dtype)
    x = Padded(torch.randn(3, 500, 8).to(dtype), torch.tensor([500, 0, 77]))
    outputs, states = rnn(x)
    outputs.values.sum().backward()
    assert outputs.values.dtype == flat(states)[0].dtype == dtype
    assert all(p.grad is not None and p.grad.dtype == dtype and p.grad.isfinite().all() for p in rnn.parameters())
    exact, _ = rnn.double()(Padded(x.values.double(), x.lengths))
    torch.testing.assert_close(outputs.values.double(), exact.values, rtol=tolerance, atol=tolerance)


def test_under_autocast_it_answers_in_the_type_of_the_loop() -> None:
    rnn, x = Recurrent("min_gru", 8, 16), Padded.full(torch.randn(3, 20, 8))
    answers = []
    for engine in ("scan", "loop"):
        rnn.engine = engine
        with torch.autocast("cpu", torch.bfloat16):
            outputs, _ = rnn(x)
        outputs.values.sum().backward()
        answers.append(outputs.values)
    assert answers[0].dtype == answers[1].dtype
    torch.testing.assert_close(*answers, rtol=0, atol=3e-2)


def test_only_inputs_and_h_are_kept_for_the_way_back() -> None:
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    rnn, x = Recurrent("min_gru", 8, 16, engine="scan"), torch.randn(2, 100, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        rnn(Padded.full(x))
    course = [size for size in kept if size >= 2 * 100 * 16]
    assert sorted(course) == [2 * 100 * 16, 2 * 100 * 32]  # h, and the projected inputs


def test_a_reader_that_needs_no_gradient_gets_none() -> None:
    rnn = model("min_gru").requires_grad_(False)
    x, start = batch([12, 3]), random_states(rnn, 2)
    [[state]] = start
    h = state.h.requires_grad_()  # type: ignore[attr-defined]
    rnn.engine = "scan"
    rnn(x, start)[0].values.sum().backward()
    found, h.grad = h.grad, None
    rnn.engine = "loop"
    rnn(x, start)[0].values.sum().backward()
    torch.testing.assert_close(found, h.grad, rtol=0, atol=1e-12)


def test_a_layer_is_refused_for_either_of_its_readers() -> None:
    linear, other = build("min_gru", 3, 4), build("elman", 3, 4)
    x = Padded.full(torch.zeros(2, 9, 3))
    layer = [DirectedCell(cell, cell.start(2, x.values), cell.fixed(2, x.values)) for cell in (linear, other)]
    assert scan.Scan().refusal(layer[:1], x) is None
    assert scan.Scan().refusal(layer, x) == "the step of 'elman' is not known to be linear in its state"
