"""The gated recurrent unit, in all its conventions."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from recurra.cells.cell import Cell
from recurra.cells.weights import Drop, Init, Product, activation_named, input_weights, set_bias, state_weights
from recurra.named import choose


class GRUState(NamedTuple):
    h: Tensor  # (B, H)


class GRUFixed(NamedTuple):
    U_rz: Product
    U_h: Product
    drop: Drop = Drop()


class GRUParts(NamedTuple):
    h: Tensor
    r: Tensor
    z: Tensor
    candidate: Tensor


class GRU(Cell[GRUState, GRUFixed]):
    """The gated recurrent unit (Cho et al. 2014), by default the textbook's, which is not torch.nn.GRU.

        r  = σ(W_r x + U_r h + b_r)                 reset gate
        z  = σ(W_z x + U_z h + b_z)                 update gate
        ĥ  = tanh(W_h x + U_h (r ∘ h) + b_h)        candidate, or σ(…);         reset = "before"
             tanh(W_h x + b_h + r ∘ (U_h h + b′))   as in torch and cuDNN;      reset = "after"
        h' = (1 − z) ∘ h + z ∘ ĥ                    update = "take"
             z ∘ h + (1 − z) ∘ ĥ                    as in torch and cuDNN;      update = "keep"

    Gates lie in the order r, z, ĥ. b_z starts at `update_bias`: below 0 with "take", above 0 with "keep", the
    unit remembers longer at first.
    """

    State = GRUState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        reset: Literal["before", "after"] = "before",
        update: Literal["take", "keep"] = "take",
        candidate: Literal["tanh", "sigmoid"] = "tanh",
        bias: bool = True,
        update_bias: float = 0.0,
        input_init: Init = "glorot",
        state_init: Init = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.reset = choose(("before", "after"), reset, "reset")
        self.update = choose(("take", "keep"), update, "update")
        self.candidate = choose(("tanh", "sigmoid"), candidate, "candidate")
        self.phi = activation_named(self.candidate)
        self.from_input = input_weights(input_size, hidden_size, gates=3, bias=bias, init=input_init)
        self.from_state = state_weights(hidden_size, gates=3, init=state_init)
        set_bias(self.from_input, gate=1, gates=3, value=update_bias)
        # Only the reset-after form needs a second bias: there r stands between b_h and b′.
        self.after_bias = nn.Parameter(torch.zeros(hidden_size)) if bias and reset == "after" else None

    def fixed(self, rows: int, like: Tensor) -> GRUFixed:
        gates, candidate = self.from_state.split([2 * self.hidden_size, self.hidden_size])
        return GRUFixed(U_rz=Product(gates), U_h=Product(candidate))

    def project(self, x: Tensor, fixed: GRUFixed) -> Tensor:
        return self.from_input(x)

    def parts(self, inputs: Tensor, state: GRUState, fixed: GRUFixed) -> GRUParts:
        x_rz, x_h = inputs.split([2 * self.hidden_size, self.hidden_size], dim=-1)
        r, z = (x_rz + fixed.U_rz(state.h)).sigmoid().chunk(2, dim=-1)
        if self.reset == "before":
            a_h = x_h + fixed.U_h(r * state.h)
        else:
            recurrent = fixed.U_h(state.h)
            a_h = x_h + r * (recurrent if self.after_bias is None else recurrent + self.after_bias)
        candidate = fixed.drop(self.phi(a_h))
        if self.update == "take":
            h = (1 - z) * state.h + z * candidate
        else:
            h = z * state.h + (1 - z) * candidate
        return GRUParts(h=h, r=r, z=z, candidate=candidate)
