"""A cell's step and its gradient as a graph of row values: what the equations do to one row of a batch.

torch traces the step and its vector-Jacobian product (make_fx); here every operation of that trace is put into one of
a few forms, each of which says what it does to a single row. Nothing is scheduled yet: see plan.py.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from recurra.cells import AnyCell

aten = torch.ops.aten


class NoPlan(Exception):
    """The cell cannot be planned; the message is the reason, in words."""


@dataclass(frozen=True, eq=False)
class Value:
    """Something that every row has: a leaf, a product with weights, or a function of other values of the row.

    op        what makes it: 'leaf', 'constant', 'product', 'view', 'slice', 'cat', 'sum', or a pointwise function
    args      the values it is made of (floats for constants)
    shape     of one row; of the whole for a vector that all rows share
    detail    leaf: its name; product: the weight; slice: where it starts
    """

    op: str
    args: tuple[Value | float, ...]
    shape: tuple[int, ...]
    detail: Any = None

    @property
    def width(self) -> int:
        return math.prod(self.shape)

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(arg for arg in self.args if isinstance(arg, Value))


@dataclass(frozen=True, eq=False)
class Weight:
    """A tensor that no row owns: a parameter, a weight out of `fixed`, or something computed from these alone."""

    node: fx.Node
    shape: tuple[int, ...]
    transposed: Weight | None = None  # the weight that this one is the transpose of


@dataclass(frozen=True, eq=False)
class Contraction:
    """A sum over all rows: Gᵀ A for a matrix's gradient, or the plain sum of `left` for a vector's."""

    node: fx.Node
    left: Value
    right: Value | None


@dataclass
class Trace:
    """A traced step. Forward: `new_states`. Backward: `d_inputs`, `d_states`, and what the weights' gradients need."""

    module: fx.GraphModule
    leaves: dict[str, Value]
    new_states: list[Value]
    d_inputs: Value
    d_states: list[Value]
    contractions: list[Contraction] = field(default_factory=list)
    weight_inputs: list[fx.Node] = field(default_factory=list)  # placeholders of weights, in the order they are given
    weight_gradients: list[fx.Node | None] = field(default_factory=list)  # of each, evaluated after the loop
    row_inputs: list[str] = field(default_factory=list)  # leaves out of `fixed` with a row each


class OneStep(nn.Module):
    """A cell's step as a module, so that its parameters can be given from outside."""

    def __init__(self, cell: AnyCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, inputs: Tensor, state: Sequence[Tensor], fixed: Any) -> tuple[Tensor, ...]:
        return tuple(self.cell.step(inputs, self.cell.State(*state), fixed))


def weights_of(cell: AnyCell) -> dict[str, Tensor]:
    """Every parameter and buffer of a cell by name."""
    return {**dict(cell.named_parameters()), **dict(cell.named_buffers())}


@functools.cache
def decompositions() -> dict[Any, Any]:
    """torch's larger operations in terms of its core ones; to look them all up takes as long as to trace a step."""
    return dict(core_aten_decompositions().items())


