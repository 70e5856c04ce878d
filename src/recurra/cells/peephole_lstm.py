"""The LSTM whose gates see the cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.cells.cell import Cell
from recurra.cells.lstm import LSTMFixed, LSTMParts, LSTMState
from recurra.cells.weights import Init, Product, activation_named, input_weights, set_bias, state_weights
from recurra.errors import ConfigError
from recurra.named import choose

GATES = ("i", "f", "o")


class PeepholeLSTM(Cell[LSTMState, LSTMFixed]):
    """The LSTM whose gates also see the cell (Gers & Schmidhuber 2000).

        i  = σ(W_i x + U_i h + P_i c + b_i)       input gate
        f  = σ(W_f x + U_f h + P_f c + b_f)       forget gate
        ĉ  = tanh(W_c x + U_c h + b_c)            candidate, or σ(…)
        c' = f ∘ c + i ∘ ĉ
        o  = σ(W_o x + U_o h + P_o c' + b_o)      output gate
        h' = o ∘ tanh(c')

    P is diagonal, or a matrix with peephole = "full"; it stands only in the gates that `gates` names.
    output_sees = "previous" puts P_o c for P_o c'. Gates lie in the order i, f, ĉ, o.
    """

    State = LSTMState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        peephole: Literal["diagonal", "full"] = "diagonal",
        gates: Sequence[str] = GATES,
        output_sees: Literal["current", "previous"] = "current",
        candidate: Literal["tanh", "sigmoid"] = "tanh",
        bias: bool = True,
        forget_bias: float = 1.0,
        input_init: Init = "glorot",
        state_init: Init = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.peephole = choose(("diagonal", "full"), peephole, "peephole")
        self.output_sees = choose(("current", "previous"), output_sees, "output_sees")
        self.candidate = choose(("tanh", "sigmoid"), candidate, "candidate")
        self.phi = activation_named(self.candidate)
        self.from_input = input_weights(input_size, hidden_size, gates=4, bias=bias, init=input_init)
        self.from_state = state_weights(hidden_size, gates=4, init=state_init)
        set_bias(self.from_input, gate=1, gates=4, value=forget_bias)
        self.from_cell = nn.ParameterDict()
        for gate in gates:
            if choose(GATES, gate, "a gate of gates") in self.from_cell:
                raise ConfigError(f"gates = {list(gates)} names '{gate}' twice.")
            # Peepholes start at zero: at first the cell is an LSTM.
            shape = (hidden_size,) if peephole == "diagonal" else (hidden_size, hidden_size)
            self.from_cell[gate] = nn.Parameter(torch.zeros(shape))

    def fixed(self, rows: int, like: Tensor) -> LSTMFixed:
        return LSTMFixed(U=Product(self.from_state))

    def project(self, x: Tensor, fixed: LSTMFixed) -> Tensor:
        return self.from_input(x)

    def peep(self, gate: str, a: Tensor, c: Tensor) -> Tensor:
        """a + P c, or a where the gate has no peephole."""
        if gate not in self.from_cell:
            return a
        P = self.from_cell[gate]
        return a + (P * c if P.dim() == 1 else functional.linear(c, P))

    def parts(self, inputs: Tensor, state: LSTMState, fixed: LSTMFixed) -> LSTMParts:
        a_i, a_f, a_c, a_o = (inputs + fixed.U(state.h)).chunk(4, dim=-1)
        i = self.peep("i", a_i, state.c).sigmoid()
        f = self.peep("f", a_f, state.c).sigmoid()
        candidate = fixed.drop(self.phi(a_c))
        c = f * state.c + i * candidate
        o = self.peep("o", a_o, c if self.output_sees == "current" else state.c).sigmoid()
        h = o * c.tanh()
        return LSTMParts(h=h, c=c, i=i, f=f, candidate=candidate, o=o)
