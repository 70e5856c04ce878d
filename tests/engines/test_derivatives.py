"""Second derivatives and the transforms of torch.func: every engine is right, or refuses in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from recurra import EngineError, Padded, Recurrent
from recurra.engines import ENGINES, Vendor
from recurra.engines.replay import replayable
from tests.variants import model, random_states

# torch's own forward mode scripts a decomposition the first time it is used.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

ZONEOUT = [{"name": "zoneout", "rate": 0.3}]  # draws a mask for every step
MASKED = [{"name": "recurrent_dropout", "rate": 0.4}]  # and this one a mask for the sequence

ON: dict[str, tuple[str, Any]] = {
    "vendor, lstm": ("vendor", "lstm"),
    "vendor, gru": ("vendor", {"name": "gru", "reset": "after"}),
    "vendor, elman": ("vendor", "elman"),
    "planned, lstm": ("planned", "lstm"),
    "planned, gru": ("planned", "gru"),
    "planned, slstm": ("planned", "slstm"),
    "planned, lstm zoneout": ("planned", {"name": "lstm", "wrap": ZONEOUT}),
    "planned, gru masked": ("planned", {"name": "gru", "wrap": MASKED}),
    "scan, min_gru": ("scan", "min_gru"),
    "scan, ind_rnn": ("scan", {"name": "ind_rnn", "activation": "identity"}),
    "scan, min_gru zoneout": ("scan", {"name": "min_gru", "wrap": ZONEOUT}),
    "loop, gru": ("loop", "gru"),
    "auto, gru": ("auto", "gru"),
}
LENGTHS = torch.tensor([6, 2, 4])


def rows() -> Tensor:
    return torch.randn(3, 6, 3, dtype=torch.float64)


def loss(rnn: Recurrent, values: Tensor, *, every: bool = False) -> Tensor:
    torch.manual_seed(5)  # the same masks each time
    outputs, states = rnn(Padded(values, LENGTHS), random_states(rnn, 3), every=every)
    fields = [field for layer in states for state in layer for field in state]
    return outputs.values.sum() + torch.stack([field.square().sum() for field in fields]).sum()


def penalty(rnn: Recurrent, values: Tensor, *, every: bool) -> dict[str, Tensor]:
    """The squares of a loss's gradients by the batch and by a weight, and the gradients of that sum."""
    rnn.zero_grad()
    values = values.detach().requires_grad_()
    weight = next(rnn.parameters())
    first = torch.autograd.grad(loss(rnn, values, every=every), [values, weight], create_graph=True)
    total = first[0].square().sum() + first[1].square().sum()
    total.backward()
    found = {"penalty": total.detach(), "x": values.grad}
    found.update((name, parameter.grad) for name, parameter in rnn.named_parameters())
    return {name: torch.zeros(()) if value is None else value.clone() for name, value in found.items()}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-9, msg=f"{name}: {{}}".format)


@pytest.mark.parametrize("name", ON)
def test_a_gradient_penalty_has_the_gradients_of_the_loop(name: str) -> None:
    engine, spec = ON[name]
    rnn, x = model(spec, 3, 4, layers=2, bidirectional=True), rows()
    for every in (False, True):
        if every and name == "vendor, lstm":
            continue  # torch does not tell every c
        rnn.engine = "loop"
        expected = penalty(rnn, x, every=every)
        assert expected["penalty"] > 1
        rnn.engine = engine
        assert_same(penalty(rnn, x, every=every), expected)


@pytest.mark.parametrize("name", [name for name in ON if "zoneout" not in name])
def test_chunks_that_are_computed_again_have_second_derivatives(name: str) -> None:
    engine, spec = ON[name]
    rnn, x = model(spec, 3, 4, bidirectional=True, engine="loop"), rows()
    expected = penalty(rnn, x, every=False)
    rnn.engine, rnn.recompute = engine, 4
    assert_same(penalty(rnn, x, every=False), expected)


@pytest.mark.parametrize("name", ["planned, lstm zoneout", "scan, min_gru zoneout"])
def test_masks_drawn_for_every_step_are_the_same_in_second_derivatives_of_chunks(name: str) -> None:
    engine, spec = ON[name]
    rnn = model(spec, 3, 2, engine=engine, recompute=2)

    def run(values: Tensor) -> Tensor:
        torch.manual_seed(1)
        return rnn(Padded(values, torch.tensor([3])))[0].values

    assert torch.autograd.gradgradcheck(run, [torch.randn(1, 3, 3, dtype=torch.float64, requires_grad=True)])


@pytest.mark.parametrize("name", ON)
def test_hessian_vector_products_are_those_of_the_loop(name: str) -> None:
    engine, spec = ON[name]
    rnn, x, v = model(spec, 3, 4), rows(), rows()
    found = []
    for rnn.engine in (engine, "loop"):
        found.append(torch.autograd.functional.hvp(lambda values: loss(rnn, values), x, v)[1])
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)
    assert found[0].abs().max() > 0.01


@pytest.mark.parametrize("name", ON)
def test_gradients_in_batches_are_those_one_at_a_time(name: str) -> None:
    engine, spec = ON[name]
    rnn, x = model(spec, 3, 4, bidirectional=True, engine=engine), rows().requires_grad_()
    torch.manual_seed(5)
    outputs = rnn(Padded(x, LENGTHS))[0].values
    several = torch.randn(4, *outputs.shape, dtype=torch.float64)
    sources = [x, *(parameter for parameter in rnn.parameters())]
    found = torch.autograd.grad(outputs, sources, several, retain_graph=True, is_grads_batched=True)
    for number, one in enumerate(several):
        expected = torch.autograd.grad(outputs, sources, one, retain_graph=True)
        for batched, alone in zip(found, expected, strict=True):
            torch.testing.assert_close(batched[number], alone, rtol=1e-9, atol=1e-9)


