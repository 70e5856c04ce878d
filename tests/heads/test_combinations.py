"""Tags of several columns chosen as one, against the equations in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import nn

from recurra import Padded
from recurra.heads import UNLABELLED
from recurra.heads.combinations import Combinations

KNOWN = [(0, 0, 1), (0, 1, 1), (1, 2, 0), (1, 0, 0), (2, 2, 1)]


def readouts(dtype: torch.dtype = torch.float64) -> list[nn.Linear]:
    torch.manual_seed(3)
    return [nn.Linear(4, size).to(dtype) for size in (3, 3, 2)]


def scores(layers: list[nn.Linear], h: torch.Tensor) -> np.ndarray:
    """(K,): Σ_c (W_c h + b_c)[k_c] of each combination."""
    o = [layer.weight.detach().numpy() @ h.numpy() + layer.bias.detach().numpy() for layer in layers]
    return np.array([sum(column[tag] for column, tag in zip(o, tags, strict=True)) for tags in KNOWN])


def test_the_loss_is_that_of_all_combinations_which_agree_with_what_is_known() -> None:
    layers, head = readouts(), Combinations(KNOWN)
    features = Padded(torch.randn(2, 3, 4, dtype=torch.float64), torch.tensor([3, 2]))
    rows = [[(0, 1, 1), (UNLABELLED, 2, UNLABELLED), (1, UNLABELLED, 0)], [(2, 2, 1), (2, 0, 0), (0, 0, 1)]]
    targets = [torch.tensor([[step[c] for step in row] for row in rows]) for c in range(3)]
    expected = []
    for row, (steps, length) in enumerate(zip(rows, (3, 2), strict=True)):
        lost = 0.0
        for t, wanted in enumerate(steps[:length]):
            s = scores(layers, features.values[row, t])
            agrees = [all(w in (UNLABELLED, tag) for w, tag in zip(wanted, tags, strict=True)) for tags in KNOWN]
            if any(agrees):  # (2, 0, 0) never occurs and costs nothing
                lost += np.log(np.exp(s).sum()) - np.log(np.exp(s[agrees]).sum())
        expected.append(lost)
    found = head.loss(layers, features, targets)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-5)
    gradients = torch.autograd.grad(found.sum(), [weight for layer in layers for weight in layer.parameters()])
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_the_best_combination_and_the_probability_of_each_tag_are_those_of_enumeration() -> None:
    layers, head = readouts(), Combinations(KNOWN)
    features = Padded(torch.randn(2, 5, 4, dtype=torch.float64), torch.tensor([5, 3]))
    labels, log_p = head.best(layers, features)
    each = head.probabilities(layers, features)
    for row, length in enumerate((5, 3)):
        total = 0.0
        for t in range(5):
            said = tuple(int(column[row, t]) for column in labels)
            if t >= length:
                assert said == (0, 0, 0)
                assert all(p[row, t].sum() == 0 for p in each)
                continue
            s = scores(layers, features.values[row, t])
            p = np.exp(s) / np.exp(s).sum()
            assert said == KNOWN[int(p.argmax())]
            total += np.log(p.max())
            for c, tag in itertools.product(range(3), range(2)):
                own = sum(p[k] for k, tags in enumerate(KNOWN) if tags[c] == tag)
                np.testing.assert_allclose(each[c][row, t, tag], own, rtol=1e-10)
        np.testing.assert_allclose(log_p[row], total, rtol=1e-10)
