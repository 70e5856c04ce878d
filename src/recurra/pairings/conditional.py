"""The second text is read by a network that starts with what was remembered of the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import nn

from recurra.attention.attention import Attention
from recurra.named import built
from recurra.padding import Padded
from recurra.pairings.conditioned import DELIMITER, Conditioned, StartState
from recurra.pairings.looking import sized
from recurra.pairings.pairing import Paired, Pairing, Parts
from recurra.settings import Part, about


@final
class Conditional(Pairing):
    """Conditional encoding, alone or with attention of the last state (Rocktäschel et al. 2016).

        Y, s = R₁(a);   h_1 … h_N = R₂([δ; b]) from s
        h* = h_N                                                              attention = "none"
        α = softmax(score(h_N, Y)),  r = Y αᵀ,  h* = tanh(W_p r + W_x h_N)    any other; in the paper, additive

    state           what R₂ starts with: "cell", the memory c, or "all", h and c
    """

    def __init__(self, input_size: int, parts: Parts, *, state: StartState = "cell", attention: Part = "none") -> None:
        super().__init__(input_size, parts)
        self.reader = Conditioned(input_size, parts, state)
        last, read = self.reader.last.output_size, self.reader.first.output_size
        self.output_size = last
        self.attention: Attention | None = None
        if attention != "none":
            with about("attention"):
                self.attention = built(Attention, sized(attention, read), last, read)
            self.output_size = read
            self.from_seen = nn.Linear(self.attention.context_size, read, bias=False)  # W_p
            self.from_last = nn.Linear(last, read, bias=False)  # W_x

    def forward(self, first: Padded, second: Padded) -> Paired:
        read = self.reader(first, second)
        if self.attention is None:
            return Paired(read.last)
        memory = self.attention.remember(read.first.values, read.first.mask)
        r, weights, *_ = self.attention.step(read.last, memory, self.attention.start(memory))
        return Paired((self.from_seen(r) + self.from_last(read.last)).tanh(), weights.unsqueeze(1))

    def read_by_stacks(self, first: Sequence[str], second: Sequence[str]) -> list[list[str]]:
        return [list(first), [DELIMITER, *second]]
