"""Which scans of a program are an RNN, GRU or LSTM of ONNX: found by trying the equations of these operators.

A cell that ONNX has an operator for computes W x + R h + b for each gate, and then something of each number by itself.
The matrices R stand in the body of the scan, W before it. Which block of them is which gate, and which function comes
after it, is tried: the body of the scan and the equations of an operator are computed from the same random inputs, and
the operator is used if both give the same states. So an LSTM that a user wrote is recognised too, whatever its class,
and no operator is used whose numbers do not agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.programs.in_numpy import InNumpy, computed
from recurra.programs.onnx_gates import Blocks, Chosen, Example, double, fitting
from recurra.programs.program import Function, Number, Operand, Operation, Program, Value
from recurra.programs.sizes import Size

Array: TypeAlias = NDArray[Any]

ROWS = 8
"""So many random inputs are tried."""


class Native(NamedTuple):
    """An operator of ONNX that does what a scan does, forward or backward; G gates of H units, I inputs."""

    operator: str  # RNN, GRU or LSTM
    activations: tuple[str, ...]
    source: Operand  # what it reads, (B, T, I) or (B·T, I)
    W: Array  # (G·H, I)
    R: Array  # (G·H, H)
    B: Array  # (2·G·H,): the biases of W, then those of R
    P: Array | None  # (3·H,): the peepholes of an LSTM, in the order i, o, f
    settings: tuple[tuple[str, int], ...] = ()  # further attributes

    def joins(self, other: Native) -> bool:
        """Whether both are directions of one operator."""
        alike = (self.operator, self.source, self.settings, self.W.shape)
        return alike == (other.operator, other.source, other.settings, other.W.shape)


def native(function: Function, op: Operation, weights: Mapping[str, Array]) -> Native | None:
    """The operator of ONNX that is a scan of a function; None where there is none."""
    states, body = op.details["states"], op.details["body"]
    sizes = [value.shape[1].constant for value in op.results[1:]]
    H = sizes[0]
    if states > 2 or H is None or len(set(sizes)) > 1 or op.results[0].type != "float32":
        return None
    outside = Known(function, weights)
    given = [outside.constant(each) for each in op.operands[2 + states :]]
    inside = Known(body, weights, dict(enumerate(given, 1 + states)))
    read, blocks = affine(outside, op.operands[0]), recurrent(inside, H)
    if read is None or blocks is None or not len(read.W) == len(blocks.R) == body.inputs[0].value.shape[1].constant:
        return None
    shown = examples(inside, states)
    if shown is None:
        return None
    with np.errstate(all="ignore"):
        chosen = next(fitting(shown, blocks, H), None)
    return None if chosen is None else written(chosen, read, blocks, H)


# What a scan reads, and its matrices


class Affine(NamedTuple):
    """W x + b of each step."""

    source: Operand
    W: Array  # (P, I)
    b: Array  # (P,)


def affine(known: Known, operand: Operand) -> Affine | None:
    """An input of a scan as W x + b; None where it is something else."""
    rows = known.shape(operand)[:2]
    op = known.made(known.as_it_was(operand))
    b = None
    if op is not None and op.kind == "add":
        vectors = [known.constant(each) for each in op.operands]
        if sum(each is not None for each in vectors) != 1:
            return None
        place = 0 if vectors[1] is None else 1
        b, op = vectors[place], known.made(known.as_it_was(op.operands[1 - place]))
    if op is None or op.kind != "matmul":
        return None
    source, W = op.operands[0], known.constant(op.operands[1])
    if W is None or W.ndim != 2 or (b is not None and b.shape != W.shape[1:]):
        return None
    if (before := known.made(source)) is not None and before.kind == "reshape":
        shape = known.shape(before.operands[0])
        if len(shape) == 3 and shape[:2] == rows and shape[2].constant == len(W):
            source = before.operands[0]
    return Affine(source, W.T, np.zeros(W.shape[1], W.dtype) if b is None else b)


def recurrent(body: Known, H: int) -> Blocks | None:
    """The matrices of a body of H units, all with so many columns; None where it has others, or too much else."""
    matrices, added, vectors = [], [], []
    for number, op in body.operations.items():
        if op.kind == "matmul" and body.constant(number) is None:
            matrix = body.constant(op.operands[1])
            if matrix is None or matrix.ndim != 2 or len(matrix) != H:
                return None
            matrices.append(matrix.T)
            added.append(body.added_to(number, len(matrix.T)))
        elif op.kind == "mul":
            some = [body.constant(each) for each in op.operands]
            vectors += [each for each in some if each is not None and each.shape == (H,)]
    if not matrices or len(vectors) > 3:
        return None
    return Blocks(np.concatenate(matrices), np.concatenate(added), tuple(vectors))


class Known:
    """The operations of a function by what they make, and what follows from weights alone."""

    def __init__(
        self, function: Function, weights: Mapping[str, Array], given: Mapping[int, Array | None] | None = None
    ) -> None:
        self.function, self.weights, self.values = function, weights, function.values
        self.operations: dict[int, Operation] = {}
        count = len(function.inputs)
        for op in function.operations:
            if len(op.results) == 1:
                self.operations[count] = op
            count += len(op.results)
        self.found: dict[int, Array | None] = dict(given or {})

    def made(self, operand: Operand) -> Operation | None:
        """The operation whose only result this is."""
        return self.operations.get(operand) if isinstance(operand, int) else None

    def as_it_was(self, operand: Operand) -> Operand:
        """What was given another shape."""
        while (op := self.made(operand)) is not None and op.kind == "reshape":
            operand = op.operands[0]
        return operand

    def shape(self, operand: Operand) -> tuple[Size, ...]:
        """The shape of a value; of others ()."""
        return self.values[operand].shape if isinstance(operand, int) else ()

    def constant(self, operand: Operand) -> Array | None:
        """What an operand always is; None where that depends on inputs or sizes."""
        if isinstance(operand, str):
            return self.weights[operand]
        if isinstance(operand, Number):
            return None if isinstance(operand.value, Size) else np.asarray(operand.value)
        if operand not in self.found:
            self.found[operand] = self._computed(operand)
        return self.found[operand]

    def _computed(self, operand: int) -> Array | None:
        op = self.made(operand)
        if op is None:
            return None
        parts = [self.constant(each) for each in op.operands]
        shape = [size.constant for size in op.results[0].shape]
        if any(part is None for part in parts) or any(size is None for size in shape):
            return None
        try:
            whole = tuple(size for size in shape if size is not None)
            return np.asarray(computed(op, parts, whole, {}), op.results[0].type)
        except KeyError:  # a detail of it is a size that only inputs tell
            return None

    def added_to(self, product: int, size: int) -> Array:
        """The vector that is added to a product, or zeros."""
        for op in self.function.operations:
            if op.kind == "add" and product in op.operands:
                [other] = [each for each in op.operands if each != product] or [product]
                vector = self.constant(other)
                if vector is not None and vector.shape == (size,):
                    return vector
        return np.zeros(size, np.float32)


# What is tried


def examples(body: Known, states: int) -> Example | None:
    """What the body of a scan makes of random inputs; None where it needs other sizes than its rows."""
    draws = np.random.default_rng(0)
    # Small numbers tell gates apart; large ones tell whether anything is cut off.
    scales = np.geomspace(0.25, 6, ROWS)[:, None]
    inputs: list[Array] = []
    for number, each in enumerate(body.function.inputs):
        constant, columns = body.constant(number), each.value.shape[-1].constant
        if constant is None and (columns is None or len(each.value.shape) != 2):
            return None
        drawn = draws.standard_normal((ROWS, columns or 0)) * scales
        inputs.append(drawn if constant is None else double(constant))
    used = {each for op in body.operations.values() for each in op.operands if isinstance(each, str)}
    weights = {name: double(body.weights[name]) for name in used}
    try:
        sizes = body.function.sizes([each.shape for each in inputs])
        with np.errstate(all="ignore"):
            after = InNumpy(Program({}, {}), weights).values_of(in_double(body.function), inputs, sizes)
    except (ValueError, KeyError):
        return None
    x, *begun = inputs[: 1 + states]
    return Example(x, tuple(begun), tuple(after))


def in_double(function: Function) -> Function:
    """A function that computes in float64 what it computed in float32."""

    def doubled(value: Value) -> Value:
        return value._replace(type="float64") if value.type == "float32" else value

    operations = tuple(
        replace(
            op,
            results=tuple(map(doubled, op.results)),
            details={
                name: in_double(each) if isinstance(each, Function) else each for name, each in op.details.items()
            },
        )
        for op in function.operations
    )
    inputs = tuple(each._replace(value=doubled(each.value)) for each in function.inputs)
    return Function(inputs, operations, function.outputs)


# As ONNX has it


def written(chosen: Chosen, read: Affine, blocks: Blocks, H: int) -> Native:
    """The weights of a cell in the order and with the signs of an operator."""

    def ordered(array: Array) -> Array:
        parts = []
        for place, sign in zip(chosen.order, chosen.signs, strict=True):
            block = np.zeros_like(array[:H]) if place is None else sign * array[place * H : (place + 1) * H]
            parts.append(block.astype(np.float32))
        return np.concatenate(parts)

    P = None
    if any(chosen.peepholes):
        signs = [chosen.signs[0], chosen.signs[1], chosen.signs[2]]
        vectors = (np.zeros(H, np.float32), *blocks.vectors)
        P = np.concatenate([sign * vectors[place or 0] for sign, place in zip(signs, chosen.peepholes, strict=True)])
        P = P.astype(np.float32)
    B = np.concatenate([ordered(read.b), ordered(blocks.b)])
    W, R = ordered(read.W), ordered(blocks.R)
    return Native(chosen.operator, chosen.activations, read.source, W, R, B, P, chosen.settings)
