"""Look: how the scores of an attention become weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from torch import Tensor, nn


class Looked(NamedTuple):
    """Weights, and what was left to chance."""

    weights: Tensor  # (B, [heads,] Q, S): exactly 0 where the mask is False
    chance: Tensor | None = None  # (B, Q, 2): log α of the places that were drawn, and the entropy of α; None: no draws


class Look(nn.Module, ABC):
    """α_t from the scores e_t of step t, counted from 0. Without one, α_t = softmax(e_t) over all real places.

    A look is created from the size of a query. Keyword arguments are options of a config file.
    """

    counts: ClassVar[bool] = False
    """Whether it needs the numbers of steps."""

    def __init__(self, query_size: int) -> None:
        super().__init__()
        self.query_size = query_size

    @abstractmethod
    def forward(self, scores: Tensor, queries: Tensor, mask: Tensor, steps: Tensor | None, grid: bool) -> Looked:
        """Weights from scores (B, [heads,] Q, S), queries (B, Q, query_size), the mask (B, S) and the numbers of steps
        (B, Q) where `counts`. `grid`: the places have rows and columns."""
