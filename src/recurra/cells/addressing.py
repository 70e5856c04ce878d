"""What cells with an external memory share: a controller, and memory that is found by content."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from recurra.cells.cell import AnyCell, AnyState, fields
from recurra.errors import ConfigError

Spec: TypeAlias = str | Mapping[str, Any]

EMPTY = 1e-6
"""What every number of a memory is at the start: not 0, so that a cosine has a direction."""

SMALLEST = 1e-8
"""Added to the product of two norms."""


def controller_of(spec: Spec, input_size: int, hidden_size: int) -> AnyCell:
    """The cell that controls the heads; any but one that has a memory of its own."""
    from recurra.cells import build  # which imports this file

    cell = build(spec, input_size, hidden_size)
    if "memory" in fields(cell.State):
        raise ConfigError(f"controller = '{cell.name}' has an external memory itself: use a cell such as 'lstm'.")
    return cell


@cache
def named_values(name: str, *names: str) -> type[Any]:
    """A NamedTuple of these fields, the same for the same names: the fields of a controller are known by its cell."""
    return namedtuple(name, names)


def of_controller(cell: AnyCell) -> tuple[str, ...]:
    """The fields of a controller's state, as fields of the whole."""
    return tuple(f"controller_{name}" for name in fields(cell.State))


def controlled(cell: AnyCell, seen: Tensor, state: Any, fixed: Any) -> AnyState:
    """The state of a controller after one step with `seen`, (B, I + reads); `state` is that of the whole."""
    before = cell.State(*(getattr(state, name) for name in of_controller(cell)))
    after: AnyState = cell.step(cell.project(seen, fixed), before, fixed)
    return after


def content(keys: Tensor, strengths: Tensor, memory: Tensor) -> Tensor:
    """softmax_i(β cos(k, M_i)): keys (B, R, W), strengths (B, R) and memory (B, N, W) to (B, R, N).

    >>> content(torch.tensor([[[1.0, 0.0]]]), torch.tensor([[50.0]]), torch.eye(2)[None]).round().tolist()
    [[[1.0, 0.0]]]
    """
    dots = keys @ memory.transpose(1, 2)
    lengths = norm(keys).unsqueeze(2) * norm(memory).unsqueeze(1)
    return (strengths.unsqueeze(2) * dots / (lengths + SMALLEST)).softmax(-1)


def norm(vectors: Tensor) -> Tensor:
    """|v|, with the derivative 0 where v is 0."""
    square = vectors.square().sum(-1)
    return torch.where(square > 0, square, 1).sqrt() * (square > 0)


def heads_of(size: int, outputs: int) -> nn.Linear:
    """The product that gives heads all they need, with a bias of zeros."""
    linear = nn.Linear(size, outputs)
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear
