"""Which types of numbers an operation takes and gives: nothing is converted but by a cast.

So C and NumPy, which convert in different ways, compute the same. A number that is written out fits a type that holds
it: a whole number any type of numbers, another one float32 and float64.
"""

from __future__ import annotations

from collections.abc import Sequence

from recurra.programs.program import NARROW, POINTWISE, TYPES, Number, Operation, Value
from recurra.programs.sizes import Size

FLOATS = ("float32", "float64")
RANGES = {"int64": 63, "int32": 31}

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = ("and", "or", "not")
OF_WHOLE = {"add", "sub", "mul", "neg", "floor_divide", "remainder", "fmod", "maximum", "minimum"}
OF_WHOLE |= {"abs", "floor", "ceil", "round", "trunc", "relu", "sign"}
"""What whole numbers have too; all else of one number or two is for float32 and float64."""

OF_FLAGS = ("add", "mul", "maximum", "minimum")
"""What is done to bool as to numbers: the larger and the smaller of 0 and 1."""

WITHIN = {  # kinds that keep the type, and the operands of which they do
    **dict.fromkeys(("reshape", "expand", "permute", "slice", "flip", "full", "take", "index", "gather"), (0,)),
    **dict.fromkeys(("max", "min"), (0,)),
    "pad": (0, 1),
    "scatter": (0, 2),
}


def check_types(op: Operation, operands: Sequence[Value]) -> None:
    """A ValueError where the types around an operation are not those that it has."""
    kind, result = op.kind, op.results[0].type
    types = [each.type for each in operands]

    def need(is_right: bool) -> None:
        if not is_right:
            raise ValueError(f"{kind} of {', '.join(types) or 'nothing'} does not give {result}")

    def fits(number: int, wanted: str) -> bool:
        operand = op.operands[number]
        return holds(wanted, operand.value) if isinstance(operand, Number) else types[number] == wanted

    if kind in ("narrow_matmul", "narrow_take"):
        narrow = types[kind == "narrow_matmul"]
        need(result == "float32" and narrow in NARROW and types[2:] == ["float32"] * (narrow == "int8"))
        other = types[kind == "narrow_take"]
        need(other == "float32" if kind == "narrow_matmul" else other in ("int64", "int32"))
        return
    need(not any(each in NARROW for each in types))
    if kind in COMPARISONS:
        known = [each for each, operand in zip(types, op.operands, strict=True) if not isinstance(operand, Number)]
        common = known[-1] if known else types[-1]
        need(result == "bool" and fits(0, common) and fits(1, common))
    elif kind in LOGICAL:
        need(all(each == "bool" for each in (*types, result)))
    elif kind == "where":
        need(types[0] == "bool" and fits(1, result) and fits(2, result))
    elif kind in POINTWISE and kind != "cast":
        need(result in FLOATS or kind in (OF_FLAGS if result == "bool" else OF_WHOLE))
        need(all(fits(number, result) for number in range(len(types))))
    elif kind in ("sum", "prod", "cumsum", "cumprod"):
        need(result != "bool" and (types[0] == result or (types[0] not in FLOATS and result == "int64")))
    elif kind in ("any", "all"):
        need(result == "bool")
    elif kind in ("argmax", "argmin", "argsort", "iota"):
        need(result == "int64")
    elif kind == "cat":
        need(all(each == result for each in types))
    elif kind == "matmul":
        need(result in FLOATS and all(each == result for each in types))
    elif kind == "convolution":
        need(all(each == "float32" for each in (*types, result)))
    elif kind == "scan":
        need(result == types[2])
    for number in WITHIN.get(kind, ()):
        need(fits(number, result))
    if kind in ("take", "index", "gather", "scatter"):
        ids = types[1:2] if kind != "index" else types[1:]
        need(all(each in ("int64", "int32") for each in ids))
    if kind == "scatter":
        need(not op.details["adds"] or result != "bool")


def holds(kind: str, value: float | int | bool | Size) -> bool:
    """Whether a type has a number.

    >>> holds("float32", 3), holds("int64", 3.0), holds("uint8", 256), holds("int64", Size.named("T"))
    (True, False, False, True)
    """
    assert kind in TYPES, f"{kind} is a type"
    if isinstance(value, Size):
        return kind == "int64" or kind in FLOATS
    if isinstance(value, bool):
        return kind == "bool"
    if isinstance(value, float) or kind in FLOATS:
        return kind in FLOATS
    if kind == "bool":
        return value in (0, 1)
    return 0 <= value < 256 if kind == "uint8" else -(1 << RANGES[kind]) <= value < 1 << RANGES[kind]
