"""Counts that vary more than those of independent events: sales, visits, cases."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from recurra.densities.counting import Counting
from recurra.densities.incomplete_beta import incomplete_beta
from recurra.heads.head import readout
from recurra.padding import lengthened

WIDEST = 12.0
"""So far from 0 may log r be."""


class NegativeBinomial(Counting):
    """A mean and a shape of its own for each value at each step; the smaller the shape r, the wider.

        m       = s (softplus(W_m h + b_m + a) + 10⁻⁶),   s the unit of the column or series, a of a base, else 0
        log r   = W_r h + b_r,                            kept between −12 and 12
        p       = r / (r + m)
        −log p  = log Γ(r) + log k! − log Γ(k + r) + r log(1 + m/r) + k log(1 + r/m),    summed over the values

    It is a Poisson distribution whose rate is drawn from a gamma distribution: the mean is m, the variance m + m²/r.
    cdf(k) = I_p(r, k + 1), the regularised incomplete beta function; with F_r the cdf of shape r (Wei & Held 2014),

        CRPS = k (2 F_r(k) − 1) − m/p (p (2 F_{r+1}(k − 1) − 1) + ₂F₁(r + 1, ½; 2; −4 (1 − p)/p²))

    >>> density = NegativeBinomial(3, 1)
    >>> _ = torch.nn.init.zeros_(density.readout.weight)      # r = 1: P(K = 0) = 1 / (1 + log 2)
    >>> round(density.cdf(torch.randn(3), torch.tensor([0.0])).item(), 4)
    0.5906
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.readout = readout(input_size, 2 * size)

    def parts(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the shape."""
        h, start, unit = self.parted(features)
        mean, log_shape = lengthened(self.readout(h)).chunk(2, dim=-1)
        return self.mean_of(mean, start, unit), log_shape.clamp(-WIDEST, WIDEST).exp()

    def searched(self, features: Tensor) -> dict[str, Tensor]:
        mean, shape = self.parts(features)
        return {"rate": mean / self.parted(features)[2], "shape": shape}

    def spread(self, *parts: Tensor) -> Tensor:
        m, r = parts
        return (m + m.square() / r).sqrt()

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        m, r = self.parts(features)
        return _cost(self.counts_of(features, targets), m, r).to(targets.dtype)

    def below(self, counts: Tensor, *parts: Tensor) -> Tensor:
        return _below(counts, *parts)

    @torch.no_grad()
    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        (m, r), k = self.parts(features), self.counts_of(features, values)
        # F of shape r + 1 at the same p, whose mean is m (r + 1)/r.
        later = _below(k.floor() - 1, m * (r + 1) / r, r + 1)
        p = r / (r + m)
        found = k * (2 * _below(k.floor(), m, r) - 1) - m * (2 * later - 1) - m / p * _hypergeometric(r, m)
        return (found / self.parted(features)[2]).to(values.dtype)


def _cost(k: Tensor, m: Tensor, r: Tensor) -> Tensor:
    ways = torch.lgamma(r) + torch.lgamma(k + 1) - torch.lgamma(k + r)
    return ways + r * torch.log1p(m / r) + k * torch.log1p(r / m)


def _below(counts: Tensor, m: Tensor, r: Tensor) -> Tensor:
    found = incomplete_beta(r, counts.clamp_min(0) + 1, r / (r + m), m / (r + m))
    return found.masked_fill(counts < 0, 0.0)


STEP, FARTHEST = 0.04, 4.0
"""Of the quadrature below: between two points, and from the middle to the last."""


def _hypergeometric(r: Tensor, m: Tensor) -> Tensor:
    """₂F₁(r + 1, ½; 2; −4 (1 − p)/p²) by Euler's integral.

    With A = 1 + 4 (1 − p)/p² and v = √A tan of its angle, it is

        4 / (π √A) ∫_0^∞ (1 + v²/A)^(r−1) (1 + v²)^(−(r+1)) dv,

    summed at v = exp(π/2 sinh τ), where the trapezoidal rule converges exponentially, for any A and r.
    """
    q = m / (r + m)
    A = 1 + 4 * q * ((r + m) / r).square()
    tau = torch.arange(-FARTHEST, FARTHEST + STEP / 2, STEP, dtype=m.dtype, device=m.device)
    log_v = 0.5 * math.pi * torch.sinh(tau)
    A, r = A.unsqueeze(-1), r.unsqueeze(-1)
    log_square = 2 * log_v
    higher = (r - 1) * functional.softplus(log_square - A.log()) - (r + 1) * functional.softplus(log_square)
    terms = (higher + log_v).exp() * (0.5 * math.pi * torch.cosh(tau))
    found: Tensor = 4 / (math.pi * A.squeeze(-1).sqrt()) * STEP * terms.sum(-1)
    return found
