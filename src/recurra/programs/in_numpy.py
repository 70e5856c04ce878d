"""Programs run by NumPy: the oracle of all other ways to run them, and the way where there is no C compiler."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.programs.inputs import typed
from recurra.programs.program import NARROW, Function, Operand, Operation, Program
from recurra.programs.sizes import Size

Array: TypeAlias = NDArray[Any]
Sizes: TypeAlias = Mapping[str, int]

erf = np.vectorize(math.erf, otypes=[np.float64])


def rounded(x: Array) -> Array:
    found: Array = np.rint(x)
    return found


UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "reciprocal": lambda x: 1 / x,
    "sigmoid": lambda x: np.tanh(x * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5),
    "erf": lambda x: erf(x).astype(x.dtype) if x.size else x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "abs": np.absolute,
    "round": rounded,
    "relu": lambda x: np.maximum(x, 0),
    "not": np.logical_not,
    **{
        name: getattr(np, name)
        for name in ("tanh", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh")
    },
    **{name: getattr(np, name) for name in ("cosh", "sqrt", "sign", "floor", "ceil", "trunc")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "atan2": np.arctan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "floor_divide": np.floor_divide,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}

REDUCED: dict[str, Callable[..., Array]] = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "any": np.any,
    "all": np.all,
}


class InNumpy:
    """A program with its weights, run by NumPy.

    >>> from recurra.programs.program import Named, Number, Value
    >>> T = Size.named("T")
    >>> x = Value("float32", (T,))
    >>> twice = Function((Named("x", x),), (Operation("mul", (0, Number(2.0)), (x,)),), (("y", 1),))
    >>> InNumpy(Program({"twice": twice}, {}), {}).run("twice", [np.array([1, 2], np.float32)])[0].tolist()
    [2.0, 4.0]
    """

    name = "numpy"

    def __init__(self, program: Program, weights: Mapping[str, Array]) -> None:
        self.program = program
        kinds = {name: kind for name, (kind, _) in program.weights.items()}
        self.weights = {name: widened(array) if kinds.get(name) in NARROW else array for name, array in weights.items()}

    def run(self, name: str, inputs: Sequence[Array]) -> list[Array]:
        """The outputs of a function, from inputs of the right types."""
        function = self.program.functions[name]
        given = typed(function, inputs)
        try:
            sizes = function.sizes([each.shape for each in given])
            with np.errstate(all="ignore"):
                return self.values_of(function, given, sizes)
        except (ValueError, IndexError) as error:
            raise DataError(f"the program cannot compute {name} from these inputs ({error}).") from error

    def values_of(self, function: Function, inputs: Sequence[Array], sizes: Sizes) -> list[Array]:
        known: list[Any] = list(inputs)

        def value_of(operand: Operand) -> Array:
            if isinstance(operand, int):
                return known[operand]
            if isinstance(operand, str):
                return self.weights[operand]
            value = operand.value
            return value.at(sizes) if isinstance(value, Size) else value  # type: ignore[return-value]

        for op in function.operations:
            operands = [value_of(each) for each in op.operands]
            if op.kind == "scan":
                known += self.scanned(op, operands, sizes)
                continue
            found = self.computed(op, operands, tuple(size.at(sizes) for size in op.results[0].shape), sizes)
            known.append(np.asarray(found, op.results[0].type))
        return [np.asarray(value_of(operand)) for _, operand in function.outputs]

    def computed(self, op: Operation, operands: Sequence[Any], shape: tuple[int, ...], sizes: Sizes) -> Array:
        """One operation; `shape` is that of its result."""
        return computed(op, operands, shape, sizes)

    def scanned(self, op: Operation, operands: Sequence[Array], sizes: Sizes) -> list[Array]:
        x, lengths, *rest = operands
        states, given = [*rest[: op.details["states"]]], rest[op.details["states"] :]
        rows, steps, _ = x.shape
        backward, body = op.details["backward"], op.details["body"]
        outputs = np.zeros((rows, steps, states[0].shape[1]), op.results[0].type)
        every = np.arange(rows)
        shortest = int(lengths.min(initial=steps))
        for t in range(int(lengths.max(initial=0))):
            place: Any = np.maximum(lengths - 1 - t, 0) if backward else t
            new = self.values_of(body, [x[every, place], *states, *given], sizes)
            if t < shortest:
                states = new
                outputs[every, place] = states[0]
                continue
            real = (t < lengths)[:, None]
            states = [np.where(real, now, then) for now, then in zip(new, states, strict=True)]
            here = np.flatnonzero(t < lengths)
            outputs[here, place[here] if backward else t] = states[0][here]
        return [outputs, *states]


def computed(op: Operation, operands: Sequence[Any], shape: tuple[int, ...], sizes: Sizes) -> Array:
    """One operation; `shape` is that of its result."""
    kind, details = op.kind, op.details
    first: Any = operands[0] if operands else None
    if kind == "cast":
        return np.asarray(first).astype(op.results[0].type)
    if kind in UNARY:
        return UNARY[kind](np.asarray(first))
    if kind in BINARY:
        return BINARY[kind](*operands)
    if kind == "where":
        return np.where(*operands)
    if kind in REDUCED:
        return REDUCED[kind](first, axis=details["dims"]).reshape(shape)
    if kind in ("argmax", "argmin"):
        moved = np.moveaxis(first, details["dims"], range(-len(details["dims"]), 0))
        flat = moved.reshape(*moved.shape[: moved.ndim - len(details["dims"])], -1)
        return getattr(flat, kind)(-1).reshape(shape)
    return MOVED[kind](op, operands, shape, sizes)


def iota(op: Operation, operands: Sequence[Array], shape: tuple[int, ...], sizes: Sizes) -> Array:
    start, step = op.details["start"].at(sizes), op.details["step"].at(sizes)
    return start + step * np.arange(shape[0], dtype=np.int64)


def sliced(op: Operation, operands: Sequence[Array], shape: tuple[int, ...], sizes: Sizes) -> Array:
    dim, first, by = op.details["dim"], op.details["first"].at(sizes), op.details["by"]
    last = first + (shape[dim] - 1) * by + 1 if shape[dim] else first
    found: Array = operands[0][(slice(None),) * dim + (slice(first, last, by),)]
    return found


def padded(op: Operation, operands: Sequence[Array], shape: tuple[int, ...], sizes: Sizes) -> Array:
    found: Array = np.full(shape, operands[1], op.results[0].type)
    before = [size.at(sizes) for size in op.details["before"]]
    found[tuple(slice(start, start + n) for start, n in zip(before, operands[0].shape, strict=True))] = operands[0]
    return found


def scattered(op: Operation, operands: Sequence[Array], shape: tuple[int, ...], sizes: Sizes) -> Array:
    base, ids, numbers = operands
    found, dim = base.copy(), op.details["dim"]
    places = list(np.ogrid[tuple(map(slice, ids.shape))])
    places[dim] = ids
    if op.details["adds"]:
        np.add.at(found, tuple(places), np.broadcast_to(numbers, ids.shape))
    else:
        found[tuple(places)] = numbers
    return found


def gathered(op: Operation, operands: Sequence[Array], shape: tuple[int, ...], sizes: Sizes) -> Array:
    x, ids = operands
    places: list[Any] = list(np.ogrid[tuple(map(slice, ids.shape))])
    places[op.details["dim"]] = ids
    found: Array = x[tuple(places)]
    return found


def ordered(op: Operation, operands: Sequence[Array], shape: tuple[int, ...], sizes: Sizes) -> Array:
    x, dim = operands[0], op.details["dim"]
    if not op.details["falls"]:
        return np.argsort(x, axis=dim, kind="stable")
    # From the end, so that equal numbers stay in their order; what is not a number is the largest.
    found = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return shape[dim] - 1 - np.flip(found, dim)


def convolved(op: Operation, operands: Sequence[Array], shape: tuple[int, ...], sizes: Sizes) -> Array:
    x, weight = operands
    stride, padding, dilation, groups = (op.details[name] for name in ("stride", "padding", "dilation", "groups"))
    x = np.pad(x, [(0, 0), (0, 0), *((each, each) for each in padding)])
    reach = [each * (window - 1) + 1 for each, window in zip(dilation, weight.shape[2:], strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, x.ndim)))
    spatial = len(stride)
    steps = tuple(slice(None, None, each) for each in stride)
    taps = tuple(slice(None, None, each) for each in dilation)
    windows = windows[(slice(None), slice(None), *steps, *taps)]
    # (B, C, places …, window …) by (filters, C / groups, window …), group by group.
    parts = []
    own = np.split(windows, groups, axis=1), np.split(weight, groups, axis=0)
    axes = [1, *range(2 + spatial, 2 + 2 * spatial)], [*range(1, 2 + spatial)]
    for part, filters in zip(*own, strict=True):
        parts.append(np.moveaxis(np.tensordot(part, filters, axes=axes), -1, 1))
    return np.concatenate(parts, axis=1)


def widened(array: Array) -> Array:
    """A narrow weight as float32: whole numbers, or numbers of which the upper half is given.

    >>> widened(np.array([0x3F80, 0xC000], np.uint16)).tolist()
    [1.0, -2.0]
    """
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


EXACT = 1024
"""Products of numbers up to 127 whose sum float32 holds exactly."""


def narrow_product(x: Array, weight: Array, scales: Array | None = None) -> Array:
    """x W' of a weight that was made float32; with scales, of whole numbers, to which x is rounded row by row."""
    if scales is None:
        found: Array = x @ weight.T
        return found
    most = np.abs(x).max(1, initial=0)
    is_real, is_zero = most <= 3e38, most < np.float32(1e-30)
    by = np.float32(127) / np.where(is_real & ~is_zero, most, np.float32(1))
    rounded = np.rint(np.where(is_real[:, None], x, 0) * by[:, None])
    rounded[is_zero] = 0
    total = np.zeros((len(x), len(weight)), np.float64)
    for first in range(0, x.shape[1], EXACT):
        total += rounded[:, first : first + EXACT] @ weight[:, first : first + EXACT].T
    scale = np.where(is_real, most / np.float32(127), np.float32(np.nan))
    found = total.astype(np.float32) * scale[:, None] * scales
    found[is_zero] = 0
    return found


