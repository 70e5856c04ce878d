"""Attention inside the cell: what is seen is part of what is read, at every step."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor

from recurra.attention import Attended, Past
from recurra.cells import AnyCell, AnyState
from recurra.wirings.advancing import Advance, InsideAdvance, Reading, advance
from recurra.wirings.fused import InsideLoop, fused
from recurra.wirings.querying import memory_of
from recurra.wirings.step_by_step import AttendingFirst, stepped
from recurra.wirings.wiring import Shape, Source, WiringState, cells_of


@final
class Inside(AttendingFirst):
    """Attention inside the cell (D8; Bahdanau et al. 2015).

        context_t = attend(s_{t-1})
        s_t       = cell([x_t; context_t], s_{t-1})          each gate gets + C context_t
        h̃_t       = tanh(W [s_t; context_t])

    Layers above the first read s_t, and need no loop over time. With readout = "maxout", as in the paper, h̃_t is made
    of s_{t-1}, x_t and context_t.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.first = self.layer(shape.input_size + self.attention.context_size, shape.widths[0])
        self.reads_before = shape.readout == "maxout"

    @property
    def layers(self) -> list[AnyCell]:
        return [*cells_of(self.first), *([] if self.above is None else cells_of(self.above))]

    def fixed_of_first(self, rows: int, like: Tensor) -> Any:
        return self.first.fixed(rows, like)

    def attend(self, x: Tensor, state: AnyState, past: Past, source: Source, fixed: Any) -> tuple[AnyState, Attended]:
        seen = self.attention.step(state[0], memory_of(source), past)
        return stepped(self.first, torch.cat([x, seen.context], dim=-1), state, fixed), seen

    def fused(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...] | None:
        fixed = self.fixed_of_first
        return fused(self, x, lambda: InsideLoop(self, x, state, source, self.first, fixed(len(x), x)))

    def advancing(self, reading: Reading, state: WiringState, source: Source) -> Advance | None:
        stacks = (self.first, self.above)
        return advance(lambda: InsideAdvance(self, reading, state, source, stacks, self.readout))
