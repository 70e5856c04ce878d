"""A program: functions of arrays, each a list of few kinds of operations, and the weights they use.

An operation has operands and results. An operand is the number of a value that came before it (the inputs of a function
are its first values), the name of a weight, or a number written out. Every value has a type and a shape, whose sizes
may be named (sizes.py). A name means the same size in a whole function: B rows, T steps, ….

    scan      steps through time: its body is a function of one step's inputs, the states and what stays the same

`check` refuses what is no program: whoever runs one need not look again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from recurra.errors import CheckpointError
from recurra.frozen import NamedTuple
from recurra.programs.sizes import MOST, Size, product_of

FORMAT = 2
"""The number of the latest format of programs; one without narrow weights is written in the first."""

TYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")

NARROW = {"int8": "int8", "bfloat16": "uint16"}
"""Types that weights alone have, and how NumPy holds them."""

LONGEST = 64
"""Letters of names of functions, inputs and outputs: they are printed in C, which puts a prefix before each."""

RESERVED = ("open", "close", "model", "threads")
"""No function has such a name, nor one that begins with sizes_of_: C has functions and types of its own under them."""


@dataclass(frozen=True)
class Number:
    """A number that is written out; a size may stand for one."""

    value: float | int | bool | Size


Operand: TypeAlias = int | str | Number
"""A value that came before, a weight, or a number."""


class Value(NamedTuple):
    """What is known of an array before it is there."""

    type: str
    shape: tuple[Size, ...]


class Named(NamedTuple):
    """An input of a function."""

    name: str
    value: Value
    below: int | None = None  # ids are 0 up to this


@dataclass(frozen=True)
class Operation:
    """What is done to some operands; `details` are those of its kind."""

    kind: str
    operands: tuple[Operand, ...]
    results: tuple[Value, ...]
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Function:
    """Inputs, operations in their order, and what comes out, by name."""

    inputs: tuple[Named, ...]
    operations: tuple[Operation, ...]
    outputs: tuple[tuple[str, Operand], ...]

    @property
    def values(self) -> list[Value]:
        """Every value by its number."""
        return [*(each.value for each in self.inputs), *(value for op in self.operations for value in op.results)]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of sizes, which the inputs tell; in alphabetical order."""
        return tuple(sorted({name for each in self.inputs for size in each.value.shape for name in size.names}))

    def sizes(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """What the names mean for inputs of these shapes; a ValueError where they do not fit."""
        found: dict[str, int] = {}
        for each, shape in zip(self.inputs, shapes, strict=True):
            if len(shape) != len(each.value.shape):
                raise ValueError(f"{each.name} has {len(shape)} dimensions, not {len(each.value.shape)}")
            for size, there in zip(each.value.shape, shape, strict=True):
                if size.terms and size == Size.named(size.terms[0][0][0] if size.terms[0][0] else ""):
                    found.setdefault(next(iter(size.names)), there)
        for each, shape in zip(self.inputs, shapes, strict=True):
            for size, there in zip(each.value.shape, shape, strict=True):
                if len(unknown := size.names - set(found)) == 1:
                    [name] = unknown
                    found[name] = factor(size, name, there, found)
        for each, shape in zip(self.inputs, shapes, strict=True):
            wanted = tuple(size.at(found) for size in each.value.shape)
            if wanted != tuple(shape):
                raise ValueError(f"{each.name} has the shape {tuple(shape)}, but {wanted} is needed")
        return found


def factor(size: Size, name: str, there: int, known: Mapping[str, int]) -> int:
    """What a name means, by which B*K is so large."""
    [(product, coefficient)] = size.terms if len(size.terms) == 1 else [((), 0)]
    others = coefficient * math.prod(known[each] for each in product if each != name)
    if product.count(name) != 1 or any(each.startswith("(") for each in product):
        raise ValueError(f"{name} does not follow from {size}")
    return there // others if others else 0


@dataclass(frozen=True)
class Program:
    """Functions by name, and what a weight looks like, by name."""

    functions: Mapping[str, Function]
    weights: Mapping[str, tuple[str, tuple[int, ...]]]

    def to_json(self) -> str:
        whole = {
            "format": FORMAT if any(kind in NARROW for kind, _ in self.weights.values()) else 1,
            "weights": {name: [kind, list(shape)] for name, (kind, shape) in self.weights.items()},
            "functions": {name: function_to_json(function) for name, function in self.functions.items()},
        }
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, where: object = "program.json") -> Program:
        """What `to_json` wrote; a CheckpointError says what is wrong with anything else."""
        try:
            whole = json.loads(text)
            if not isinstance(whole, dict) or type(whole.get("format")) is not int:
                raise ValueError("it has no format")
            if whole["format"] > FORMAT:
                raise CheckpointError(
                    f"{where} was written by a later recurra (format {whole['format']}); this one reads format "
                    f"{FORMAT}. Upgrade recurra."
                )
            weights = {
                str(name): (checked_type(kind, *NARROW), tuple(checked_whole(size) for size in shape))
                for name, (kind, shape) in whole["weights"].items()
            }
            functions = {checked_name(name): function_from_json(table) for name, table in whole["functions"].items()}
            if taken := [name for name in functions if name in RESERVED or name.startswith("sizes_of_")]:
                raise ValueError(f"a function is called {taken[0]!r}")
            found = cls(functions, weights)
            for function in functions.values():
                check(function, weights)
            return found
        except CheckpointError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, AssertionError) as error:
            raise CheckpointError(f"{where} is not a program of recurra ({error}).") from error


