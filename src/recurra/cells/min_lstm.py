"""The minimal LSTM: gates that see the input alone."""

from __future__ import annotations

from typing import Literal, NamedTuple

from torch import Tensor
from torch.nn import functional

from recurra.cells.cell import Cell
from recurra.cells.gru import GRUState
from recurra.cells.min_gru import MinFixed, positive
from recurra.cells.weights import Init, input_weights, set_bias
from recurra.named import choose


class MinLSTMParts(NamedTuple):
    h: Tensor
    f: Tensor
    i: Tensor
    candidate: Tensor


class MinLSTM(Cell[GRUState, MinFixed]):
    """The minimal LSTM (Feng et al. 2024): linear in h, so that a parallel scan can run it.

        f  = σ(W_f x + b_f)
        i  = σ(W_i x + b_i)
        h̃  = W_h x + b_h                    candidate = "linear"
             g(W_h x + b_h)                 candidate = "positive": g(a) = a + ½ where a ≥ 0, σ(a) below
        h' = (f ∘ h + i ∘ h̃) / (f + i)

    The share f / (f + i) is computed as σ(log f − log i), which holds where both gates underflow.
    Gates lie in the order f, i, h̃. b_f starts at `forget_bias`.
    """

    State = GRUState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        candidate: Literal["linear", "positive"] = "linear",
        bias: bool = True,
        forget_bias: float = 1.0,
        input_init: Init = "glorot",
    ) -> None:
        super().__init__(input_size, hidden_size)
        self.candidate = choose(("linear", "positive"), candidate, "candidate")
        self.from_input = input_weights(input_size, hidden_size, gates=3, bias=bias, init=input_init)
        set_bias(self.from_input, gate=0, gates=3, value=forget_bias)

    def fixed(self, rows: int, like: Tensor) -> MinFixed:
        return MinFixed()

    def project(self, x: Tensor, fixed: MinFixed) -> Tensor:
        return self.from_input(x)

    def share(self, inputs: Tensor, fixed: MinFixed) -> tuple[Tensor, Tensor]:
        """f / (f + i) and h̃, for one step or for all."""
        a_f, a_i, a_h = inputs.chunk(3, dim=-1)
        share = (functional.logsigmoid(a_f) - functional.logsigmoid(a_i)).sigmoid()
        candidate = fixed.drop(a_h if self.candidate == "linear" else positive(a_h))
        return share, candidate

    def parts(self, inputs: Tensor, state: GRUState, fixed: MinFixed) -> MinLSTMParts:
        a_f, a_i, _ = inputs.chunk(3, dim=-1)
        f = a_f.sigmoid()
        i = a_i.sigmoid()
        share, candidate = self.share(inputs, fixed)
        h = share * state.h + (1 - share) * candidate
        return MinLSTMParts(h=h, f=f, i=i, candidate=candidate)

    def coefficients(self, inputs: Tensor, fixed: MinFixed) -> tuple[Tensor, Tensor]:
        share, candidate = self.share(inputs, fixed)
        return share, (1 - share) * candidate
