"""Every step of a horizon at once, by a decoder that looks back at the past (`model.ahead = "attention"`)."""

from __future__ import annotations

from typing import Self, final

import torch
from torch import Tensor, nn

from recurra.config import ForecastingModel
from recurra.decoding.bridge import Bridge
from recurra.encoders.memory import Places, Read
from recurra.models.at_once import FEATURES, AtOnce, Seen
from recurra.named import built
from recurra.padding import Padded
from recurra.settings import Part, about
from recurra.wirings import Features, Shape, Source, Wiring

NUMBERED = 16
"""Numbers that stand for the number of a step ahead."""


@final
class Attending(AtOnce):
    """A decoder of K steps with attention over the last L features h_{t−L+1} … h_t of a network, its encoder:

        m_j      = M h_{t−L+j} + p_j                      j = 1 … L:  p_j a vector of its own for each distance
        s_0      = tanh(W_h M h_t + b_h)                  and, of a cell that has one, c_0 = W_c M h_t + b_c
        s_k      = cell([z_{t+k}; e_k], s_{k−1})          z: covariates that are known ahead;  e_k a vector of the step
        α_kj     = softmax_j(score(s_k, m_j))             over the steps that the series has
        f_{t,k}  = tanh(W [s_k; Σ_j α_kj m_j] + w)

    The last three lines are the wiring `outside`; others let the cell read what was seen: `feeding` gives it f_{t,k−1},
    `inside` and `conditional` what is seen from s_{k−1} or from a first cell. Values are not fed back: all origins are
    computed at once, and in training nothing is read that is not there in use. A cell that reads gaps is given none
    here, so that `gru_d` is a GRU.

    >>> ahead = Attending(4, 1, horizon=3, lags=6, season=2, cell="gru", hidden=5, attention="dot")
    >>> seen = Seen(ahead.kept(torch.randn(7, 6, 4)), torch.tensor([6, 6, 6, 6, 2, 1, 1]))
    >>> ahead(seen).shape, ahead.looked(seen)[4, 0].nonzero().flatten().tolist()
    (torch.Size([7, 3, 32]), [4, 5])
    """

    def __init__(
        self,
        input_size: int,
        size: int,
        *,
        horizon: int,
        lags: int,
        season: int,
        future_size: int = 0,
        cell: Part,
        hidden: int,
        layers: int = 1,
        attention: Part,
        wiring: str = "outside",
        dropout: float = 0.0,
        engine: str = "auto",
    ) -> None:
        super().__init__(size, horizon=horizon, lags=lags, season=season)
        self.memory = nn.Linear(input_size, hidden, bias=False)
        self.places = nn.Parameter(torch.zeros(lags, hidden))
        self.numbers = nn.Embedding(horizon, NUMBERED)
        shape = Shape(
            cell=cell,
            input_size=future_size + NUMBERED,
            widths=(hidden,) * layers,
            memory_size=hidden,
            summary_size=0,
            features=FEATURES,
            attention=attention,
            dropout=dropout,
            engine=engine,
        )
        with about("model"):
            self.wiring: Wiring = built(Wiring, wiring, shape)
        self.bridge = Bridge([{"h": hidden}], None, self.wiring.layers, "map", are_last=True)

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
        own = settings.decoder
        return cls(
            input_size,
            size,
            horizon=horizon,
            lags=lags,
            season=season,
            future_size=future_size,
            cell=settings.cell if own.cell is None else own.cell,
            hidden=own.hidden,
            layers=own.layers,
            attention=settings.attention,
            wiring=settings.wiring,
            dropout=settings.dropout,
            engine=settings.engine,
        )

    @property
    def reach(self) -> int:
        return self.lags

    def kept(self, h: Tensor) -> Tensor:
        found: Tensor = self.memory(h)
        return found

    def forward(self, seen: Seen, future: Tensor | None = None, steps: int | None = None) -> Tensor:
        found = self._decoded(seen, future, self.horizon if steps is None else steps).values
        return found.unflatten(0, seen.values.shape[:-2])

    def looked(self, seen: Seen, future: Tensor | None = None) -> Tensor | None:
        weights = self._decoded(seen, future, self.horizon).weights
        return None if weights is None else weights.unflatten(0, seen.values.shape[:-2])

    def _decoded(self, seen: Seen, future: Tensor | None, steps: int) -> Features:
        """Features (N, K, F) and weights (N, K, L) of all origins, one after the other."""
        kept, counts = seen.values.flatten(0, -3), seen.counts.flatten()
        memory = kept + self.places.to(kept.dtype)
        is_there = torch.arange(self.lags, device=kept.device) >= self.lags - counts.unsqueeze(1)
        x = self.numbers.weight[:steps].to(kept.dtype).expand(len(kept), -1, -1)
        if future is not None:
            x = torch.cat([future.flatten(0, -3).to(kept.dtype), x], dim=-1)
        source = Source(self.wiring.remember(memory, is_there), None)
        read = Read(Places(memory, is_there), ({"h": kept[:, -1]},), None, None)
        starts = tuple(cell.start(len(kept), kept) for cell in self.wiring.layers)
        state = self.wiring.start(self.bridge(read, starts), source)
        found: Features = self.wiring(Padded.full(x), state, source)
        return found
