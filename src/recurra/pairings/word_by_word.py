"""Each word of the second text looks at the words of the first, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import nn

from recurra.padding import Padded
from recurra.pairings.conditioned import DELIMITER, Conditioned, StartState
from recurra.pairings.looking import Looking
from recurra.pairings.pairing import Paired, Pairing, Parts
from recurra.settings import Part


@final
class WordByWord(Pairing):
    """Conditional encoding with word-by-word attention (Rocktäschel et al. 2016).

        Y, s = R₁(a);   h_1 … h_N = R₂([δ; b]) from s
        M_t = tanh(W_y Y + (W_h h_t + W_r r_{t−1}) ⊗ 1)         r_0 = 0
        α_t = softmax(wᵀ M_t)
        r_t = Y α_tᵀ + tanh(W_t r_{t−1})
        h*  = tanh(W_p r_N + W_x h_N)

    state           what R₂ starts with: "cell", the memory c, or "all", h and c
    attention       additive as above, or any other similarity of [h_t; r_{t−1}] and Y
    """

    def __init__(
        self, input_size: int, parts: Parts, *, state: StartState = "cell", attention: Part = "additive"
    ) -> None:
        super().__init__(input_size, parts)
        self.reader = Conditioned(input_size, parts, state)
        read, last = self.reader.first.output_size, self.reader.last.output_size
        self.looking = Looking(attention, read, read)
        self.from_seen = nn.Linear(read, read, bias=False)  # W_p
        self.from_last = nn.Linear(last, read, bias=False)  # W_x
        self.output_size = read

    def forward(self, first: Padded, second: Padded) -> Paired:
        read = self.reader(first, second)
        r, weights = self.looking(read.second, read.first)
        return Paired((self.from_seen(r) + self.from_last(read.last)).tanh(), weights)

    def read_by_stacks(self, first: Sequence[str], second: Sequence[str]) -> list[list[str]]:
        return [list(first), [DELIMITER, *second]]
