"""Dropout with one mask for all steps of a row."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn
from torch.nn import functional

from recurra.padding import Padded


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
