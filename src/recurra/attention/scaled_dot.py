"""A product of query and key that does not grow with their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import Tensor

from recurra.attention.attention import Attention, LookSpec, TermSpec
from recurra.attention.dot import check_equal
from recurra.attention.products import compared


@final
class ScaledDot(Attention):
    """score(q, k) = q · k / √d, for a query and a memory of one size d (Vaswani et al. 2017). It has no weights."""

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        values: int | None = None,
        terms: Sequence[TermSpec] = (),
        look: LookSpec | None = None,
        gate: bool = False,
    ) -> None:
        super().__init__(query_size, memory_size, values=values, terms=terms, look=look, gate=gate)
        check_equal("scaled_dot", query_size, memory_size)

    def keys(self, values: Tensor) -> Tensor:
        return values * self.memory_size**-0.5  # k / √d once for a memory, not at each step

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return compared(query, keys)
