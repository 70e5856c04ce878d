"""Normalisation of maps of features in which some places are padding."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

MOMENTUM = 0.1
"""So much of the running statistics is of the newest batch."""

EPSILON = 1e-5


@final
class BatchNorm(nn.Module):
    """Each channel with mean 0 and variance 1 over the n real places of a batch (Ioffe & Szegedy 2015).

        m = (1/n) Σ_i x_i                            in training; else the running mean of m
        v = (1/n) Σ_i (x_i − m)²                     in training; else the running mean of n/(n−1) v
        y_i = γ (x_i − m) / √(v + ε) + β

    So a picture's features are its own in evaluation, and no padding is counted in training.

    x is (B, C, H, W), the mask (B, 1, H, W), None where all is real; what comes out behind the mask has no meaning.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_variance", torch.ones(channels))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if self.training and mask is not None:
            return self._over_real_places(x, mask)
        running = (self.running_mean, self.running_variance)
        return functional.batch_norm(x, *running, self.weight, self.bias, self.training, MOMENTUM, EPSILON)

    def _over_real_places(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x * mask.to(x.dtype)
        exact = self.weight.dtype  # in half precision, a sum would soon stand still
        n = mask.sum().clamp_min(1).to(exact)
        mean = x.sum((0, 2, 3), dtype=exact) / n
        squares = torch.linalg.vector_norm(x, dim=(0, 2, 3), dtype=exact).square() / n
        variance = (squares - mean.square()).clamp_min(0)
        with torch.no_grad():
            self.running_mean.lerp_(mean, MOMENTUM)
            self.running_variance.lerp_(variance * (n / (n - 1).clamp_min(1)), MOMENTUM)
        scale = self.weight * (variance + EPSILON).rsqrt()
        shift = self.bias - mean * scale
        return torch.addcmul(shift.to(x.dtype)[:, None, None], x, scale.to(x.dtype)[:, None, None])


@final
class LayerNorm(nn.Module):
    """Each place with mean 0 and variance 1 over its channels (Ba et al. 2016): a picture's own, also in training.

    y_c = γ_c (x_c − m) / √(v + ε) + β_c         m, v: mean and variance of x_1 … x_C
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        y = functional.layer_norm(x.permute(0, 2, 3, 1), self.weight.shape, self.weight, self.bias, EPSILON)
        return y.permute(0, 3, 1, 2)
