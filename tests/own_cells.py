"""Cells, merges and functions as a user would write them, in the user's own file."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from recurra import Cell
from recurra.cells import Product
from recurra.stacks.merge import Merge


class LeakyState(NamedTuple):
    h: Tensor


class Leaky(Cell[LeakyState, tuple[()]]):
    """A leaky average of the inputs, without a single weight.

    h' = (h + x) / 2
    """

    State = LeakyState

    def parts(self, inputs: Tensor, state: LeakyState, fixed: tuple[()]) -> LeakyState:
        return LeakyState(h=(state.h + inputs) / 2)


class MatchboxState(NamedTuple):
    h: Tensor  # (B, H)
    steps: Tensor  # (B, 1): a state of another width


class MatchboxFixed(NamedTuple):
    U: Product


class Matchbox(Cell[MatchboxState, MatchboxFixed]):
    """An Elman cell that counts its steps.

    n' = n + 1
    h' = sin(W x + U h) / n'
    """

    State = MatchboxState

    def __init__(self, input_size: int, hidden_size: int, *, gain: float = 1.0) -> None:
        super().__init__(input_size, hidden_size)
        self.W = nn.Linear(input_size, hidden_size, bias=False)
        self.U = nn.Parameter(torch.randn(hidden_size, hidden_size) * gain)

    def start(self, rows: int, like: Tensor) -> MatchboxState:
        return MatchboxState(like.new_zeros(rows, self.hidden_size), like.new_zeros(rows, 1))

    def fixed(self, rows: int, like: Tensor) -> MatchboxFixed:
        return MatchboxFixed(Product(self.U))

    def project(self, x: Tensor, fixed: MatchboxFixed) -> Tensor:
        return self.W(x)

    def parts(self, inputs: Tensor, state: MatchboxState, fixed: MatchboxFixed) -> MatchboxState:
        steps = state.steps + 1
        return MatchboxState(h=(inputs + fixed.U(state.h)).sin() / steps, steps=steps)


class BackwardsParts(NamedTuple):
    twice: Tensor
    h: Tensor  # not the first of the parts


class Backwards(Cell[LeakyState, tuple[()]]):
    """A leaky average whose parts begin with another value than its state.

    h' = (h + x) / 2
    """

    State = LeakyState

    def parts(self, inputs: Tensor, state: LeakyState, fixed: tuple[()]) -> BackwardsParts:
        twice = state.h + inputs
        return BackwardsParts(twice=twice, h=twice / 2)


class Difference(Merge):
    """h→ − h←, and one more feature."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size, hidden_size + 1)

    def forward(self, forward: Tensor, backward: Tensor) -> Tensor:
        difference = forward - backward
        return torch.cat([difference, torch.ones_like(difference[..., :1])], dim=-1)


def softsign(a: Tensor) -> Tensor:
    return a / (1 + a.abs())


NOT_A_CELL = 3
