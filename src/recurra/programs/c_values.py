"""Numbers, sizes and arrays as C writes them: where a number of a value is loaded from, or how it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from recurra.programs.sizes import Size, product_of, quotient
from recurra.programs.weights import BYTES

if TYPE_CHECKING:
    from recurra.programs.c_function import Printer

C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int64": "int64_t",
    "int32": "int32_t",
    "uint8": "uint8_t",
    "bool": "uint8_t",
    "int8": "int8_t",
    "bfloat16": "uint16_t",
}

MOST_OF_NAME = 1 << 30
"""A size that has a name is no larger."""

MOST_EXACT = 1 << 53
"""Whole numbers up to this one are numbers of C's double, too."""

ZERO = Size()
ONE = Size.of(1)


class Array(NamedTuple):
    """Numbers in memory: value[i, j, …] = base[offset + i · strides[0] + j · strides[1] …]."""

    base: str
    type: str
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size = ZERO
    weight: str | None = None  # the weight that it is a view of

    @property
    def is_whole(self) -> bool:
        """Whether its numbers lie one after the other."""
        return all(
            stride == wanted or size.constant == 1
            for size, stride, wanted in zip(self.shape, self.strides, standard(self.shape), strict=True)
        )


@dataclass(frozen=True)
class Expression:
    """A number of each place, which is not in memory: what is written for indices."""

    type: str
    shape: tuple[Size, ...]
    write: Callable[[Loop, tuple[Size, ...]], str]
    dear: bool = False
    length: int = 0


Held = Array | Expression


def standard(shape: Sequence[Size]) -> tuple[Size, ...]:
    """How far apart numbers lie without gaps."""
    strides: list[Size] = []
    total = ONE
    for size in reversed(shape):
        strides.insert(0, total)
        total = total * size
    return tuple(strides)


def c_size(size: Size) -> str:
    """A size in C; names are variables.

    >>> c_size(Size.read("2*B*T+1")), c_size(Size.read("0")), c_size(Size.read("(T+1)//2"))
    ('2 * n_B * n_T + 1', '0', '((n_T + 1) / 2)')
    >>> c_size(Size.read("(T-1)//2"))
    'floor_divided(n_T - 1, 2)'
    """
    parts: list[str] = []
    for product, coefficient in size.terms:
        names = [*map(c_factor, product)]
        factors = ([] if abs(coefficient) == 1 and names else [str(abs(coefficient))]) + names
        sign = "-" if coefficient < 0 else "+"
        parts.append(
            f"{sign} {' * '.join(factors)}" if parts else f"{'-' if coefficient < 0 else ''}{' * '.join(factors)}"
        )
    return " ".join(parts) or "0"


def c_factor(factor: str) -> str:
    """A name as a variable, of a loop or of a size; a quotient."""
    if factor.startswith("("):
        whole, over = quotient(factor)
        if isinstance(over, int) and all(coefficient > 0 for _, coefficient in whole.terms):
            return f"(({c_size(whole)}) / {over})"  # names are not negative, so nothing is rounded up
        return f"floor_divided({c_size(whole)}, {over if isinstance(over, int) else f'n_{over}'})"
    return factor if factor[:2] in ("i_", "t_") else f"n_{factor}"


class Loop:
    """The inside of a loop: what is computed there once, by value and indices."""

    def __init__(self, printer: Printer) -> None:
        self.printer = printer
        self.lines: list[str] = []
        self.known: dict[Any, str] = {}

    def number(self, held: Held, key: Any, indices: tuple[Size, ...]) -> str:
        """A number of a value at some indices, by its name or as it is loaded."""
        place = (key, indices)
        if place not in self.known:
            if isinstance(held, Array):
                self.known[place] = load(held, indices)
            else:
                text = held.write(self, indices)
                if held.length:
                    name = self.printer.fresh("x")  # two loops may stand in one block of C
                    self.lines.append(f"const {C_TYPES[held.type]} {name} = {text};")
                    text = name
                self.known[place] = text
        return self.known[place]


def load(array: Array, indices: Sequence[Size]) -> str:
    at = array.offset
    for index, stride in zip(indices, array.strides, strict=True):
        at = at + index * stride
    return f"{array.base}[{c_size(at)}]"


def c_count(shape: Sequence[Size]) -> str:
    """How many numbers an array of a shape has, in C; not multiplied out, so that nothing between is larger."""
    count = product_of(shape)
    return c_size(count) if count.constant is not None else " * ".join(f"({c_size(size)})" for size in shape)


def largest(size: Size) -> int:
    """What a size is at most, nothing taken from it, whatever its names are."""
    return sum(abs(coefficient) * math.prod(map(_largest_factor, product)) for product, coefficient in size.terms)


def _largest_factor(factor: str) -> int:
    return largest(quotient(factor)[0]) if factor.startswith("(") else MOST_OF_NAME


def magnitude(size: Size) -> str:
    """The same in C, as a double, for the names that there are.

    >>> magnitude(Size.read("3*B*T-T"))
    '(3.0 * n_B * n_T + 1.0 * n_T)'
    """
    parts = []
    for product, coefficient in size.terms:
        factors = [magnitude(quotient(each)[0]) if each.startswith("(") else f"n_{each}" for each in product]
        parts.append(" * ".join([f"{abs(coefficient)}.0", *factors]))
    return f"({' + '.join(parts) or '0.0'})"


