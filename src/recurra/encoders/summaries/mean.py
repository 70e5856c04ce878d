"""The mean over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from recurra.encoders.summaries.summary import Summarised, Summary
from recurra.padding import Padded, beside
from recurra.stacks.recurrent import States


@final
class Mean(Summary):
    """s = (1/T) Σ_t h_t"""

    def __init__(self, input_size: int, states: Sequence[Sequence[int]]) -> None:
        super().__init__(input_size, states)
        self.output_size = input_size

    def forward(self, outputs: Padded, states: States) -> Summarised:
        counts = beside(outputs.lengths, outputs.values).clamp_min(1).unsqueeze(1)
        return Summarised(outputs.zeroed().values.sum(1) / counts)

    def begin(self) -> Tensor:
        return torch.zeros(1, self.output_size + 1)

    def go_on(self, outputs: Padded, states: States, gathered: Tensor) -> tuple[Tensor, Tensor]:
        """Gathered are Σ_t h_t and T."""
        counts = beside(outputs.lengths, outputs.values).to(gathered.dtype).unsqueeze(1)
        gathered = gathered + torch.cat([outputs.zeroed().values.sum(1), counts], dim=1)
        return gathered[:, :-1] / gathered[:, -1:], gathered
