"""Every step of a horizon at once, from each step of a series: an autoregression, and what a network adds to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from recurra.config import ForecastingModel

FEATURES = 32
"""Numbers from which the density of a step ahead is made."""


class Seen(NamedTuple):
    """What is kept of the last steps up to some origins, the latest last."""

    values: Tensor  # (..., M, n)
    counts: Tensor  # (...): how many of them are real, the last ones; a series may have begun later


class AtOnce(nn.Module, ABC):
    """From the last M features h_{t−M+1} … h_t of a network and the last L values, the K steps ahead of t:

        b_{t,k}  = x_t + Σ_j A_kj (x_{t−L+j} − x_t)            j = 1 … L:  a linear autoregression (LSTNet's, Lai 2018)
        x_{t+k}  ~ b_{t,k} + density(f_{t,k})                  k = 1 … K

    A subclass makes the features f_{t,k}. The autoregression is the same for each column. It starts as the rule that
    the last season comes again: A_kj = 1 where x_{t−L+j} is the last known value of the season of x_{t+k}, else 0.
    """

    def __init__(self, size: int, *, horizon: int, lags: int, season: int) -> None:
        super().__init__()
        assert lags >= season >= 1
        self.size, self.horizon, self.lags = size, horizon, lags
        self.autoregression = nn.Parameter(torch.zeros(horizon, lags))
        with torch.no_grad():
            for k in range(horizon):
                self.autoregression[k, lags - season + k % season] = 1

    @classmethod
    @abstractmethod
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
        """As the settings say, for features of `input_size` numbers and `size` values of a step."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """M, the features of the network that are seen from an origin."""

    def kept(self, h: Tensor) -> Tensor:
        """(..., n): what is kept of the features (..., H) of each step, once for all origins that see it."""
        return h

    @property
    def output_size(self) -> int:
        """Numbers from which the density of a step ahead is made."""
        return FEATURES

    def base(self, recent: Tensor, steps: int | None = None) -> Tensor:
        """(..., K, d): what the autoregression expects after the last values, (..., L, d), of the first `steps`."""
        level = recent[..., -1:, :]
        return level + self.autoregression[:steps].to(recent.dtype) @ (recent - level)

    @abstractmethod
    def forward(self, seen: Seen, future: Tensor | None = None, steps: int | None = None) -> Tensor:
        """(..., K, F): the features of each step ahead, from what is known of these steps, (..., K, k)."""

    def looked(self, seen: Seen, future: Tensor | None = None) -> Tensor | None:
        """(..., K, M): how much each step ahead looked at each step that was seen; None: they do not look."""
        return None

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
