"""What must be true of the shapes around an operation, so that it reads and writes inside its arrays alone.

What does not depend on named sizes is decided when a program is read (`check_operation`). The rest are conditions on
sizes, which are looked at when the inputs of a function are known: by NumPy itself, in C before anything is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recurra.frozen import NamedTuple
from recurra.programs.program import POINTWISE, REDUCTIONS, Operation, Value
from recurra.programs.sizes import Size, product_of
from recurra.programs.types import check_types

MOST_DIMENSIONS = 8

MOST_INNER = 1 << 16
"""Numbers of 8 bits whose products are added up in 32 bits, at most."""


class Condition(NamedTuple):
    """The product of some sizes is equal to, or at most, the product of others."""

    left: tuple[Size, ...]
    is_equal: bool  # else: at most
    right: tuple[Size, ...]

    @property
    def is_sure(self) -> bool | None:
        """Whether it holds whatever the names mean; None where that depends on them."""
        left, right = product_of(self.left), product_of(self.right)
        if left == right:
            return True
        if self.is_equal and sorted(map(str, self.left)) == sorted(map(str, self.right)):
            return True
        if left.constant is None or right.constant is None:
            return None
        return left.constant == right.constant if self.is_equal else left.constant <= right.constant


def check_operation(op: Operation, operands: Sequence[Value]) -> None:
    """A ValueError where the shapes or types around an operation cannot be right."""
    for value in op.results:
        if len(value.shape) > MOST_DIMENSIONS:
            raise ValueError(f"{op.kind} has {len(value.shape)} dimensions")
    for condition in conditions(op, operands):
        if condition.is_sure is False:
            raise ValueError(f"{op.kind} has shapes that do not fit")
    check_types(op, operands)


def conditions(op: Operation, operands: Sequence[Value]) -> list[Condition]:
    """What must be true, those that always are left out."""
    return [each for each in _conditions(op, operands) if each.is_sure is not True]


def same(left: Sequence[Size], right: Sequence[Size]) -> Iterator[Condition]:
    if len(left) != len(right):
        raise ValueError(f"a shape has {len(left)} dimensions, not {len(right)}")
    for one, other in zip(left, right, strict=True):
        if one != other:
            yield Condition((one,), True, (other,))


def broadcasts(given: Sequence[Size], to: Sequence[Size]) -> Iterator[Condition]:
    """Each size is the one at the same place from the end, or a plain 1."""
    if len(given) > len(to):
        raise ValueError("an array has more dimensions than it is spread over")
    for one, other in zip(reversed(given), reversed(to), strict=False):
        if one.constant != 1 and one != other:
            yield Condition((one,), True, (other,))


def at(shape: Sequence[Size], dim: int) -> Size:
    if not 0 <= dim < len(shape):
        raise ValueError(f"there is no dimension {dim}")
    return shape[dim]


def all_but(shape: Sequence[Size], dim: int) -> tuple[Size, ...]:
    at(shape, dim)
    return (*shape[:dim], *shape[dim + 1 :])


def _conditions(op: Operation, operands: Sequence[Value]) -> Iterator[Condition]:
    kind, details = op.kind, op.details
    if kind != "scan" and len(op.results) != 1:
        raise ValueError(f"{kind} has {len(op.results)} results")
    out = op.results[0].shape
    shapes = [value.shape for value in operands]
    if kind in POINTWISE:
        for shape in shapes:
            yield from broadcasts(shape, out)
    elif kind in REDUCTIONS:
        dims = details["dims"]
        if len(set(dims)) < len(dims):
            raise ValueError("a dimension is reduced twice")
        for dim in dims:
            at(shapes[0], dim)
        if kind in ("max", "min", "argmax", "argmin"):  # of nothing there is none
            yield from (Condition((Size.of(1),), False, (shapes[0][dim],)) for dim in dims)
        if len(out) == len(shapes[0]):
            kept = [Size.of(1) if dim in dims else size for dim, size in enumerate(shapes[0])]
        else:
            kept = [size for dim, size in enumerate(shapes[0]) if dim not in dims]
        yield from same(kept, out)
    elif kind in ("cumsum", "cumprod", "argsort"):
        at(out, details["dim"])
        yield from same(shapes[0], out)
    elif kind == "iota":
        if len(out) != 1:
            raise ValueError("an iota has one dimension")
    elif kind == "full":
        if shapes[0]:
            raise ValueError("an array is filled with one number")
    elif kind == "reshape":
        yield Condition(tuple(shapes[0]), True, tuple(out))
    elif kind == "expand":
        yield from broadcasts(shapes[0], out)
    elif kind == "permute":
        if sorted(details["order"]) != list(range(len(out))):
            raise ValueError("dimensions are put in no order")
        yield from same([at(shapes[0], dim) for dim in details["order"]], out)
    elif kind == "slice":
        dim, by = details["dim"], details["by"]
        if by < 1:
            raise ValueError("a slice goes forward")
        yield from same(all_but(shapes[0], dim), all_but(out, dim))
        # 0 ≤ first, and first + (n − 1) by + 1 ≤ size, where n is not 0.
        yield Condition((), False, (details["first"] + 1,))
        yield Condition((details["first"] + out[dim] * by + (1 - by),), False, (shapes[0][dim],))
    elif kind == "flip":
        for dim in details["dims"]:
            at(out, dim)
        yield from same(shapes[0], out)
    elif kind == "cat":
        dim, total = details["dim"], Size()
        for shape in shapes:
            yield from same(all_but(shape, dim), all_but(out, dim))
            total = total + at(shape, dim)
        yield Condition((total,), True, (at(out, dim),))
    elif kind == "pad":
        if len(details["before"]) != len(out) or len(shapes[0]) != len(out) or shapes[1]:
            raise ValueError("an array is put into one of other dimensions")
        for before, size, room in zip(details["before"], shapes[0], out, strict=True):
            yield Condition((), False, (before + 1,))
            yield Condition((before + size,), False, (room,))
    elif kind == "take":
        if not shapes[0]:
            raise ValueError("a single number has no rows")
        yield from same((*shapes[1], *shapes[0][1:]), out)
    elif kind == "index":
        ids = shapes[1:]
        if not 1 <= len(ids) <= len(shapes[0]):
            raise ValueError("there are more ids than dimensions")
        rank = max(map(len, ids))
        for shape in ids:
            yield from broadcasts(shape, out[:rank])
        yield from same(shapes[0][len(ids) :], out[rank:])
    elif kind == "gather":
        dim = details["dim"]
        yield from same(shapes[1], out)
        yield from (
            Condition((one,), False, (other,))
            for one, other in zip(all_but(shapes[1], dim), all_but(shapes[0], dim), strict=True)
        )
    elif kind == "scatter":
        dim = details["dim"]
        yield from same(shapes[0], out)
        yield from broadcasts(shapes[2], shapes[1])
        yield from (
            Condition((one,), False, (other,))
            for one, other in zip(all_but(shapes[1], dim), all_but(shapes[0], dim), strict=True)
        )
    elif kind == "matmul":
        left, right = shapes
        if len(left) != len(right) or len(left) not in (2, 3):
            raise ValueError("matrices are multiplied, or stacks of them")
        yield from same(left[:-2], right[:-2])
        yield from same([left[-1]], [right[-2]])
        yield from same((*left[:-1], right[-1]), out)
    elif kind in ("narrow_matmul", "narrow_take"):
        yield from _of_narrow(op, shapes)
    elif kind == "convolution":
        yield from _of_convolution(op, shapes[0], shapes[1])
    elif kind == "scan":
        yield from _of_scan(op, operands)


def _of_narrow(op: Operation, shapes: Sequence[Sequence[Size]]) -> Iterator[Condition]:
    place = int(op.kind == "narrow_matmul")
    if len(shapes) not in (2, 3) or not isinstance(op.operands[place], str) or len(shapes[place]) != 2:
        raise ValueError("a narrow weight is a matrix")
    if not all(isinstance(each, str) for each in op.operands[2:]):
        raise ValueError("the scales of a narrow weight are a weight")
    (rows, columns), out = shapes[place], op.results[0].shape
    for scales in shapes[2:]:
        yield from same(scales, (rows,))
    if op.kind == "narrow_take":
        yield from same((*shapes[1], columns), out)
        return
    if (columns.constant or 0) > MOST_INNER:
        raise ValueError("a narrow weight has rows that are too long")
    if len(shapes[0]) != 2:
        raise ValueError("rows are multiplied by a narrow weight")
    yield from same([shapes[0][1]], [columns])
    yield from same((shapes[0][0], rows), out)


def _of_convolution(op: Operation, x: Sequence[Size], weight: Sequence[Size]) -> Iterator[Condition]:
    out, details = op.results[0].shape, op.details
    spatial = len(x) - 2
    lists = [details[name] for name in ("stride", "padding", "dilation")]
    if spatial not in (1, 2) or len(weight) != len(x) or any(len(each) != spatial for each in lists):
        raise ValueError("a convolution has one or two spatial dimensions")
    groups, filters = details["groups"], weight[0].constant
    if groups < 1 or filters is None or filters % groups or any(size.constant is None for size in weight):
        raise ValueError("a convolution has a weight whose filters fall into groups")
    yield from same((x[0], weight[0]), out[:2])
    yield Condition((weight[1], Size.of(groups)), True, (x[1],))
    for dim, (stride, padding, dilation) in enumerate(zip(*lists, strict=True), 2):
        window = weight[dim].constant
        if stride < 1 or dilation < 1 or padding < 0 or not window:
            raise ValueError("a convolution goes forward")
        # The last window, begun at (n − 1) stride, ends inside of the padding.
        reach = out[dim] * stride + (dilation * (window - 1) + 1 - stride)
        yield Condition((reach,), False, (x[dim] + 2 * padding,))


def _of_scan(op: Operation, operands: Sequence[Value]) -> Iterator[Condition]:
    body, states = op.details["body"], op.details["states"]
    if len(operands) < 2 + states or states < 1 or len(op.results) != 1 + states:
        raise ValueError("a scan has inputs, lengths and states")
    x, lengths, *rest = operands
    if len(x.shape) != 3 or len(lengths.shape) != 1 or lengths.type != "int64":
        raise ValueError("a scan reads rows of steps, and their lengths")
    B, T, P = x.shape
    yield from same([B], lengths.shape)
    begun, given = rest[:states], rest[states:]
    if len(body.inputs) != 1 + states + len(given) or len(body.outputs) != states:
        raise ValueError("the body of a scan has other inputs or outputs than the scan")
    wanted = [Value(x.type, (B, P)), *begun, *given]
    for each, value in zip(body.inputs, wanted, strict=True):
        if each.value.type != value.type:
            raise ValueError("the body of a scan reads other types")
        yield from same(each.value.shape, value.shape)
    for state, result in zip(begun, op.results[1:], strict=True):
        if len(state.shape) != 2 or state.type != result.type:
            raise ValueError("a state is a row of numbers")
        yield from same([B], state.shape[:1])
        yield from same(state.shape, result.shape)
    values = body.values
    for (_, operand), state in zip(body.outputs, begun, strict=True):
        if not isinstance(operand, int) or values[operand].type != state.type:
            raise ValueError("a scan goes on with states of another type")
        yield from same(values[operand].shape, state.shape)
    yield from same((B, T, begun[0].shape[1]), op.results[0].shape)
