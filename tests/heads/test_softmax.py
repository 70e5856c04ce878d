"""The softmax of each step, against the formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from recurra import ConfigError, Padded
from recurra.heads import UNLABELLED, Softmax


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_and_the_best_labels_are_those_of_the_equations(smoothing: float) -> None:
    head = Softmax(3, ["P", "Q", "R", "S"], label_smoothing=smoothing).double()
    nn.init.normal_(head.readout.bias)
    features = Padded(torch.randn(2, 4, 3, dtype=torch.float64), torch.tensor([4, 3]))
    targets = torch.tensor([[0, UNLABELLED, 3, 1], [2, 2, UNLABELLED, 0]])
    o = features.values.numpy() @ head.readout.weight.detach().numpy().T + head.readout.bias.detach().numpy()
    p = np.exp(o) / np.exp(o).sum(2, keepdims=True)
    counted = [[(0, 0), (2, 3), (3, 1)], [(0, 2), (1, 2)]]
    expected = [
        sum(-(1 - smoothing) * np.log(p[row, t, y]) - smoothing / 4 * np.log(p[row, t]).sum() for t, y in steps)
        for row, steps in enumerate(counted)
    ]
    np.testing.assert_allclose(head.loss(features, targets).detach(), expected, rtol=1e-12)
    np.testing.assert_allclose(head.probabilities(features)[0], p[0], rtol=1e-12)
    labels, log_p = head.best(features)
    assert labels.tolist() == [p[0].argmax(1).tolist(), [*p[1, :3].argmax(1).tolist(), 0]]
    np.testing.assert_allclose(log_p, [np.log(p[0].max(1)).sum(), np.log(p[1, :3].max(1)).sum()], rtol=1e-12)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_a_smoothing_that_cannot_be_is_refused(smoothing: float) -> None:
    with pytest.raises(ConfigError, match=r"label_smoothing must be at least 0 and below 1, but is"):
        Softmax(2, ["P"], label_smoothing=smoothing)


def test_many_steps_are_chosen_as_few_are() -> None:
    torch.manual_seed(0)
    head = Softmax(3, [str(number) for number in range(3000)])  # so many that steps are taken in parts
    features = Padded(torch.randn(5, 40, 3), torch.tensor([40, 0, 7, 33, 40]))
    labels, log_p = head.best(features)
    for row, length in enumerate([40, 0, 7, 33, 40]):
        scores = head.readout(features.values[row, :length]).double().log_softmax(1)
        assert labels[row].tolist() == [*scores.argmax(1).tolist(), *[0] * (40 - length)]
        assert_close(
            log_p[row].double(), scores.amax(1).sum() if length else torch.zeros(()).double(), rtol=1e-5, atol=1e-4
        )
