"""The GRU-D: a gated recurrent unit for values that are observed now and then."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from recurra.cells.cell import AnyState, Cell
from recurra.cells.gru import GRUFixed, GRUParts, GRUState
from recurra.cells.weights import Init, Product, check_size, initialise, input_weights, set_bias, state_weights
from recurra.errors import ConfigError

SLOWEST = 0.1
"""Decays start with W_γ between 0 and this: at first a value that is missing loses at most a tenth of itself a step."""


class GRUDState(NamedTuple):
    h: Tensor  # (B, H)
    last: Tensor  # (B, d), x′: of each variable the value that was observed last
    waited: Tensor  # (B, d), a: the time from that observation to this step


class GRUDParts(NamedTuple):
    h: Tensor
    last: Tensor
    waited: Tensor
    r: Tensor
    z: Tensor
    candidate: Tensor
    decay_x: Tensor
    decay_h: Tensor
    imputed: Tensor


class GRUD(Cell[Any, GRUFixed]):
    """The GRU with decay for irregular and missing values (Che et al. 2018).

    At a step it reads [x; m; δ; u]: d values, their masks (1: observed, 0: missing, x is then any finite number),
    the time since the step before, and whatever else is known of the step.

        Δ    = a + δ                                              since each variable was last observed
        γ_x  = exp(−max(0, w_γx ∘ Δ + b_γx))
        γ_h  = exp(−max(0, W_γh Δ + b_γh))
        x̂    = m ∘ x + (1 − m) ∘ (γ_x ∘ x′ + (1 − γ_x) ∘ x̄)
        h̃    = γ_h ∘ h
        r    = σ(W_r [x̂; u] + V_r m + U_r h̃ + b_r)                reset gate
        z    = σ(W_z [x̂; u] + V_z m + U_z h̃ + b_z)                update gate
        ĥ    = tanh(W_h [x̂; u] + V_h m + U_h (r ∘ h̃) + b_h)       candidate
        h'   = (1 − z) ∘ h̃ + z ∘ ĥ
        x″   = m ∘ x + (1 − m) ∘ x′                               the next x′
        a'   = (1 − m) ∘ Δ                                        the next a

    d is `variables`; x̄ is the buffer `mean`, 0 for values that are scaled. It starts at h = 0, x′ = x̄, a = 0. With
    `variables` = 0, as in the layers above the first, nothing is ever missing: the input is u, and the cell the GRU.
    """

    blendable = ("h",)
    reads_gaps = True
    mean: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        variables: int = 0,
        bias: bool = True,
        update_bias: float = 0.0,
        input_init: Init = "glorot",
        state_init: Init = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.variables = d = 0 if variables == 0 else check_size(variables, "variables")
        self.others = input_size - 2 * d - 1 if d else input_size
        if self.others < 0:
            raise ConfigError(
                f"variables = {d} needs an input of at least {2 * d + 1} numbers (values, masks, the time since the "
                f"step before), but input_size is {input_size}."
            )
        self.from_input = input_weights(d + self.others, hidden_size, gates=3, bias=bias, init=input_init)
        self.from_state = state_weights(hidden_size, gates=3, init=state_init)
        set_bias(self.from_input, gate=1, gates=3, value=update_bias)
        self.State = GRUDState if d else GRUState
        if d:
            self.from_mask = nn.Parameter(torch.empty(3 * hidden_size, d))
            initialise(self.from_mask, 3, input_init)
            # Above 0, as Δ is: max(0, ·) passes no gradient to a decay that is 0.
            self.decay_x = nn.Parameter(torch.empty(d).uniform_(0, SLOWEST))
            self.decay_x_bias = nn.Parameter(torch.zeros(d))
            self.decay_h = nn.Parameter(torch.empty(hidden_size, d).uniform_(0, SLOWEST / d))
            self.decay_h_bias = nn.Parameter(torch.zeros(hidden_size))
            self.register_buffer("mean", torch.zeros(d))

    def start(self, rows: int, like: Tensor) -> Any:
        h = like.new_zeros(rows, self.hidden_size)
        if not self.variables:
            return GRUState(h)
        mean = self.mean.to(like).expand(rows, -1)
        return GRUDState(h, last=mean, waited=torch.zeros_like(mean))

    def fixed(self, rows: int, like: Tensor) -> GRUFixed:
        gates, candidate = self.from_state.split([2 * self.hidden_size, self.hidden_size])
        return GRUFixed(U_rz=Product(gates), U_h=Product(candidate))

    def project(self, x: Tensor, fixed: GRUFixed) -> Tensor:
        return x if self.variables else self.from_input(x)

    def parts(self, inputs: Tensor, state: Any, fixed: GRUFixed) -> AnyState:
        if not self.variables:
            return GRUParts(*self.gates(inputs, state.h, fixed))
        x, m, delta, u = inputs.split([self.variables, self.variables, 1, self.others], dim=-1)
        elapsed = state.waited + delta
        decay_x = (-(self.decay_x * elapsed + self.decay_x_bias).relu()).exp()
        decay_h = (-nn.functional.linear(elapsed, self.decay_h, self.decay_h_bias).relu()).exp()
        imputed = m * x + (1 - m) * (decay_x * state.last + (1 - decay_x) * self.mean)
        seen = torch.cat([imputed, u], dim=-1) if self.others else imputed
        projected = self.from_input(seen) + nn.functional.linear(m, self.from_mask)
        h, r, z, candidate = self.gates(projected, decay_h * state.h, fixed)
        last = m * x + (1 - m) * state.last
        waited = (1 - m) * elapsed
        return GRUDParts(h, last, waited, r, z, candidate, decay_x, decay_h, imputed)

    def gates(self, projected: Tensor, h: Tensor, fixed: GRUFixed) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """h', r, z and ĥ, given all that is added to the products with the state."""
        x_rz, x_h = projected.split([2 * self.hidden_size, self.hidden_size], dim=-1)
        r, z = (x_rz + fixed.U_rz(h)).sigmoid().chunk(2, dim=-1)
        candidate = fixed.drop((x_h + fixed.U_h(r * h)).tanh())
        return (1 - z) * h + z * candidate, r, z, candidate
