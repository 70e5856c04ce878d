"""Merges: how the two directions of a layer become one output."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from recurra.errors import ConfigError
from recurra.named import choose, imported, made


class Merge(nn.Module, ABC):
    """Combines the two directions (B, ..., H) into one output (B, ..., output_size).

    To write your own, implement this constructor and forward, and name it 'package.module:Class'.
    """

    keeps_zeros = False
    """True where two zeros merge to zero, so that padding need not be cleared again."""

    def __init__(self, hidden_size: int, output_size: int | None = None) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.output_size = output_size or hidden_size

    @abstractmethod
    def forward(self, forward: Tensor, backward: Tensor) -> Tensor: ...


class Concat(Merge):
    """[h→; h←], twice as wide."""

    keeps_zeros = True

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size, 2 * hidden_size)

    def forward(self, forward: Tensor, backward: Tensor) -> Tensor:
        return torch.cat([forward, backward], dim=-1)


class Mean(Merge):
    """(h→ + h←) / 2."""

    keeps_zeros = True

    def forward(self, forward: Tensor, backward: Tensor) -> Tensor:
        return (forward + backward) / 2


class Sum(Merge):
    """h→ + h←."""

    keeps_zeros = True

    def forward(self, forward: Tensor, backward: Tensor) -> Tensor:
        return forward + backward


class Max(Merge):
    """The larger of the two, unit by unit."""

    keeps_zeros = True

    def forward(self, forward: Tensor, backward: Tensor) -> Tensor:
        return torch.maximum(forward, backward)


class Projection(Merge):
    """W [h→; h←] + b, back to H."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size)
        self.linear = nn.Linear(2 * hidden_size, hidden_size)

    def forward(self, forward: Tensor, backward: Tensor) -> Tensor:
        return self.linear(torch.cat([forward, backward], dim=-1))


class MeanProjection(Merge):
    """W (h→ + h←) / 2 + b."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size)
        self.linear = nn.Linear(hidden_size, hidden_size)

    def forward(self, forward: Tensor, backward: Tensor) -> Tensor:
        return self.linear((forward + backward) / 2)


MERGES: dict[str, type[Merge]] = {
    "concat": Concat,
    "mean": Mean,
    "sum": Sum,
    "max": Max,
    "projection": Projection,
    "mean_projection": MeanProjection,
}


def build(name: str, hidden_size: int) -> Merge:
    """A merge by name, for directions of that width.

    >>> build("concat", 3).output_size
    6
    """
    if ":" not in str(name):
        return MERGES[choose((*MERGES, "package.module:Class"), name, "merge")](hidden_size)
    kind = imported(name, "merge")
    if not (isinstance(kind, type) and issubclass(kind, Merge)):
        raise ConfigError(
            f"merge = '{name}' is not a merge: it must be a class that inherits from recurra.stacks.merge.Merge."
        )
    return made(kind, name, hidden_size)
