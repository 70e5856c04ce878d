"""Dropout, with a mask for each step or one for all steps of a row."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.padding import Padded


@final
class Dropout(nn.Module):
    """In training, y = m ∘ x / (1 − rate) of (N, n) or (B, T, n); locked: m is drawn once for all steps of a row."""

    def __init__(self, rate: float, *, locked: bool = False) -> None:
        super().__init__()
        self.rate, self.locked = rate, locked

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.rate:
            return x
        if self.locked and x.dim() == 3:
            return x * functional.dropout(torch.ones_like(x[:, :1]), self.rate)
        return functional.dropout(x, self.rate)

    def extra_repr(self) -> str:
        return f"{self.rate}{', locked' if self.locked else ''}"


@final
class LockedDropout(nn.Module):
    """In training, y_t = m ∘ x_t / (1 − rate), the mask m drawn once for a row (Gal & Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Padded) -> Padded:
        if not self.training or not self.rate:
            return x
        mask: Tensor = functional.dropout(x.values.new_ones(len(x.lengths), 1, x.values.shape[-1]), self.rate)
        return Padded(x.values * mask, x.lengths)
