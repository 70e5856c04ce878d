"""The first value that is not finite is traced to its layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from recurra.training.guard import culprit


class Root(nn.Module):
    """√x: finite at 0, its gradient not."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sqrt()


def test_a_layer_whose_output_is_not_finite_is_named() -> None:
    model = nn.Sequential(nn.Identity(), Root(), nn.ReLU())
    said = culprit(model, lambda: model(torch.tensor([-1.0])).sum())
    assert said == "the first non-finite value is in the output of layer '1'"


def test_a_gradient_that_is_not_finite_is_named() -> None:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(layer.weight)
    model = nn.Sequential(layer, Root())
    said = culprit(model, lambda: model(torch.ones(1, 1)).sum())
    assert said == "the loss is finite, but the gradient of layer '0' is not"


def test_a_loss_that_layers_do_not_explain_is_said_to_be_that() -> None:
    model = nn.Sequential(nn.Linear(1, 1))
    said = culprit(model, lambda: model(torch.ones(1, 1)).sum() * torch.inf)
    assert said == "the outputs of all layers are finite, but the loss is not"


def test_a_step_that_is_well_the_second_time_is_said_to_be_well() -> None:
    model = nn.Sequential(nn.Linear(1, 1))
    assert culprit(model, lambda: model(torch.ones(1, 1)).sum()) == "it was finite when the step was run again"
