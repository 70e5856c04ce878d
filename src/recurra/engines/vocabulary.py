"""What a step may be made of: torch's operations, and how each is read as a row value.

MOVES only move numbers. POINTWISE are functions of each number; c_source.py and memory.py know them by the same names.
HANDLERS say for themselves how they are read. CONSTANTS are tensors of one number. TAKEN_APART are larger operations
that torch itself can express by these. An operation that is in none of them has no plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from recurra.engines.rows import Rows
from recurra.engines.values import NoPlan, Value, Weight

if TYPE_CHECKING:
    from recurra.engines.trace import StepReader

aten = torch.ops.aten

IGNORED = ("pin_memory", "memory_format", "dtype", "layout", "device")
"""Keywords that change nothing in what is computed; where a dtype does, torch says so by a cast."""


def argument(node: fx.Node, place: int, default: Any = None) -> Any:
    return node.args[place] if len(node.args) > place else default


# Products


def read_mm(reader: StepReader, node: fx.Node) -> Any:
    return product_of_two(reader, node, *(reader.found[each] for each in node.args[:2]))  # type: ignore[index]


def product_of_two(reader: StepReader, node: fx.Node, left: Any, right: Any) -> Any:
    """(n, k) times (k, m), as a product of one pair."""

    def as_one(factor: Any) -> Any:
        if isinstance(factor, Weight):
            return reader.new_weight(factor.node, aten.unsqueeze.default, (factor.node, 0), (1, *factor.shape))
        return reader.reshaped(factor, lambda tensor: tensor.unsqueeze(0))

    found = reader.product(node, as_one(left), as_one(right))
    return reader.reshaped(found, lambda tensor: tensor.squeeze(0)) if isinstance(found, Rows) else found


def read_bmm(reader: StepReader, node: fx.Node) -> Any:
    left, right = (reader.found[each] for each in node.args[:2])  # type: ignore[index]
    return reader.product(node, left, right)


def read_addmm(reader: StepReader, node: fx.Node) -> Any:
    if node.kwargs:
        raise NoPlan(f"its step uses {node.target} with {dict(node.kwargs)}, which a row pass does not support")
    bias, left, right = node.args[:3]
    product = product_of_two(reader, node, reader.found[left], reader.found[right])  # type: ignore[index]
    return reader.apply("add", product, reader.as_rows(bias))


# Sums, maxima and what is made of them


def read_sum(reader: StepReader, node: fx.Node) -> Any:
    return reader.sum(node, reader.as_rows(node.args[0]), argument(node, 1, ()), bool(argument(node, 2, False)))


def read_mean(reader: StepReader, node: fx.Node) -> Any:
    rows = reader.as_rows(node.args[0])
    return mean(reader, rows, argument(node, 1, ()), keep=bool(argument(node, 2, False)))


def scaled(reader: StepReader, rows: Rows, factor: float) -> Rows:
    return reader.apply("mul", rows, reader.as_rows(factor))


def mean(reader: StepReader, rows: Rows, dims: Any, *, keep: bool) -> Rows:
    total = reader.reduce("sum", rows, dims or (), keep)
    return scaled(reader, total, count_of(total) / count_of(rows))


def count_of(rows: Rows) -> int:
    return rows.places.numel()


def variance(reader: StepReader, rows: Rows, dims: Any, correction: float, *, keep: bool) -> tuple[Rows, Rows]:
    """The variance and the mean."""
    middle = mean(reader, rows, dims, keep=True)
    centred = reader.apply("sub", rows, middle)
    total = reader.reduce("sum", reader.apply("mul", centred, centred), dims or (), keep)
    n = count_of(rows) / count_of(total)
    return scaled(reader, total, 1 / (n - correction) if n > correction else float("nan")), middle


def read_variance(reader: StepReader, node: fx.Node) -> Rows:
    return read_variance_and_mean(reader, node)[0]


def read_variance_and_mean(reader: StepReader, node: fx.Node) -> tuple[Rows, Rows]:
    rows, keep = reader.as_rows(node.args[0]), bool(node.kwargs.get("keepdim", False))
    correction: Any = node.kwargs.get("correction", 1)
    dims = argument(node, 1)
    spread, middle = variance(reader, rows, dims, 1 if correction is None else float(correction), keep=keep)
    return spread, reader.reshaped(middle, lambda tensor: tensor.reshape(spread.shape))


def read_largest(reader: StepReader, node: fx.Node) -> Rows:
    rows = reader.as_rows(node.args[0])
    return reader.reduce("largest", rows, argument(node, 1, ()), bool(argument(node, 2, False)))


def negative(reader: StepReader, rows: Rows) -> Rows:
    return reader.apply("neg", rows)


def read_smallest(reader: StepReader, node: fx.Node) -> Rows:
    rows = negative(reader, reader.as_rows(node.args[0]))
    return negative(reader, reader.reduce("largest", rows, argument(node, 1, ()), bool(argument(node, 2, False))))


def with_place(reader: StepReader, rows: Rows, node: fx.Node) -> tuple[Rows, Rows]:
    dims, keep = [argument(node, 1)], bool(argument(node, 2, False))
    largest = reader.reduce("largest", rows, dims, keep)
    return largest, reader.reduce("place of the largest", rows, dims, keep)


def read_largest_with_place(reader: StepReader, node: fx.Node) -> tuple[Rows, Rows]:
    return with_place(reader, reader.as_rows(node.args[0]), node)


def read_smallest_with_place(reader: StepReader, node: fx.Node) -> tuple[Rows, Rows]:
    largest, place = with_place(reader, negative(reader, reader.as_rows(node.args[0])), node)
    return negative(reader, largest), place


def read_scatter(reader: StepReader, node: fx.Node) -> Rows:
    """One number along a dimension is replaced: what the gradient of a maximum needs."""
    base, place, source = (reader.as_rows(node.args[each]) for each in (0, 2, 3))
    dim: Any = node.args[1]
    dim %= len(base.shape)
    if place.shape[dim] != 1 or place.shape != source.shape:
        raise NoPlan(f"its step uses {node.target} with several places, which a row pass does not support")
    n = base.shape[dim]
    numbers = reader.new_weight(node, torch.arange, (n,), (n,), dtype=reader.dtype)
    along = [n if each == dim else 1 for each in range(len(base.shape))]
    every = reader.reshaped(reader.weight_as_rows(numbers), lambda tensor: tensor.view(along))
    return reader.apply("where", reader.apply("eq", every, place), source, base)


def read_running_sum(reader: StepReader, node: fx.Node) -> Rows:
    rows, dim = reader.as_rows(node.args[0]), argument(node, 1)
    last = reader.reshaped(rows, lambda tensor: tensor.movedim(dim, -1))
    if last.layout is None or last.layout.dimension == len(last.shape) - 1:
        raise NoPlan("its step mixes rows")
    value = reader.one_row(last)
    n = last.shape[-1]
    found = reader.whole(Value("running sum", (value,), value.width, n), last.layout)
    return reader.reshaped(found, lambda tensor: tensor.movedim(-1, dim))


def read_layer_norm(reader: StepReader, node: fx.Node) -> tuple[Rows, Rows, Rows]:
    """LN(a; g, b) = g ∘ (a − mean) · rstd + b, written out; the mean and rstd are its further results."""
    rows, gain, bias = reader.as_rows(node.args[0]), node.args[2], node.args[3]
    dims = [-1 - each for each in range(len(node.args[1]))]  # type: ignore[arg-type]
    return normalised(reader, rows, dims, gain, bias, float(node.args[4]))  # type: ignore[arg-type]


def normalised(
    reader: StepReader, rows: Rows, dims: list[int], gain: Any, bias: Any, epsilon: float
) -> tuple[Rows, Rows, Rows]:
    spread, middle = variance(reader, rows, dims, 0, keep=True)
    rstd = reader.apply("rsqrt", reader.apply("add", spread, reader.as_rows(epsilon)))
    out = reader.apply("mul", reader.apply("sub", rows, middle), rstd)
    if gain is not None:
        out = reader.apply("mul", out, reader.as_rows(gain))
    if bias is not None:
        out = reader.apply("add", out, reader.as_rows(bias))
    return out, middle, rstd


def read_group_norm(reader: StepReader, node: fx.Node) -> tuple[Rows, Rows, Rows]:
    given, gain, bias, _, channels, _, groups, epsilon = node.args[:8]
    rows = reader.as_rows(given)
    rest = [1] * (len(rows.shape) - 2)
    in_groups = reader.reshaped(rows, lambda tensor: tensor.reshape(rows.shape[0], groups, -1))
    out, middle, rstd = normalised(reader, in_groups, [-1], None, None, float(epsilon))  # type: ignore[arg-type]
    out = reader.reshaped(out, lambda tensor: tensor.reshape(rows.shape))
    for op, weight in (("mul", gain), ("add", bias)):
        if weight is not None:
            vector = reader.reshaped(reader.as_rows(weight), lambda tensor: tensor.view(1, channels, *rest))
            out = reader.apply(op, out, vector)
    return out, *(reader.reshaped(each, lambda tensor: tensor.squeeze(-1)) for each in (middle, rstd))  # type: ignore[return-value]


# Functions of each number that are made of others


def read_clamp(reader: StepReader, node: fx.Node) -> Rows:
    rows = reader.as_rows(node.args[0])
    bounds = (argument(node, 1, node.kwargs.get("min")), argument(node, 2, node.kwargs.get("max")))
    for bound, op in zip(bounds, ("maximum", "minimum"), strict=True):
        if bound is not None:
            rows = reader.apply(op, rows, reader.as_rows(bound))
    return rows


def read_shrink_backward(reader: StepReader, node: fx.Node) -> Rows:
    gradient, rows, bound = (reader.as_rows(each) for each in node.args[:3])
    is_above = reader.apply("ge", rows, negative(reader, bound))
    is_inside = reader.apply("and", is_above, reader.apply("le", rows, bound))
    return reader.apply("where", is_inside, reader.as_rows(0.0), gradient)


def read_scaled(op: str) -> Callable[[StepReader, fx.Node], Rows]:
    """a + alpha b, and likewise a − alpha b."""

    def read(reader: StepReader, node: fx.Node) -> Rows:
        a, b = (reader.as_rows(each) for each in node.args[:2])
        alpha: Any = node.kwargs.get("alpha", 1)
        return reader.apply(op, a, b if alpha == 1 else scaled(reader, b, float(alpha)))

    return read


def read_logical(op: str) -> Callable[[StepReader, fx.Node], Rows]:
    """Bit by bit, which for masks is the same; for whole numbers it is not."""

    def read(reader: StepReader, node: fx.Node) -> Rows:
        if node.meta["val"].dtype is not torch.bool:
            raise NoPlan(f"its step uses {node.target} of whole numbers, which a row pass does not support")
        return reader.apply(op, *(reader.as_rows(each) for each in node.args))

    return read


def read_cast(reader: StepReader, node: fx.Node) -> Rows:
    rows = reader.as_rows(node.args[0])
    dtype: Any = node.kwargs.get("dtype") or node.meta["val"].dtype
    source = node.args[0].meta["val"].dtype  # type: ignore[union-attr]
    if dtype in (reader.dtype, source):
        return rows
    if dtype is torch.bool:
        return reader.apply("ne", rows, reader.as_rows(0.0))
    raise NoPlan(f"its step casts to {dtype}, but a row pass supports only {reader.dtype}")


def read_same(reader: StepReader, node: fx.Node) -> Any:
    return reader.found[node.args[0]]  # type: ignore[index]


def read_copy(reader: StepReader, node: fx.Node) -> Rows:
    """What is written over a whole tensor."""
    shape = node.meta["val"].shape
    return reader.reshaped(reader.as_rows(node.args[1]), lambda tensor: tensor.expand(shape))


HANDLERS: dict[Any, Callable[[StepReader, fx.Node], Any]] = {
    aten.mm.default: read_mm,
    aten.bmm.default: read_bmm,
    aten.addmm.default: read_addmm,
    aten.sum.dim_IntList: read_sum,
    aten.sum.default: read_sum,
    aten.mean.dim: read_mean,
    aten.mean.default: read_mean,
    aten.var.correction: read_variance,
    aten.var_mean.correction: read_variance_and_mean,
    aten.amax.default: read_largest,
    aten.amin.default: read_smallest,
    aten.max.dim: read_largest_with_place,
    aten.min.dim: read_smallest_with_place,
    aten.scatter.src: read_scatter,
    aten.cumsum.default: read_running_sum,
    aten.native_layer_norm.default: read_layer_norm,
    aten.native_group_norm.default: read_group_norm,
    aten.clamp.default: read_clamp,
    aten.clamp.Tensor: read_clamp,
    aten.softshrink_backward.default: read_shrink_backward,
    aten.hardshrink_backward.default: read_shrink_backward,
    aten.add.Tensor: read_scaled("add"),
    aten.sub.Tensor: read_scaled("sub"),
    aten.bitwise_and.Tensor: read_logical("and"),
    aten.bitwise_or.Tensor: read_logical("or"),
    aten.bitwise_xor.Tensor: read_logical("ne"),
    aten.bitwise_not.default: read_logical("not"),
    aten._to_copy.default: read_cast,
    aten.alias.default: read_same,
    aten.clone.default: read_same,
    aten.detach.default: read_same,
    aten.lift_fresh_copy.default: read_same,
    aten.copy.default: read_copy,
}


def filled(node: fx.Node) -> float:
    return float(node.args[-1])  # type: ignore[arg-type]


def nothing(_: fx.Node) -> float:
    return 0.0


CONSTANTS: dict[Any, Callable[[fx.Node], float]] = {
    aten.scalar_tensor.default: filled,
    aten.full.default: filled,
    aten.full_like.default: filled,
    aten.zeros_like.default: nothing,
    aten.empty.memory_format: nothing,  # what is in it is written before it is read
    aten.empty_like.default: nothing,
    aten.empty_permuted.default: nothing,
    aten.new_empty_strided.default: nothing,
    aten.new_empty.default: nothing,
    aten.empty_strided.default: nothing,
}

MOVES = {
    aten.as_strided.default,
    aten.as_strided_scatter.default,
    aten.cat.default,
    aten.constant_pad_nd.default,
    aten.diagonal.default,
    aten.expand.default,
    aten.flip.default,
    aten.index.Tensor,
    aten.index_select.default,
    aten.permute.default,
    aten.repeat.default,
    aten.roll.default,
    aten.select.int,
    aten.select_scatter.default,
    aten.slice.Tensor,
    aten.slice_scatter.default,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.stack.default,
    aten.transpose.int,
    aten.unbind.int,
    aten.unsqueeze.default,
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
}

POINTWISE: dict[Any, str] = {
    aten.mul.Tensor: "mul",
    aten.mul.Scalar: "mul",
    aten.div.Tensor: "div",
    aten.div.Scalar: "div",
    aten.add.Scalar: "add",
    aten.sub.Scalar: "sub",
    aten.neg.default: "neg",
    aten.reciprocal.default: "reciprocal",
    aten.sigmoid.default: "sigmoid",
    aten.tanh.default: "tanh",
    aten.exp.default: "exp",
    aten.expm1.default: "expm1",
    aten.exp2.default: "exp2",
    aten.log.default: "log",
    aten.log1p.default: "log1p",
    aten.log2.default: "log2",
    aten.log10.default: "log10",
    aten.sin.default: "sin",
    aten.cos.default: "cos",
    aten.tan.default: "tan",
    aten.asin.default: "asin",
    aten.acos.default: "acos",
    aten.atan.default: "atan",
    aten.atan2.default: "atan2",
    aten.sinh.default: "sinh",
    aten.cosh.default: "cosh",
    aten.asinh.default: "asinh",
    aten.acosh.default: "acosh",
    aten.atanh.default: "atanh",
    aten.erf.default: "erf",
    aten.sqrt.default: "sqrt",
    aten.rsqrt.default: "rsqrt",
    aten.abs.default: "abs",
    aten.sign.default: "sign",
    aten.floor.default: "floor",
    aten.ceil.default: "ceil",
    aten.round.default: "round",
    aten.trunc.default: "trunc",
    aten.relu.default: "relu",
    aten.maximum.default: "maximum",
    aten.minimum.default: "minimum",
    aten.where.self: "where",
    aten.eq.Tensor: "eq",
    aten.eq.Scalar: "eq",
    aten.ne.Tensor: "ne",
    aten.ne.Scalar: "ne",
    aten.lt.Tensor: "lt",
    aten.lt.Scalar: "lt",
    aten.le.Tensor: "le",
    aten.le.Scalar: "le",
    aten.gt.Tensor: "gt",
    aten.gt.Scalar: "gt",
    aten.ge.Tensor: "ge",
    aten.ge.Scalar: "ge",
    aten.logical_and.default: "and",
    aten.logical_or.default: "or",
    aten.logical_not.default: "not",
    aten.pow.Tensor_Scalar: "pow",
    aten.pow.Tensor_Tensor: "pow",
    aten.pow.Scalar: "pow",
}

TAKEN_APART = [
    aten.gelu,
    aten.elu,
    aten.leaky_relu,
    aten.hardtanh,
    aten.hardswish,
    aten._softmax,
    aten._log_softmax,
    aten.linalg_vector_norm,
    aten.logsumexp,
    aten.native_group_norm_backward,
]

WHOLE = {*HANDLERS, *MOVES, *POINTWISE, *CONSTANTS}
"""What torch must not take apart, although it could."""

EXACT = {*MOVES, aten.where.self, aten.alias.default, aten.clone.default, aten.detach.default}
"""What gives the same numbers in any type."""
