"""Term: what is added to scores because of where the attention has looked before."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Term(nn.Module, ABC):
    """e_tj + term(past_{t-1})_j, and past_t from past_{t-1} and the weights α_t.

    Values of a term at masked positions are ignored, and the weights it gets are exactly 0 there. The positions of a
    grid are given row by row, with `columns` per row; None: a sequence.
    """

    @abstractmethod
    def start(self, mask: Tensor, rows: int | None = None) -> Tensor:
        """(N, n): what is known before the first step of N rows, by default one for each row of the mask (B, S)."""

    @abstractmethod
    def score(self, past: Tensor, mask: Tensor, columns: int | None) -> Tensor:
        """(B, Q, S): what is added to the scores of Q rows for each source, whose past is (B, Q, n)."""

    @abstractmethod
    def moved(self, past: Tensor, weights: Tensor, columns: int | None) -> Tensor:
        """(N, n): the past after one more step, with weights (N, S)."""
