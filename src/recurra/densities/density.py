"""Density: from features to the probability of a vector."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from recurra.cells.weights import check_size
from recurra.errors import ConfigError, DataError

LEVELS = 99
"""Quantiles from which the CRPS is computed where it has no closed form."""


class Density(nn.Module, ABC):
    """A distribution over vectors x of `size` values, given features h: −log p(x | h), its mean and its quantiles.

    The values of a vector are independent of each other given h. A density is created from the sizes of the feature
    vector and of x; its keyword arguments are options of a config file. B rows, T steps, H features, d values.

    >>> from recurra.named import find
    >>> density = find(Density, "gaussian")(4, 2)
    >>> features, targets = torch.randn(3, 5, 4), torch.randn(3, 5, 2)
    >>> density.loss(features, targets, torch.ones(3, 5, dtype=torch.bool)).shape
    torch.Size([3, 5])
    >>> density.mean(features).shape, density.sample(features, torch.Generator()).shape
    (torch.Size([3, 5, 2]), torch.Size([3, 5, 2]))
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.input_size = check_size(input_size, "input_size")
        self.size = check_size(size, "size")

    def loss(self, features: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
        """(B, T): −log p of each target (B, T, d) in nats, 0 where the mask is False.

        A value that is NaN is not known and costs nothing.
        """
        if targets.shape != (*features.shape[:-1], self.size):
            wanted = (*features.shape[:-1], self.size)
            raise DataError(f"targets must be a tensor of shape {wanted}, but found {tuple(targets.shape)}.")
        unknown = ~mask.unsqueeze(-1) | targets.isnan()
        # What is not known is filled before it is computed with: a NaN times 0 would still spoil every gradient.
        costs = self.costs(features, targets.masked_fill(unknown, 0))
        return costs.masked_fill(unknown, 0).sum(-1)

    @abstractmethod
    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        """(..., d): −log p of each value by itself."""

    @abstractmethod
    def mean(self, features: Tensor) -> Tensor:
        """(..., d): what is expected."""

    @abstractmethod
    def best(self, features: Tensor) -> Tensor:
        """(..., d): what is answered, and fed back to go on from."""

    @abstractmethod
    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        """(..., d): the value below which such a share, (..., d) between 0 and 1, of the probability lies."""

    def quantiles(self, features: Tensor, levels: Sequence[float]) -> Tensor:
        """(..., L, d): the quantiles at L levels."""
        like = features[..., :1].expand(*features.shape[:-1], self.size)
        return torch.stack([self.quantile(features, torch.full_like(like, level)) for level in levels], dim=-2)

    def sample(self, features: Tensor, generator: torch.Generator) -> Tensor:
        """(..., d): values drawn from the density, which are its quantiles at random shares."""
        shares = torch.rand(*features.shape[:-1], self.size, generator=generator, device=generator.device)
        return self.quantile(features, shares.to(features))

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        """(..., d): P(X ≤ x) of each value x, (..., d)."""
        raise ConfigError(f"{type(self).__name__} has no distribution function (cdf).")

    def sides(self, features: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """(..., d) each: P(X ≤ x) and P(X ≥ x) of each value x; discrete densities count x on both sides."""
        below = self.cdf(features, values)
        return below, 1 - below

    def tail(self, features: Tensor, values: Tensor) -> Tensor:
        """(..., d): how probable a value is that lies at least as far out, on either side.

        2 min(P(X ≤ x), P(X ≥ x)),   at most 1
        """
        return (2 * torch.minimum(*self.sides(features, values))).clamp(0, 1)

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        """(..., d): the continuous ranked probability score of each value, in its unit; less is better.

            CRPS = ∫ (F(y) − 1{x ≤ y})² dy = ∫_0^1 2 (1{x < q(u)} − u) (q(u) − x) du,    q(u) the quantile at u

        Here from quantiles in the middle of equal parts of (0, 1); a density with a closed form overrides it.
        """
        found = torch.zeros_like(values)
        for number in range(LEVELS):
            share = torch.full_like(values, (number + 0.5) / LEVELS)
            found = found + pinball(self.quantile(features, share), values, share)
        return 2 * found / LEVELS

    def with_base(self, features: Tensor, base: Tensor) -> tuple[Tensor, Tensor | float]:
        """Features (..., F) that know a base (..., d), and what is to be added to all that is said of them.

        x ~ base + density(h); a density of values that are not below 0 takes the base in, and nothing is added.
        """
        return features, base

    def with_unit(self, features: Tensor, unit: Tensor) -> Tensor:
        """Features (B, ..., F) of rows each of which has units of its own, (B, d); only counts need to know them."""
        return features

    def measured_in(self, unit: Sequence[float]) -> Self:
        """The density, told in which units its scaled values are; only counts need to know. Fewer are repeated."""
        return self

    def searched(self, features: Tensor) -> dict[str, Tensor]:
        """(..., d) or (..., d, n) each: parameters of a density whose quantiles have to be searched for, by name.

        By them an exported model finds its quantiles and log p without torch: `recurra.forecasts.searched`.
        """
        return {}

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.size}"


def pinball(quantiles: Tensor, values: Tensor, shares: Tensor) -> Tensor:
    """(1{x < q} − u) (q − x): the error of a quantile q at u, which is least in expectation where P(X ≤ q) = u.

    >>> pinball(torch.tensor([1.0, 1.0]), torch.tensor([3.0, 0.0]), torch.tensor([0.9, 0.9])).tolist()
    [1.7999..., 0.1000...]
    """
    apart = values - quantiles
    return torch.maximum(shares * apart, (shares - 1) * apart)
