"""The sLSTM: exponential gates, normalised and kept in range."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.cells.cell import Cell
from recurra.cells.weights import Drop, Init, Product, check_size, initialise, input_weights, set_bias
from recurra.errors import ConfigError
from recurra.named import choose


class SLSTMState(NamedTuple):
    h: Tensor  # (B, H), as are all
    c: Tensor
    n: Tensor
    m: Tensor


class SLSTMFixed(NamedTuple):
    R: Product
    drop: Drop = Drop()


class SLSTMParts(NamedTuple):
    h: Tensor
    c: Tensor
    n: Tensor
    m: Tensor
    i: Tensor
    f: Tensor
    candidate: Tensor
    o: Tensor


class SLSTM(Cell[SLSTMState, SLSTMFixed]):
    """The scalar LSTM of xLSTM (Beck et al. 2024): exponential gates, a normaliser n, a running scale m.

        [ĩ f̃ z̃ õ] = W x + R h + b              R block-diagonal, one block a head
        z  = tanh(z̃)                           candidate
        o  = σ(õ)
        ℓ  = f̃                                 forget = "exponential"
             log σ(f̃)                          forget = "sigmoid"
        m' = max(ℓ + m, ĩ)
        i  = exp(ĩ − m')                       both gates in units of exp(m')
        f  = exp(ℓ + m − m')
        c' = f ∘ c + i ∘ z
        n' = f ∘ n + i
        h' = o ∘ c' / n'

    All of h, c, n, m start at 0. Gates lie in the order ĩ, f̃, z̃, õ, units head after head.
    """

    State = SLSTMState
    # c and n are kept in units of e^m: averaging them with values of another m would mean nothing.
    blendable = ("h",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        heads: int = 1,
        forget: Literal["exponential", "sigmoid"] = "sigmoid",
        bias: bool = True,
        forget_bias: float = 1.0,
        input_init: Init = "glorot",
        state_init: Init = "orthogonal",
    ) -> None:
        super().__init__(input_size, hidden_size)
        if hidden_size % check_size(heads, "heads"):
            raise ConfigError(f"heads must divide hidden_size = {hidden_size}, but is {heads!r}.")
        self.heads = heads
        self.forget = choose(("exponential", "sigmoid"), forget, "forget")
        self.from_input = input_weights(input_size, hidden_size, gates=4, bias=bias, init=input_init)
        set_bias(self.from_input, gate=1, gates=4, value=forget_bias)
        size = hidden_size // heads
        self.from_state = nn.Parameter(torch.empty(4, heads, size, size))
        initialise(self.from_state.view(4 * heads * size, size), 4 * heads, state_init)

    def fixed(self, rows: int, like: Tensor) -> SLSTMFixed:
        # As one matrix with zeros between the heads: the engines then multiply once, not once a head.
        gates = [torch.block_diag(*gate) for gate in self.from_state]
        return SLSTMFixed(R=Product(torch.cat(gates)))

    def project(self, x: Tensor, fixed: SLSTMFixed) -> Tensor:
        return self.from_input(x)

    def parts(self, inputs: Tensor, state: SLSTMState, fixed: SLSTMFixed) -> SLSTMParts:
        a_i, a_f, a_z, a_o = (inputs + fixed.R(state.h)).chunk(4, dim=-1)
        candidate = fixed.drop(a_z.tanh())
        o = a_o.sigmoid()
        log_forget = a_f if self.forget == "exponential" else functional.logsigmoid(a_f)
        m = torch.maximum(log_forget + state.m, a_i)
        i = (a_i - m).exp()
        f = (log_forget + state.m - m).exp()
        c = f * state.c + i * candidate
        n = f * state.n + i
        # n is 0 only where i underflows before anything was stored; c is 0 there too, and so is h.
        h = o * c / torch.where(n > 0, n, 1)
        return SLSTMParts(h=h, c=c, n=n, m=m, i=i, f=f, candidate=candidate, o=o)
