"""Normalisation of padded maps: numpy over the real places, running statistics, padding that does not count."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.testing import assert_close

from recurra.encoders.masked_norm import BatchNorm, LayerNorm
from recurra.padding import Grid

SIZES = torch.tensor([[4, 5], [2, 3], [1, 5]])


def drawn(channels: int = 3) -> BatchNorm:
    norm = BatchNorm(channels).double()
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2.0)
        norm.bias.normal_()
    return norm


def test_each_channel_has_the_statistics_of_its_real_places() -> None:
    torch.manual_seed(1)
    norm, x = drawn(), 3 * torch.randn(3, 3, 4, 5, dtype=torch.float64) + 1
    mask = Grid(x, SIZES).mask
    found = norm(x, mask.unsqueeze(1)).detach().movedim(1, 3)[mask].numpy()  # (n, C)
    real = x.movedim(1, 3)[mask].numpy()
    assert len(real) == 4 * 5 + 2 * 3 + 5
    expected = (real - real.mean(0)) / np.sqrt(real.var(0) + 1e-5)
    assert np.allclose(found, expected * norm.weight.detach().numpy() + norm.bias.detach().numpy(), atol=1e-10)
    assert np.allclose(norm.running_mean.numpy(), 0.1 * real.mean(0))
    assert np.allclose(norm.running_variance.numpy(), 0.9 + 0.1 * real.var(0, ddof=1))


def test_where_all_is_real_it_is_torchs_own_with_a_mask_or_without() -> None:
    torch.manual_seed(2)
    ours, theirs = drawn(), nn.BatchNorm2d(3).double()
    theirs.weight, theirs.bias = ours.weight, ours.bias
    masked = BatchNorm(3).double()
    masked.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    all_of_it = torch.ones(2, 1, 4, 5, dtype=torch.bool)
    for _ in range(2):
        expected = theirs(x)
        assert_close(ours(x, None), expected)
        assert_close(masked(x, all_of_it), expected, rtol=0, atol=1e-12)
    for norm in (ours.eval(), masked.eval()):
        assert_close(norm(x, all_of_it), theirs.eval()(x), rtol=0, atol=1e-12)


def test_the_gradient_is_that_of_differences() -> None:
    torch.manual_seed(3)
    norm, x = drawn(2), torch.randn(3, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    mask = Grid(x, SIZES).mask.unsqueeze(1)
    assert torch.autograd.gradcheck(lambda x: norm(x, mask) * mask, x, fast_mode=True)


def test_channels_of_one_value_and_batches_of_padding_alone_stay_finite() -> None:
    norm, x = drawn(), torch.full((2, 3, 2, 2), 7.0, dtype=torch.float64, requires_grad=True)
    for mask in (torch.zeros(2, 1, 2, 2, dtype=torch.bool), torch.eye(2, dtype=torch.bool).expand(2, 1, 2, 2)):
        norm(x, mask).sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()
        assert norm.running_variance.isfinite().all()


def test_a_norm_over_channels_is_each_places_own() -> None:
    torch.manual_seed(4)
    norm, x = LayerNorm(3).double(), torch.randn(2, 3, 4, 5, dtype=torch.float64)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2.0)
        norm.bias.normal_()
    values, gamma, beta = x.numpy(), norm.weight.detach().numpy(), norm.bias.detach().numpy()
    found = norm(x, None).detach().numpy()
    for row, r, c in np.ndindex(2, 4, 5):
        place = values[row, :, r, c]
        expected = gamma * (place - place.mean()) / np.sqrt(place.var() + 1e-5) + beta
        assert np.allclose(found[row, :, r, c], expected, atol=1e-12)
