"""Zoneout: now and then a unit keeps its old state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from recurra.cells.cell import AnyCell, AnyState, fields
from recurra.cells.weights import check_rate
from recurra.cells.wrappers.wrapper import Wrapper
from recurra.errors import ConfigError
from recurra.named import did_you_mean


class Zoneout(Wrapper):
    """Zoneout (Krueger et al. 2016): units keep their old state at random.

        s' = m ∘ s + (1 − m) ∘ s̃,   m ~ Bernoulli(rate) for each unit and step

    for each state s that the cell would set to s̃; in evaluation m = rate. `rate` is one number for all states,
    or a table with a rate of its own for each, such as {h = 0.05, c = 0.5}.
    """

    def __init__(self, cell: AnyCell, *, rate: float | Mapping[str, float]) -> None:
        super().__init__(cell)
        names = fields(cell.State)
        may = names if cell.blendable is None else cell.blendable
        if not isinstance(rate, Mapping):
            rate = dict.fromkeys(names, rate)
        for name in rate:
            if name not in names:
                raise ConfigError(f"'{cell.name}' has no state '{name}' to zone out. {did_you_mean(name, names)}")
            if name not in may:
                raise ConfigError(
                    f"zoneout cannot keep the state '{name}' of '{cell.name}': its scale changes at every step. Give "
                    f"a rate for {', '.join(may)} alone: rate = {{{may[0]} = …}}."
                )
        self.rates = {name: check_rate(rate[name], f"zoneout rate of {name}", below_one=False) for name in rate}
        self.zoned = tuple(name for name in names if self.rates.get(name, 0) > 0)

    def project(self, x: Tensor, fixed: Any) -> Tensor:
        inputs = self.cell.project(x, fixed)
        if not self.training:
            return inputs
        # Masks change with every step, so they travel as further columns of the inputs, one block per state.
        like = inputs[..., :1]
        masks = [
            torch.rand_like(like.expand(*like.shape[:-1], size)).lt(self.rates[name]).to(inputs.dtype)
            for name, size in zip(self.zoned, self.sizes(self.start(0, inputs)), strict=True)
        ]
        return torch.cat([inputs, *masks], dim=-1)

    def parts(self, inputs: Tensor, state: Any, fixed: Any) -> AnyState:
        inputs, masks = self.masks(inputs, state)
        parts: Any = self.cell.parts(inputs, state, fixed)
        zoned = {}
        for name, m in zip(self.zoned, masks, strict=True):
            zoned[name] = m * getattr(state, name) + (1 - m) * getattr(parts, name)
        return parts._replace(**zoned)

    def coefficients(self, inputs: Tensor, fixed: Any) -> tuple[Tensor, Tensor] | None:
        """m ∘ h + (1 − m) ∘ (decay ∘ h + inflow), in the same form."""
        inputs, masks = self.masks(inputs, self.start(0, inputs))
        found = self.cell.coefficients(inputs, fixed)
        if found is None:
            return None
        decay, inflow = found
        for m in masks:  # of its one state, if that is zoned
            decay, inflow = m + (1 - m) * decay, (1 - m) * inflow
        return decay, inflow

    def masks(self, inputs: Tensor, state: AnyState) -> tuple[Tensor, Sequence[Tensor | float]]:
        """The inputs of the wrapped cell, and m for each zoned state."""
        if not self.training:
            return inputs, [self.rates[name] for name in self.zoned]
        sizes = self.sizes(state)
        inputs, *masks = inputs.split([inputs.shape[-1] - sum(sizes), *sizes], dim=-1)
        return inputs, masks

    def sizes(self, state: AnyState) -> list[int]:
        return [getattr(state, name).shape[-1] for name in self.zoned]

    def bare(self, fixed: Any) -> tuple[AnyCell, Any] | None:
        return None if self.zoned else (self.cell, fixed)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={rate}" for name, rate in self.rates.items())
