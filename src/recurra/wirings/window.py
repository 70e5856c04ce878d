"""No cells: each token is predicted from the last few tokens and from where they look."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.attention import Memory
from recurra.cells import AnyCell, AnyState
from recurra.encoders.dropout import Dropout
from recurra.padding import Padded
from recurra.wirings.querying import memory_of
from recurra.wirings.wiring import Features, Shape, Source, Wiring, WiringState


class LastTokens(NamedTuple):
    """The state: what was read of the last C tokens, zeros before the first of them."""

    x: Tensor  # (N, C I)


@final
class Window(Wiring):
    """The attention-based summariser (Rush, Chopra and Weston 2015): a feed-forward language model that looks back.

        x_t           = [E y_{t-1}; G y_{t-1}]                      the halves of a token's embedding
        ỹ_c, ỹ′_c     = the last C of E y, and of G y, side by side
        h_t           = tanh(U ỹ_c)
        α_t           = softmax_i(x̃_i P ỹ′_c)                       attention = "bilinear"; other scores may be used
        x̄_i           = Σ_{|k − i| ≤ Q} x̃_k / Q                     Q = 0: x̃_i
        h̃_t           = [h_t; Σ_i α_ti x̄_i]                          so that W_o h̃_t = V h_t + W enc(x, y_c)

    x̃ is the memory: with model.encoder.kind = "embeddings", the embeddings F x of the source.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        half, C = shape.input_size // 2, shape.window
        self.C, self.Q = C, shape.around
        self.from_tokens = nn.Linear(C * half, shape.widths[-1], bias=False)  # U
        self.attention = self.attention_from(C * half)
        self.dropout = Dropout(shape.dropout, locked=shape.locked)

    @property
    def layers(self) -> list[AnyCell]:
        return []

    def remember(self, values: Tensor, mask: Tensor, columns: int | None = None) -> Memory:
        memory = self.attention.remember(values, mask, columns)
        real = mask.unsqueeze(2) if memory.values.dim() == 3 else mask[:, None, :, None]
        return memory._replace(values=smoothed(memory.values, self.Q).masked_fill(~real, 0.0))

    def start(self, cells: tuple[AnyState, ...], source: Source) -> WiringState:
        memory = memory_of(source)
        nothing = self.from_tokens.weight.new_zeros(len(memory.mask), self.C * self.shape.input_size)
        return WiringState((LastTokens(nothing),), self.attention.start(memory), None, None)

    def fixed(self, rows: int, like: Tensor) -> None:
        return None

    def step(self, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        last = torch.cat([state.cells[0][0][:, self.shape.input_size :], x], dim=1)
        written, looking = self._halves(last.unflatten(1, (self.C, -1)))
        seen = self.attention.step(looking, memory_of(source), state.past)
        h = self.from_tokens(written).tanh()
        features: Tensor = self.dropout(torch.cat([h, seen.context.to(h.dtype)], dim=-1))
        return features, WiringState((LastTokens(last),), seen.past, None, seen.weights, seen.chance)

    def forward(self, x: Padded, state: WiringState, source: Source) -> Features:
        before = state.cells[0][0].unflatten(1, (self.C, -1))[:, 1:]
        windows = torch.cat([before.to(x.values.dtype), x.values], dim=1).unfold(1, self.C, 1)  # (B, T, I, C)
        written, looking = self._halves(windows.transpose(2, 3))
        seen = self.attention(looking, memory_of(source), state.past)
        h = self.from_tokens(written).tanh()
        values = self.dropout(torch.cat([h, seen.context.to(h.dtype)], dim=-1))
        return Features(values, seen.weights, seen.chance)

    def _halves(self, window: Tensor) -> tuple[Tensor, Tensor]:
        """ỹ_c and ỹ′_c, (..., C I / 2) each, of the last tokens (..., C, I)."""
        written, looking = window.chunk(2, dim=-1)
        return written.flatten(-2), looking.flatten(-2)


def smoothed(values: Tensor, Q: int) -> Tensor:
    """(..., S, D): each place is the sum of those at most Q away, by Q, as the paper divides it; Q = 0: itself.

    >>> smoothed(torch.tensor([[[1.0], [2.0], [4.0]]]), 1).flatten().tolist()
    [3.0, 7.0, 6.0]
    """
    if not Q:
        return values
    around = functional.pad(values, (0, 0, Q, Q)).unfold(-2, 2 * Q + 1, 1)  # (..., S, D, 2Q + 1)
    return around.sum(-1) / Q
