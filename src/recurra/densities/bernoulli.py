"""Values that are 0 or 1, such as the notes that sound at a step."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from recurra.densities.density import Density
from recurra.heads.head import readout


class Bernoulli(Density):
    """A coin for each value.

        o          = W h + b
        p(x = 1)   = σ(o)
        −log p     = −x log σ(o) − (1 − x) log σ(−o),     summed over the values

    The answer is 1 where p(x = 1) is above a half; quantile(u) is 1 where u > 1 − p; CRPS = (p − x)².

    >>> import torch
    >>> density = Bernoulli(3, 88)
    >>> _ = torch.nn.init.zeros_(density.readout.weight)      # 88 fair coins: 88 log 2 nats
    >>> density.loss(torch.randn(1, 1, 3), torch.ones(1, 1, 88), torch.ones(1, 1, dtype=torch.bool)).item() / 88
    0.693147...
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.readout = readout(input_size, size)

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(self.readout(features), targets, reduction="none")

    def mean(self, features: Tensor) -> Tensor:
        o: Tensor = self.readout(features)
        return o.sigmoid()

    def best(self, features: Tensor) -> Tensor:
        o: Tensor = self.readout(features)
        return (o > 0).to(features.dtype)

    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        return (share > 1 - self.mean(features)).to(features.dtype)

    def cdf(self, features: Tensor, values: Tensor) -> Tensor:
        below = (1 - self.mean(features)).to(values.dtype)
        return below.where(values < 1, 1.0).where(values >= 0, 0.0)

    def sides(self, features: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        p = self.mean(features).to(values.dtype)
        return (1 - p).where(values < 1, 1.0), p.where(values > 0, 1.0)

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        return (self.mean(features).to(values.dtype) - values).square()
