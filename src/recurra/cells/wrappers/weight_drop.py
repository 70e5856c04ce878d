"""Weight drop: recurrent weights left out for a whole sequence."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional

from recurra.cells.cell import AnyCell
from recurra.cells.weights import Product, check_rate, leaves, replaced
from recurra.cells.wrappers.wrapper import Wrapper
from recurra.errors import ConfigError


class WeightDrop(Wrapper):
    """Weight drop (Merity et al. 2017): DropConnect on the recurrent weights.

        U → (m ∘ U) / (1 − rate),   m ~ Bernoulli(1 − rate) for each weight, one draw for all steps of a sequence

    A batch is read with one draw. In evaluation nothing is dropped.
    """

    def __init__(self, cell: AnyCell, *, rate: float) -> None:
        super().__init__(cell)
        self.rate = check_rate(rate, "weight_drop rate")
        if not has_recurrent_weights(cell):
            raise ConfigError(
                f"weight_drop finds no recurrent weights in '{cell.name}'. A cell shows them by returning them from "
                f"`fixed` as a Product; a cell without any cannot use weight_drop."
            )

    def fixed(self, rows: int, like: Tensor) -> Any:
        fixed = self.cell.fixed(rows, like)
        if not self.training or not self.rate:
            return fixed
        return replaced(fixed, Product, lambda U: U._replace(weight=functional.dropout(U.weight, self.rate)))

    def coefficients(self, inputs: Tensor, fixed: Any) -> tuple[Tensor, Tensor] | None:
        return self.cell.coefficients(inputs, fixed)

    def bare(self, fixed: Any) -> tuple[AnyCell, Any]:
        return self.cell, fixed

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def has_recurrent_weights(cell: AnyCell) -> bool:
    """Whether there is a matrix U, from state to state, that weight drop could thin out."""
    parameter = next(cell.parameters(), None)
    return parameter is not None and bool(leaves(cell.fixed(1, parameter), Product))