# To and from JSON


def function_to_json(function: Function) -> dict[str, Any]:
    return {
        "inputs": [[each.name, value_to_json(each.value), each.below] for each in function.inputs],
        "operations": [
            [op.kind, [operand_to_json(each) for each in op.operands], [*map(value_to_json, op.results)]]
            + ([details_to_json(op.details)] if op.details else [])
            for op in function.operations
        ],
        "outputs": [[name, operand_to_json(operand)] for name, operand in function.outputs],
    }


def function_from_json(table: Mapping[str, Any]) -> Function:
    inputs = tuple(
        Named(checked_name(name), value_from_json(value), None if below is None else checked_whole(below))
        for name, value, below in table["inputs"]
    )
    operations = []
    for kind, operands, results, *details in table["operations"]:
        operations.append(
            Operation(
                str(kind),
                tuple(map(operand_from_json, operands)),
                tuple(map(value_from_json, results)),
                details_from_json(details[0]) if details else {},
            )
        )
    outputs = tuple((checked_name(name), operand_from_json(operand)) for name, operand in table["outputs"])
    for names in ([each.name for each in inputs], [name for name, _ in outputs]):
        if len(set(names)) < len(names):
            raise ValueError(f"two inputs or two outputs are called {max(names, key=names.count)!r}")
    return Function(inputs, tuple(operations), outputs)


def value_to_json(value: Value) -> list[Any]:
    return [value.type, *(size_to_json(size) for size in value.shape)]


def value_from_json(found: Sequence[Any]) -> Value:
    kind, *shape = found
    return Value(checked_type(kind), tuple(map(Size.read, shape)))


def size_to_json(size: Size) -> int | str:
    constant = size.constant
    return str(size) if constant is None else constant


