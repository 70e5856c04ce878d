"""Looking on from where one looked last."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional

from recurra.attention.terms.term import Term
from recurra.errors import ConfigError


@final
class Monotonic(Term):
    """A penalty on the squared distance from the place where a steady reader would look next.

        p_0 = -1,  p_t = Σ_j α_tj j                          the place that was looked at, from 0
        term_tj = -a (j - p_{t-1} - δ)²,  a = -log σ(a')     δ = 1 and a = `strength` at first, both learned

    By itself it would make weights of a bell √(1 / 2a) places wide: 2.2 at first. In a grid, j is the column.
    """

    def __init__(self, *, strength: float = 0.1) -> None:
        super().__init__()
        if not 0 < strength < math.inf:
            raise ConfigError(f"the strength of a monotonic term must be a number above 0, but is {strength}.")
        self.strength = nn.Parameter(torch.tensor(-math.log(math.expm1(strength))))
        self.pace = nn.Parameter(torch.tensor(1.0))

    def start(self, mask: Tensor, rows: int | None = None) -> Tensor:
        return self.pace.new_full((len(mask) if rows is None else rows, 1), -1.0)

    def score(self, past: Tensor, mask: Tensor, columns: int | None) -> Tensor:
        j = numbered(mask.shape[1], columns, past)
        return functional.logsigmoid(self.strength) * (j - (past + self.pace)).square()

    def moved(self, past: Tensor, weights: Tensor, columns: int | None) -> Tensor:
        return (weights @ numbered(weights.shape[1], columns, weights)).unsqueeze(1)


def numbered(places: int, columns: int | None, like: Tensor) -> Tensor:
    """The number of each place, or of its column: that of a place in a grid would change with the padding beside it."""
    j = torch.arange(places, device=like.device)
    return (j if columns is None else j % columns).to(like.dtype)
