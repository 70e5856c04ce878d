"""A small network that sees the query and the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import torch
from torch import Tensor, nn

from recurra.attention.attention import Attention, LookSpec, TermSpec
from recurra.attention.terms.window import Window
from recurra.cells.weights import activation_named, check_size
from recurra.named import check_options


@final
class Additive(Attention):
    """score(q, k) = vᵀ φ(W₁ q + W₂ k) (Bahdanau et al. 2015); one matrix on [q; k] is the same thing.

    size            of v, and of what φ sees; by default that of the query
    activation      φ: tanh, sigmoid, relu, identity, or your own function as 'package.module:function'
    location        φ sees where one has looked too, score(q, k_j, f_j) = vᵀ φ(W₁ q + W₂ k_j + U f_j), f_j the features
                    of a Window around place j, with its options: {of = "last"} is Chorowski et al. (2015),
                    {of = "all", dimensions = 2} the coverage of Zhang et al. (2017) for pictures of formulas

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
        location: Mapping[str, object] | None = None,
        values: int | None = None,
        terms: Sequence[TermSpec] = (),
        look: LookSpec | None = None,
        gate: bool = False,
    ) -> None:
        super().__init__(query_size, memory_size, values=values, terms=terms, look=look, gate=gate)
        size = self.query_size if size is None else check_size(size, "size")
        self.activation = activation
        self.phi = activation_named(activation)
        self.from_query = nn.Linear(self.query_size, size, bias=False)
        self.from_memory = nn.Linear(self.memory_size, size, bias=False)
        self.v = nn.Parameter(torch.empty(size))
        nn.init.uniform_(self.v, -(size**-0.5), size**-0.5)
        self.from_location: nn.Linear | None = None  # U
        if location is not None:
            check_options(Window, "location", location)
            self.location = Window(**location)  # type: ignore[arg-type]  # options that were checked
            self.from_location = nn.Linear(len(self.location.weight), size, bias=False)

    def keys(self, values: Tensor) -> Tensor:
        k = self.from_memory(values)
        return k + k if self.activation == "tanh" else k

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return self._score(self.from_query(query).unsqueeze(2), keys)

    def score_seeing(self, query: Tensor, keys: Tensor, seen: Tensor) -> Tensor:
        assert self.from_location is not None
        return self._score(self.from_query(query).unsqueeze(2) + self.from_location(seen), keys)

    def _score(self, q: Tensor, keys: Tensor) -> Tensor:
        """vᵀ φ(q + k) for what is known of the query, (B, Q, 1 or S, size)."""
        k = keys.unsqueeze(1)  # the sum with q is (B, Q, S, size)
        if self.activation != "tanh":
            return self.phi(q + k) @ self.v
        # tanh a = 2 σ(2a) - 1, and on a CPU torch takes six times as long for tanh as for σ.
        return torch.add(k, q, alpha=2).sigmoid_() @ (self.v + self.v) - self.v.sum()

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, size {len(self.v)}, {self.activation}"
