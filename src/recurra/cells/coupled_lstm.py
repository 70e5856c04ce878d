"""The LSTM whose input gate is what the forget gate leaves."""

from __future__ import annotations

from typing import Literal, NamedTuple

from torch import Tensor

from recurra.cells.cell import Cell
from recurra.cells.lstm import LSTMFixed, LSTMState
from recurra.cells.weights import Init, Product, activation_named, input_weights, set_bias, state_weights
from recurra.named import choose


class CoupledLSTMParts(NamedTuple):
    h: Tensor
    c: Tensor
    f: Tensor
    i: Tensor
    candidate: Tensor
    o: Tensor


class CoupledLSTM(Cell[LSTMState, LSTMFixed]):
    """The LSTM with coupled input and forget gates (Greff et al. 2015): a quarter fewer parameters.

        f  = σ(W_f x + U_f h + b_f)        forget gate
        i  = 1 − f                         input gate
        ĉ  = tanh(W_c x + U_c h + b_c)     candidate, or σ(…)
        o  = σ(W_o x + U_o h + b_o)        output gate
        c' = f ∘ c + i ∘ ĉ
        h' = o ∘ tanh(c')

    Gates lie in the order f, ĉ, o. b_f starts at `forget_bias`.
    """

    State = LSTMState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        candidate: Literal["tanh", "sigmoid"] = "tanh",
        bias: bool = True,
        forget_bias: float = 1.0,
        input_init: Init = "glorot",
        state_init: Init = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.candidate = choose(("tanh", "sigmoid"), candidate, "candidate")
        self.phi = activation_named(self.candidate)
        self.from_input = input_weights(input_size, hidden_size, gates=3, bias=bias, init=input_init)
        self.from_state = state_weights(hidden_size, gates=3, init=state_init)
        set_bias(self.from_input, gate=0, gates=3, value=forget_bias)

    def fixed(self, rows: int, like: Tensor) -> LSTMFixed:
        return LSTMFixed(U=Product(self.from_state))

    def project(self, x: Tensor, fixed: LSTMFixed) -> Tensor:
        return self.from_input(x)

    def parts(self, inputs: Tensor, state: LSTMState, fixed: LSTMFixed) -> CoupledLSTMParts:
        a_f, a_c, a_o = (inputs + fixed.U(state.h)).chunk(3, dim=-1)
        f = a_f.sigmoid()
        i = 1 - f
        candidate = fixed.drop(self.phi(a_c))
        o = a_o.sigmoid()
        c = f * state.c + i * candidate
        h = o * c.tanh()
        return CoupledLSTMParts(h=h, c=c, f=f, i=i, candidate=candidate, o=o)
