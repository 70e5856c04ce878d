"""Attention between the first layer and those above it: no loop over time either."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor

from recurra.cells import AnyCell, AnyState
from recurra.encoders.dropout import Dropout
from recurra.errors import ConfigError
from recurra.padding import Padded
from recurra.stacks.recurrent import Fixed
from recurra.wirings.querying import before, memory_of
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
)


@final
class Between(Wiring):
    """Attention after the first layer; what it sees is read by the second.

    s¹_t      = first(x_t, s¹_{t-1})
    context_t = attend(s¹_t)                     or attend(s¹_{t-1}) with query = "previous"
    s²_t      = above([s¹_t; context_t], s²_{t-1})
    h̃_t       = tanh(W [s²_t; context_t])

    A skip connection leads s¹_t, without the context, past the second layer, and a mix counts s¹_t too.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        if len(shape.widths) < 2:
            raise ConfigError("attention between decoder layers needs at least two of them: set decoder.layers = 2.")
        first, *others = shape.widths
        self.first = self.layer(shape.input_size, first)
        self.attention = self.attention_from(first)
        self.above = self.stack(first + self.attention.context_size, tuple(others), below=first)
        self.dropout = Dropout(shape.dropout, locked=shape.locked)
        self.readout = Readout(shape, self.above.output_size, self.attention.context_size)
        self.looks_back = shape.query == "previous"

    @property
    def layers(self) -> list[AnyCell]:
        return [*cells_of(self.first), *cells_of(self.above)]

    def start(self, cells: tuple[AnyState, ...], source: Source) -> WiringState:
        return WiringState(cells, self.attention.start(memory_of(source)), None, None)

    def fixed(self, rows: int, like: Tensor) -> tuple[Fixed, Fixed]:
        return self.first.fixed(rows, like), self.above.fixed(rows, like)

    def step(self, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        lower_fixed, upper_fixed = self.fixed(len(x), x) if fixed is None else fixed
        below, lower = self.first.advance(x, only(state.cells[:1]), lower_fixed)
        query = state.cells[0][0] if self.looks_back else below
        seen = self.attention.step(query, memory_of(source), state.past)
        read = torch.cat([self.dropout(below), seen.context], dim=-1)
        s, upper = self.above.advance(read, only(state.cells[1:]), upper_fixed, below=below)
        h = self.readout(source, s, seen.context, x=x)
        cells = (*layers_of(lower), *layers_of(upper))
        return h, WiringState(cells, seen.past, None, seen.weights, seen.chance)

    def forward(self, x: Padded, state: WiringState, source: Source) -> Features:
        below, _ = self.first(x, only(state.cells[:1]))
        queries = before(state.cells[0][0], below.values) if self.looks_back else below.values
        seen = self.attention(queries, memory_of(source), state.past)
        read = torch.cat([self.dropout(below.values), seen.context], dim=-1)
        s, _ = self.above(Padded(read, x.lengths), only(state.cells[1:]), below=below.values)
        return Features(self.readout(source, s.values, seen.context, x=x.values), seen.weights, seen.chance)
