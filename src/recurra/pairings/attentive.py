"""A question as a whole looks at the words of a document."""

from __future__ import annotations

from typing import final

from torch import nn

from recurra.attention.attention import Attention
from recurra.encoders.summaries import state_sizes
from recurra.encoders.summaries.last import Last
from recurra.named import built
from recurra.padding import Padded
from recurra.pairings.looking import sized
from recurra.pairings.pairing import Paired, Pairing, Parts
from recurra.settings import Part, about


@final
class Attentive(Pairing):
    """The attentive reader (Hermann et al. 2015): the first text is a document, the second a question about it.

        y_t = R_d(a)_t;   u = [→q_N; ←q_1], the last states of R_q(b)
        m_t = tanh(W_d y_t + W_u u)
        s   = softmax_t(wᵀ m_t)
        r   = Σ_t s_t y_t
        g   = tanh(W_r r + W_g u)

    u is of the last layer alone: model.mix, and a way past that layer, are for the document.

    attention       additive as above, or any other similarity of u and y_t
    """

    def __init__(self, input_size: int, parts: Parts, *, attention: Part = "additive") -> None:
        super().__init__(input_size, parts)
        self.document, self.question = parts.stack(input_size), parts.stack(input_size)
        self.last = Last(self.question.output_size, state_sizes(self.question))
        read, asked = self.document.output_size, self.last.output_size
        with about("attention"):
            self.attention = built(Attention, sized(attention, read), asked, read)
        self.from_seen = nn.Linear(self.attention.context_size, read, bias=False)  # W_r
        self.from_question = nn.Linear(asked, read, bias=False)  # W_g
        self.output_size = read

    def forward(self, first: Padded, second: Padded) -> Paired:
        y, _ = self.document(first)
        u = self.last(*self.question(second)).vector
        memory = self.attention.remember(y.values, y.mask)
        r, weights, *_ = self.attention.step(u, memory, self.attention.start(memory))
        return Paired((self.from_seen(r) + self.from_question(u)).tanh(), weights.unsqueeze(1))
