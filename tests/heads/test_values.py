"""Values per step, against the formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from recurra import ConfigError, DataError, Padded
from recurra.heads import Value


def test_the_loss_is_the_squared_error_of_real_steps() -> None:
    head = Value(3, 2).double()
    nn.init.normal_(head.readout.bias)
    values = torch.randn(3, 4, 3, dtype=torch.float64)
    values[1, 2:] = torch.nan
    targets = torch.randn(3, 4, 2, dtype=torch.float64)
    targets[1, 2:] = torch.nan
    features = Padded(values, torch.tensor([4, 2, 0]))
    o = values.numpy() @ head.readout.weight.detach().numpy().T + head.readout.bias.detach().numpy()
    errors = np.square(o - targets.numpy())
    costs = head.loss(features, targets)
    np.testing.assert_allclose(costs.detach(), [errors[0].sum(), errors[1, :2].sum(), 0], rtol=1e-12)
    said = head.best(features).detach()
    np.testing.assert_allclose(said[0], o[0], rtol=1e-12)
    assert said[1, 2:].tolist() == [[0, 0], [0, 0]]
    costs.sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in head.parameters())


def test_sizes_and_targets_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="size must be a whole number of at least 1, but is 0"):
        Value(3, 0)
    features = Padded.full(torch.zeros(1, 4, 3))
    wrong: list[Any] = [torch.zeros(1, 4), [0.0]]
    for targets in wrong:
        with pytest.raises(DataError, match=r"targets must be a tensor of shape \(1, 4, 2\), but found"):
            Value(3, 2).loss(features, targets)
    with pytest.raises(DataError, match=r"features must have shape \(rows, steps, 3\)"):
        Value(3, 2).best(Padded.full(torch.zeros(1, 4, 2)))
    assert repr(Value(3, 2)).startswith("Value(\n  3, 2\n")
