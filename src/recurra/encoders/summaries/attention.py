"""Means that learned queries weigh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from recurra.attention.pooling import QueryPooling
from recurra.encoders.summaries.summary import Summarised, Summary
from recurra.padding import Padded
from recurra.settings import Part
from recurra.stacks.recurrent import States


@final
class Attention(Summary):
    """s = [s_1; …; s_K],  s_k = Σ_t α_kt v_t,  α_k = softmax_t(q_k · tanh(W h_t + b)),  v_t = h_t

    `queries` is K and `size` the length of a query q_k. `similarity` names an attention, such as "scaled_dot" or a
    table with its options, whose score takes the place of q · tanh(W h + b); `values` is the size of v_t = V h_t.
    """

    def __init__(
        self,
        input_size: int,
        states: Sequence[Sequence[int]],
        *,
        queries: int = 4,
        size: int | None = None,
        similarity: Part | None = None,
        values: int | None = None,
    ) -> None:
        super().__init__(input_size, states)
        self.pool = QueryPooling(input_size, queries=queries, size=size, similarity=similarity, values=values)
        self.output_size = queries * self.pool.output_size

    def forward(self, outputs: Padded, states: States) -> Summarised:
        vectors, weights = self.pool(outputs)
        return Summarised(vectors.flatten(1), weights)
