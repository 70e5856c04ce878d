"""Every step of a horizon at once, each by a vector of its own (`model.ahead = "direct"`)."""

from __future__ import annotations

from typing import Self, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.config import ForecastingModel
from recurra.models.at_once import FEATURES, AtOnce, Seen

CONTEXT = 16
"""Numbers that the network says about each step ahead."""


@final
class Direct(AtOnce):
    """From the features h_t of a network, those of the K steps ahead of t:

        c_{t,k}  = W_k φ(V h_t + v) + w_k                       k = 1 … K:  a vector of its own for each step (MQ-RNN's)
        f_{t,k}  = φ(U [c_{t,k}; z_{t+k}] + u)                  z: covariates that are known ahead;  φ = ReLU

    >>> direct = Direct(4, 1, horizon=3, lags=6, season=2)
    >>> direct.base(torch.tensor([1.0, 2, 3, 4, 5, 6]).view(1, 6, 1)).flatten().tolist()
    [5.0, 6.0, 5.0]
    >>> direct(Seen(torch.randn(7, 1, 4), torch.ones(7))).shape
    torch.Size([7, 3, 32])
    """

    def __init__(
        self, input_size: int, size: int, *, horizon: int, lags: int, season: int, future_size: int = 0
    ) -> None:
        super().__init__(size, horizon=horizon, lags=lags, season=season)
        self.hidden = nn.Linear(input_size, input_size)
        self.contexts = nn.Linear(input_size, horizon * CONTEXT)
        self.features = nn.Linear(CONTEXT + future_size, FEATURES)

    @classmethod
    def of(
        cls,
        settings: ForecastingModel,
        input_size: int,
        size: int,
        *,
        horizon: int,
        lags: int,
        season: int,
        future_size: int,
    ) -> Self:
        return cls(input_size, size, horizon=horizon, lags=lags, season=season, future_size=future_size)

    @property
    def reach(self) -> int:
        return 1

    def forward(self, seen: Seen, future: Tensor | None = None, steps: int | None = None) -> Tensor:
        steps = self.horizon if steps is None else steps
        h = seen.values[..., -1, :]
        weight, bias = (each[: steps * CONTEXT] for each in (self.contexts.weight, self.contexts.bias))
        contexts = functional.linear(functional.relu(self.hidden(h)), weight, bias).unflatten(-1, (steps, CONTEXT))
        if future is not None:
            contexts = torch.cat([contexts, future.to(contexts.dtype)], dim=-1)
        return functional.relu(self.features(contexts))
