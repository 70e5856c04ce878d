"""Whether a function computes each row by itself, so that rows may be left out."""

from __future__ import annotations

from recurra.programs.program import REDUCTIONS, Function, Number, Operand, Operation, Value
from recurra.programs.sizes import Size

ALONG = ("dim", "dims")
"""Details that name the dimensions along which an operation goes."""


def has_rows_alone(function: Function, name: str) -> bool:
    """Whether the rows, of which there are as many as a size with a name says, do not tell of each other.

    >>> from recurra.programs.program import Named
    >>> x = Value("float32", (Size.named("B"), Size.of(3)))
    >>> twice = Operation("add", (0, 0), (x,))
    >>> largest = Operation("max", (0,), (Value("float32", (Size.of(3),)),), {"dims": (0,)})
    >>> [has_rows_alone(Function((Named("x", x),), (op,), (("y", 1),)), "B") for op in (twice, largest)]
    [True, False]
    """
    values = function.values
    if any(name in size.names for value in values for size in value.shape[1:]):
        return False
    if any(name in value.shape[0].names and value.shape[0] != Size.named(name) for value in values if value.shape):
        return False

    def is_by_row(operand: Operand) -> bool:
        return isinstance(operand, int) and has_rows(values[operand], name)

    return all(_has_rows_alone(op, name, [*map(is_by_row, op.operands)], values) for op in function.operations)


def has_rows(value: Value, name: str) -> bool:
    return bool(value.shape) and name in value.shape[0].names


def _has_rows_alone(op: Operation, name: str, by_row: list[bool], values: list[Value]) -> bool:
    numbers = [each.value for each in op.operands if isinstance(each, Number)]
    if any(isinstance(number, Size) and name in number.names for number in numbers):
        return False
    results = [has_rows(value, name) for value in op.results]
    if not any(by_row):
        return not any(results) or op.kind in ("full", "expand", "reshape")
    if op.kind not in (*REDUCTIONS, "reshape", "index", "take", "narrow_take"):
        # With fewer dimensions than the result, what lies along rows is spread over something else.
        there = [operand for operand, found in zip(op.operands, by_row, strict=True) if found]
        ranks = [len(values[operand].shape) for operand in there if isinstance(operand, int)]
        if any(rank != len(op.results[0].shape) for rank in ranks):
            return False
    if op.kind in ("index", "take", "scan") and by_row[0]:
        return False
    if op.kind == "matmul" and by_row[1] and len(op.results[0].shape) == 2:
        return False
    along = [each for key in ALONG if key in op.details for each in _dimensions(op.details[key])]
    return all(results) and 0 not in along


def _dimensions(detail: int | tuple[int, ...]) -> tuple[int, ...]:
    return (detail,) if isinstance(detail, int) else detail
