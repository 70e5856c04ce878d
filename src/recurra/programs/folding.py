"""Embeddings multiplied by the weights that read them, once, when a program is written.

    take(E, ids) W  =  take(E W, ids)

A row of the product is looked up in place of computed. Between the two may lie a factor, a mask that puts zeros in the
place of rows, and another shape. Only where the new table is small: one of all words of a language would be many times
as large as what it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.programs.narrowing import pruned
from recurra.programs.program import Function, Number, Operand, Operation, Program, Value
from recurra.programs.sizes import Size

MOST = 1 << 18
"""Numbers of a table, at most: 1 MB, of which a core has a copy near by."""


class Read(NamedTuple):
    """A product of rows of a table: which table, what lies between, from the product backward, and what it is by."""

    table: str
    ids: Operand
    between: tuple[int, ...]  # numbers of operations
    weight: str
    is_turned: bool  # the weight is written the other way round


def folded(program: Program, weights: Mapping[str, NDArray[Any]]) -> tuple[Program, dict[str, NDArray[Any]]]:
    """The program with such products looked up, and its weights, without those that it no longer reads."""
    found = dict(weights)
    functions = {name: fold(function, found) for name, function in program.functions.items()}
    names = {name for function in functions.values() for name in names_of(function)}
    kept = {name: array for name, array in found.items() if name in names}
    return Program(functions, {name: (str(array.dtype), array.shape) for name, array in kept.items()}), kept


def fold(function: Function, weights: dict[str, NDArray[Any]]) -> Function:
    """A function with its products folded; the tables are put among the weights."""
    made = operations_by_value(function)
    operations: list[Operation] = []
    number = len(function.inputs)
    new: dict[int, int] = {value: value for value in range(number)}  # old values as they are numbered now
    count = number

    def moved(operand: Operand) -> Operand:
        return new[operand] if isinstance(operand, int) else operand

    for op in function.operations:
        read = read_of(op, function, made, weights)
        if read is None:
            operations.append(replace(op, operands=tuple(map(moved, op.operands))))
            for place in range(len(op.results)):
                new[number + place] = count + place
            count += len(op.results)
        else:
            columns = op.results[0].shape[-1]
            steps = [Operation("take", (table_of(read, weights), moved(read.ids)), (), {})]
            steps += [function.operations[each] for each in reversed(read.between)]
            for step in steps:
                if step.kind == "take":
                    ids = function.values[read.ids].shape if isinstance(read.ids, int) else ()
                    shape = (*ids, columns)
                    step = replace(step, results=(Value("float32", shape),))
                else:
                    shape = (*step.results[0].shape[:-1], columns)
                    last = chained(step)
                    operands = tuple(
                        count - 1 if place == last else moved(each) for place, each in enumerate(step.operands)
                    )
                    step = replace(step, operands=operands, results=(Value("float32", shape),))
                operations.append(step)
                count += 1
            new[number] = count - 1
        number += len(op.results)
    outputs = tuple((name, moved(operand)) for name, operand in function.outputs)
    return pruned(without_detours(Function(function.inputs, tuple(operations), outputs)))


def without_detours(function: Function) -> Function:
    """The same where a bias is added to rows as they lie: not to another shape of them, which is then changed back."""
    made, operations = operations_by_value(function), [*function.operations]
    values = function.values
    for place, op in enumerate(operations):
        if op.kind != "reshape" or op.operands[0] not in made:
            continue
        added = operations[made[op.operands[0]]]
        if added.kind != "add" or added.operands[0] not in made or not isinstance(added.operands[1], str):
            continue
        before = operations[made[added.operands[0]]]
        if before.kind == "reshape" and isinstance(before.operands[0], int):
            rows = values[before.operands[0]]
            if rows.shape == op.results[0].shape and added.results[0].shape[-1] == rows.shape[-1]:
                operations[place] = Operation("add", (before.operands[0], added.operands[1]), op.results)
    return replace(function, operations=tuple(operations))


def operations_by_value(function: Function) -> dict[int, int]:
    """The operation, by its number, of which each value is the first result."""
    found, number = {}, len(function.inputs)
    for place, op in enumerate(function.operations):
        found[number] = place
        number += len(op.results)
    return found


def chained(op: Operation) -> int | None:
    """The operand that goes on in a chain from a table to a product, row by row; None: the operation is no link."""
    if op.results[0].type != "float32":
        return None
    if op.kind == "reshape":
        return 0
    if op.kind == "mul" and isinstance(op.operands[1], Number) and isinstance(op.operands[0], int):
        return 0
    if op.kind == "where" and isinstance(op.operands[1], Number) and op.operands[1].value == 0:
        return 2 if isinstance(op.operands[2], int) else None
    return None


def read_of(
    op: Operation, function: Function, made: Mapping[int, int], weights: Mapping[str, NDArray[Any]]
) -> Read | None:
    """How a product reads a table; None where it is no such product, or the new table would be large."""
    if op.kind != "matmul" or len(op.results[0].shape) != 2:
        return None
    left, right = op.operands
    is_turned = False
    if isinstance(right, int) and right in made:
        turning = function.operations[made[right]]
        if turning.kind != "permute" or tuple(turning.details["order"]) != (1, 0):
            return None
        right, is_turned = turning.operands[0], True
    if not isinstance(right, str) or not isinstance(left, int):
        return None
    inner = weights[right].shape[1 if is_turned else 0]
    between: list[int] = []
    while left in made:
        place = made[left]
        before = function.operations[place]
        if before.kind == "take":
            table, ids = before.operands
            if not isinstance(table, str) or weights[table].ndim != 2 or weights[table].dtype != np.float32:
                return None
            is_small = weights[table].shape[0] * weights[right].size // inner <= MOST
            return Read(table, ids, tuple(between), right, is_turned) if is_small else None
        next_ = chained(before)
        if next_ is None or before.results[0].shape[-1] != Size.of(inner):
            return None
        if before.kind == "where":
            mask = before.operands[0]
            shape = function.values[mask].shape if isinstance(mask, int) else None
            if shape is None or not shape or shape[-1] != Size.of(1):
                return None
        between.append(place)
        after = before.operands[next_]
        if not isinstance(after, int) or function.values[after].shape[-1:] != (Size.of(inner),):
            return None
        left = after
    return None


def table_of(read: Read, weights: dict[str, NDArray[Any]]) -> str:
    """The name of a table times the weight, which is made where it is not yet there."""
    name = f"{read.table} by {read.weight}"
    if name not in weights:
        by = weights[read.weight].T if read.is_turned else weights[read.weight]
        weights[name] = (weights[read.table].astype(np.float64) @ by.astype(np.float64)).astype(np.float32)
    return name


def names_of(function: Function) -> set[str]:
    """The weights that a function reads, those in bodies of scans too."""
    found = {operand for _, operand in function.outputs if isinstance(operand, str)}
    for op in function.operations:
        found |= {operand for operand in op.operands if isinstance(operand, str)}
        if op.kind == "scan":
            found |= names_of(op.details["body"])
    return found
