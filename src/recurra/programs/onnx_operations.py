"""How each kind of operation of a program is written with operators of ONNX (opset 18)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from recurra.programs.onnx_graph import Builder, Graph, Writer
from recurra.programs.program import Number, Operand, Operation, Value
from recurra.programs.sizes import product_of
from recurra.programs.solving import NotExportable

LEAST = -(1 << 63)
"""An end before the first of all places, for slices that go backward."""

ONE = {
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    **{name: name.capitalize() for name in ("sigmoid", "tanh", "exp", "log", "sin", "cos", "tan", "sinh", "cosh")},
    **{name: name.capitalize() for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "sqrt", "abs")},
    **{name: name.capitalize() for name in ("sign", "floor", "ceil", "round", "relu", "not")},
}

TWO = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "pow": "Pow",
    "maximum": "Max",
    "minimum": "Min",
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "and": "And",
    "or": "Or",
}

OF_FLAGS = {"add": "Or", "mul": "And", "maximum": "Or", "minimum": "And"}
"""What has numbers alone in ONNX, of truth values: the larger and the smaller of 0 and 1."""

COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")

KEEPING_WHOLE = ("floor", "ceil", "round", "trunc")
"""What changes no whole number, and what ONNX has of others alone."""

IN_SINGLE = {"erf", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "convolution"}
"""What onnxruntime computes of float32 alone."""

Written: TypeAlias = Callable[[Writer, Operation], str]


def written(w: Writer, op: Operation) -> str:
    """The name of what an operation makes."""
    if op.kind in ("narrow_matmul", "narrow_take"):
        raise NotExportable("this model cannot be exported to ONNX: it has weights of 8 or 16 bits.")
    if op.kind in IN_SINGLE and op.results[0].type == "float64":
        raise NotExportable(f"this model cannot be exported to ONNX: onnxruntime has no {op.kind} of float64.")
    kind = op.results[0].type
    if kind == "bool" and op.kind in OF_FLAGS:
        return w.to.node(OF_FLAGS[op.kind], *of_one_type(w, op))
    if op.kind in KEEPING_WHOLE and not is_real(op):
        return w.to.node("Identity", *of_one_type(w, op))
    if kind == "uint8" and op.kind in ("neg", "relu"):  # ONNX has no bytes here
        signed = w.to.node("Cast", *of_one_type(w, op), to="int32")
        return w.to.node("Cast", w.to.node(ONE[op.kind], signed), to=kind)
    if op.kind in ONE:
        return w.to.node(ONE[op.kind], *of_one_type(w, op))
    if op.kind in TWO:
        return w.to.node(TWO[op.kind], *of_one_type(w, op))
    return WRITTEN[op.kind](w, op)


def of_one_type(w: Writer, op: Operation) -> list[str]:
    """The operands of what is done to each number; numbers that are written out are of the type of the others."""
    if op.kind not in COMPARED:
        return [w.operand(each, op.results[0].type) for each in op.operands]
    arrays = [w.value(each).type for each in op.operands if not isinstance(each, Number)]
    kind = next(iter(arrays), w.value(op.operands[0]).type)
    found = [w.operand(each, kind) for each in op.operands]
    # Older releases of onnxruntime compare no bytes, and none says which truth value is the larger.
    return [w.to.node("Cast", each, to="int32") for each in found] if kind in ("uint8", "bool") else found


# Each number by itself


def cast(w: Writer, op: Operation) -> str:
    [operand] = op.operands
    return w.to.node("Cast", w.operand(operand), to=op.results[0].type)


def unequal(w: Writer, op: Operation) -> str:
    return w.to.node("Not", w.to.node("Equal", *of_one_type(w, op)))


def where(w: Writer, op: Operation) -> str:
    condition, one, other = op.operands
    kind = op.results[0].type
    chosen, first, second = w.operand(condition, "bool"), w.operand(one, kind), w.operand(other, kind)
    if kind != "bool":
        return w.to.node("Where", chosen, first, second)
    return w.to.node("Or", w.to.node("And", chosen, first), w.to.node("And", w.to.node("Not", chosen), second))


def rsqrt(w: Writer, op: Operation) -> str:
    return w.to.node("Reciprocal", w.to.node("Sqrt", *of_one_type(w, op)))


def trunc(w: Writer, op: Operation) -> str:
    [x] = of_one_type(w, op)
    return w.to.node("Mul", w.to.node("Sign", x), w.to.node("Floor", w.to.node("Abs", x)))


def expm1(w: Writer, op: Operation) -> str:
    """tanh(x / 2) (eˣ + 1), exact near 0 too."""
    [x] = of_one_type(w, op)
    kind = op.results[0].type
    half = w.to.node("Tanh", w.to.node("Mul", x, w.to.number(0.5, kind)))
    return w.to.node("Mul", half, w.to.node("Add", w.to.node("Exp", x), w.to.number(1, kind)))


def exp2(w: Writer, op: Operation) -> str:
    return w.to.node("Pow", w.to.number(2, op.results[0].type), *of_one_type(w, op))


def log1p(w: Writer, op: Operation) -> str:
    """log(u) x / (u − 1) with u = 1 + x, which is x where u is 1; log(u) where x is infinite."""
    [x] = of_one_type(w, op)
    kind = op.results[0].type
    u = w.to.node("Add", x, w.to.number(1, kind))
    log, more = w.to.node("Log", u), w.to.node("Sub", u, w.to.number(1, kind))
    exact = w.to.node("Mul", log, w.to.node("Div", x, more))
    found = w.to.node("Where", w.to.node("Equal", u, w.to.number(1, kind)), x, exact)
    return w.to.node("Where", w.to.node("IsInf", log), log, found)


def logarithm(base: float) -> Written:
    def write(w: Writer, op: Operation) -> str:
        kind = op.results[0].type
        return w.to.node("Mul", w.to.node("Log", *of_one_type(w, op)), w.to.number(1 / math.log(base), kind))

    return write


def atan2(w: Writer, op: Operation) -> str:
    """atan(y / x), and half a turn more where x is below 0; −0 is, and both 0 are no quotient."""
    y, x = of_one_type(w, op)
    zero = w.to.number(0, op.results[0].type)

    def is_negative(name: str) -> str:
        return w.to.node("Or", w.to.node("Less", name, zero), w.to.node("Less", w.to.node("Reciprocal", name), zero))

    plain = w.to.node("Where", w.to.node("Equal", y, zero), y, w.to.node("Atan", w.to.node("Div", y, x)))
    half = [w.to.number(sign * math.pi, op.results[0].type) for sign in (-1, 1)]
    turned = w.to.node("Add", plain, w.to.node("Where", is_negative(y), *half))
    return w.to.node("Where", is_negative(x), turned, plain)


def is_real(op: Operation) -> bool:
    return op.results[0].type.startswith("float")


def fmod(w: Writer, op: Operation) -> str:
    return w.to.node("Mod", *of_one_type(w, op), fmod=1)


def remainder(w: Writer, op: Operation) -> str:
    x, by = of_one_type(w, op)
    return remainder_of(w, x, by, op)


def remainder_of(w: Writer, x: str, by: str, op: Operation) -> str:
    """With the sign of the divisor, as in Python."""
    if not is_real(op):
        return w.to.node("Mod", x, by)
    zero = w.to.number(0, op.results[0].type)
    found = w.to.node("Mod", x, by, fmod=1)
    differs = w.to.node("Less", w.to.node("Mul", w.to.node("Sign", found), w.to.node("Sign", by)), zero)
    return w.to.node("Where", differs, w.to.node("Add", found, by), found)


def floor_divide(w: Writer, op: Operation) -> str:
    x, by = of_one_type(w, op)
    found = w.to.node("Div", w.to.node("Sub", x, remainder_of(w, x, by, op)), by)
    return w.to.node("Round", found) if is_real(op) else found


# Along dimensions


def reduced(kind: str) -> Written:
    def write(w: Writer, op: Operation) -> str:
        wanted = op.results[0].type
        if kind not in ("ReduceSum", "ReduceProd") or wanted != "uint8":
            return over(w, kind, as_type(w, op.operands[0], wanted), op)
        return w.to.node("Cast", over(w, kind, as_type(w, op.operands[0], "int32"), op), to=wanted)

    return write


def furthest(kind: str, of_flags: Written) -> Written:
    """The largest or the smallest; ONNX has no such truth value before opset 20."""
    plain = reduced(kind)
    return lambda w, op: of_flags(w, op) if op.results[0].type == "bool" else plain(w, op)


def as_type(w: Writer, x: Operand, kind: str) -> str:
    """An operand in the type of what is added up or multiplied; flags and bytes are counted in a larger one."""
    name = w.operand(x, kind)
    return name if isinstance(x, Number) or w.value(x).type == kind else w.to.node("Cast", name, to=kind)


def over(w: Writer, kind: str, x: str, op: Operation) -> str:
    dims = op.details["dims"]
    keeps = len(op.results[0].shape) == len(w.value(op.operands[0]).shape)
    return w.to.node(kind, x, w.to.whole(dims), keepdims=int(keeps)) if dims else w.to.node("Identity", x)


def any_of(w: Writer, op: Operation) -> str:
    counted = w.to.node("Cast", as_type(w, op.operands[0], "bool"), to="int64")
    return w.to.node("Greater", over(w, "ReduceSum", counted, op), w.to.number(0, "int64"))


def all_of(w: Writer, op: Operation) -> str:
    """There is none that is not."""
    missed = w.to.node("Cast", w.to.node("Not", as_type(w, op.operands[0], "bool")), to="int64")
    return w.to.node("Equal", over(w, "ReduceSum", missed, op), w.to.number(0, "int64"))


def place_of(kind: str) -> Written:
    def write(w: Writer, op: Operation) -> str:
        [x], dims = op.operands, op.details["dims"]
        shape = w.value(x).shape
        others = [dim for dim in range(len(shape)) if dim not in dims]
        moved = w.to.node("Transpose", as_number(w, x), perm=[*others, *dims])
        kept = [shape[dim] for dim in others]
        count = product_of(shape[dim] for dim in dims)
        flat = w.to.node("Reshape", moved, w.to.shape([*kept, count]), allowzero=1)
        found = w.to.node(kind, flat, axis=len(others), keepdims=0)
        return w.to.node("Reshape", found, w.to.shape(op.results[0].shape), allowzero=1)

    return write


def as_number(w: Writer, x: Operand) -> str:
    """An operand that is not of truth values."""
    name = w.operand(x)
    return w.to.node("Cast", name, to="uint8") if w.value(x).type == "bool" else name


def cumsum(w: Writer, op: Operation) -> str:
    wanted = op.results[0].type
    kind = "int32" if wanted == "uint8" else wanted
    found = w.to.node("CumSum", as_type(w, op.operands[0], kind), w.to.number(op.details["dim"], "int64"))
    return found if kind == wanted else w.to.node("Cast", found, to=wanted)


def cumprod(w: Writer, op: Operation) -> str:
    """A Scan that multiplies."""
    [x], dim = op.operands, op.details["dim"]
    value = op.results[0]
    slim = (*value.shape[:dim], *value.shape[dim + 1 :])
    ones = w.to.node("Expand", w.to.number(1, value.type), w.to.shape(slim))
    inner = Value(value.type, slim)
    inside = Builder(Graph("product"), (), w.to.taken, w.to)
    before, factor = inside.name("before"), inside.name("factor")
    after = inside.node("Mul", before, factor)
    inside.graph.inputs += [(before, inner), (factor, inner)]
    inside.graph.outputs += [(after, inner), (inside.node("Identity", after), inner)]
    settings = {"body": inside.graph, "num_scan_inputs": 1, "scan_input_axes": [dim], "scan_output_axes": [dim]}
    return w.to.nodes("Scan", [ones, as_type(w, x, value.type)], 2, settings)[1]


def argsort(w: Writer, op: Operation) -> str:
    """All of them, the largest or smallest first; of equals TopK takes the first."""
    [x], dim = op.operands, op.details["dim"]
    count = w.to.size(op.results[0].shape[dim])
    settings = {"axis": dim, "largest": int(op.details["falls"]), "sorted": 1}
    return w.to.nodes("TopK", [as_number(w, x), count], 2, settings)[1]


# Shapes and places


def iota(w: Writer, op: Operation) -> str:
    start, step = op.details["start"], op.details["step"]
    [count] = op.results[0].shape
    return w.to.node("Range", w.to.scalar(start), w.to.scalar(start + count * step), w.to.scalar(step))


def filled(w: Writer, op: Operation) -> str:
    value = op.results[0]
    return w.to.node("Expand", w.operand(op.operands[0], value.type), w.to.shape(value.shape))


def reshape(w: Writer, op: Operation) -> str:
    shape = op.results[0].shape
    open_ = [dim for dim, size in enumerate(shape) if size.constant is None]
    if len(open_) == 1 and all(size.constant != 0 for size in shape):  # the graph need not compute that one
        target = w.to.whole([-1 if size.constant is None else size.constant for size in shape])
    else:
        target = w.to.shape(shape)
    return w.to.node("Reshape", w.operand(op.operands[0]), target, allowzero=1)


def expand(w: Writer, op: Operation) -> str:
    return w.to.node("Expand", w.operand(op.operands[0]), w.to.shape(op.results[0].shape))


def permute(w: Writer, op: Operation) -> str:
    return w.to.node("Transpose", w.operand(op.operands[0]), perm=list(op.details["order"]))


def sliced(w: Writer, op: Operation) -> str:
    dim, first, by = op.details["dim"], op.details["first"], op.details["by"]
    end = first + op.results[0].shape[dim] * by
    axes, steps = w.to.whole([dim]), [w.to.whole([by])] if by != 1 else []
    return w.to.node("Slice", w.operand(op.operands[0]), w.to.size(first), w.to.size(end), axes, *steps)


def flip(w: Writer, op: Operation) -> str:
    dims = op.details["dims"]
    ends = [w.to.whole([each] * len(dims)) for each in (-1, LEAST)]
    return w.to.node("Slice", w.operand(op.operands[0]), *ends, w.to.whole(dims), w.to.whole([-1] * len(dims)))


def cat(w: Writer, op: Operation) -> str:
    return w.to.node("Concat", *(w.operand(each) for each in op.operands), axis=op.details["dim"])


def pad(w: Writer, op: Operation) -> str:
    x, fill = op.operands
    before, shape = op.details["before"], w.value(x).shape
    after = [whole + (start + size) * -1 for whole, start, size in zip(op.results[0].shape, before, shape, strict=True)]
    return w.to.node("Pad", w.operand(x), w.to.shape([*before, *after]), w.operand(fill, op.results[0].type))


def take(w: Writer, op: Operation) -> str:
    return w.to.node("Gather", *(w.operand(each) for each in op.operands), axis=0)


def index(w: Writer, op: Operation) -> str:
    table, *ids = op.operands
    rank = max(len(w.value(each).shape) for each in ids)
    shape = w.to.shape(op.results[0].shape[:rank])
    spread = [w.to.node("Unsqueeze", w.to.node("Expand", w.operand(each), shape), w.to.whole([rank])) for each in ids]
    return w.to.node("GatherND", w.operand(table), w.to.node("Concat", *spread, axis=rank))


def gather(w: Writer, op: Operation) -> str:
    return w.to.node("GatherElements", *(w.operand(each) for each in op.operands), axis=op.details["dim"])


def scatter(w: Writer, op: Operation) -> str:
    base, ids, numbers = op.operands
    spread = w.to.node("Expand", w.operand(numbers, op.results[0].type), w.to.shape(w.value(ids).shape))
    how = "add" if op.details["adds"] else "none"
    return w.to.node("ScatterElements", w.operand(base), w.operand(ids), spread, axis=op.details["dim"], reduction=how)


def matmul(w: Writer, op: Operation) -> str:
    return w.to.node("MatMul", *(w.operand(each) for each in op.operands))


def convolution(w: Writer, op: Operation) -> str:
    details = op.details
    return w.to.node(
        "Conv",
        *(w.operand(each) for each in op.operands),
        strides=list(details["stride"]),
        pads=[*details["padding"]] * 2,
        dilations=list(details["dilation"]),
        group=details["groups"],
    )


WRITTEN: Mapping[str, Written] = {
    "cast": cast,
    "ne": unequal,
    "where": where,
    "rsqrt": rsqrt,
    "trunc": trunc,
    "expm1": expm1,
    "exp2": exp2,
    "log1p": log1p,
    "log2": logarithm(2),
    "log10": logarithm(10),
    "atan2": atan2,
    "fmod": fmod,
    "remainder": remainder,
    "floor_divide": floor_divide,
    "sum": reduced("ReduceSum"),
    "max": furthest("ReduceMax", any_of),
    "min": furthest("ReduceMin", all_of),
    "prod": reduced("ReduceProd"),
    "any": any_of,
    "all": all_of,
    "argmax": place_of("ArgMax"),
    "argmin": place_of("ArgMin"),
    "cumsum": cumsum,
    "cumprod": cumprod,
    "argsort": argsort,
    "iota": iota,
    "full": filled,
    "reshape": reshape,
    "expand": expand,
    "permute": permute,
    "slice": sliced,
    "flip": flip,
    "cat": cat,
    "pad": pad,
    "take": take,
    "index": index,
    "gather": gather,
    "scatter": scatter,
    "matmul": matmul,
    "convolution": convolution,
}
