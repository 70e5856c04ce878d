"""Attention in the middle of a step: one cell before it, one after."""

from __future__ import annotations

from typing import Any, ClassVar, final

from torch import Tensor

from recurra.attention import Attended, Past
from recurra.cells import AnyCell, AnyState
from recurra.wirings.advancing import Advance, ConditionalAdvance, Reading, advance
from recurra.wirings.fused import ConditionalLoop, fused
from recurra.wirings.querying import memory_of
from recurra.wirings.step_by_step import AttendingFirst, stepped
from recurra.wirings.wiring import Shape, Source, WiringState, cells_of


@final
class Conditional(AttendingFirst):
    """Two cells for a step, with the attention between them (D8b; the conditional GRU of Sennrich et al. 2017).

        s'_t      = cell₁(x_t, s_{t-1})
        context_t = attend(s'_t)
        s_t       = cell₂(context_t, s'_t)
        h̃_t       = tanh(W [s_t; context_t])

    Layers above the first read s_t, and need no loop over time.
    """

    in_turn: ClassVar[tuple[str, ...]] = ("first", "second")

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.first = self.layer(shape.input_size, shape.widths[0])
        self.second = self.layer(self.attention.context_size, shape.widths[0])

    @property
    def layers(self) -> list[AnyCell]:
        return [*cells_of(self.first), *([] if self.above is None else cells_of(self.above))]

    def fixed_of_first(self, rows: int, like: Tensor) -> Any:
        return self.first.fixed(rows, like), self.second.fixed(rows, like)

    def attend(self, x: Tensor, state: AnyState, past: Past, source: Source, fixed: Any) -> tuple[AnyState, Attended]:
        between = stepped(self.first, x, state, fixed[0])
        seen = self.attention.step(between[0], memory_of(source), past)
        return stepped(self.second, seen.context, between, fixed[1]), seen

    def fused(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...] | None:
        stacks = (self.first, self.second)
        fixed = self.fixed_of_first
        return fused(self, x, lambda: ConditionalLoop(self, x, state, source, stacks, fixed(len(x), x)))

    def advancing(self, reading: Reading, state: WiringState, source: Source) -> Advance | None:
        stacks = (self.first, self.second, self.above)
        return advance(lambda: ConditionalAdvance(self, reading, state, source, stacks, self.readout))