def broadcast(indices: Sequence[Size], shape: Sequence[Size]) -> tuple[Size, ...]:
    """Indices of a result as those of an operand that is spread over it."""
    own = indices[len(indices) - len(shape) :]
    return tuple(ZERO if size.constant == 1 else index for index, size in zip(own, shape, strict=True))


def c_number(value: float | int | bool, kind: str) -> str:
    if kind in ("float32", "float64"):
        number = float(value)
        if math.isnan(number):
            return "(float)NAN" if kind == "float32" else "(double)NAN"
        if math.isinf(number):
            return f"{'-' if number < 0 else ''}({C_TYPES[kind]})INFINITY"
        return f"({number!r}{'f' if kind == 'float32' else ''})"
    return f"INT64_C({int(value)})" if abs(int(value)) > 1 << 30 else f"({int(value)})"


WHOLE = {"add": "wrapped_sum", "sub": "wrapped_difference", "mul": "wrapped_product"}
"""What is done to whole numbers, by functions of C whose sums wrap around."""
WHOLE |= {"floor_divide": "floor_divided", "remainder": "remainder_of", "fmod": "rest_of"}


def ends_of(kind: str) -> tuple[str, str]:
    """The least and the largest number of a type."""
    if kind.startswith("float"):
        return c_number(-math.inf, kind), c_number(math.inf, kind)
    return (
        ("0", "1" if kind == "bool" else "255") if BYTES[kind] == 1 else (f"{kind.upper()}_MIN", f"{kind.upper()}_MAX")
    )


IN_PLACE = {"add": "+", "sub": "-", "mul": "*", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
OF_FLOAT = {
    **{name: f"r_{name}" for name in ("sigmoid", "tanh", "exp", "log", "log1p", "expm1", "rsqrt", "sign", "relu")},
    **{name: f"r_{name}" for name in ("exp2", "log2", "log10", "erf", "floor", "ceil", "trunc", "sqrt", "sin", "cos")},
    **{name: f"r_{name}" for name in ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")},
    **{"abs": "r_fabs", "round": "r_rint", "pow": "r_pow", "atan2": "r_atan2", "maximum": "r_max", "minimum": "r_min"},
}
OF_DOUBLE = {
    "sigmoid": "1 / (1 + exp(-({0})))",
    "relu": "(({0}) < 0 ? 0 : ({0}))",
    "sign": "((double)((({0}) > 0) - (({0}) < 0)))",
    "rsqrt": "1 / sqrt({0})",
    "abs": "fabs({0})",
    "round": "rint({0})",
    "maximum": "(({0}) > ({1}) || ({0}) != ({0}) ? ({0}) : ({1}))",
    "minimum": "(({0}) < ({1}) || ({0}) != ({0}) ? ({0}) : ({1}))",
    "atan2": "atan2({0}, {1})",
    "pow": "pow({0}, {1})",
}


def c_operation(kind: str, arguments: Sequence[str], computing: str, result: str) -> str:
    """An operation on numbers of one type, as C writes it."""
    a = arguments[0]
    if kind == "cast":
        return f"({a} != 0)" if result == "bool" else f"({C_TYPES[result]}){a}"
    if kind == "add" and result == "bool":
        return f"({a} | {arguments[1]})"
    if kind in WHOLE and not computing.startswith("float"):
        return f"({C_TYPES[result]}){WHOLE[kind]}({a}, {arguments[1]})"
    if kind in IN_PLACE:
        return f"({a} {IN_PLACE[kind]} {arguments[1]})"
    if kind == "where":
        return f"({a} ? {arguments[1]} : {arguments[2]})"
    if kind in ("and", "or"):
        return f"({a} {'&' if kind == 'and' else '|'} {arguments[1]})"
    if kind == "not":
        return f"(!{a})"
    if kind == "neg":
        return f"(-{a})" if computing.startswith("float") else f"({C_TYPES[result]})wrapped_difference(0, {a})"
    if computing.startswith("float"):
        suffix = "f" if computing == "float32" else ""
        if kind == "div":
            return f"({a} / {arguments[1]})"
        if kind == "reciprocal":
            return f"(1 / {a})"
        if kind == "fmod":
            return f"fmod{suffix}({a}, {arguments[1]})"
        if kind == "floor_divide":
            return f"floor{suffix}({a} / {arguments[1]})"
        if kind == "remainder":
            return f"({a} - floor{suffix}({a} / {arguments[1]}) * {arguments[1]})"
        if computing == "float32":
            return f"{OF_FLOAT[kind]}({', '.join(arguments)})"
        return OF_DOUBLE.get(kind, kind + "({0})").format(*arguments)
    if kind in ("maximum", "minimum"):
        return f"({a} {'>' if kind == 'maximum' else '<'} {arguments[1]} ? {a} : {arguments[1]})"
    if kind == "abs":
        return f"({C_TYPES[result]})({a} < 0 ? wrapped_difference(0, {a}) : {a})"
    if kind in ("floor", "ceil", "round", "trunc"):
        return str(a)
    if kind == "relu":
        return f"({a} < 0 ? 0 : {a})"
    if kind == "sign":
        return f"(({a} > 0) - ({a} < 0))"
    raise ValueError(f"{kind} of {computing} cannot be printed")
