"""Tensors of a trace seen as rows: which row each number belongs to, and where it stands in the value of that row."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor, fx

from recurra.engines.values import NoPlan, Value


class Layout:
    """Which row each number of a tensor belongs to."""

    def __init__(self, rows: Tensor, count: int) -> None:
        self.rows = rows
        self.count = count

    @functools.cached_property
    def positions(self) -> Tensor:
        """(rows, numbers of a row): where the numbers of each row lie in the flattened tensor, in order."""
        order = self.rows.flatten().argsort(stable=True)
        if order.numel() % self.count:
            raise NoPlan("its step does not treat all rows alike")
        order = order.view(self.count, -1)
        if not torch.equal(self.rows.flatten()[order], torch.arange(self.count).unsqueeze(1).expand_as(order)):
            raise NoPlan("its step does not treat all rows alike")
        return order

    @functools.cached_property
    def places(self) -> Tensor:
        """The place of each number within its row, counted in order."""
        found = torch.empty_like(self.rows).flatten()
        found[self.positions] = torch.arange(self.positions.shape[1]).expand_as(self.positions)
        return found.view(self.rows.shape)

    @functools.cached_property
    def dimension(self) -> int:
        """The one dimension along which the row changes."""
        changes = [d for d in range(self.rows.dim()) if not bool((self.rows == self.rows.narrow(d, 0, 1)).all())]
        if len(changes) != 1:
            raise NoPlan("its step arranges rows over more than one dimension")
        return changes[0]


@dataclass(frozen=True, eq=False)
class Rows:
    """A tensor of the trace: which number of which row's value lies where. Without a layout all rows share it."""

    value: Value
    places: Tensor  # in the value
    layout: Layout | None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.places.shape)

    @property
    def is_constant(self) -> bool:
        return self.value.op == "constant"


@dataclass(frozen=True)
class After:
    """A node that depends on sums over rows: evaluated by torch once, after the loop."""

    node: fx.Node
