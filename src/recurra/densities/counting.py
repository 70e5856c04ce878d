"""What densities of counts share: whole numbers from 0, read by the network as multiples of a unit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor

from recurra.densities.density import Density


class Counting(Density):
    """A distribution over counts k = 0, 1, 2, … for each value.

    A network reads x = k / s, where s, the `unit` of a column, is about its mean (`measured_in` sets it). All that a
    density of counts takes and gives is in that scale; −log p is that of the count itself. What is computed from k is
    in float64.

    quantile(u) is the least k with P(K ≤ k) ≥ u.
    """

    unit: Tensor

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.register_buffer("unit", torch.ones(size, dtype=torch.float64), persistent=False)

    def measured_in(self, unit: Sequence[float]) -> Self:
        given = torch.tensor(list(unit), dtype=torch.float64, device=self.unit.device)
        self.unit = given.repeat(self.size // len(given))
        return self

    @abstractmethod
    def spread(self, features: Tensor) -> Tensor:
        """(..., d): the standard deviation of the count."""

    @abstractmethod
    def counts_below(self, features: Tensor, counts: Tensor) -> Tensor:
        """(..., d): P(K ≤ k), k ≥ −1 whole numbers in float64."""

    @abstractmethod
    def rate(self, features: Tensor) -> Tensor:
        """(..., d): the mean of the count, in float64."""

    def counts_of(self, values: Tensor) -> Tensor:
        """The counts that scaled values stand for; a value between two counts stays between them."""
        counts = values.double() * self.unit
        whole = counts.round()
        # A count that went through float32 is still that count.
        return whole.where((counts - whole).abs() <= 1e-6 * whole.abs() + 1e-9, counts)

    def mean(self, features: Tensor) -> Tensor:
        return (self.rate(features) / self.unit).to(features.dtype)

    def best(self, features: Tensor) -> Tensor:
        return self.mean(features)

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        return self.counts_below(features, self.counts_of(values).floor().clamp_min(-1)).to(values.dtype)

    def sides(self, features: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        counts = self.counts_of(values)
        below = self.counts_below(features, counts.floor().clamp_min(-1))
        above = 1 - self.counts_below(features, (counts.ceil() - 1).clamp_min(-1))
        return below.to(values.dtype), above.to(values.dtype)

    @torch.no_grad()
    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        share = share.double().clamp(1e-15, 1 - 1e-9)
        guess = self.rate(features) + self.spread(features) * torch.special.ndtri(share)
        low, high = self._around(features, share, guess.floor().clamp_min(0))
        while bool((high - low > 1).any()):  # P(K ≤ low) < u ≤ P(K ≤ high)
            middle = ((low + high) / 2).floor()
            is_enough = self.counts_below(features, middle) >= share
            low, high = low.where(is_enough, middle), middle.where(is_enough, high)
        return (high / self.unit).to(features.dtype)

    def _around(self, features: Tensor, share: Tensor, guess: Tensor) -> tuple[Tensor, Tensor]:
        """Counts between which the quantile lies: steps from the guess, each twice as long as the one before."""
        is_enough = self.counts_below(features, guess) >= share
        low, high = (guess - 1).where(is_enough, guess), guess.where(is_enough, guess + 1)
        step = 1.0
        while True:
            too_high = (self.counts_below(features, low) >= share) & (low >= 0)
            too_low = self.counts_below(features, high) < share
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
        self.unit = unit.to(self.unit.device)
        return self
