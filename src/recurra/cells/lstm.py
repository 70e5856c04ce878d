"""The long short-term memory."""

from __future__ import annotations

from typing import Literal, NamedTuple

from torch import Tensor

from recurra.cells.cell import Cell
from recurra.cells.weights import Drop, Init, Product, activation_named, input_weights, set_bias, state_weights
from recurra.named import choose


class LSTMState(NamedTuple):
    h: Tensor  # (B, H)
    c: Tensor  # (B, H)


class LSTMFixed(NamedTuple):
    U: Product
    drop: Drop = Drop()


class LSTMParts(NamedTuple):
    h: Tensor
    c: Tensor
    i: Tensor
    f: Tensor
    candidate: Tensor
    o: Tensor


class LSTM(Cell[LSTMState, LSTMFixed]):
    """The long short-term memory (Hochreiter & Schmidhuber 1997; forget gate of Gers et al. 2000).

        i  = σ(W_i x + U_i h + b_i)        input gate
        f  = σ(W_f x + U_f h + b_f)        forget gate
        ĉ  = tanh(W_c x + U_c h + b_c)     candidate, or σ(…)
        o  = σ(W_o x + U_o h + b_o)        output gate
        c' = f ∘ c + i ∘ ĉ
        h' = o ∘ tanh(c')

    Gates lie in the order i, f, ĉ, o. b_f starts at `forget_bias`.
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
        self.from_input = input_weights(input_size, hidden_size, gates=4, bias=bias, init=input_init)
        self.from_state = state_weights(hidden_size, gates=4, init=state_init)
        set_bias(self.from_input, gate=1, gates=4, value=forget_bias)

    def fixed(self, rows: int, like: Tensor) -> LSTMFixed:
        return LSTMFixed(U=Product(self.from_state))

    def project(self, x: Tensor, fixed: LSTMFixed) -> Tensor:
        return self.from_input(x)

    def parts(self, inputs: Tensor, state: LSTMState, fixed: LSTMFixed) -> LSTMParts:
        a_i, a_f, a_c, a_o = (inputs + fixed.U(state.h)).chunk(4, dim=-1)
        i = a_i.sigmoid()
        f = a_f.sigmoid()
        candidate = fixed.drop(self.phi(a_c))
        o = a_o.sigmoid()
        c = f * state.c + i * candidate
        h = o * c.tanh()
        return LSTMParts(h=h, c=c, i=i, f=f, candidate=candidate, o=o)
