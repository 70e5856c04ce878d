"""A product of query and key after a matrix each, with one head or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import Tensor, nn

from recurra.attention.attention import Attention, LookSpec, TermSpec
from recurra.attention.products import compared
from recurra.cells.weights import check_size


@final
class ProjectedDot(Attention):
    """score_i(q, k) = (U_i q) · (W_i k) / √d, for each head i = 1 … n (Vaswani et al. 2017).

    Head i averages the i-th of n equal shares of the values' features, and the shares lie side by side in the context.
    The weights of several heads that are handed on, and that terms see, are their mean.

    size      d, the rows of each U_i and W_i; by default the query's features divided by n, rounded up
    heads     n

    >>> import torch
    >>> attention = ProjectedDot(3, 4, size=5, heads=2)
    >>> memory = attention.remember(torch.randn(1, 6, 4), torch.ones(1, 6, dtype=torch.bool))
    >>> memory.keys.shape, attention.step(torch.randn(1, 3), memory).context.shape
    (torch.Size([1, 2, 6, 5]), torch.Size([1, 4]))
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        size: int | None = None,
        heads: int = 1,
        values: int | None = None,
        terms: Sequence[TermSpec] = (),
        look: LookSpec | None = None,
        gate: bool = False,
    ) -> None:
        super().__init__(query_size, memory_size, values=values, terms=terms, look=look, gate=gate, heads=heads)
        self.size = -(-self.query_size // self.heads) if size is None else check_size(size, "size")
        self.from_query = nn.Linear(self.query_size, self.heads * self.size, bias=False)
        self.from_memory = nn.Linear(self.memory_size, self.heads * self.size, bias=False)

    def keys(self, values: Tensor) -> Tensor:
        k = self.from_memory(values) * self.size**-0.5
        # (U q) · (W k) = q · (Uᵀ W k): with one head a step has no matrix of its own.
        return k @ self.from_query.weight if self.heads == 1 else self.split(k).contiguous()

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return compared(query if self.heads == 1 else self.split(self.from_query(query)), keys)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, size {self.size}, {self.heads} heads"
