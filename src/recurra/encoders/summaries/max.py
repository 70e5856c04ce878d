"""The largest value of each feature over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from recurra.encoders.summaries.summary import Summarised, Summary
from recurra.padding import Padded, beside
from recurra.stacks.recurrent import States


@final
class Max(Summary):
    """s_i = max_t h_ti"""

    def __init__(self, input_size: int, states: Sequence[Sequence[int]]) -> None:
        super().__init__(input_size, states)
        self.output_size = input_size

    def forward(self, outputs: Padded, states: States) -> Summarised:
        values, lengths = outputs
        if values.shape[1] == 0:
            return Summarised(values.new_zeros(values.shape[0], values.shape[2]))
        largest = values.masked_fill(~outputs.mask.unsqueeze(2), -torch.inf).amax(1)
        is_empty = (beside(lengths, values) == 0).unsqueeze(1)
        return Summarised(largest.masked_fill(is_empty, 0.0))

    def begin(self) -> Tensor:
        return torch.full((1, self.output_size), -torch.inf)

    def go_on(self, outputs: Padded, states: States, gathered: Tensor) -> tuple[Tensor, Tensor]:
        """s ← max(s, max_t h_t)"""
        largest = outputs.values.masked_fill(~outputs.mask.unsqueeze(2), -torch.inf).amax(1)
        gathered = torch.maximum(gathered, largest)
        return gathered, gathered
