"""Gradients that wait for the end of a loop are those of the plain loop."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from recurra.config import Seq2SeqModel
from recurra.models.seq2seq import PairBatch, SequenceToSequence, Sizes
from recurra.padding import Padded
from recurra.products.deferring import Deferred, deferring


def pairs() -> PairBatch:
    source = Padded(torch.randint(0, 9, (3, 4)), torch.tensor([4, 2, 1]))
    return PairBatch(source, Padded(torch.randint(0, 8, (3, 5)), torch.tensor([5, 3, 1])), None)


@pytest.mark.parametrize("wiring", ["feeding", "inside", "conditional"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "peephole_lstm", "layer_norm_lstm"])
@pytest.mark.parametrize("layers", [1, 2])
def test_training_has_the_gradients_of_the_plain_loop(wiring: str, cell: str, layers: int) -> None:
    torch.manual_seed(0)
    settings = Seq2SeqModel(
        embedding=5,
        hidden=6,
        layers=layers,
        cell=cell,
        wiring=wiring,
        attention={"name": "additive", "terms": ["monotonic"]},
        dropout=0.0,
        label_smoothing=0.0,
        engine="loop",
    )
    model, batch = SequenceToSequence(settings, Sizes(9, 8, None, 0, 1)).double(), pairs()

    def found() -> list[Tensor]:
        loss = model.loss(batch)
        return [loss, *torch.autograd.grad(loss, list(model.parameters()))]

    plain = (model.eval(), found())[1]  # in evaluation the loop runs as it is written
    waited = (model.train(), found())[1]
    assert_close(waited, plain, atol=1e-12, rtol=1e-12)


def test_a_matrix_that_is_also_used_otherwise_gets_all_of_its_gradient() -> None:
    layer, x = nn.Linear(3, 2).double(), torch.randn(4, 3, dtype=torch.float64)

    def used() -> Tensor:
        return (layer(x).tanh() + layer(3 * x)).sum() + layer.weight.square().sum() + layer(x.view(2, 2, 3)).sum()

    plain = torch.autograd.grad(used(), [layer.weight, layer.bias])
    with deferring(layer):
        value = used()
    assert_close(torch.autograd.grad(value, [layer.weight, layer.bias]), plain)


def test_a_loop_that_was_gone_through_twice_forgets_nothing_and_keeps_nothing() -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3)
    with deferring(layer):
        value = (layer(x) * layer(2 * x)).sum()
    first = torch.autograd.grad(value, layer.weight, retain_graph=True)[0]
    assert_close(torch.autograd.grad(value, layer.weight)[0], first)


def test_a_gradient_that_passes_the_weights_by_leaves_nothing_behind() -> None:
    layer, x = nn.Linear(3, 2), torch.randn(4, 3, requires_grad=True)
    with deferring(layer):
        value = layer(x).square().sum()
    torch.autograd.grad(value, x, retain_graph=True)
    assert_close(
        torch.autograd.grad(value, layer.weight)[0], torch.autograd.grad(layer(x).square().sum(), layer.weight)[0]
    )


def test_weights_are_what_they_were_afterwards_also_after_an_error() -> None:
    first, second = nn.Linear(3, 2), nn.Linear(2, 2)
    layers = nn.Sequential(first, second)
    second.weight.requires_grad_(False)
    before = [(name, id(weight)) for name, weight in layers.named_parameters()]
    with pytest.raises(RuntimeError, match="on the way"), deferring(layers):  # noqa: PT012
        assert isinstance(first.weight, Deferred)
        assert not isinstance(second.weight, Deferred)  # nobody asks for its gradient
        raise RuntimeError("on the way")
    assert [(name, id(weight)) for name, weight in layers.named_parameters()] == before


def test_without_gradients_and_inside_torch_func_nothing_is_put_off() -> None:
    layer = nn.Linear(3, 2)
    with torch.no_grad(), deferring(layer):
        assert not isinstance(layer.weight, Deferred)

    def total(x: Tensor) -> Tensor:
        with deferring(layer):
            assert not isinstance(layer.weight, Deferred)
            return layer(x).square().sum()

    x = torch.randn(4, 3)
    assert_close(torch.func.grad(total)(x), 2 * layer(x) @ layer.weight)


def steps(layer: nn.Linear, x: Tensor, count: int = 6) -> Tensor:
    """A small recurrent network."""
    h = x
    for _ in range(count):
        h = torch.tanh(layer(h)) + x
    return h


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_gradients_are_put_off_and_as_good_as_those_of_the_plain_loop(
    dtype: torch.dtype, bias: bool
) -> None:
    layer, x = nn.Linear(8, 8, bias=bias), torch.randn(16, 8, requires_grad=True)
    sources = [x, *layer.parameters()]
    exact = torch.autograd.grad(steps(layer, x).square().sum(), sources)
    with torch.autocast("cpu", dtype):
        plain = steps(layer, x)
        with deferring(layer):
            assert isinstance(layer.weight, Deferred)
            waited = steps(layer, x)
    assert waited.dtype == plain.dtype
    assert_close(waited, plain, rtol=0, atol=0.02)
    found = torch.autograd.grad(waited.float().square().sum(), sources)
    usual = torch.autograd.grad(plain.float().square().sum(), sources)
    for ours, theirs, truth in zip(found, usual, exact, strict=True):
        assert ours.dtype == torch.float32
        # Each product is rounded to 16 bits either way; adding all steps up at once does not round the sums between.
        assert (ours - truth).norm() <= 1.5 * (theirs - truth).norm() + 1e-3 * truth.norm()
        assert (ours - truth).norm() < 0.05 * truth.norm()


def test_under_autocast_a_matrix_is_cast_once_and_double_numbers_are_left_alone() -> None:
    layer, x = nn.Linear(3, 3), torch.randn(4, 3)
    with torch.autocast("cpu", torch.bfloat16), deferring(layer):
        weight: Any = layer.weight
        assert layer(x).dtype == torch.bfloat16
        lowered = weight.lowered[torch.bfloat16]
        layer(x)
        assert weight.lowered[torch.bfloat16] is lowered
        with torch.autocast("cpu", enabled=False):
            assert layer(x).dtype == torch.float32
    double = layer.double()
    with torch.autocast("cpu", torch.bfloat16), deferring(double):
        assert double(x.double()).dtype == torch.float64


@pytest.mark.parametrize("wiring", ["feeding", "inside"])
def test_training_under_autocast_is_as_exact_as_the_plain_loop(wiring: str) -> None:
    torch.manual_seed(0)
    settings = Seq2SeqModel(
        embedding=5, hidden=6, cell="gru", wiring=wiring, dropout=0.0, label_smoothing=0.0, engine="loop"
    )
    model, batch = SequenceToSequence(settings, Sizes(9, 8, None, 0, 1)), pairs()

    def found(autocast: bool) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, autocast):
            loss = model.loss(batch)
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])

    exact = (model.eval(), found(False))[1]
    plain = (model.eval(), found(True))[1]
    waited = (model.train(), found(True))[1]
    assert (waited - exact).norm() <= 1.2 * (plain - exact).norm()
    assert (waited - exact).norm() < 0.1 * exact.norm()


@pytest.mark.parametrize("autocast", [False, True])
def test_second_derivatives_are_those_of_the_plain_loop(autocast: bool) -> None:
    dtype = torch.float32 if autocast else torch.float64
    layer, x = nn.Linear(4, 4).to(dtype), torch.randn(5, 4, dtype=dtype, requires_grad=True)
    sources = [x, *layer.parameters()]

    def penalty(is_deferred: bool) -> list[Tensor]:
        with torch.autocast("cpu", torch.bfloat16, autocast), deferring(layer if is_deferred else None):
            y = steps(layer, x)
        first = torch.autograd.grad(y.float().sum() if autocast else y.sum(), sources, create_graph=True)
        return list(torch.autograd.grad(torch.stack([g.square().sum() for g in first]).sum(), sources))

    tolerance = 0.1 if autocast else 1e-10
    for ours, plain in zip(penalty(True), penalty(False), strict=True):
        assert (ours - plain).norm() <= tolerance * plain.norm()
