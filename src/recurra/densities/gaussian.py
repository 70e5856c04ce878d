"""Real values with a spread that depends on the step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, special

from recurra.densities.density import Density
from recurra.heads.head import readout
from recurra.padding import longest

WIDEST = 12.0
"""So far from 0 may log σ² be, for values whose own spread is 1: nothing is known better than to 0.0025."""


class Gaussian(Density):
    """A normal distribution for each value, with a mean and a variance of its own at each step.

        μ       = W_μ h + b_μ
        log σ²  = W_σ h + b_σ,                     kept between −12 and 12
        −log p  = ½ (log 2π + log σ² + (x − μ)² / σ²),     summed over the values

    quantile(u) = μ + σ Φ⁻¹(u);  cdf(x) = Φ(z) with z = (x − μ) / σ;  CRPS = σ (z (2 Φ(z) − 1) + 2 φ(z) − 1/√π).

    >>> import torch
    >>> density = Gaussian(3, 1)
    >>> _ = torch.nn.init.zeros_(density.readout.weight)      # the standard normal distribution
    >>> round(density.quantile(torch.randn(3), torch.tensor([0.975])).item(), 2)
    1.96
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.readout = readout(input_size, 2 * size)

    def parts(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the logarithm of the variance."""
        mean, log_variance = self.readout(features).chunk(2, dim=-1)
        return mean, log_variance.clamp(-WIDEST, WIDEST)

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        # Of features in half precision, the squares are still summed in that of the targets.
        mean, log_variance = (part.to(targets.dtype) for part in self.parts(features))
        return 0.5 * (math.log(2 * math.pi) + log_variance + (targets - mean).square() * (-log_variance).exp())

    def mean(self, features: Tensor) -> Tensor:
        return self.parts(features)[0]

    def best(self, features: Tensor) -> Tensor:
        return self.mean(features)

    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        mean, log_variance = self.parts(features)
        return mean + (0.5 * log_variance).exp() * special.ndtri(open_share(share))

    def quantiles(self, features: Tensor, levels: Sequence[float]) -> Tensor:
        mean, log_variance = self.parts(features)
        share = torch.tensor(levels, dtype=longest(mean.device), device=mean.device)
        return mean.unsqueeze(-2) + (0.5 * log_variance).exp().unsqueeze(-2) * special.ndtri(share).to(mean).unsqueeze(
            1
        )

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        mean, log_variance = (part.to(values.dtype) for part in self.parts(features))
        return special.ndtr((values - mean) * (-0.5 * log_variance).exp())

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        mean, log_variance = (part.to(values.dtype) for part in self.parts(features))
        return expected_distance(values - mean, log_variance.exp()) - (0.5 * log_variance).exp() / math.sqrt(math.pi)


def open_share(share: Tensor) -> Tensor:
    """Shares strictly between 0 and 1: a share of 0 is drawn once in some millions, and its quantile is −∞."""
    tiny = 1e-7 if share.itemsize == 4 else 1e-15
    return share.clamp(tiny, 1 - tiny)


def expected_distance(mean: Tensor, variance: Tensor) -> Tensor:
    """E|X| of a normal distribution: μ (2 Φ(μ/σ) − 1) + 2 σ φ(μ/σ).

    >>> import torch
    >>> expected_distance(torch.tensor(0.0), torch.tensor(1.0)).item()       # √(2/π)
    0.79788...
    """
    spread = variance.sqrt()
    z = mean / spread
    density = (-0.5 * z.clamp(-100, 100).square()).exp() / math.sqrt(2 * math.pi)
    return mean * (2 * special.ndtr(z) - 1) + 2 * spread * density
