"""Positive values whose logarithm is normal: prices, incomes, rates of flow."""

from __future__ import annotations

import math

import torch
from torch import Tensor, special

from recurra.densities.density import Density
from recurra.densities.gaussian import WIDEST, open_share
from recurra.heads.head import readout

FARTHEST = 30.0
"""So far from 0 may μ be, for values that are 1 on average."""

LARGEST = 3.0
"""log σ², at most: with more, the mean would be beyond any number."""

LEAST_BASE = 0.01
"""The smallest base, for values that are 1 on average."""

SMALLEST = 1e-30
"""Stands for a value of 0, which has no logarithm."""


class LogNormal(Density):
    """log x is normal, with a mean and a variance of its own at each step.

        μ       = W_μ h + b_μ + log max(a, 0.01),  kept between −30 and 30; a is a base, or else 1
        log σ²  = W_σ h + b_σ,                     kept between −12 and 3
        z       = (log x − μ) / σ
        −log p  = ½ (log 2π + log σ² + z²) + log x,     summed over the values

    The mean is exp(μ + σ²/2); the answer is the median, exp(μ). cdf(x) = Φ(z), quantile(u) = exp(μ + σ Φ⁻¹(u)), and

        CRPS = x (2 Φ(z) − 1) − 2 exp(μ + σ²/2) (Φ(z − σ) + Φ(σ/√2) − 1)

    >>> import torch
    >>> density = LogNormal(3, 1)
    >>> _ = torch.nn.init.zeros_(density.readout.weight)
    >>> density.mean(torch.randn(3)).item(), density.best(torch.randn(3)).item()       # e^½ and e^0
    (1.6487..., 1.0)
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.readout = readout(input_size, 2 * size)

    def with_base(self, features: Tensor, base: Tensor) -> tuple[Tensor, Tensor | float]:
        """Features with the logarithm of the base behind them: the median starts there, and stays above 0."""
        return torch.cat([features, base.clamp_min(LEAST_BASE).log().to(features.dtype)], dim=-1), 0.0

    def parts(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The mean of log x and the logarithm of its variance."""
        h, start = features[..., : self.input_size], features[..., self.input_size :]
        mean, log_variance = self.readout(h).chunk(2, dim=-1)
        if start.shape[-1]:
            mean = mean + start
        return mean.clamp(-FARTHEST, FARTHEST), log_variance.clamp(-WIDEST, LARGEST)

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        mean, log_variance = (part.to(targets.dtype) for part in self.parts(features))
        log_x = targets.clamp_min(SMALLEST).log()
        return 0.5 * (math.log(2 * math.pi) + log_variance + (log_x - mean).square() * (-log_variance).exp()) + log_x

    def mean(self, features: Tensor) -> Tensor:
        mean, log_variance = self.parts(features)
        return (mean + 0.5 * log_variance.exp()).exp()

    def best(self, features: Tensor) -> Tensor:
        return self.parts(features)[0].exp()

    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        mean, log_variance = self.parts(features)
        return (mean + (0.5 * log_variance).exp() * special.ndtri(open_share(share))).exp()

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        return special.ndtr(self._standard(features, values)[0])

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        z, mean, spread = self._standard(features, values)
        expected = (mean + 0.5 * spread.square()).exp()
        above = special.ndtr(z - spread) - special.ndtr(-spread / math.sqrt(2))
        return values * (2 * special.ndtr(z) - 1) - 2 * expected * above

    def _standard(self, features: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """z, μ and σ."""
        mean, log_variance = (part.to(values.dtype) for part in self.parts(features))
        spread = (0.5 * log_variance).exp()
        return (values.clamp_min(SMALLEST).log() - mean) / spread, mean, spread
