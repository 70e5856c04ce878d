"""The minimal GRU: gates that see the input alone."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from recurra.cells.cell import Cell
from recurra.cells.gru import GRUState
from recurra.cells.weights import Drop, Init, input_weights, set_bias
from recurra.named import choose


class MinFixed(NamedTuple):
    drop: Drop = Drop()


class MinGRUParts(NamedTuple):
    h: Tensor
    z: Tensor
    candidate: Tensor


def positive(a: Tensor) -> Tensor:
    """g(a) = a + ½ where a ≥ 0, σ(a) below: a candidate above 0, as a scan in log space needs it."""
    return torch.where(a >= 0, a + 0.5, a.sigmoid())


class MinGRU(Cell[GRUState, MinFixed]):
    """The minimal GRU (Feng et al. 2024): linear in h, so that a parallel scan can run it.

        z  = σ(W_z x + b_z)
        h̃  = W_h x + b_h                    candidate = "linear"
             g(W_h x + b_h)                 candidate = "positive": g(a) = a + ½ where a ≥ 0, σ(a) below
        h' = (1 − z) ∘ h + z ∘ h̃

    Gates lie in the order z, h̃. b_z starts at `update_bias`.
    """

    State = GRUState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        candidate: Literal["linear", "positive"] = "linear",
        bias: bool = True,
        update_bias: float = 0.0,
        input_init: Init = "glorot",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.candidate = choose(("linear", "positive"), candidate, "candidate")
        self.from_input = input_weights(input_size, hidden_size, gates=2, bias=bias, init=input_init)
        set_bias(self.from_input, gate=0, gates=2, value=update_bias)

    def fixed(self, rows: int, like: Tensor) -> MinFixed:
        return MinFixed()

    def project(self, x: Tensor, fixed: MinFixed) -> Tensor:
        return self.from_input(x)

    def gates(self, inputs: Tensor, fixed: MinFixed) -> tuple[Tensor, Tensor]:
        """z and h̃, for one step or for all."""
        a_z, a_h = inputs.chunk(2, dim=-1)
        z = a_z.sigmoid()
        candidate = fixed.drop(a_h if self.candidate == "linear" else positive(a_h))
        return z, candidate

    def parts(self, inputs: Tensor, state: GRUState, fixed: MinFixed) -> MinGRUParts:
        z, candidate = self.gates(inputs, fixed)
        h = (1 - z) * state.h + z * candidate
        return MinGRUParts(h=h, z=z, candidate=candidate)

    def coefficients(self, inputs: Tensor, fixed: MinFixed) -> tuple[Tensor, Tensor]:
        z, candidate = self.gates(inputs, fixed)
        return 1 - z, z * candidate
