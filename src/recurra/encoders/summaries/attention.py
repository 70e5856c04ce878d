"""Means that learned queries weigh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from recurra.attention.pooling import QueryPooling
from recurra.encoders.summaries.summary import Summarised, Summary
from recurra.padding import Padded
from recurra.stacks.recurrent import States


@final
class Attention(Summary):
    """s = [s_1; …; s_K],  s_k = Σ_t α_kt h_t,  α_k = softmax_t(q_k · tanh(W h_t + b))

    `queries` is K and `size` the length of a query q_k.
    """

    def __init__(self, input_size: int, states: Sequence[Sequence[int]], *, queries: int = 4, size: int = 128) -> None:
        super().__init__(input_size, states)
        self.pool = QueryPooling(input_size, queries=queries, size=size)
        self.output_size = queries * input_size

    def forward(self, outputs: Padded, states: States) -> Summarised:
        vectors, weights = self.pool(outputs)
        return Summarised(vectors.flatten(1), weights)
