"""Input feeding: each step reads what the one before it told the output."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor

from recurra.cells import AnyCell, AnyState
from recurra.padding import Padded
from recurra.products.deferring import deferring
from recurra.stacks.recurrent import Fixed
from recurra.wirings.advancing import Advance, FeedingAdvance, Reading, advance
from recurra.wirings.fused import FeedingLoop, fused
from recurra.wirings.looping import looped
from recurra.wirings.querying import memory_of
from recurra.wirings.wiring import (
    Features,
    Readout,
    Shape,
    Source,
    Wiring,
    WiringState,
    cells_of,
    layers_of,
    only,
    stacked,
)


@final
class Feeding(Wiring):
    """Input feeding (Luong et al. 2015).

    s_t       = cells([x_t; h̃_{t-1}], s_{t-1})           h̃_0 = 0
    context_t = attend(s_t)
    h̃_t       = tanh(W [s_t; context_t])
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.cells = self.stack(shape.input_size + shape.features, shape.widths)
        self.attention = self.attention_from(self.cells.output_size)
        self.readout = Readout(shape, self.cells.output_size, self.attention.context_size)

    @property
    def layers(self) -> list[AnyCell]:
        return cells_of(self.cells)

    def start(self, cells: tuple[AnyState, ...], source: Source) -> WiringState:
        h = cells[0][0]
        return WiringState(
            cells, self.attention.start(memory_of(source)), h.new_zeros(len(h), self.shape.features), None
        )

    def fixed(self, rows: int, like: Tensor) -> Fixed:
        return self.cells.fixed(rows, like)

    def step(self, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        assert state.fed is not None, "`start` gives zeros"
        kept = self.fixed(len(x), x) if fixed is None else fixed
        s, states = self.cells.advance(torch.cat([x, state.fed], dim=-1), only(state.cells), kept)
        seen = self.attention.step(s, memory_of(source), state.past)
        h = self.readout(source, s, seen.context, x=x)
        return h, WiringState(layers_of(states), seen.past, h, seen.weights, seen.chance)

    def forward(self, x: Padded, state: WiringState, source: Source) -> Features:
        values, *chance, weights = looped(self, x.values, state, source)
        return Features(values, weights, chance[0] if chance else None)

    def loop(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...]:
        features, chances, weights = [], [], []
        with deferring(self if self.training else None):
            fixed = self.fixed(len(x), x)
            for x_t in x.unbind(1):  # what comes after a row's end changes nothing before it
                h, state = self.step(x_t, state, source, fixed)
                features.append(h)
                chances.append(state.chance)
                weights.append(state.weights)
        return torch.stack(features, dim=1), *stacked(chances), *stacked(weights)

    def fused(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...] | None:
        return fused(self, x, lambda: FeedingLoop(self, x, state, source, self.cells, self.readout))

    def advancing(self, reading: Reading, state: WiringState, source: Source) -> Advance | None:
        return advance(lambda: FeedingAdvance(self, reading, state, source, self.cells, self.readout, feeds=True))
