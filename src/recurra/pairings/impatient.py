"""Each word of a question looks at the words of a document again."""

from __future__ import annotations

from typing import final

from torch import nn

from recurra.encoders.summaries import state_sizes
from recurra.encoders.summaries.last import Last
from recurra.padding import Padded
from recurra.pairings.looking import Looking
from recurra.pairings.pairing import Paired, Pairing, Parts
from recurra.settings import Part


@final
class Impatient(Pairing):
    """The impatient reader (Hermann et al. 2015): the first text is a document, the second a question about it.

        y_t = R_d(a)_t;   q_i = R_q(b)_i;   u = [→q_N; ←q_1]
        m_{i,t} = tanh(W_d y_t + W_r r_{i−1} + W_q q_i)         r_0 = 0
        s_i = softmax_t(wᵀ m_{i,t})
        r_i = Σ_t s_{i,t} y_t + tanh(W_rr r_{i−1})
        g   = tanh(W_g r_N + W_u u)

    attention       additive as above, or any other similarity of [q_i; r_{i−1}] and y_t
    """

    def __init__(self, input_size: int, parts: Parts, *, attention: Part = "additive") -> None:
        super().__init__(input_size, parts)
        self.document, self.question = parts.stack(input_size), parts.stack(input_size)
        self.last = Last(self.question.output_size, state_sizes(self.question))
        read = self.document.output_size
        self.looking = Looking(attention, self.question.output_size, read)
        self.from_seen = nn.Linear(read, read, bias=False)  # W_g
        self.from_question = nn.Linear(self.last.output_size, read, bias=False)  # W_u
        self.output_size = read

    def forward(self, first: Padded, second: Padded) -> Paired:
        y, _ = self.document(first)
        q, states = self.question(second)
        r, weights = self.looking(q, y)
        u = self.last(q, states).vector
        return Paired((self.from_seen(r) + self.from_question(u)).tanh(), weights)
