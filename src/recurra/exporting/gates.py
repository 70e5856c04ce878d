"""What the cells of a model compute while they read, as a function of a program: for pages that show gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from recurra.analysis.gates import given_to, ways_of
from recurra.cells import Wrapper
from recurra.programs.inputs import Recordable
from recurra.stacks.recurrent import Recurrent
from recurra.tasks.task import Task

GATES = "gates"


def gates_function(task: Task[Any, Any, Any], network: nn.Module, reads: Recordable) -> list[Recordable]:
    """Every named value of every step, of the stack that reads the input of a function; none where there is no stack.

    Its outputs are called layer, direction and name: 1_forward_h.
    """
    stack = stack_of(task, network)
    if stack is None:
        return []

    def gates(*tensors: Tensor) -> Mapping[str, Tensor]:
        x, *states = given_to(stack, lambda: reads.call(*tensors))
        return {
            f"{number}_{way}_{name}": part.flatten(2)
            for number, layer in enumerate(stack.parts(x, *states), 1)
            for way, parts in zip(ways_of(stack), layer, strict=True)
            for name, part in zip(parts._fields, parts, strict=True)
        }

    return [Recordable(GATES, reads.inputs, gates, reads.most)]


def described(task: Task[Any, Any, Any], network: nn.Module) -> dict[str, Any] | None:
    """What a page says of the stack: its cell, layers and directions."""
    stack = stack_of(task, network)
    if stack is None:
        return None
    cell: Any = stack.cells[-1][0]  # type: ignore[index]  # a ModuleList of cells
    while isinstance(cell, Wrapper):
        cell = cell.cell
    return {"cell": cell.name, "layers": len(stack.cells), "directions": list(ways_of(stack))}


def stack_of(task: Task[Any, Any, Any], network: nn.Module) -> Recurrent | None:
    """The stack whose gates are shown first."""
    found = next(iter(task.stacks(network).values()), None)
    return found if isinstance(found, Recurrent) else None
