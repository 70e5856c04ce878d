"""Real values by themselves, without a word on how sure they are."""

from __future__ import annotations

from torch import Tensor

from recurra.densities.density import Density
from recurra.errors import ConfigError
from recurra.heads.head import readout


class SquaredError(Density):
    """The squared distance, which is least at the mean.

        o     = W h + b
        cost  = (x − o)²,     summed over the values

    Up to a constant and a factor this is −log p of a normal distribution of one fixed variance; what the variance is
    stays unsaid, so there are no quantiles. As a distribution it is the point o alone, of which CRPS = |x − o|.

    >>> import torch
    >>> density = SquaredError(3, 2)
    >>> features = torch.randn(1, 1, 3)
    >>> round(density.loss(features, density.mean(features) + 2.0, torch.ones(1, 1, dtype=torch.bool)).item(), 4)
    8.0
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__(input_size, size)
        self.readout = readout(input_size, size)

    def costs(self, features: Tensor, targets: Tensor) -> Tensor:
        return (targets - self.mean(features).to(targets.dtype)).square()

    def mean(self, features: Tensor) -> Tensor:
        o: Tensor = self.readout(features)
        return o

    def best(self, features: Tensor) -> Tensor:
        return self.mean(features)

    def quantile(self, features: Tensor, share: Tensor) -> Tensor:
        raise ConfigError(
            "model.output = 'squared_error' predicts no distribution, so it cannot be sampled. Train with "
            "model.output = 'gaussian' for that."
        )

    def crps(self, features: Tensor, values: Tensor) -> Tensor:
        return (values - self.mean(features).to(values.dtype)).abs()
