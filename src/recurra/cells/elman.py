"""Elman's simple recurrent network."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from recurra.cells.cell import Cell
from recurra.cells.weights import Init, Product, activation_named, input_weights, state_weights


class ElmanState(NamedTuple):
    h: Tensor  # (B, H)


class ElmanFixed(NamedTuple):
    U: Product


class Elman(Cell[ElmanState, ElmanFixed]):
    """The simple recurrent network (Elman 1990).

        h' = φ(W x + U h + b)

    φ is tanh, sigmoid, relu, identity, or your own as 'package.module:function'.
    """

    State = ElmanState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        activation: str = "tanh",
        bias: bool = True,
        input_init: Init = "glorot",
        state_init: Init = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.activation = activation
        self.phi = activation_named(activation)
        self.from_input = input_weights(input_size, hidden_size, gates=1, bias=bias, init=input_init)
        self.from_state = state_weights(hidden_size, gates=1, init=state_init)

    def fixed(self, rows: int, like: Tensor) -> ElmanFixed:
        return ElmanFixed(U=Product(self.from_state))

    def project(self, x: Tensor, fixed: ElmanFixed) -> Tensor:
        return self.from_input(x)

    def parts(self, inputs: Tensor, state: ElmanState, fixed: ElmanFixed) -> ElmanState:
        return ElmanState(h=self.phi(inputs + fixed.U(state.h)))
