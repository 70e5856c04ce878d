"""Attention outside the cells: they run over the whole target at once, and look at the source afterwards."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor

from recurra.cells import AnyCell, AnyState
from recurra.padding import Padded
from recurra.stacks.recurrent import Fixed
from recurra.wirings.advancing import Advance, FeedingAdvance, Reading, advance
from recurra.wirings.looping import is_replayed, looped
from recurra.wirings.querying import before, memory_of
from recurra.wirings.wiring import Features, Readout, Shape, Source, Wiring, WiringState, cells_of, layers_of, only


@final
class Outside(Wiring):
    """Attention after the last layer (D6, D7; Luong et al. 2015 without input feeding).

    s_t       = cells(x_t, s_{t-1})
    context_t = attend(s_t)                      or attend(s_{t-1}) with query = "previous"
    h̃_t       = tanh(W [s_t; context_t])
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.cells = self.stack(shape.input_size, shape.widths)
        self.attention = self.attention_from(self.cells.output_size)
        self.readout = Readout(shape, self.cells.output_size, self.attention.context_size)
        self.looks_back = shape.query == "previous"

    @property
    def layers(self) -> list[AnyCell]:
        return cells_of(self.cells)

    def start(self, cells: tuple[AnyState, ...], source: Source) -> WiringState:
        looking = self.cells.mixed([state[0] for state in cells]) if self.looks_back else None
        return WiringState(cells, self.attention.start(memory_of(source)), looking, None)

    def fixed(self, rows: int, like: Tensor) -> Fixed:
        return self.cells.fixed(rows, like)

    def step(self, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        kept = self.fixed(len(x), x) if fixed is None else fixed
        s, states = self.cells.advance(x, only(state.cells), kept)
        # Not the state of the last cell: with a way past it, what comes out is more than that.
        query = s if state.fed is None else state.fed
        seen = self.attention.step(query, memory_of(source), state.past)
        h = self.readout(source, s, seen.context, x=x)
        fed = s if self.looks_back else None
        return h, WiringState(layers_of(states), seen.past, fed, seen.weights, seen.chance)

    def forward(self, x: Padded, state: WiringState, source: Source) -> Features:
        if is_replayed(self, x.values):
            values, *chance, weights = looped(self, x.values, state, source)
            return Features(values, weights, chance[0] if chance else None)
        return self._features(x, state, source)

    def loop(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...]:
        found = self._features(Padded.full(x), state, source)  # what comes after a row's end changes nothing before it
        return found.values, *(() if found.chance is None else (found.chance,)), found.weights

    def fused(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...] | None:
        return None

    def _features(self, x: Padded, state: WiringState, source: Source) -> Features:
        s, _ = self.cells(x, only(state.cells))
        queries = s.values if state.fed is None else before(state.fed, s.values)
        seen = self.attention(queries, memory_of(source), state.past)
        return Features(self.readout(source, s.values, seen.context, x=x.values), seen.weights, seen.chance)

    def advancing(self, reading: Reading, state: WiringState, source: Source) -> Advance | None:
        return advance(lambda: FeedingAdvance(self, reading, state, source, self.cells, self.readout, feeds=False))
