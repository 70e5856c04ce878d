"""Quantiles by themselves, without a form of the distribution (Koenker & Bassett 1978; Wen et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from recurra.densities.density import Density
from recurra.errors import ConfigError
from recurra.heads.head import readout

LEVELS = tuple(step / 20 for step in range(1, 20))
"""0.05, 0.10, … 0.95."""

MANY, PIECE = 1 << 20, 1 << 16
"""So many numbers o are not made at once on the CPU, but a piece of them at a time, which its caches hold."""


class _PinballLoss(torch.autograd.Function):
    """The loss of quantiles given by their steps, with its gradient: few passes over the levels, which are many.

    max(u a, (u − 1) a) = u a + max(−a, 0),     a = x − q
    ∂loss/∂q_i = 2/L (1{x < q_i} − u_i),     ∂q_k/∂o_i = softplus'(o_i) for k ≥ i, 1 for i = 1
    """

    @staticmethod
    def forward(ctx: Any, o: Tensor, targets: Tensor, levels: Tensor) -> Tensor:
        steps = functional.softplus(o)
        steps[..., 0] = o[..., 0]
        apart = targets.unsqueeze(-1) - steps.cumsum(-1)
        ctx.save_for_backward(o, apart, levels)
        return (apart @ levels + apart.neg().clamp_min_(0).sum(-1)) * (2 / len(levels))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        o, apart, levels = ctx.saved_tensors
        slopes = ((apart < 0).to(o.dtype) - levels).mul_(gradient.unsqueeze(-1)).mul_(2 / len(levels))
        later = slopes @ torch.ones(len(levels), len(levels), dtype=o.dtype, device=o.device).tril()  # Σ_{k ≥ i}
        first = later[..., 0].clone()
        found = later.mul_(o.sigmoid())
        found[..., 0] = first
        return found, first.neg(), None


class _InPieces(torch.autograd.Function):
    """The same loss of o = W h + b for many h: a few at a time, each multiplied again for the gradient.

    Tables of all o, of N values at L levels, would be written to memory and read again about fifteen times. Quantiles
    ascend, so that of each value only the number n of quantiles up to it is kept:

        Σ_{k ≥ i} (1{x < q_k} − u_k) = L − max(n, i − 1) − Σ_{k ≥ i} u_k
    """

    @staticmethod
    def forward(ctx: Any, features: Tensor, targets: Tensor, weight: Tensor, bias: Tensor, levels: Tensor) -> Tensor:
        h, x = features.flatten(0, -2), targets.flatten(0, -2)
        costs, below = torch.empty_like(x), torch.empty_like(x)
        for piece in _pieces(len(h), len(weight)):
            o = _outputs(h[piece], weight, bias, levels)
            steps = functional.softplus(o)
            steps[..., 0] = o[..., 0]
            apart = x[piece].unsqueeze(-1) - steps.cumsum_(-1)
            torch.sum(apart >= 0, -1, out=below[piece])
            found = (apart @ levels).add_(apart.neg_().clamp_min_(0).sum(-1))
            torch.mul(found, 2 / len(levels), out=costs[piece])
        ctx.save_for_backward(features, weight, bias, levels, below)
        return costs.view(targets.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, bias, levels, below = ctx.saved_tensors
        h, g = features.flatten(0, -2), gradient.flatten(0, -2) * (2 / len(levels))
        of_h, of_x = torch.empty_like(h), torch.empty_like(below)
        of_weight, of_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        number = torch.arange(len(levels), dtype=h.dtype)
        rest = len(levels) - levels.flip(0).cumsum(0).flip(0)
        for piece in _pieces(len(h), len(weight)):
            later = (rest - torch.maximum(number, below[piece].unsqueeze(-1))).mul_(g[piece].unsqueeze(-1))
            torch.neg(first := later[..., 0].clone(), out=of_x[piece])
            later.mul_(_outputs(h[piece], weight, bias, levels).sigmoid_())[..., 0] = first
            later = later.flatten(1)
            torch.mm(later, weight, out=of_h[piece])
            of_weight.addmm_(later.T, h[piece])
            of_bias.add_(later.sum(0))
        return of_h.view(features.shape), of_x.view(gradient.shape), of_weight, of_bias, None


def _pieces(rows: int, numbers: int) -> Iterator[slice]:
    """Rows of so many numbers each that are worked on together."""
    some = max(1, PIECE // numbers)
    return (slice(start, start + some) for start in range(0, rows, some))


def _outputs(h: Tensor, weight: Tensor, bias: Tensor, levels: Tensor) -> Tensor:
    """(N, d, L): o of features (N, F)."""
    return functional.linear(h, weight, bias).unflatten(-1, (-1, len(levels)))


class Quantiles(Density):
    """The quantiles q_1 ≤ … ≤ q_L at the levels u_1 < … < u_L of each value.

        o     = W h + b
        q_1   = o_1,    q_{i+1} = q_i + softplus(o_{i+1})                       so that they never cross
        loss  = 2/L Σ_i max(u_i (x − q_i), (u_i − 1) (x − q_i)),     summed over the values

    The loss, twice the mean pinball loss, tends to the CRPS with more levels, spaced evenly; it is no −log p. Between
    the levels quantile(u) is linear. Beyond the last two tails fall off exponentially, with the density that there is
    between the two nearest levels:

        P(X > x)  = (1 − u_L) exp(−(x − q_L) / β),     β = (1 − u_L) (q_L − q_{L−1}) / (u_L − u_{L−1}),      x > q_L

    and likewise below the first. The mean is that of this quantile function, the answer its median, `cdf` its inverse.

    >>> density = Quantiles(3, 1, levels=[0.1, 0.5, 0.9])
    >>> _ = torch.nn.init.zeros_(density.readout.weight)
    >>> apart = density.levels_of(torch.randn(3)).diff(dim=-1)
    >>> bool((apart > 0).all())
    True
    """

    levels: Tensor

    def __init__(self, input_size: int, size: int, *, levels: Sequence[float] = LEVELS) -> None:
        super().__init__(input_size, size)
        ascending = list(levels) == sorted({*levels})
        if len(levels) < 2 or not ascending or not all(0 < level < 1 for level in levels):
            raise ConfigError(
                f"levels must be at least two ascending numbers between 0 and 1, such as [0.05, 0.5, 0.95], but are "
                f"{list(levels)}."
            )
        self.given_levels = tuple(levels)
        self.register_buffer("levels", torch.tensor(list(levels), dtype=torch.float64), persistent=False)
        self.readout = readout(input_size, size * len(levels))
        with torch.no_grad():  # at first, the quantiles of the standard normal distribution
            normal = torch.special.ndtri(self.levels)
            steps = torch.cat([normal[:1], torch.log(torch.expm1(normal.diff()))])
            self.readout.bias.view(size, len(levels))[:] = steps

    def levels_of(self, features: Tensor) -> Tensor:
        """(..., d, L): the quantiles at the levels."""
        o: Tensor = self.readout(features).unflatten(-1, (self.size, -1))
        return torch.cat([o[..., :1], functional.softplus(o[..., 1:])], dim=-1).cumsum(-1)

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        found: Tensor
        if self._are_many(features, targets):
            levels = self.levels.to(targets.dtype)
            weight, bias = self.readout.weight, self.readout.bias
            found = _InPieces.apply(features, targets, weight, bias, levels)  # type: ignore[no-untyped-call]
            return found
        o: Tensor = self.readout(features).unflatten(-1, (self.size, -1)).to(targets.dtype)
        found = _PinballLoss.apply(o, targets, self.levels.to(targets.dtype))  # type: ignore[no-untyped-call]
        return found

    def _are_many(self, features: Tensor, targets: Tensor) -> bool:
        """Whether the loss is made in pieces; a GPU keeps no piece in a cache, and steps of it may be recorded."""
        if features.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
            return False
        has_one_type = features.dtype == targets.dtype == self.readout.weight.dtype
        return has_one_type and features.dim() > 1 and targets.numel() * len(self.given_levels) > MANY

    def mean(self, features: Tensor) -> Tensor:
        found, levels = self.levels_of(features), self.levels.to(features.dtype)
        # A linear piece has its mean in the middle, a tail has it β beyond its end.
        inner = (0.5 * (found[..., 1:] + found[..., :-1]) * levels.diff()).sum(-1)
        first, last = self._tails(found, levels)
        return inner + levels[0] * (found[..., 0] - first) + (1 - levels[-1]) * (found[..., -1] + last)

    def best(self, features: Tensor) -> Tensor:
        half = features.new_full((*features.shape[:-1], self.size), 0.5)
        return self.quantile(features, half)

    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        found, levels = self.levels_of(features), self.levels.to(features.dtype)
        share = share.to(features.dtype)
        right = torch.searchsorted(levels, share.contiguous()).clamp(1, len(levels) - 1)
        low, high = (found.gather(-1, place.unsqueeze(-1)).squeeze(-1) for place in (right - 1, right))
        slope = (high - low) / (levels[right] - levels[right - 1])
        inner = low + slope * (share - levels[right - 1])
        first, last = self._tails(found, levels)
        tiny = torch.finfo(share.dtype).tiny
        below = found[..., 0] + first * (share / levels[0]).clamp(tiny, 1).log()
        above = found[..., -1] - last * ((1 - share) / (1 - levels[-1])).clamp(tiny, 1).log()
        return below.where(share < levels[0], above.where(share > levels[-1], inner))

    def quantiles(self, features: Tensor, levels: Sequence[float]) -> Tensor:
        if self.given_levels != tuple(levels):
            return super().quantiles(features, levels)
        return self.levels_of(features).transpose(-1, -2)

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        found, levels = self.levels_of(features).to(values.dtype), self.levels.to(values.dtype)
        right = (found < values.unsqueeze(-1)).sum(-1).clamp(1, len(levels) - 1)
        low, high = (found.gather(-1, place.unsqueeze(-1)).squeeze(-1) for place in (right - 1, right))
        tiny = torch.finfo(values.dtype).tiny
        part = (values - low) / (high - low).clamp_min(tiny)
        inner = levels[right - 1] + part * (levels[right] - levels[right - 1])
        below, above = self._beyond(found, levels, values)
        return below.where(values < found[..., 0], (1 - above).where(values > found[..., -1], inner))

    def sides(self, features: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        found, levels = self.levels_of(features).to(values.dtype), self.levels.to(values.dtype)
        below, above = super().sides(features, values)
        # 1 − P(X ≤ x) has no digits left where it is small.
        return below, self._beyond(found, levels, values)[1].where(values > found[..., -1], above)

    def _beyond(self, found: Tensor, levels: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """(..., d) each: P(X ≤ x) of values below the first quantile, and P(X > x) of those above the last."""
        first, last = (each.clamp_min(torch.finfo(values.dtype).tiny) for each in self._tails(found, levels))
        below = levels[0] * ((values - found[..., 0]) / first).clamp(max=0).exp()
        return below, (1 - levels[-1]) * ((found[..., -1] - values) / last).clamp(max=0).exp()

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        """Twice the mean pinball loss: the CRPS by the levels that there are."""
        return self.costs(features, values)

    @staticmethod
    def _tails(found: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
        """(..., d) each: β of the lower and of the upper tail."""
        steps = levels.diff()
        first = levels[0] * (found[..., 1] - found[..., 0]) / steps[0]
        return first, (1 - levels[-1]) * (found[..., -1] - found[..., -2]) / steps[-1]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {len(self.levels)} levels"
