"""Seeing the weights of the step before."""

from __future__ import annotations

from typing import final

from torch import Tensor, nn
from torch.nn import functional

from recurra.attention.terms.term import Term
from recurra.cells.weights import check_size
from recurra.errors import ConfigError


@final
class Location(Term):
    """Features of where one looked last, and what a small network makes of them (Chorowski et al. 2015).

        α_0 = 0
        f_tj = b + Σ_i F_i α_{t-1,j+i}                       i = -r … r, a convolution with width = 2r + 1
        term_tj = uᵀ tanh(f_tj)

    `filters` features for each place. The paper's U F is one convolution here, and its map sees these features alone:
    what there is to see at a place is the score's affair.
    """

    def __init__(self, *, filters: int = 10, width: int = 7) -> None:
        super().__init__()
        if check_size(width, "width") % 2 == 0:
            raise ConfigError(
                f"the width of a location term is a place and as many on both sides, so odd: not {width}."
            )
        self.features = nn.Linear(width, check_size(filters, "filters"))  # b, and F_-r … F_r side by side
        self.to_score = nn.Linear(filters, 1, bias=False)

    def start(self, mask: Tensor, rows: int | None = None) -> Tensor:
        return self.to_score.weight.new_zeros(len(mask) if rows is None else rows, mask.shape[1])

    def score(self, past: Tensor, mask: Tensor) -> Tensor:
        if past.shape[2] == 0:
            return past
        width = self.features.in_features
        around = functional.pad(past, (width // 2, width // 2)).unfold(2, width, 1)  # (B, Q, S, width)
        return self.to_score(self.features(around).tanh()).squeeze(3)

    def moved(self, past: Tensor, weights: Tensor) -> Tensor:
        return weights