# Each computes the same in two ways: by a transform of torch.func, and by plain autograd or a loop over rows.

Answer = Callable[[Tensor], Tensor]
TRANSFORMS: dict[str, tuple[Callable[[Answer, Tensor], Any], Callable[[Answer, Tensor], Any]]] = {
    "grad": (
        lambda f, x: torch.func.grad(lambda v: f(v).square().sum())(x),
        lambda f, x: torch.autograd.functional.vjp(f, x, 2 * f(x))[1],
    ),
    "vjp": (
        lambda f, x: torch.func.vjp(f, x)[1](torch.ones_like(f(x)))[0],
        lambda f, x: torch.autograd.functional.vjp(f, x, torch.ones_like(f(x)))[1],
    ),
    "jvp": (
        lambda f, x: torch.func.jvp(f, (x,), (x,))[1],
        lambda f, x: torch.autograd.functional.jvp(f, x, x)[1],
    ),
    "jacrev": (lambda f, x: torch.func.jacrev(f)(x), lambda f, x: torch.autograd.functional.jacobian(f, x)),
    "jacfwd": (lambda f, x: torch.func.jacfwd(f)(x), lambda f, x: torch.autograd.functional.jacobian(f, x)),
    "hessian": (
        lambda f, x: torch.func.hessian(lambda v: f(v).square().sum())(x),
        lambda f, x: torch.autograd.functional.hessian(lambda v: f(v).square().sum(), x),
    ),
    "vmap": (
        lambda f, x: torch.func.vmap(f)(torch.stack([x, 2 * x])),
        lambda f, x: torch.stack([f(x), f(2 * x)]),
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("spec", ["lstm", "gru", "min_gru", {"name": "gru", "reset": "after"}])
@pytest.mark.parametrize("lengths", [[3, 3], [3, 1]], ids=["full", "ragged"])
def test_transforms_of_torch_func_are_right(transform: str, spec: Any, lengths: list[int]) -> None:
    rnn = model(spec, 2, 3, bidirectional=True)
    x = torch.randn(2, 3, 2, dtype=torch.float64)
    transformed, plain = TRANSFORMS[transform]

    def answer(values: Tensor) -> Tensor:
        return rnn(Padded(values, torch.tensor(lengths)))[0].values

    found = transformed(answer, x)
    rnn.engine = "loop"
    torch.testing.assert_close(found, plain(answer, x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES if engine.name != "loop"])
def test_an_engine_that_is_asked_for_refuses_to_be_transformed(engine: str, transform: str) -> None:
    rnn = model({"scan": "min_gru", "planned": "gru"}.get(engine, "lstm"), 2, 3, engine=engine)

    def answer(values: Tensor) -> Tensor:
        return rnn(Padded.full(values))[0].values

    with pytest.raises(EngineError, match=r"torch\.func|forward-mode"), torch.no_grad():
        TRANSFORMS[transform][0](answer, torch.randn(1, 3, 2, dtype=torch.float64))


def test_without_gradients_a_row_can_be_mapped_too() -> None:
    rnn = model("lstm", 2, 3, layers=2)
    x = torch.randn(4, 1, 5, 2, dtype=torch.float64)
    with torch.no_grad():
        found = torch.func.vmap(lambda row: rnn(Padded.full(row))[0].values)(x)
        torch.testing.assert_close(found, torch.stack([rnn(Padded.full(row))[0].values for row in x]))


def test_a_gradient_by_parameters_is_a_function_of_them() -> None:
    rnn, x = model("gru", 3, 4), Padded(rows(), LENGTHS)

    def total(parameters: dict[str, Tensor]) -> Tensor:
        outputs, _ = torch.func.functional_call(rnn, parameters, (x,))
        squares: Tensor = outputs.values.square().sum()
        return squares

    found = torch.func.grad(total)({name: parameter.detach() for name, parameter in rnn.named_parameters()})
    rnn(x)[0].values.square().sum().backward()
    for name, parameter in rnn.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("spec", ["lstm", {"name": "gru", "reset": "after"}])
def test_kernels_without_second_derivatives_are_lent_those_of_the_loop(spec: Any, backward: bool, every: bool) -> None:
    """As cuDNN's are; here with kernels of the CPU, which have their own to compare with."""
    if every and spec == "lstm":
        return
    rnn, x = model(spec, 3, 4), rows().requires_grad_()
    [reader] = rnn._readers(0, random_states(rnn, 3), rnn.fixed(3))
    reader = reader._replace(backward=backward)
    sources = [x, *rnn.parameters()]
    found = []
    for lent in (False, True):
        [reading] = Vendor().run([reader], Padded(x, LENGTHS).zeroed(), every)
        reading = replayable(reading, reader, Padded(x, LENGTHS).zeroed(), every) if lent else reading
        total = reading.outputs.square().sum() + reading.states[-1].sum()
        first = torch.autograd.grad(total, sources, retain_graph=True)
        again = torch.autograd.grad(total, sources, create_graph=True)
        second = torch.autograd.grad(again[0].square().sum() + again[1].square().sum(), sources)
        found.append([total, *first, *again, *second])
    for ours, torchs in zip(*found, strict=True):
        torch.testing.assert_close(ours, torchs, rtol=1e-9, atol=1e-9)
