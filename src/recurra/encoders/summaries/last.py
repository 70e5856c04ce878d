"""What is known after the last step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from recurra.encoders.summaries.summary import Summarised, Summary
from recurra.padding import Padded
from recurra.stacks.recurrent import States


@final
class Last(Summary):
    """s = h_T of the last layer; where it reads both ways, the end of each, [h→_T; h←_1]"""

    def __init__(self, input_size: int, states: Sequence[Sequence[int]]) -> None:
        super().__init__(input_size, states)
        self.output_size = sum(fields[0] for fields in states)

    def forward(self, outputs: Padded, states: States) -> Summarised:
        return Summarised(torch.cat([state[0] for state in states[-1]], dim=-1))

    def begin(self) -> Tensor:
        return torch.zeros(1, 0)

    def go_on(self, outputs: Padded, states: States, gathered: Tensor) -> tuple[Tensor, Tensor]:
        return self(outputs, states).vector, gathered
