"""Seeing the weights of the steps before."""

from __future__ import annotations

from typing import Literal, final

from torch import Tensor, nn

from recurra.attention.terms.term import Term
from recurra.attention.terms.window import Window


@final
class Location(Term):
    """Features of where one looked, and what a small network makes of them (Chorowski et al. 2015).

        f_tj = those of a Window around place j              of the last weights, or the sum of all
        term_tj = uᵀ tanh(f_tj)

    The paper's U F is one convolution here, and its map sees these features alone: what there is to see at a place is
    the score's affair. `additive` has an option `location` in which both meet.
    """

    def __init__(
        self, *, filters: int = 10, width: int = 7, of: Literal["last", "all"] = "last", dimensions: Literal[1, 2] = 1
    ) -> None:
        super().__init__()
        self.features = Window(filters=filters, width=width, of=of, dimensions=dimensions)
        self.to_score = nn.Linear(filters, 1, bias=False)

    def start(self, mask: Tensor, rows: int | None = None) -> Tensor:
        return self.features.start(mask, rows)

    def score(self, past: Tensor, mask: Tensor, columns: int | None) -> Tensor:
        return self.to_score(self.features(past, columns).tanh()).squeeze(3)

    def moved(self, past: Tensor, weights: Tensor, columns: int | None) -> Tensor:
        return self.features.moved(past, weights)
