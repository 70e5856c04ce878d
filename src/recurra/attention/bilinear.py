"""A product with a matrix between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import Tensor, nn

from recurra.attention.attention import Attention, LookSpec, TermSpec
from recurra.attention.products import compared


@final
class Bilinear(Attention):
    """score(q, k) = qᵀ W k, with W of size query_size × memory_size (Luong et al. 2015, "general")."""

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
        self.project = nn.Linear(memory_size, query_size, bias=False)
        # Small, so that the weights begin even: begun at random and peaked, they were found later, or never.
        nn.init.uniform_(self.project.weight, -0.1 * memory_size**-0.5, 0.1 * memory_size**-0.5)

    def keys(self, values: Tensor) -> Tensor:
        return self.project(values)  # W k once for a memory, not at each step

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return compared(query, keys)