def narrow_rows(weight: Array, ids: Array, scales: Array | None = None) -> Array:
    found: Array = weight[ids]
    return found if scales is None else found * scales[ids][..., None]


MOVED: dict[str, Callable[[Operation, Sequence[Any], tuple[int, ...], Sizes], Array]] = {
    "iota": iota,
    "full": lambda op, operands, shape, _: np.full(shape, operands[0], op.results[0].type),
    "reshape": lambda op, operands, shape, _: operands[0].reshape(shape),
    "expand": lambda op, operands, shape, _: np.broadcast_to(operands[0], shape),
    "permute": lambda op, operands, shape, _: operands[0].transpose(op.details["order"]),
    "slice": sliced,
    "flip": lambda op, operands, shape, _: np.flip(operands[0], op.details["dims"]),
    "cat": lambda op, operands, shape, _: np.concatenate(operands, axis=op.details["dim"]),
    "pad": padded,
    "take": lambda op, operands, shape, _: operands[0][operands[1]],
    "index": lambda op, operands, shape, _: operands[0][tuple(operands[1:])],
    "gather": gathered,
    "scatter": scattered,
    "narrow_matmul": lambda op, operands, *_: narrow_product(*operands),
    "narrow_take": lambda op, operands, *_: narrow_rows(*operands),
    "matmul": lambda op, operands, shape, _: operands[0] @ operands[1],
    "cumsum": lambda op, operands, shape, _: np.cumsum(operands[0], axis=op.details["dim"]),
    "cumprod": lambda op, operands, shape, _: np.cumprod(operands[0], axis=op.details["dim"]),
    "argsort": ordered,
    "convolution": convolved,
}
