"""Every step of a horizon at once, from each step of a series: an autoregression, and what a network adds to it."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

CONTEXT = 16
"""Numbers that the network says about each step ahead."""

FEATURES = 32
"""Numbers from which the density of a step ahead is made."""


@final
class Direct(nn.Module):
    """From the features h_t of a network and the L last values x_{t−L+1} … x_t, the K steps ahead of t:

        b_{t,k}  = x_t + Σ_j A_kj (x_{t−L+j} − x_t)            j = 1 … L:  a linear autoregression (LSTNet's, Lai 2018)
        c_{t,k}  = W_k φ(V h_t + v) + w_k                       k = 1 … K:  a vector of its own for each step (MQ-RNN's)
        f_{t,k}  = φ(U [c_{t,k}; z_{t+k}] + u)                  z: covariates that are known ahead;  φ = ReLU
        x_{t+k}  ~ b_{t,k} + density(f_{t,k})

    The autoregression is the same for each column. It starts as the rule that the last season comes again:
    A_kj = 1 where x_{t−L+j} is the last known value of the season of x_{t+k}, else 0.

    >>> direct = Direct(4, 1, horizon=3, lags=6, season=2)
    >>> direct.base(torch.tensor([1.0, 2, 3, 4, 5, 6]).view(1, 6, 1)).flatten().tolist()
    [5.0, 6.0, 5.0]
    >>> direct(torch.randn(7, 4)).shape
    torch.Size([7, 3, 32])
    """

    def __init__(
        self, input_size: int, size: int, *, horizon: int, lags: int, season: int, future_size: int = 0
    ) -> None:
        super().__init__()
        assert lags >= season >= 1
        self.size, self.horizon, self.lags = size, horizon, lags
        self.autoregression = nn.Parameter(torch.zeros(horizon, lags))
        with torch.no_grad():
            for k in range(horizon):
                self.autoregression[k, lags - season + k % season] = 1
        self.hidden = nn.Linear(input_size, input_size)
        self.contexts = nn.Linear(input_size, horizon * CONTEXT)
        self.features = nn.Linear(CONTEXT + future_size, FEATURES)

    @property
    def output_size(self) -> int:
        return self.features.out_features

    def base(self, recent: Tensor, steps: int | None = None) -> Tensor:
        """(..., K, d): what the autoregression expects after the last values, (..., L, d), of the first `steps`."""
        level = recent[..., -1:, :]
        return level + self.autoregression[:steps].to(recent.dtype) @ (recent - level)

    def forward(self, h: Tensor, future: Tensor | None = None, steps: int | None = None) -> Tensor:
        """(..., K, F): the features of each step ahead, from (..., H) and what is known of these steps, (..., K, k)."""
        steps = self.horizon if steps is None else steps
        weight, bias = (each[: steps * CONTEXT] for each in (self.contexts.weight, self.contexts.bias))
        contexts = functional.linear(functional.relu(self.hidden(h)), weight, bias).unflatten(-1, (steps, CONTEXT))
        if future is not None:
            contexts = torch.cat([contexts, future.to(contexts.dtype)], dim=-1)
        return functional.relu(self.features(contexts))

    def extra_repr(self) -> str:
        return f"horizon={self.horizon}, lags={self.lags}"


def recent_values(values: Tensor, ends: Tensor, lags: int) -> Tensor:
    """(B, O, L, d): the last L values of rows (B, T, d) at the steps `ends` (B, O), the first one repeated before it.

    >>> recent_values(torch.arange(5.0).view(1, 5, 1), torch.tensor([[1, 4]]), 3).squeeze(-1).tolist()
    [[[0.0, 0.0, 1.0], [2.0, 3.0, 4.0]]]
    """
    places = (ends.unsqueeze(2) + torch.arange(1 - lags, 1, device=ends.device)).clamp_min(0)
    return _at(values, places)


def coming_values(values: Tensor, ends: Tensor, horizon: int, fill: float) -> Tensor:
    """(B, O, K, d): the K values after the steps `ends` (B, O) of rows (B, T, d); `fill` after the last step of all.

    >>> coming_values(torch.arange(4.0).view(1, 4, 1), torch.tensor([[0, 2]]), 2, torch.nan).squeeze(-1).tolist()
    [[[1.0, 2.0], [3.0, nan]]]
    """
    places = ends.unsqueeze(2) + torch.arange(1, horizon + 1, device=ends.device)
    found = _at(values, places.clamp_max(values.shape[1] - 1))
    return found.masked_fill((places >= values.shape[1]).unsqueeze(3), fill)


def _at(values: Tensor, places: Tensor) -> Tensor:
    """(B, O, n, d): the values (B, T, d) at some places (B, O, n) of each row."""
    rows = torch.arange(len(values), device=values.device).view(-1, 1, 1)
    return values[rows, places]
