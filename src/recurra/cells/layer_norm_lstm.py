"""The LSTM with layer normalisation."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.cells.cell import Cell
from recurra.cells.lstm import LSTMFixed, LSTMParts, LSTMState
from recurra.cells.weights import Init, Product, activation_named, input_weights, state_weights
from recurra.named import choose


class LayerNormLSTM(Cell[LSTMState, LSTMFixed]):
    """The LSTM with layer normalisation (Ba et al. 2016).

        [a_i a_f a_c a_o] = LN(W x; g₁) + LN(U h; g₂) + b
        i, f, o = σ(a_i), σ(a_f), σ(a_o)
        ĉ  = tanh(a_c), or σ(a_c)
        c' = f ∘ c + i ∘ ĉ
        h' = o ∘ tanh(LN(c'; g₃, b₃))

        LN(a; g, b) = g ∘ (a − mean(a)) / √(var(a) + 1e-5) + b

    The first two normalise the whole vector of 4H, or each gate by itself with per_gate = true.
    Gates lie in the order i, f, ĉ, o.
    """

    State = LSTMState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        per_gate: bool = False,
        candidate: Literal["tanh", "sigmoid"] = "tanh",
        bias: bool = True,
        forget_bias: float = 1.0,
        input_init: Init = "glorot",
        state_init: Init = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.per_gate = per_gate
        self.candidate = choose(("tanh", "sigmoid"), candidate, "candidate")
        self.phi = activation_named(self.candidate)
        self.from_input = input_weights(input_size, hidden_size, gates=4, bias=False, init=input_init)
        self.from_state = state_weights(hidden_size, gates=4, init=state_init)
        self.input_gain = nn.Parameter(torch.ones(4 * hidden_size))
        self.state_gain = nn.Parameter(torch.ones(4 * hidden_size))
        self.cell_gain = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(4 * hidden_size)) if bias else None
        self.cell_bias = nn.Parameter(torch.zeros(hidden_size)) if bias else None
        if self.bias is not None:
            nn.init.constant_(self.bias.chunk(4)[1].detach(), forget_bias)

    def normalise(self, a: Tensor, gain: Tensor, bias: Tensor | None = None) -> Tensor:
        """LN(a; gain, bias) over all gates together, or over each."""
        if not self.per_gate:
            return functional.layer_norm(a, a.shape[-1:], gain, bias)
        normal = functional.layer_norm(a.unflatten(-1, (4, -1)), (self.hidden_size,)).flatten(-2) * gain
        return normal if bias is None else normal + bias

    def fixed(self, rows: int, like: Tensor) -> LSTMFixed:
        return LSTMFixed(U=Product(self.from_state))

    def project(self, x: Tensor, fixed: LSTMFixed) -> Tensor:
        return self.from_input(x)

    def parts(self, inputs: Tensor, state: LSTMState, fixed: LSTMFixed) -> LSTMParts:
        # W x is normalised here rather than in `project`: in half precision a fast engine would round it once more.
        from_input = self.normalise(inputs, self.input_gain, self.bias)
        a_i, a_f, a_c, a_o = (from_input + self.normalise(fixed.U(state.h), self.state_gain)).chunk(4, dim=-1)
        i = a_i.sigmoid()
        f = a_f.sigmoid()
        candidate = fixed.drop(self.phi(a_c))
        o = a_o.sigmoid()
        c = f * state.c + i * candidate
        h = o * functional.layer_norm(c, (self.hidden_size,), self.cell_gain, self.cell_bias).tanh()
        return LSTMParts(h=h, c=c, i=i, f=f, candidate=candidate, o=o)