def trace(cell: AnyCell, input_width: int, like: Tensor) -> Trace:
    """Trace one step of a cell and its gradient; NoPlan says why it cannot be."""
    weights = {name: weight.detach() for name, weight in weights_of(cell).items()}
    taken = {size for weight in weights.values() for size in weight.shape}
    taken.update((input_width, cell.input_size, cell.hidden_size))
    # A number of rows that is no other size: so the dimension of rows is known by its size.
    rows = next(prime for prime in (13, 17, 19, 23, 29, 31, 37, 41, 43) if all(size % prime for size in taken))
    state = cell.start(rows, like)
    leaves, structure = tree_flatten(cell.fixed(rows, like))
    given = [leaf.detach() for leaf in leaves if isinstance(leaf, Tensor)]
    inputs = like.new_zeros(rows, input_width)
    step = OneStep(cell)

    def run(inputs: Tensor, state: tuple[Tensor, ...], given: list[Tensor], weights: dict[str, Tensor]) -> Any:
        tensors = iter(given)
        filled = [next(tensors) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        named = {f"cell.{name}": weight for name, weight in weights.items()}
        return torch.func.functional_call(step, named, (inputs, state, tree_unflatten(filled, structure)))

    def both(gradients: tuple[Tensor, ...], *arguments: Any) -> Any:
        outputs, pull, *_ = torch.func.vjp(run, *arguments)
        return outputs, pull(gradients)

    gradients = tuple(torch.zeros_like(part) for part in state)
    arguments = (inputs, tuple(part.detach() for part in state), given, weights)
    try:
        module = make_fx(both, decomposition_table=decompositions())(gradients, *arguments)
    except Exception as error:  # whatever the user's own step may raise under tracing is a reason, not a crash
        raise NoPlan(f"its step cannot be traced ({str(error).strip().splitlines()[0]})") from error
    module.graph.eliminate_dead_code()
    return Reader(module, rows, len(state), len(given), len(weights)).read()


class Reader:
    """Reads a traced graph node by node into row values."""

    def __init__(self, module: fx.GraphModule, rows: int, states: int, given: int, weights: int) -> None:
        self.module = module
        self.rows = rows
        self.found: dict[fx.Node, Any] = {}
        self.counts = (states, given, weights)
        self.contractions: list[Contraction] = []

    def read(self) -> Trace:
        states, given, weights = self.counts
        nodes = list(self.module.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        names = [
            *(f"gradient {n}" for n in range(states)),
            "inputs",
            *(f"state {n}" for n in range(states)),
            *(f"fixed {n}" for n in range(given)),
            *(f"weight {n}" for n in range(weights)),
        ]
        leaves: dict[str, Value] = {}
        weight_inputs: list[fx.Node] = []
        row_inputs: list[str] = []
        for node, name in zip(placeholders, names, strict=True):
            shape = shape_of(node)
            if name.startswith(("fixed", "weight")) and not (shape and shape[0] == self.rows):
                self.found[node] = Weight(node, shape)
                weight_inputs.append(node)
                continue
            leaves[name] = self.found[node] = Value("leaf", (), shape[1:], name)
            if name.startswith("fixed"):
                row_inputs.append(name)
        for node in nodes:
            if node.op in ("call_function", "get_attr"):
                self.found[node] = self.read_node(node)
        outputs = tree_flatten(nodes[-1].args)[0]
        new_states = [self.row(node) for node in outputs[:states]]
        d_inputs, *d_states = (self.row(node) for node in outputs[states : 2 * states + 1])
        of_weights = dict(zip(placeholders[2 * states + 1 :], outputs[2 * states + 1 :], strict=True))
        return Trace(
            self.module,
            leaves,
            new_states,
            d_inputs,
            d_states,
            self.contractions,
            weight_inputs,
            [self.gradient(of_weights[node]) for node in weight_inputs],
            row_inputs,
        )

    def gradient(self, node: fx.Node) -> fx.Node | None:
        """The node of a weight's gradient; None where the step does not use the weight."""
        found = self.found[node]
        if isinstance(found, Weight):  # a constant zero
            return None
        if not isinstance(found, After):
            raise NoPlan(f"the gradient of a weight is made by {node.target}, which is not a sum over rows")
        return node

    def row(self, node: Any) -> Value:
        """A node as a value of each row; a weight becomes a vector that all rows share."""
        found = self.found[node] if isinstance(node, fx.Node) else float(node)
        if isinstance(found, Value):
            return found
        if isinstance(found, float):
            return Value("constant", (found,), ())
        if isinstance(found, Weight):
            shape = found.shape
            while shape and shape[0] == 1 and len(shape) > 1:
                shape = shape[1:]
            return Value("leaf", (), shape, found)
        raise NoPlan(f"{getattr(node, 'target', node)} stands where a value of each row must be")

    def read_node(self, node: fx.Node) -> Any:
        if node.op == "get_attr":
            return Weight(node, tuple(getattr(self.module, str(node.target)).shape))
        inputs = [self.found[argument] for argument in node.all_input_nodes]
        if any(isinstance(each, After) for each in inputs):
            if not all(isinstance(each, After | Weight) for each in inputs):
                raise NoPlan(f"{node.target} mixes a sum over rows with a value of a row")
            return After(node)
        if node.target in (aten.scalar_tensor.default, aten.full.default):
            value: Any = node.args[-1] if node.target is aten.full.default else node.args[0]
            shape = shape_of(node)
            return Value("constant", (float(value),), shape[1:] if shape[:1] == (self.rows,) else shape)
        if node.target is operator.getitem and not isinstance(inputs[0], Weight):
            return inputs[0][node.args[1]]
        if all(isinstance(each, Weight) for each in inputs):
            return self.weight(node, inputs)
        handler = HANDLERS.get(node.target)
        if handler is not None:
            return handler(self, node)
        if node.target in POINTWISE:
            return self.pointwise(node)
        raise NoPlan(f"its step uses {node.target}, which no row pass has")

    def weight(self, node: fx.Node, inputs: list[Weight]) -> Weight:
        """Something computed from weights alone: once per sequence, by torch."""
        is_transpose = node.target is aten.permute.default and node.args[1] == [1, 0]
        value = node.meta.get("val")
        shape = tuple(value.shape) if isinstance(value, Tensor) else ()
        return Weight(node, shape, inputs[0] if is_transpose else None)

    def pointwise(self, node: fx.Node) -> Value:
        if node.kwargs and any(key not in IGNORED for key in node.kwargs):
            raise NoPlan(f"its step uses {node.target} with {dict(node.kwargs)}, which no row pass has")
        args = tuple(self.row(argument) for argument in node.args if argument is not None)
        return Value(POINTWISE[node.target], args, broadcast(args, node))


@dataclass(frozen=True)
class After:
    """A node that depends on sums over rows: evaluated by torch once, after the loop."""

    node: fx.Node


IGNORED = ("pin_memory", "memory_format", "dtype", "layout", "device")


def shape_of(node: fx.Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def broadcast(args: Sequence[Value], node: fx.Node) -> tuple[int, ...]:
    """The shape of one row of a pointwise result."""
    shape = tuple(torch.broadcast_shapes(*(arg.shape for arg in args)))
    if shape != shape_of(node)[1:]:
        raise NoPlan(f"its step broadcasts over rows in {node.target}")
    return shape


def check_last(dim: object, rank: int, node: fx.Node) -> None:
    if not isinstance(dim, int) or dim % rank != rank - 1:
        raise NoPlan(f"its step uses {node.target} along another dimension than the last")


def read_mm(reader: Reader, node: fx.Node) -> Any:
    left, right = (reader.found[argument] for argument in node.args[:2])  # type: ignore[index]
    if isinstance(left, Transposed) and isinstance(right, Value):
        contraction = Contraction(node, left.value, right)
        reader.contractions.append(contraction)
        return After(node)
    if isinstance(left, Value) and isinstance(right, Weight) and len(right.shape) == 2:
        return Value("product", (left,), (right.shape[1],), right)
    raise NoPlan("its step multiplies two values that both differ from row to row")


def read_permute(reader: Reader, node: fx.Node) -> Any:
    if list(node.args[1]) != [1, 0]:  # type: ignore[arg-type]
        raise NoPlan("its step permutes dimensions")
    return Transposed(reader.row(node.args[0]))


@dataclass(frozen=True)
class Transposed:
    """A row value seen with the rows last: the left side of a weight's gradient."""

    value: Value


def read_view(reader: Reader, node: fx.Node) -> Value:
    shape = shape_of(node)
    if shape[:1] != (reader.rows,):
        raise NoPlan(f"its step reshapes across rows in {node.target}")
    return Value("view", (reader.row(node.args[0]),), shape[1:])


def read_split(reader: Reader, node: fx.Node) -> list[Value]:
    value, parts, start = reader.row(node.args[0]), [], 0
    check_last(node.args[2] if len(node.args) > 2 else 0, len(value.shape) + 1, node)
    sizes = node.args[1]
    assert isinstance(sizes, list | tuple)
    for size in sizes:
        assert isinstance(size, int)
        parts.append(Value("slice", (value,), (*value.shape[:-1], size), start))
        start += size
    return parts


def read_slice(reader: Reader, node: fx.Node) -> Value:
    value = reader.row(node.args[0])
    arguments: list[Any] = [*node.args[1:], *(0, 0, None, 1)[len(node.args) - 1 :]]
    dim, start, end, step = arguments
    check_last(dim, len(value.shape) + 1, node)
    if step != 1:
        raise NoPlan("its step takes every other column of a value")
    width = value.shape[-1]
    start = 0 if start is None else int(start)
    start = start + width if start < 0 else start
    return Value("slice", (value,), shape_of(node)[1:], start) if end is not None or start else value


def read_cat(reader: Reader, node: fx.Node) -> Value:
    parts = tuple(reader.row(argument) for argument in node.args[0])  # type: ignore[union-attr]
    if any(len(part.shape) != 1 for part in parts):
        raise NoPlan("its step joins values of more than one dimension")
    check_last(node.args[1] if len(node.args) > 1 else 0, 2, node)
    return Value("cat", parts, shape_of(node)[1:])


def read_sum(reader: Reader, node: fx.Node) -> Any:
    value = reader.row(node.args[0])
    rank = len(value.shape) + 1
    given: Any = node.args[1] if len(node.args) > 1 else range(rank)
    dims = [dim % rank for dim in given]
    if 0 in dims:
        reader.contractions.append(Contraction(node, value, None))
        return After(node)
    if dims != [rank - 1]:
        raise NoPlan("its step sums along another dimension than the last")
    total = Value("sum", (value,), (*value.shape[:-1], 1))
    keeps = len(node.args) > 2 and node.args[2]
    return total if keeps else Value("view", (total,), value.shape[:-1])


def read_mean(reader: Reader, node: fx.Node) -> Any:
    total = read_sum(reader, node)
    if not isinstance(total, Value):
        raise NoPlan("its step averages over rows")
    count = reader.row(node.args[0]).shape[-1]
    return Value("mul", (total, Value("constant", (1 / count,), ())), total.shape)


def read_layer_norm(reader: Reader, node: fx.Node) -> tuple[Value, Value, Value]:
    """LN(a; g, b) = g ∘ (a − mean) · rstd + b, written out; the mean and rstd are its further results."""
    value = reader.row(node.args[0])
    _, normal, gain, bias, epsilon = node.args
    if list(normal) != [value.shape[-1]]:  # type: ignore[arg-type]
        raise NoPlan("its step normalises over more than the last dimension")
    ones, n = (*value.shape[:-1], 1), Value("constant", (1 / value.shape[-1],), ())
    mean = Value("mul", (Value("sum", (value,), ones), n), ones)
    centred = Value("sub", (value, mean), value.shape)
    square = Value("mul", (centred, centred), value.shape)
    variance = Value("mul", (Value("sum", (square,), ones), n), ones)
    shifted = Value("add", (variance, Value("constant", (float(epsilon),), ())), ones)  # type: ignore[arg-type]
    rstd = Value("rsqrt", (shifted,), ones)
    out = Value("mul", (centred, rstd), value.shape)
    if gain is not None:
        out = Value("mul", (out, reader.row(gain)), value.shape)
    if bias is not None:
        out = Value("add", (out, reader.row(bias)), value.shape)
    return out, mean, rstd


def read_clamp(reader: Reader, node: fx.Node) -> Value:
    value = reader.row(node.args[0])
    for bound, name in zip(node.args[1:], ("maximum", "minimum"), strict=False):
        if bound is not None:
            value = Value(name, (value, reader.row(bound)), value.shape)
    return value


def read_same(reader: Reader, node: fx.Node) -> Any:
    return reader.found[node.args[0]]  # type: ignore[index]


def read_constant(value: Callable[[fx.Node], float]) -> Callable[[Reader, fx.Node], Value]:
    def read(reader: Reader, node: fx.Node) -> Value:
        return Value("constant", (float(value(node)),), reader.row(node.args[0]).shape)

    return read


def read_copy(reader: Reader, node: fx.Node) -> Value:
    return reader.row(node.args[1])


def read_scaled_add(name: str) -> Callable[[Reader, fx.Node], Value]:
    """a + alpha b, and likewise a − alpha b."""

    def read(reader: Reader, node: fx.Node) -> Value:
        a, b = (reader.row(argument) for argument in node.args[:2])
        alpha = node.kwargs.get("alpha", 1)
        if alpha != 1:
            b = Value("mul", (b, Value("constant", (float(alpha),), ())), b.shape)  # type: ignore[arg-type]
        return Value(name, (a, b), broadcast((a, b), node))

    return read


def read_addmm(reader: Reader, node: fx.Node) -> Value:
    bias, left, right = node.args
    product = reader.found[left], reader.found[right]  # type: ignore[index]
    if not (isinstance(product[0], Value) and isinstance(product[1], Weight)) or node.kwargs:
        raise NoPlan("its step multiplies two values that both differ from row to row")
    value = Value("product", (product[0],), (product[1].shape[1],), product[1])
    return Value("add", (value, reader.row(bias)), value.shape)


HANDLERS: dict[Any, Callable[[Reader, fx.Node], Any]] = {
    aten.mm.default: read_mm,
    aten.addmm.default: read_addmm,
    aten.permute.default: read_permute,
    aten.view.default: read_view,
    aten.unsqueeze.default: read_view,
    aten.squeeze.dim: read_view,
    aten.squeeze.dims: read_view,
    aten._unsafe_view.default: read_view,
    aten.split_with_sizes.default: read_split,
    aten.slice.Tensor: read_slice,
    aten.cat.default: read_cat,
    aten.sum.dim_IntList: read_sum,
    aten.mean.dim: read_mean,
    aten.native_layer_norm.default: read_layer_norm,
    aten.clamp.default: read_clamp,
    aten.alias.default: read_same,
    aten.clone.default: read_same,
    aten.detach.default: read_same,
    aten.full_like.default: read_constant(lambda node: node.args[1]),  # type: ignore[arg-type,return-value]
    aten.copy_.default: read_copy,
    aten.copy.default: read_copy,
    aten.add.Tensor: read_scaled_add("add"),
    aten.sub.Tensor: read_scaled_add("sub"),
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
    aten.log.default: "log",
    aten.log1p.default: "log1p",
    aten.sin.default: "sin",
    aten.cos.default: "cos",
    aten.erf.default: "erf",
    aten.sqrt.default: "sqrt",
    aten.rsqrt.default: "rsqrt",
    aten.abs.default: "abs",
    aten.sign.default: "sign",
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
}
"""The functions that a row pass can apply to each number; C_SOURCE and torch both know them by these names."""
