"""Pairing: one vector for two sequences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from recurra.padding import Padded
from recurra.stacks.recurrent import Recurrent


class Parts(NamedTuple):
    """What the settings of a model build, each call with new weights."""

    stack: Callable[[int], Recurrent]  # cells over vectors of a size
    encoder: Callable[[int], nn.Module]  # what model.encoder names: a sequence of such vectors to one, (B, output_size)
    dropout: float


class Paired(NamedTuple):
    """One vector per pair, and what the words of one text looked at in the other."""

    vector: Tensor  # (B, output_size)
    weights: Tensor | None = None  # (B, T₂, T₁), or (B, 1, T₁) of the second text as a whole; sums over T₁ are 1
    back: Tensor | None = None  # (B, T₁, T₂): what the words of the first text looked at, where they look too


class Pairing(nn.Module, ABC):
    """Reduces two sequences of vectors, (B, T₁, E) and (B, T₂, E), to one vector per row (B, output_size).

    A pairing is made from E and the `Parts` of a model; what it takes by keyword may be set in a config file. Padding
    counts nothing, whatever it holds; a text without a word is an empty sequence, not an error.
    """

    output_size: int

    def __init__(self, input_size: int, parts: Parts) -> None:
        super().__init__()
        self.input_size = input_size

    @abstractmethod
    def forward(self, first: Padded, second: Padded) -> Paired:
        """One vector for each pair."""

    def read_by_stacks(self, first: Sequence[str], second: Sequence[str]) -> list[list[str]]:
        """What each recurrent stack reads of two texts, in the order in which the stacks were made."""
        return [list(first), list(second)]
