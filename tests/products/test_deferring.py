"""Gradients that wait for the end of a loop are those of the plain loop."""

from __future__ import annotations

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


def test_without_gradients_and_under_autocast_nothing_is_put_off() -> None:
    layer = nn.Linear(3, 2)
    with torch.no_grad(), deferring(layer):
        assert not isinstance(layer.weight, Deferred)
    with torch.autocast("cpu", torch.bfloat16), deferring(layer):
        assert not isinstance(layer.weight, Deferred)
