"""Wrapper: a cell that changes another one."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from recurra.cells.cell import AnyCell, AnyState, Cell


class Wrapper(Cell[Any, Any]):
    """Base class of wrappers around a cell. It changes nothing; subclasses override what they change.

    >>> from recurra.cells import LSTM, WeightDrop, Zoneout
    >>> Zoneout(WeightDrop(LSTM(3, 4), rate=0.5), rate=0.1).cell.cell.name
    'lstm'
    """

    def __init__(self, cell: AnyCell) -> None:
        super().__init__(cell.input_size, cell.hidden_size)
        self.cell = cell
        self.State = cell.State
        self.blendable = cell.blendable
        self.reads_gaps = cell.reads_gaps

    def start(self, rows: int, like: Tensor) -> AnyState:
        return self.cell.start(rows, like)

    def fixed(self, rows: int, like: Tensor) -> Any:
        return self.cell.fixed(rows, like)

    def project(self, x: Tensor, fixed: Any) -> Tensor:
        return self.cell.project(x, fixed)

    def parts(self, inputs: Tensor, state: Any, fixed: Any) -> AnyState:
        return self.cell.parts(inputs, state, fixed)

    def bare(self, fixed: Any) -> tuple[AnyCell, Any] | None:
        """The wrapped cell and what it takes as `fixed`, where stepping it comes to the same; None where it does not.

        An engine that knows the wrapped cell can run it in place of this one.
        """
        return None
