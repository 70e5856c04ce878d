"""Whether the step of a program can be searched in C, and how it is laid out for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from recurra.frozen import NamedTuple
from recurra.programs.program import Function, Named, Program, Value
from recurra.programs.sizes import Size

PRINTED = ("search", "write", "usual")
"""What is printed, by its name."""

MOST_LEAVES = 64
"""States, or what stays the same, at most; c_searching.py has room for as many."""


Usual: TypeAlias = Mapping[str, float | Sequence[int]]
"""Fields of recurra_manner and what they are for a run; those that are left out are 0."""


class Searchable(NamedTuple):
    """The step of a program, as a search takes it."""

    step: Function
    moving: tuple[Named, ...]
    fixed: tuple[Named, ...]
    has_extra: bool
    rows: tuple[str, ...]  # names that say how many rows there are: B and K, or one of its own
    names: tuple[str, ...]  # sizes beside the number of rows
    tokens: Size  # of which log p is given
    places: Size | None  # that are looked at


def searchable(program: Program) -> Searchable | None:
    """How the step of a program is searched; None where it has none that can be."""
    step = program.functions.get("step")
    if step is None or not step.inputs or step.inputs[0].name != "tokens" or {*PRINTED} & {*program.functions}:
        return None
    moving = tuple(each for each in step.inputs if each.name.startswith("state"))
    fixed = tuple(each for each in step.inputs if each.name.startswith("fixed"))
    has_extra = step.inputs[-1].name == "extra"
    if 1 + len(moving) + len(fixed) + has_extra != len(step.inputs) or max(len(moving), len(fixed)) > MOST_LEAVES:
        return None
    values = outputs_of(step)
    rows, known = step.inputs[0].value.shape[0], [each.value for each in moving]
    found = [values.get(f"state{number}") for number in range(len(moving))]
    log_p, weights = values.get("log_p"), values.get("weights")
    if found != known or log_p is None or log_p.type != "float32" or len(log_p.shape) != 2 or log_p.shape[0] != rows:
        return None
    if weights is not None and (weights.type != "float32" or len(weights.shape) != 2 or weights.shape[0] != rows):
        return None
    if len(values) != 1 + len(moving) + (weights is not None):
        return None
    names = tuple(sorted(rows.names))
    if names != ("B", "K") and len(names) != 1:
        return None
    places = None if weights is None else weights.shape[1]
    others = tuple(name for name in step.names if name not in names)
    return Searchable(step, moving, fixed, has_extra, names, others, log_p.shape[1], places)


def outputs_of(function: Function) -> dict[str, Value]:
    """What the outputs of a function look like, as far as they are values of it."""
    values = function.values
    return {name: values[operand] for name, operand in function.outputs if isinstance(operand, int)}
