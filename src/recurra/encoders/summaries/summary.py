"""Summary: one vector for a whole sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from recurra.padding import Padded
from recurra.stacks.recurrent import States


class Summarised(NamedTuple):
    """One vector per row, and its attention weights."""

    vector: Tensor  # (B, S)
    weights: Tensor | None = None  # (B, K, T): what each of K queries looked at


class Summary(nn.Module, ABC):
    """Reduces outputs (B, T, H) and final states of a recurrent network to one vector per row (B, output_size).

    A summary is made from H and the sizes of the last layer's final state, per direction and field (an LSTM that reads
    both ways has [[n, n], [n, n]]); what it takes by keyword may be set in a config file. Padding counts nothing,
    whatever it holds; a row without a step gives zeros, or what its states began with.

    >>> import torch
    >>> from recurra.named import find
    >>> mean = find(Summary, "mean")(1, [[1]])
    >>> mean(Padded(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2])), ()).vector.tolist()
    [[2.0]]
    """

    output_size: int

    def __init__(self, input_size: int, states: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.input_size = input_size

    @abstractmethod
    def forward(self, outputs: Padded, states: States) -> Summarised:
        """One vector for each row."""

    def begin(self) -> Tensor | None:
        """What `go_on` gathers before the first step, (1, n); None: this summary needs all steps at once."""
        return None

    def go_on(self, outputs: Padded, states: States, gathered: Tensor) -> tuple[Tensor, Tensor]:
        """The vector (B, output_size) of all steps so far, and what was gathered of them, (B, n).

        `outputs` are those of the next steps, at least one for each row.
        """
        raise NotImplementedError(f"{type(self).__name__} begins with None, so it does not go on")
