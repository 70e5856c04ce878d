"""Weights of 8 or 16 bits in place of 32, matrix by matrix: as narrow as what the matrix computes allows.

A matrix is what products with a weight, or with a view of one, multiply by; and a table of which rows are taken. What
is computed with each kind is measured on inputs that a model meets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.programs.in_numpy import InNumpy, computed, narrow_product, widened
from recurra.programs.program import Function, Operand, Operation, Program
from recurra.programs.shapes import MOST_INNER

Array = NDArray[Any]

Width = Literal["float32", "bf16", "int8"]

NARROWEST: tuple[Width, ...] = ("int8", "bf16")

LARGEST_ERROR = {"int8": 0.02, "bf16": 0.005}
"""What is lost by a matrix at most: the length of the error beside that of the result."""

LEAST = 1024
"""A matrix of fewer numbers stays as it is."""

MOST_ROWS = 512
"""Rows of the left side of a product on which it is measured."""

VIEWS = ("permute", "slice", "reshape")


class Matrix(NamedTuple):
    """A matrix, a row for each number of the result (or of the table), and how it is written."""

    name: str
    array: Array
    is_table: bool


class Chosen(NamedTuple):
    """What became of a matrix: its kind, and what each kind loses."""

    name: str
    width: Width
    errors: Mapping[Width, float]


def bfloat16(array: Array) -> Array:
    """The upper halves of float32 numbers, rounded to the nearest, of two as near to the even one.

    >>> widened(bfloat16(np.array([1.00390625, -3.0], np.float32))).tolist()
    [1.0, -3.0]
    """
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def eight_bits(array: Array) -> tuple[Array, Array]:
    """Each row as whole numbers of -127 to 127, and the scales of the rows."""
    most = np.abs(array).max(1, initial=0).astype(np.float32)
    scales = np.where(most > 0, most / np.float32(127), np.float32(1))
    return np.rint(array / scales[:, None]).clip(-127, 127).astype(np.int8), scales


class Narrowing:
    """The matrices of a program, and what they multiply when it runs."""

    def __init__(self, program: Program, weights: Mapping[str, Array]) -> None:
        self.program, self.weights = program, weights
        self.matrices: dict[str, Matrix] = {}
        self.places: dict[int, str] = {}  # an operation, by its id, and the name of its matrix
        for function in program.functions.values():
            self._find(function)
        self.seen: dict[str, list[Array]] = {}

    def _find(self, function: Function) -> None:
        known: dict[int, tuple[str, Array]] = {}  # values that are views of weights, and the names of these
        number = len(function.inputs)

        def constant(operand: Operand) -> tuple[str, Array] | None:
            if isinstance(operand, str):
                return operand, self.weights[operand]
            return known.get(operand) if isinstance(operand, int) else None

        for op in function.operations:
            first = constant(op.operands[0]) if op.operands else None
            if op.kind in VIEWS and first is not None:
                shape = tuple(size.constant or 0 for size in op.results[0].shape)
                known[number] = first[0], computed(op, [first[1]], shape, {})
            elif op.kind == "matmul" and len(op.results[0].shape) == 2:
                if (right := constant(op.operands[1])) is not None:
                    self._add(op, right[0], right[1].T, is_table=False)
            elif op.kind == "take" and first is not None and first[1].ndim == 2:
                self._add(op, first[0], first[1], is_table=True)
            elif op.kind == "scan":
                self._find(op.details["body"])
            number += len(op.results)

    def _add(self, op: Operation, name: str, array: Array, *, is_table: bool) -> None:
        if array.dtype != np.float32 or array.size < LEAST or not np.isfinite(array).all():
            return
        if array.shape[1] > MOST_INNER:
            return
        array = np.ascontiguousarray(array)
        while name in self.matrices and not np.array_equal(self.matrices[name].array, array):
            name += "'"
        self.matrices.setdefault(name, Matrix(name, array, is_table))
        self.places[id(op)] = name

    def watching(self) -> InNumpy:
        """The program by NumPy; what its matrices multiply is kept."""
        return Watching(self)

    def chosen(self, least: Width) -> dict[str, Chosen]:
        """The narrowest kind of each matrix that loses little enough; none is narrower than `least`."""
        found = {}
        for name, matrix in self.matrices.items():
            errors = {kind: self.error(matrix, kind) for kind in NARROWEST}
            kinds: Sequence[Width] = {"int8": NARROWEST, "bf16": NARROWEST[1:]}.get(least, ())
            width: Width = next((kind for kind in kinds if errors[kind] <= LARGEST_ERROR[kind]), "float32")
            found[name] = Chosen(name, width, errors)
        return found

    def error(self, matrix: Matrix, kind: str) -> float:
        """What is lost: the length of the error beside that of what is computed."""
        x = np.concatenate(self.seen.get(matrix.name) or [np.zeros((0, matrix.array.shape[1]), np.float32)])
        given = narrow(matrix.array, kind)
        right: Array
        if matrix.is_table or not len(x):
            right, found = matrix.array, widened(given[0])
            if kind == "int8":
                found = found * given[1][:, None]
        else:
            right, found = x @ matrix.array.T, narrow_product(x, widened(given[0]), *given[1:])
        length = float(np.linalg.norm(right.astype(np.float64)))
        return float(np.linalg.norm((found - right).astype(np.float64))) / length if length else 0.0

    def narrowed(self, chosen: Mapping[str, Chosen]) -> tuple[Program, dict[str, Array]]:
        """The program with narrow weights, and what these are."""
        weights = dict(self.weights)
        for name, choice in chosen.items():
            if choice.width != "float32":
                parts = narrow(self.matrices[name].array, choice.width)
                weights |= dict(zip(names_of(name), parts, strict=False))

        def change(op: Operation) -> Operation:
            choice = chosen.get(self.places.get(id(op), ""))
            if op.kind == "scan":
                return replace(op, details={**op.details, "body": changed(op.details["body"], change)})
            if choice is None or choice.width == "float32":
                return op
            narrow_names = names_of(choice.name)[: 2 if choice.width == "int8" else 1]
            others = (narrow_names[0], op.operands[1]) if op.kind == "take" else (op.operands[0], narrow_names[0])
            return Operation(f"narrow_{op.kind}", (*others, *narrow_names[1:]), op.results)

        functions = {name: pruned(changed(each, change)) for name, each in self.program.functions.items()}
        used = {name for function in functions.values() for name in weights_of(function)}
        kept = {name: array for name, array in weights.items() if name in used}
        kinds = {"uint16": "bfloat16"}
        shapes = {name: (kinds.get(str(array.dtype), str(array.dtype)), array.shape) for name, array in kept.items()}
        return Program.from_json(Program(functions, shapes).to_json()), kept


class Watching(InNumpy):
    """A program by NumPy, of which the left sides of products are kept."""

    def __init__(self, narrowing: Narrowing) -> None:
        super().__init__(narrowing.program, narrowing.weights)
        self.narrowing = narrowing

    def computed(
        self, op: Operation, operands: Sequence[Any], shape: tuple[int, ...], sizes: Mapping[str, int]
    ) -> Array:
        name = self.narrowing.places.get(id(op))
        if name is not None and op.kind == "matmul":
            seen = self.narrowing.seen.setdefault(name, [])
            if sum(map(len, seen)) < MOST_ROWS:
                seen.append(np.array(operands[0][:MOST_ROWS]))
        return super().computed(op, operands, shape, sizes)


def narrow(array: Array, kind: str) -> tuple[Array, ...]:
    return eight_bits(array) if kind == "int8" else (bfloat16(array),)


def names_of(name: str) -> tuple[str, str]:
    """How a narrow matrix and its scales are called among the weights."""
    return f"{name}.narrow", f"{name}.scales"


def changed(function: Function, change: Callable[[Operation], Operation]) -> Function:
    return replace(function, operations=tuple(map(change, function.operations)))


def weights_of(function: Function) -> set[str]:
    found = {operand for _, operand in function.outputs if isinstance(operand, str)}
    for op in function.operations:
        found |= {operand for operand in op.operands if isinstance(operand, str)}
        if op.kind == "scan":
            found |= weights_of(op.details["body"])
    return found


def pruned(function: Function) -> Function:
    """The function without operations of which nothing is used."""
    needed = {operand for _, operand in function.outputs if isinstance(operand, int)}
    starts, number = [], len(function.inputs)
    for op in function.operations:
        starts.append(number)
        number += len(op.results)
    kept = []
    for start, op in reversed(list(zip(starts, function.operations, strict=True))):
        if needed & set(range(start, start + len(op.results))):
            needed |= {operand for operand in op.operands if isinstance(operand, int)}
            kept.append((start, op))
    places = {number: number for number in range(len(function.inputs))}
    operations: list[Operation] = []

    def moved(operand: Operand) -> Operand:
        return places[operand] if isinstance(operand, int) else operand

    for start, op in reversed(kept):
        first = len(places)
        details = {**op.details, "body": pruned(op.details["body"])} if op.kind == "scan" else op.details
        operations.append(replace(op, operands=tuple(map(moved, op.operands)), details=details))
        places |= {start + each: first + each for each in range(len(op.results))}
    outputs = tuple((name, moved(operand)) for name, operand in function.outputs)
    return replace(function, operations=tuple(operations), outputs=outputs)
