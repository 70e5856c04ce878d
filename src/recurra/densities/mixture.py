"""Real values with several places where they may lie: mixtures of normal distributions."""

from __future__ import annotations

import math

import torch
from torch import Tensor, special

from recurra.cells.weights import check_size
from recurra.densities.density import Density
from recurra.densities.gaussian import WIDEST, expected_distance, open_share
from recurra.heads.head import readout

HALVINGS = 60
"""Of an interval in which a quantile lies; with fewer bits, fewer change anything."""

FARTHEST = 1e9
"""Standard deviations from a mean, beyond which it makes no difference how far."""


class Mixture(Density):
    """K normal distributions for each value, and how much each weighs at this step (Bishop 1994).

        log w    = log_softmax(W_w h + b_w)
        μ_i      = W_μi h + b_μi
        log σ_i² = W_σi h + b_σi,                  kept between −12 and 12
        −log p   = −log Σ_i w_i N(x; μ_i, σ_i²),   summed over the values

    The answer is the mean, Σ_i w_i μ_i. cdf(x) = Σ_i w_i Φ((x − μ_i)/σ_i); a quantile is found between the smallest and
    the largest of the components. With A(μ, σ²) = E|X| of a normal distribution (Grimit et al. 2006),

        CRPS = Σ_i w_i A(x − μ_i, σ_i²) − ½ Σ_ij w_i w_j A(μ_i − μ_j, σ_i² + σ_j²)

    The K means begin at places of their own, spread over the standard normal distribution.

    >>> density = Mixture(3, 1, count=2)
    >>> _ = torch.nn.init.zeros_(density.readout.weight)
    >>> round(density.mean(torch.randn(3)).item(), 6)
    0.0
    """

    def __init__(self, input_size: int, size: int, *, count: int = 3) -> None:
        super().__init__(input_size, size)
        self.count = check_size(count, "count")
        self.readout = readout(input_size, 3 * size * count)
        with torch.no_grad():
            places = special.ndtri((torch.arange(count) + 0.5) / count)
            self.readout.bias.view(3, size, count)[1] = places

    def parts(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(..., d, K) each: log w, μ, log σ²."""
        found: Tensor = self.readout(features).unflatten(-1, (3, self.size, self.count))
        weights, means, log_variances = found.unbind(-3)
        return weights.log_softmax(-1), means, log_variances.clamp(-WIDEST, WIDEST)

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        log_w, means, log_variances = (part.to(targets.dtype) for part in self.parts(features))
        z = (targets.unsqueeze(-1) - means) * (-0.5 * log_variances).exp()
        # Where every component is so far away that the square overflows, the sum would be log 0.
        squares = z.clamp(-FARTHEST, FARTHEST).square()
        return -(log_w - 0.5 * (math.log(2 * math.pi) + log_variances + squares)).logsumexp(-1)

    def mean(self, features: Tensor) -> Tensor:
        log_w, means, _ = self.parts(features)
        return (log_w.exp() * means).sum(-1)

    def best(self, features: Tensor) -> Tensor:
        return self.mean(features)

    def searched(self, features: Tensor) -> dict[str, Tensor]:
        return dict(zip(("log_weights", "centres", "log_squares"), self.parts(features), strict=True))

    @torch.no_grad()
    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        log_w, means, log_variances = self.parts(features)
        spreads, weights = (0.5 * log_variances).exp(), log_w.exp()
        share = open_share(share)
        each = means + spreads * special.ndtri(share).unsqueeze(-1)
        low, high = each.amin(-1), each.amax(-1)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            is_below = (weights * special.ndtr((middle.unsqueeze(-1) - means) / spreads)).sum(-1) < share
            low, high = middle.where(is_below, low), high.where(is_below, middle)
            if bool((high - low <= torch.finfo(low.dtype).eps * (1 + high.abs())).all()):
                break
        return 0.5 * (low + high)

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        log_w, means, log_variances = (part.to(values.dtype) for part in self.parts(features))
        z = (values.unsqueeze(-1) - means) * (-0.5 * log_variances).exp()
        return (log_w.exp() * special.ndtr(z)).sum(-1)

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        log_w, means, log_variances = (part.to(values.dtype) for part in self.parts(features))
        weights, variances = log_w.exp(), log_variances.exp()
        to_value = (weights * expected_distance(values.unsqueeze(-1) - means, variances)).sum(-1)
        pairs = expected_distance(
            means.unsqueeze(-1) - means.unsqueeze(-2), variances.unsqueeze(-1) + variances.unsqueeze(-2)
        )
        return to_value - 0.5 * (weights.unsqueeze(-1) * weights.unsqueeze(-2) * pairs).sum((-2, -1))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, count={self.count}"
