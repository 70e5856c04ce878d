"""A small network that sees the query and the key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn

from recurra.attention.attention import Attention, TermSpec
from recurra.cells.weights import activation_named, check_size


@final
class Additive(Attention):
    """score(q, k) = vᵀ φ(W₁ q + W₂ k) (Bahdanau et al. 2015); one matrix on [q; k] is the same thing.

    size            of v, and of what φ sees; by default that of the query
    activation      φ: tanh, sigmoid, relu, identity, or your own function as 'package.module:function'

    It is the one score that needs `size` numbers for each pair of a query and a place.

    >>> attention = Additive(3, 4, size=5, activation="relu")
    >>> memory = attention.remember(torch.randn(1, 6, 4), torch.ones(1, 6, dtype=torch.bool))
    >>> attention.step(torch.randn(1, 3), memory).context.shape
    torch.Size([1, 4])
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        size: int | None = None,
        activation: str = "tanh",
        values: int | None = None,
        terms: Sequence[TermSpec] = (),
    ) -> None:
        super().__init__(query_size, memory_size, values=values, terms=terms)
        size = self.query_size if size is None else check_size(size, "size")
        self.activation = activation
        self.phi = activation_named(activation)
        self.from_query = nn.Linear(self.query_size, size, bias=False)
        self.from_memory = nn.Linear(self.memory_size, size, bias=False)
        self.v = nn.Parameter(torch.empty(size))
        nn.init.uniform_(self.v, -(size**-0.5), size**-0.5)

    def keys(self, values: Tensor) -> Tensor:
        k = self.from_memory(values)
        return k + k if self.activation == "tanh" else k

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        q, k = self.from_query(query).unsqueeze(2), keys.unsqueeze(1)  # their sum is (B, Q, S, size)
        if self.activation != "tanh":
            return self.phi(q + k) @ self.v
        # tanh a = 2 σ(2a) - 1, and on a CPU torch takes six times as long for tanh as for σ.
        return torch.add(k, q, alpha=2).sigmoid_() @ (self.v + self.v) - self.v.sum()

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, size {len(self.v)}, {self.activation}"
