"""No attention: all that the decoder knows of the source is where it starts, and a vector if there is one."""

from __future__ import annotations

from typing import Any, final

from torch import Tensor

from recurra.cells import AnyCell, AnyState
from recurra.padding import Padded
from recurra.stacks.recurrent import Fixed
from recurra.wirings.wiring import Features, Readout, Shape, Source, Wiring, WiringState, cells_of, layers_of, only


@final
class Alone(Wiring):
    """A decoder by itself (Sutskever et al. 2014; with a summary, Cho et al. 2014).

    s_t = cells(x_t, s_{t-1})
    h̃_t = tanh(W [s_t; summary])
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.cells = self.stack(shape.input_size, shape.widths)
        self.readout = Readout(shape, self.cells.output_size)

    @property
    def layers(self) -> list[AnyCell]:
        return cells_of(self.cells)

    def start(self, cells: tuple[AnyState, ...], source: Source) -> WiringState:
        return WiringState(cells, (), None, None)

    def fixed(self, rows: int, like: Tensor) -> Fixed:
        return self.cells.fixed(rows, like)

    def step(self, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        kept = self.fixed(len(x), x) if fixed is None else fixed
        s, states = self.cells.advance(x, only(state.cells), kept)
        return self.readout(source, s, x=x), state._replace(cells=layers_of(states))

    def forward(self, x: Padded, state: WiringState, source: Source) -> Features:
        s, _ = self.cells(x, only(state.cells))
        return Features(self.readout(source, s.values, x=x.values), None)
