"""Scores: what a model reached on some data."""

from __future__ import annotations

from typing import NamedTuple

from recurra.views.table import Table


class Scores(NamedTuple):
    """What a model reached on some data. `first` names the one that training stops on."""

    values: dict[str, float]
    first: str
    tables: dict[str, Table]
    higher_is_better: bool = True
    loss: float | None = None  # per label, where scoring has found it on the way

    def beats(self, other: float | None) -> bool:
        """Whether the first score is better than another; anything beats nothing, and NaN beats nothing."""
        value = self.values[self.first]
        if other is None or value != value:
            return other is None
        return value > other if self.higher_is_better else value < other
