"""Where each of two directions has read everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch

from recurra.encoders.summaries.summary import Summarised, Summary
from recurra.errors import ConfigError
from recurra.padding import Padded
from recurra.stacks.recurrent import States


@final
class Ends(Summary):
    """s = [h→_T; h←_1], of the last layer"""

    def __init__(self, input_size: int, states: Sequence[Sequence[int]]) -> None:
        super().__init__(input_size, states)
        if len(states) != 2:
            raise ConfigError(
                "model.summary = 'ends' joins the final states of two directions, but the network is not "
                "bidirectional: set model.bidirectional = true, or model.summary = 'last'."
            )
        self.output_size = sum(fields[0] for fields in states)

    def forward(self, outputs: Padded, states: States) -> Summarised:
        forward, backward = states[-1]
        return Summarised(torch.cat([forward[0], backward[0]], dim=-1))
