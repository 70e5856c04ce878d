"""How gradients flow back, step by step; gates; which inputs a state depends on."""

from __future__ import annotations

import pytest
import torch

from recurra import Padded, Recurrent
from recurra.analysis.gradients import flows, forgotten, receptive_field, saturation
from recurra.analysis.jacobian import products, stack_seen
from recurra.analysis.watching import Watch
from recurra.cells import AnyCell, Cell
from recurra.named import catalogue
from tests.variants import EVERY, batch, model


@pytest.mark.parametrize("name", [*catalogue(Cell), "orthogonal margin", "gru after", "peephole full", "all at once"])
def test_what_each_step_adds_sums_to_the_gradient(name: str) -> None:
    torch.manual_seed(1)
    rnn = model(EVERY.get(name, name)).eval()
    x = batch([5, 3, 0])
    aim = torch.randn(3, 5, 4).double()
    (rnn(x)[0].values * aim).sum().backward()
    watch = Watch(rnn)
    [flow] = flows((watch.model(x)[0].values * aim).sum(), watch.seen())
    each = [flow.weights(k) for k in range(5)]
    expected = dict(rnn.cells[0][0].named_parameters())  # type: ignore[index]
    assert set(each[0]) == set(expected)
    for key, parameter in expected.items():
        total = sum(step[key] for step in each)
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert torch.allclose(torch.as_tensor(total), gradient, rtol=1e-10, atol=1e-10), key
        norms = flow.weight_norms()[key]
        assert torch.allclose(norms, torch.stack([step[key].norm() for step in each]))


def test_the_watched_copy_gives_what_the_model_gives_and_leaves_it_alone() -> None:
    rnn = model("lstm", 3, [4, 5], bidirectional=True, skip="none").eval()
    x = batch([5, 3])
    watch = Watch(rnn)
    (outputs, states), (expected, others) = watch.model(x), rnn(x)
    assert torch.allclose(outputs.values, expected.values, atol=1e-14)
    assert torch.allclose(states[1][1].c, others[1][1].c, atol=1e-14)
    assert rnn.engine == "auto"
    assert type(rnn.cells[0][0]).__name__ == "LSTM"  # type: ignore[index]
    assert [seen.title for seen in watch.seen()] == [
        *("the stack, layer 1", "the stack, layer 1, backward", "the stack, layer 2", "the stack, layer 2, backward")
    ]
    watch.forget()
    assert watch.seen() == []


def test_gradients_of_states_are_those_of_moving_the_state() -> None:
    torch.manual_seed(4)
    rnn = model("lstm")
    x = batch([4])
    watch = Watch(rnn)
    [flow] = flows(watch.model(x)[0].values.square().sum(), watch.seen())
    cell: AnyCell = rnn.cells[0][0]  # type: ignore[index]
    fixed = cell.fixed(1, x.values)
    for t in range(4):
        _, [[state]] = rnn(Padded.full(x.values[:, : t + 1]))
        h, c = (field.detach().requires_grad_() for field in state)
        # ∂L/∂h_t with c_t held, and ∂L/∂c_t with all that follows from it, h_t too.
        o = rnn.parts(x)[0][0].o[:, t].detach()
        for field, start in (("h", h), ("c", o * c.tanh())):
            now, loss = cell.State(start, c), start.square().sum()
            for k in range(t + 1, 4):
                now = cell.step(cell.project(x.values[:, k], fixed), now, fixed)
                loss = loss + now.h.square().sum()
            [expected] = torch.autograd.grad(loss, h if field == "h" else c)
            assert torch.allclose(flow.states[field][t], expected, atol=1e-12)
            assert flow.norms()[field][0, 3 - t] == pytest.approx(float(expected.norm()))


def test_gates_that_are_shut_or_open_are_counted_on_real_steps_alone() -> None:
    rnn = Recurrent({"name": "lstm", "forget_bias": 6.0}, 2, 3).double()
    [seen] = stack_seen(rnn, Padded(torch.zeros(2, 5, 2), torch.tensor([5, 2])))
    found = {each.name: each for each in saturation(seen)}
    assert (found["f"].kind, found["f"].low, found["f"].high) == ("gate", 0.0, 1.0)
    assert (found["i"].low, found["i"].high, found["i"].mean) == (0.0, 0.0, 0.5)
    assert found["candidate"].kind == "tanh"
    [seen] = stack_seen(Recurrent("elman", 1, 2).double(), Padded.full(torch.full((1, 3, 1), 99.0)))
    [h] = saturation(seen)
    assert (h.name, h.kind) == ("h", "tanh")
    assert h.low + h.high > 0.5
    assert saturation(stack_seen(model(EVERY["elman identity"]), batch([3]))[0]) == []


def test_the_product_of_forget_gates_is_what_is_left_of_the_memory() -> None:
    rnn, x = model("lstm"), batch([5, 3])
    [[parts]] = rnn.parts(x)
    [seen] = stack_seen(rnn, x)
    found = forgotten(seen)
    assert found is not None
    assert torch.allclose(found[0, 3], parts.f[0, 2:].prod(0))
    assert torch.allclose(found[1, 2], parts.f[1, 1:3].prod(0))
    assert bool((found[:, 0] == 1).all())
    assert bool(found[1, 3:].isnan().all())
    assert forgotten(stack_seen(model("gru"), batch([2]))[0]) is None


def test_a_receptive_field_is_what_changing_an_input_changes() -> None:
    torch.manual_seed(5)
    rnn, x = model("gru", layers=2, bidirectional=True), batch([4, 2])
    found = receptive_field(rnn, x)
    for row, length in enumerate([4, 2]):
        values = x.values[row : row + 1, :length].clone()
        jacobian = torch.autograd.functional.jacobian(lambda v: rnn(Padded.full(v))[0].values[0, -1], values)[:, 0]
        assert torch.allclose(found[row, :length], jacobian.square().sum((0, 2)).sqrt())
        assert not found[row, length:].any()
    [seen] = stack_seen(one := model("lstm"), x)
    by_lag = products(seen).inputs.exp()
    assert torch.allclose(by_lag[0].flip(0), receptive_field(one, x)[0])
