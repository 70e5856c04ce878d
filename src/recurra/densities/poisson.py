"""Counts of events that come independently of each other."""

from __future__ import annotations

import torch
from torch import Tensor, special

from recurra.densities.counting import Counting
from recurra.heads.head import readout


class Poisson(Counting):
    """A rate of its own for each value at each step.

        λ       = s (softplus(W h + b + a) + 10⁻⁶),      s the unit of the column or series, a of a base, else 0
        −log p  = λ − k log λ + log k!,                   summed over the values

    Mean and variance are λ. cdf(k) = Q(k + 1, λ), the regularised upper incomplete gamma function, and

        CRPS = (k − λ) (2 F(k) − 1) + 2 λ p(k) − λ e^(−2λ) (I_0(2λ) + I_1(2λ)),      I the modified Bessel functions

    >>> density = Poisson(3, 1)
    >>> _ = torch.nn.init.zeros_(density.readout.weight)      # a rate of log 2: none in half of the cases
    >>> round(density.cdf(torch.randn(3), torch.tensor([0.0])).item(), 4)
    0.5
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.readout = readout(input_size, size)

    def parts(self, features: Tensor) -> tuple[Tensor, ...]:
        h, start, unit = self.parted(features)
        return (self.mean_of(self.readout(h), start, unit),)

    def searched(self, features: Tensor) -> dict[str, Tensor]:
        return {"rate": self.rate(features) / self.parted(features)[2]}

    def spread(self, *parts: Tensor) -> Tensor:
        return parts[0].sqrt()

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        rate, k = self.rate(features), self.counts_of(features, targets)
        return (rate - k * rate.log() + torch.lgamma(k + 1)).to(targets.dtype)

    def below(self, counts: Tensor, *parts: Tensor) -> Tensor:
        found = special.gammaincc(counts.clamp_min(0) + 1, parts[0])
        return found.masked_fill(counts < 0, 0.0)

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        rate, k = self.rate(features), self.counts_of(features, values)
        below = self.counts_below(features, k.floor())
        p = (k.floor() * rate.log() - rate - torch.lgamma(k.floor() + 1)).exp()
        bessel = special.i0e(2 * rate) + special.i1e(2 * rate)
        score = (k - rate) * (2 * below - 1) + 2 * rate * p - rate * bessel
        return (score / self.parted(features)[2]).to(values.dtype)
