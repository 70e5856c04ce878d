"""Dropout that a recurrent network can bear."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from recurra.cells.cell import AnyCell, AnyState
from recurra.cells.weights import Drop, Product, check_rate, leaves, replaced
from recurra.cells.wrappers.wrapper import Wrapper
from recurra.errors import ConfigError
from recurra.named import choose


class RecurrentDropoutFixed(NamedTuple):
    cell: Any
    input_mask: Tensor | None


class RecurrentDropout(Wrapper):
    """Recurrent dropout, in two modes.

        variational (Gal & Ghahramani 2016):    U h → U (m ∘ h),   W x → W (n ∘ x)
            one m and one n per sequence, the same at every step and for every gate; `input_rate` is n's own rate
        candidate (Semeniuk et al. 2016):       ĉ → m ∘ ĉ   (ĥ in a GRU)
            a new m at every step; what is stored already is never dropped

    Masks hold 0 with probability `rate` and 1/(1 − rate) otherwise. In evaluation nothing is dropped.
    """

    def __init__(
        self,
        cell: AnyCell,
        *,
        rate: float,
        mode: Literal["variational", "candidate"] = "variational",
        input_rate: float | None = None,
    ) -> None:
        super().__init__(cell)
        self.rate = check_rate(rate, "recurrent_dropout rate")
        self.mode = choose(("variational", "candidate"), mode, "recurrent_dropout mode")
        if self.mode == "candidate" and input_rate is not None:
            raise ConfigError(
                "recurrent_dropout: input_rate has an effect only with mode = 'variational'. Remove it, or set "
                "that mode."
            )
        self.input_rate = self.rate if input_rate is None else check_rate(input_rate, "recurrent_dropout input_rate")
        wanted, what = (Product, "recurrent weights") if mode == "variational" else (Drop, "candidate")
        parameter = next(cell.parameters(), None)
        if parameter is None or not leaves(cell.fixed(1, parameter), wanted):
            raise ConfigError(
                f"recurrent_dropout finds no {what} in '{cell.name}' to mask. A cell shows it by returning a "
                f"{wanted.__name__} from `fixed`; this one cannot use mode = '{mode}'."
            )

    @property
    def variational(self) -> bool:
        return self.training and self.mode == "variational"

    @property
    def on_candidate(self) -> bool:
        return self.training and self.mode == "candidate" and self.rate > 0

    def fixed(self, rows: int, like: Tensor) -> RecurrentDropoutFixed:
        fixed = self.cell.fixed(rows, like)
        if not self.variational:
            return RecurrentDropoutFixed(fixed, None)
        m = functional.dropout(like.new_ones(rows, self.hidden_size), self.rate)
        n = functional.dropout(like.new_ones(rows, self.input_size), self.input_rate)
        return RecurrentDropoutFixed(replaced(fixed, Product, lambda U: U._replace(mask=both(U.mask, m))), n)

    def project(self, x: Tensor, fixed: RecurrentDropoutFixed) -> Tensor:
        if fixed.input_mask is not None:
            x = x * (fixed.input_mask if x.dim() == 2 else fixed.input_mask.unsqueeze(1))
        inputs = self.cell.project(x, fixed.cell)
        if not self.on_candidate:
            return inputs
        # A mask for each step is a block of columns of the inputs.
        m = functional.dropout(inputs.new_ones(*inputs.shape[:-1], self.hidden_size), self.rate)
        return torch.cat([inputs, m], dim=-1)

    def parts(self, inputs: Tensor, state: Any, fixed: RecurrentDropoutFixed) -> AnyState:
        inputs, inner = self.masked(inputs, fixed)
        return self.cell.parts(inputs, state, inner)

    def coefficients(self, inputs: Tensor, fixed: RecurrentDropoutFixed) -> tuple[Tensor, Tensor] | None:
        inputs, inner = self.masked(inputs, fixed)
        return self.cell.coefficients(inputs, inner)

    def masked(self, inputs: Tensor, fixed: RecurrentDropoutFixed) -> tuple[Tensor, Any]:
        """What the wrapped cell gets: its inputs, and its `fixed` with the candidate masks of these steps."""
        if not self.on_candidate:
            return inputs, fixed.cell
        inputs, m = inputs.split([inputs.shape[-1] - self.hidden_size, self.hidden_size], dim=-1)
        return inputs, replaced(fixed.cell, Drop, lambda d: Drop(both(d.mask, m)))

    def bare(self, fixed: RecurrentDropoutFixed) -> tuple[AnyCell, Any] | None:
        return None if self.training else (self.cell, fixed.cell)

    def extra_repr(self) -> str:
        return f"{self.mode}, rate={self.rate}"


def both(first: Tensor | None, second: Tensor) -> Tensor:
    """A mask on top of another one, or alone."""
    return second if first is None else first * second
