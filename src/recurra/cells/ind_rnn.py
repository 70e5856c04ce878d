"""The independently recurrent network: each unit sees only its own past."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from recurra.cells.cell import Cell
from recurra.cells.elman import ElmanFixed, ElmanState
from recurra.cells.weights import Init, Product, activation_named, check_size, input_weights


class IndRNN(Cell[ElmanState, ElmanFixed]):
    """The independently recurrent network (Li et al. 2018).

        h' = φ(W x + u ∘ h + b),   |u| ≤ 2^(1/horizon)

    φ is relu unless set. The bound keeps what a unit holds from more than doubling over `horizon` steps.
    """

    State = ElmanState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        activation: str = "relu",
        horizon: int = 1000,
        bias: bool = True,
        input_init: Init = "glorot",
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_size(horizon, "horizon")
        self.activation = activation
        self.phi = activation_named(activation)
        self.bound = 2.0 ** (1 / horizon)
        self.from_input = input_weights(input_size, hidden_size, gates=1, bias=bias, init=input_init)
        self.from_state = nn.Parameter(torch.empty(hidden_size).uniform_(0, self.bound))

    def fixed(self, rows: int, like: Tensor) -> ElmanFixed:
        u: Tensor = Clamp.apply(self.from_state, self.bound)  # type: ignore[no-untyped-call]
        return ElmanFixed(U=Product(u))

    def project(self, x: Tensor, fixed: ElmanFixed) -> Tensor:
        return self.from_input(x)

    def parts(self, inputs: Tensor, state: ElmanState, fixed: ElmanFixed) -> ElmanState:
        return ElmanState(h=self.phi(inputs + fixed.U(state.h)))

    def coefficients(self, inputs: Tensor, fixed: ElmanFixed) -> tuple[Tensor, Tensor] | None:
        if self.activation != "identity":
            return None
        # h' = W x + b + U(h), and U is diagonal: what it makes of 1 is what it multiplies h by.
        ones = inputs.new_ones(len(inputs), self.hidden_size)
        return fixed.U(ones).unsqueeze(1), inputs


class Clamp(torch.autograd.Function):
    """u clamped to ±bound, with a gradient that lets a u beyond the bound come back but go no further out."""

    generate_vmap_rule = True

    @staticmethod
    def forward(u: Tensor, bound: float) -> Tensor:
        return u.clamp(-bound, bound)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        u, ctx.bound = inputs
        ctx.save_for_backward(u)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (u,), (gradient,) = ctx.saved_tensors, gradients
        # Descent moves u against the gradient: where u is too large, only a positive gradient brings it back.
        outward = (u.abs() > ctx.bound) & (gradient * u < 0)
        return gradient.masked_fill(outward, 0), None