def operand_to_json(operand: Operand) -> Any:
    if not isinstance(operand, Number):
        return operand
    value = operand.value
    if isinstance(value, Size):
        return ["size", size_to_json(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return [str(value)]
    return [value]


def operand_from_json(found: Any) -> Operand:
    if isinstance(found, str) or (isinstance(found, int) and not isinstance(found, bool)):
        return found
    if len(found) == 2 and found[0] == "size":
        return Number(Size.read(found[1]))
    [value] = found
    if isinstance(value, str):
        value = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[value]
    if not isinstance(value, int | float):
        raise ValueError(f"{value!r:.60} is not a number")
    return Number(value)


SIZES = ("start", "step", "before", "first")
"""Details that are sizes, or lists of them."""


def details_to_json(details: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in details.items():
        if isinstance(value, Function):
            found[name] = function_to_json(value)
        elif name in SIZES:
            found[name] = [*map(size_to_json, value)] if isinstance(value, tuple) else size_to_json(value)
        else:
            found[name] = list(value) if isinstance(value, tuple) else value
    return found


def details_from_json(table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name == "body":
            found[name] = function_from_json(value)
        elif name in SIZES:
            found[name] = tuple(map(Size.read, value)) if isinstance(value, list) else Size.read(value)
        elif isinstance(value, list):
            found[name] = tuple(checked_whole(each, least=-64) for each in value)
        else:
            found[name] = value if isinstance(value, bool | str) else checked_whole(value, least=-64)
    return found


def checked_type(kind: object, *others: str) -> str:
    if kind not in (*TYPES, *others):
        raise ValueError(f"{kind!r:.60} is not a type of numbers")
    return str(kind)


def checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.isascii() or not name.replace("_", "a").isalnum() or len(name) > LONGEST:
        raise ValueError(f"{name!r:.60} is not a name: it must have 1 to 64 ASCII letters, digits and _")
    return name


def checked_whole(value: object, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 40:
        raise ValueError(f"{value!r:.60} is not a size")
    return value


# What is a program

POINTWISE: dict[str, int] = {
    **dict.fromkeys(
        ("add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2", "remainder", "fmod", "floor_divide"), 2
    ),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "and", "or"), 2),
    **dict.fromkeys(
        ("neg", "reciprocal", "sigmoid", "tanh", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10"), 1
    ),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf"), 1),
    **dict.fromkeys(("sqrt", "rsqrt", "abs", "sign", "floor", "ceil", "round", "trunc", "relu", "not", "cast"), 1),
    "where": 3,
}
"""What is done to each number by itself, and how many operands it has; they broadcast as in NumPy."""

REDUCTIONS = ("sum", "max", "min", "prod", "any", "all", "argmax", "argmin")

KINDS: dict[str, tuple[int | None, tuple[str, ...]]] = {
    **{kind: (count, ()) for kind, count in POINTWISE.items()},
    **dict.fromkeys(REDUCTIONS, (1, ("dims",))),
    "cumsum": (1, ("dim",)),
    "cumprod": (1, ("dim",)),
    "argsort": (1, ("dim", "falls")),
    "iota": (0, ("start", "step")),
    "full": (1, ()),
    "reshape": (1, ()),
    "expand": (1, ()),
    "permute": (1, ("order",)),
    "slice": (1, ("dim", "first", "by")),
    "flip": (1, ("dims",)),
    "cat": (None, ("dim",)),
    "pad": (2, ("before",)),
    "take": (2, ()),
    "index": (None, ()),
    "gather": (2, ("dim",)),
    "scatter": (3, ("dim", "adds")),
    "matmul": (2, ()),
    "narrow_matmul": (None, ()),
    "narrow_take": (None, ()),
    "convolution": (2, ("stride", "padding", "dilation", "groups")),
    "scan": (None, ("body", "states", "backward")),
}
"""Every kind of operation: how many operands it has, None for any number, and what its details are.

    iota         start, start + step, …
    argsort      places of the numbers along dim, the smallest first or, if it falls, the largest; of equals the first
    slice        every `by`-th from `first` on along `dim`
    pad          the first operand in a larger array, `before` away from its corner, the second everywhere else
    take         rows of a table, by ids
    index        x[i, j, …] for arrays i, j, … that broadcast: the first operand by the others
    gather       x.take_along_axis(ids, dim);  scatter: x with numbers put, or added, at ids along dim
    matmul       of two matrices, or of two stacks of them
    narrow_matmul, narrow_take   x W' and rows of W, for a weight W of bfloat16, or of int8 and a scale for each row;
                 with int8 each row of x is rounded to whole numbers of -127 to 127, by a scale of its own
    convolution  (B, C, positions …) by (out, C / groups, window …)
    scan         operands x (B, T, P), lengths (B,), states (B, n) …, and what stays the same: (B, T, n) of the first
                 state after each step, 0 on padding, and the states after the last real step of each row. backward:
                 from the last real step to the first
"""


def check(function: Function, weights: Mapping[str, tuple[str, tuple[int, ...]]], depth: int = 0) -> None:
    """A ValueError where a function is none: unknown kinds, operands that are not there yet, shapes that do not fit."""
    from recurra.programs.shapes import check_operation

    if depth > 2:
        raise ValueError("scans lie too deep in each other")
    known = [each.value for each in function.inputs]
    names = set(function.names)
    for size in sizes_of(function):
        if size.names - names:
            raise ValueError(f"the size {size} has a name that no input tells")
    for shape in (
        *(value.shape for value in function.values),
        *(tuple(map(Size.of, each)) for _, each in weights.values()),
    ):
        if (product_of(shape).constant or 0) > MOST:
            raise ValueError("an array is larger than any memory")

    def value_of(operand: Operand) -> Value:
        if isinstance(operand, Number):
            is_real = isinstance(operand.value, float)
            return Value("bool" if isinstance(operand.value, bool) else "float32" if is_real else "int64", ())
        if isinstance(operand, str):
            kind, shape = weights[operand]
            return Value(kind, tuple(map(Size.of, shape)))
        if not 0 <= operand < len(known):
            raise ValueError(f"value {operand} is used before it is there")
        return known[operand]

    for op in function.operations:
        if op.kind not in KINDS:
            raise ValueError(f"there is no operation {op.kind!r:.60}")
        count, details = KINDS[op.kind]
        if count is not None and len(op.operands) != count:
            raise ValueError(f"{op.kind} has {len(op.operands)} operands, not {count}")
        if set(details) - set(op.details):
            raise ValueError(f"{op.kind} lacks {sorted(set(details) - set(op.details))[0]}")
        check_operation(op, [value_of(each) for each in op.operands])
        if op.kind == "scan":
            if set(op.details["body"].names) - names:
                raise ValueError("the body of a scan names a size that the function around it does not have")
            check(op.details["body"], weights, depth + 1)
        known += op.results
    for _, operand in function.outputs:
        if value_of(operand).type in NARROW:
            raise ValueError("a narrow weight is no output")


def sizes_of(function: Function) -> Iterator[Size]:
    """Every size in a function, those in the bodies of its scans left out."""
    for value in function.values:
        yield from value.shape
    for op in function.operations:
        for name in SIZES:
            if name in op.details:
                found = op.details[name]
                yield from found if isinstance(found, tuple) else (found,)
        for operand in op.operands:
            if isinstance(operand, Number) and isinstance(operand.value, Size):
                yield operand.value


def output_values(function: Function, program: Program) -> list[Value]:
    values = function.values
    found = []
    for _, operand in function.outputs:
        if isinstance(operand, int):
            found.append(values[operand])
        elif isinstance(operand, str):
            kind, shape = program.weights[operand]
            found.append(Value(kind, tuple(map(Size.of, shape))))
        else:
            found.append(Value("float32", ()))
    return found
