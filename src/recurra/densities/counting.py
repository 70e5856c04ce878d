"""What densities of counts share: whole numbers from 0, read by the network as multiples of a unit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from recurra.densities.density import Density
from recurra.padding import lengthened, longest

RAREST = 1e-6
"""The smallest rate, in units."""

LEAST_BASE = 0.05
"""The smallest base, in units: from 0 on the network could not learn that there are some."""


class Counting(Density):
    """A distribution over counts k = 0, 1, 2, … for each value.

    A network reads x = k / s, where s, the `unit` of a column, is about its mean (`measured_in` sets it), or about that
    of one series (`with_unit`). All that a density of counts takes and gives is in that scale; −log p is that of the
    count itself. What is computed from k is in float64, where the device has it. The mean of the count is, for an
    output o of the network,

        m = s (softplus(o + a) + 10⁻⁶),     a = softplus⁻¹(max(b, 0.05)) with a base b (`with_base`), else 0

    so that with o = 0 it is the base, in units. Unit and base stand behind the features: [h; a; s] where there are any.

    quantile(u) is the least k with P(K ≤ k) ≥ u.
    """

    unit: Tensor

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.register_buffer("unit", torch.ones(size, dtype=torch.float64), persistent=False)

    def measured_in(self, unit: Sequence[float]) -> Self:
        given = torch.tensor(list(unit), dtype=longest(self.unit.device), device=self.unit.device)
        self.unit = given.repeat(self.size // len(given))
        return self

    def with_base(self, features: Tensor, base: Tensor) -> tuple[Tensor, Tensor | float]:
        base = base.clamp_min(LEAST_BASE)
        start = base + (-(-base).expm1()).log()  # log (e^b − 1), whatever the size of b
        unit = self.unit.to(_precise(features)).expand_as(start)
        return torch.cat([features, start.to(_precise(features)), unit], dim=-1), 0.0

    def with_unit(self, features: Tensor, unit: Tensor) -> Tensor:
        exact = _precise(features)
        unit = unit.to(exact).view(len(unit), *[1] * (features.dim() - 2), self.size)
        unit = unit.expand(*features.shape[:-1], self.size)
        h = features[..., : self.input_size]
        start = torch.zeros_like(unit) if h.shape == features.shape else features[..., self.input_size : -self.size]
        return torch.cat([h, start, unit], dim=-1)

    def parted(self, features: Tensor) -> tuple[Tensor, Tensor | float, Tensor]:
        """The features of the network, a and s; the last two in float64."""
        if features.shape[-1] == self.input_size:
            return features, 0.0, self.unit
        h, start, unit = features.split((self.input_size, self.size, self.size), dim=-1)
        # A row that only fills a batch up has no unit.
        return h.to(next(self.parameters()).dtype), lengthened(start), lengthened(unit).where(unit > 0, 1.0)

    def mean_of(self, o: Tensor, start: Tensor | float, unit: Tensor) -> Tensor:
        """m, in float64."""
        return unit * (functional.softplus(lengthened(o) + start) + RAREST)

    @abstractmethod
    def parts(self, features: Tensor) -> tuple[Tensor, ...]:
        """(..., d) each: the parameters of the distribution of the count in float64, its mean first."""

    @abstractmethod
    def spread(self, *parts: Tensor) -> Tensor:
        """(..., d): the standard deviation of the count, from its parameters."""

    @abstractmethod
    def below(self, counts: Tensor, *parts: Tensor) -> Tensor:
        """(..., d): P(K ≤ k) by its parameters, k ≥ −1 whole numbers in float64."""

    def counts_below(self, features: Tensor, counts: Tensor) -> Tensor:
        """(..., d): P(K ≤ k), k ≥ −1 whole numbers in float64."""
        return self.below(counts, *self.parts(features))

    def rate(self, features: Tensor) -> Tensor:
        """(..., d): the mean of the count, in float64."""
        return self.parts(features)[0]

    def counts_of(self, features: Tensor, values: Tensor) -> Tensor:
        """The counts that scaled values stand for; a value between two counts stays between them."""
        counts = lengthened(values) * self.parted(features)[2]
        whole = counts.round()
        # A count that went through float32 is still that count.
        return whole.where((counts - whole).abs() <= 1e-6 * whole.abs() + 1e-9, counts)

    def mean(self, features: Tensor) -> Tensor:
        return self.scaled(features, self.rate(features))

    def scaled(self, features: Tensor, counts: Tensor) -> Tensor:
        """Counts as the network reads them."""
        h, _, unit = self.parted(features)
        return (counts / unit).to(h.dtype)

    def best(self, features: Tensor) -> Tensor:
        return self.mean(features)

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        return self.counts_below(features, self.counts_of(features, values).floor().clamp_min(-1)).to(values.dtype)

    def sides(self, features: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        counts = self.counts_of(features, values)
        below = self.counts_below(features, counts.floor().clamp_min(-1))
        above = 1 - self.counts_below(features, (counts.ceil() - 1).clamp_min(-1))
        return below.to(values.dtype), above.to(values.dtype)

    @torch.no_grad()
    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        return self.scaled(features, self._reached(share, self.parts(features)))

    @torch.no_grad()
    def quantiles(self, features: Tensor, levels: Sequence[float]) -> Tensor:
        """(..., L, d): all of them are searched for together."""
        parts = [part.unsqueeze(-2).expand(*part.shape[:-1], len(levels), -1) for part in self.parts(features)]
        shares = torch.tensor(list(levels), dtype=longest(features.device), device=features.device)
        counts = self._reached(shares.unsqueeze(-1).expand_as(parts[0]), parts)
        h, _, unit = self.parted(features)
        return (counts / unit.unsqueeze(-2)).to(h.dtype)

    def _reached(self, share: Tensor, parts: Sequence[Tensor]) -> Tensor:
        """(..., d): the least k with P(K ≤ k) ≥ u."""
        share = lengthened(share)
        share = share.clamp(1e-15, 1 - (1e-9 if share.dtype == torch.float64 else 1e-6))
        guess = parts[0] + self.spread(*parts) * torch.special.ndtri(share)
        low, high = self._around(parts, share, guess.floor().clamp_min(0))
        while bool((high - low > 1).any()):  # P(K ≤ low) < u ≤ P(K ≤ high)
            middle = ((low + high) / 2).floor()
            is_enough = self.below(middle, *parts) >= share
            low, high = low.where(is_enough, middle), middle.where(is_enough, high)
        return high

    def _around(self, parts: Sequence[Tensor], share: Tensor, guess: Tensor) -> tuple[Tensor, Tensor]:
        """Counts between which the quantile lies: steps from the guess, each twice as long as the one before."""
        is_enough = self.below(guess, *parts) >= share
        low, high = (guess - 1).where(is_enough, guess), guess.where(is_enough, guess + 1)
        step = 1.0
        while True:
            too_high = (self.below(low, *parts) >= share) & (low >= 0)
            too_low = self.below(high, *parts) < share
            if not bool((too_high | too_low).any()):
                return low, high
            low, high = (
                (low - step).clamp_min(-1).where(too_high, high.where(too_low, low)),
                low.where(too_high, (high + step).where(too_low, high)),
            )
            step *= 2

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """The unit stays exact when the weights become half as long."""
        unit = self.unit
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.unit = unit.to(self.unit.device, longest(self.unit.device))
        return self


def _precise(features: Tensor) -> torch.dtype:
    """At least float32: with fewer bits, a unit would make other counts of values."""
    return torch.promote_types(features.dtype, torch.float32)
