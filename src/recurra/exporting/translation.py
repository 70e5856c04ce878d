"""Recordings of torch, read side by side, as one function of a program.

Every operation that torch recorded becomes one or a few of those in `recurra.programs.program.KINDS`. Numbers that
differ between the recordings become sizes. Types are made equal on the way: operands have the type of the result.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.exporting.recording import Node, Recorded, Recording, Step, mapped
from recurra.programs.inputs import Input
from recurra.programs.program import TYPES, Function, Named, Number, Operand, Operation, Value
from recurra.programs.sizes import Size, product_of
from recurra.programs.solving import NotExportable, Sizes

aten = torch.ops.aten

NAMES = {getattr(torch, name): name for name in TYPES}


def translated(
    recordings: Sequence[Recording], inputs: Sequence[Input], sizes: Sizes, names: Mapping[tuple[int, Any], str]
) -> Recorded:
    """The recordings of a function as one."""
    weights: dict[str, NDArray[Any]] = {}
    named = [
        Named(
            each.name, Value(each.type, tuple(map(Size.read, each.shape))), each.below if each.kind == "ids" else None
        )
        for each in inputs
    ]
    if len({each.outputs for each in recordings}) > 1:
        raise NotExportable("its outputs depend on the sizes of its inputs")
    steps = [each.steps for each in recordings]
    function = Translator([each.nodes for each in recordings], named, sizes, names, weights, steps).function(
        recordings[0].outputs
    )
    return Recorded(function, weights)


class Translator:
    """Reads the nodes of several recordings one by one, those of the same place together."""

    def __init__(
        self,
        recordings: Sequence[Sequence[Node]],
        inputs: Sequence[Named],
        sizes: Sizes,
        names: Mapping[tuple[int, Any], str],
        weights: dict[str, NDArray[Any]],
        steps: Sequence[Mapping[int, Step]] = (),
        given: Sequence[Held | None] = (),
    ) -> None:
        self.recordings, self.inputs, self.sizes, self.names, self.weights = recordings, inputs, sizes, names, weights
        self.steps = steps
        self.given = given  # of each input, the weight that it is; where it is none, one of `inputs`
        self.operations: list[Operation] = []
        self.values = [each.value for each in inputs]
        self.found: dict[Node, Any] = {}  # by node of the first recording
        self.now: tuple[Node, ...] = ()
        self.first: list[dict[Node, Node]] = [{} for _ in recordings]  # of each, the node of the first recording

    def function(self, outputs: Sequence[str]) -> Function:
        if len({len(nodes) for nodes in self.recordings}) > 1:
            raise NotExportable("it does other things for inputs of other sizes")
        taken, given = 0, list(self.given)
        for nodes in zip(*self.recordings, strict=True):
            self.now = nodes
            for place, node in enumerate(nodes):
                self.first[place][node] = nodes[0]
            if len({(node.op, str(node.target) if node.op == "call_function" else "") for node in nodes}) > 1:
                raise NotExportable("it does other things for inputs of other sizes")
            kind = nodes[0].op
            if kind == "placeholder":
                weight = given.pop(0) if given else None
                self.found[nodes[0]] = taken if weight is None else weight
                taken += weight is None
            elif kind == "constant":
                self.found[nodes[0]] = self.constant(nodes)
            elif kind == "call_function":
                self.found[nodes[0]] = self.called(nodes)
            elif kind == "output":
                results = self.merged([node.args[0] for node in nodes])
                found = tuple(zip(outputs, map(self.operand, results), strict=True))
                return Function(tuple(self.inputs), tuple(self.operations), found)
        raise NotExportable("it returns nothing")

    # Arguments

    def merged(self, arguments: Sequence[Any]) -> Any:
        """What stands at one place in all recordings: a value, a number, a size, or a list of such."""
        first = arguments[0]
        if any(type(each) is not type(first) for each in arguments) and not all(
            isinstance(each, int | float) for each in arguments
        ):
            raise NotExportable("it does other things for inputs of other sizes")
        if isinstance(first, Node):
            if len({self.first[place][node] for place, node in enumerate(arguments)}) > 1:
                raise NotExportable("it does other things for inputs of other sizes")
            found = self.found[first]
            return Ref(found) if isinstance(found, int) else found
        if isinstance(first, list | tuple):
            if len({len(each) for each in arguments}) > 1:
                raise NotExportable("it makes lists as long as its inputs, such as a loop over steps")
            return [self.merged(each) for each in zip(*arguments, strict=True)]
        if all(each == first for each in arguments) or (isinstance(first, float) and math.isnan(first)):
            return first
        if all(isinstance(each, int) and not isinstance(each, bool) for each in arguments):
            return self.sizes.solved(arguments)
        if all(isinstance(each, float) and each == int(each) for each in arguments if math.isfinite(each)):
            return self.sizes.solved([int(each) for each in arguments])
        if all(isinstance(each, float) for each in arguments):
            return Reciprocal(self.sizes.solved([round(1 / each) for each in arguments]))
        raise NotExportable(f"it uses {first!r} here and {arguments[1]!r} there")

    def value_of(self, nodes: Sequence[Node], part: int | None = None) -> Value:
        """Type and shape of what nodes give."""
        metas = [node.value if part is None else node.value[part] for node in nodes]
        if any(not isinstance(meta, Tensor) for meta in metas):
            raise NotExportable(f"it uses {nodes[0].target}, which a program does not have")
        return Value(type_of(metas[0]), self.shape_of([tuple(meta.shape) for meta in metas]))

    def shape_of(self, shapes: Sequence[Sequence[int]]) -> tuple[Size, ...]:
        return tuple(self.sizes.solved(each) for each in zip(*shapes, strict=True))

    def known(self, operand: Operand) -> Value:
        """Type and shape of an operand."""
        if isinstance(operand, int):
            return self.values[operand]
        if isinstance(operand, str):
            weight = self.weights[operand]
            return Value(str(weight.dtype), tuple(map(Size.of, weight.shape)))
        value = operand.value
        return Value("bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int64", ())

    def operand(self, found: Any) -> Operand:
        """A merged argument as an operand."""
        if isinstance(found, Number | str):
            return found
        if isinstance(found, Held) and found.of is not None:
            value = Value(type_of(found.tensor), tuple(map(Size.of, found.tensor.shape)))
            return self.add("permute", [self.operand(found.of)], value, order=found.order)
        if isinstance(found, Held):
            # Not np.ascontiguousarray, which gives a single number a dimension.
            return self.weight(found.tensor.cpu().numpy().astype(type_of(found.tensor), order="C"), found.name)
        if isinstance(found, Literal):
            return found.number
        if isinstance(found, Ref):
            return int(found)
        if isinstance(found, bool | int | float | Size):
            return Number(found)
        if isinstance(found, Reciprocal):
            size = self.add("cast", [Number(found.size)], Value("float32", ()))
            return self.add("reciprocal", [size], Value("float32", ()))
        raise NotExportable(f"it computes with {found!r:.60}, which a program does not have")

    def constant(self, nodes: Sequence[Node]) -> Any:
        """A tensor that is no input: a weight, or made of numbers that follow from sizes."""
        tensors = [node.value for node in nodes]
        first = tensors[0].detach()
        if all(each.shape == first.shape and torch.equal(each.detach(), first) for each in tensors[1:]):
            return Held(first, self.names.get((tensors[0].data_ptr(), tuple(first.shape))))
        if first.is_floating_point() or first.dtype == torch.bool or len({each.shape for each in tensors}) > 1:
            raise NotExportable("it uses a tensor that is not the same for inputs of other sizes")
        rows = zip(*(each.flatten().tolist() for each in tensors), strict=True)
        parts = [self.add("full", [Number(self.sizes.solved(row))], Value("int64", (Size.of(1),))) for row in rows]
        whole = self.add("cat", parts, Value("int64", (Size.of(len(parts)),)), dim=0) if len(parts) > 1 else parts[0]
        return self.add("reshape", [whole], Value("int64", tuple(map(Size.of, first.shape))))

    def weight(self, array: NDArray[Any], name: str | None = None) -> Operand:
        if array.ndim == 0:
            return Number(array.item())
        if name is None or (name in self.weights and not np.array_equal(self.weights[name], array)):
            name = f"constant{sum(each.startswith('constant') for each in self.weights)}"
        self.weights[name] = array
        return name

    # Operations

    def add(self, kind: str, operands: Sequence[Operand], value: Value, **details: Any) -> int:
        self.operations.append(Operation(kind, tuple(operands), (value,), details))
        self.values.append(value)
        return len(self.values) - 1

    def typed(self, operand: Operand, kind: str) -> Operand:
        """The operand in another type."""
        if isinstance(operand, Number):
            if isinstance(operand.value, Size):
                if kind == "int64":
                    return operand
                return self.add("cast", [operand], Value(kind, ()))
            value = operand.value
            return Number(
                bool(value) if kind == "bool" else int(value) if kind.startswith(("int", "uint")) else float(value)
            )
        known = self.known(operand)
        return operand if known.type == kind else self.add("cast", [operand], Value(kind, known.shape))

    def reshaped(self, operand: Operand, shape: Sequence[Size]) -> Operand:
        value = self.known(operand)
        if value.shape == tuple(shape):
            return operand
        if isinstance(operand, Number):
            return self.add("full", [operand], Value(value.type, tuple(shape)))
        return self.add("reshape", [operand], Value(value.type, tuple(shape)))

    def array(self, operand: Operand, kind: str | None = None) -> Operand:
        """The operand as an array: a single number is one of no dimensions."""
        if isinstance(operand, Number):
            return self.add("full", [operand], Value(kind or self.known(operand).type, ()))
        return operand

    def called(self, nodes: Sequence[Node]) -> Any:
        target = nodes[0].target
        arguments = self.merged([node.args for node in nodes])
        keywords = {name: self.merged([node.kwargs[name] for node in nodes]) for name in nodes[0].kwargs}
        if target is operator.getitem:
            return arguments[0][arguments[1]]
        if (held := self.of_weights(nodes[0], (arguments, keywords))) is not None:
            return held
        handler = HANDLERS.get(target)
        if handler is None:
            raise NotExportable(f"it uses {target}, which a program does not have")
        return handler(self, nodes, arguments, keywords)

    def of_weights(self, node: Node, merged: Any) -> Any:
        """What is made of weights alone, computed now: a transposed or normalised matrix. None where it is not."""
        leaves = leaves_in(merged)
        if not any(isinstance(leaf, Held) for leaf in leaves):
            return None
        if any(not isinstance(leaf, Held | float | bool | None) and not is_plain(leaf) for leaf in leaves):
            return None
        inside = {arg: self.found[arg].tensor for arg in node.inputs if isinstance(self.found[arg], Held)}
        if len(inside) < len(node.inputs) or node.target in SPREADING:
            return None
        arguments, keywords = (
            mapped(each, lambda leaf: inside.get(leaf, leaf) if isinstance(leaf, Node) else leaf)
            for each in (node.args, node.kwargs)
        )
        result = node.target(*arguments, **keywords)
        if not isinstance(result, Tensor):
            return [Held(each) for each in result]
        base = self.found[node.inputs[0]]
        if node.target is aten.permute.default and base.name is not None:  # not worth a second copy
            return Held(result, of=base, order=tuple(dim % result.dim() for dim in arguments[1]))
        return Held(result)


def leaves_in(tree: Any) -> list[Any]:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    return [leaf for part in tree for leaf in leaves_in(part)] if isinstance(tree, list | tuple) else [tree]


def is_plain(leaf: Any) -> bool:
    """Whether it is a number or name of torch's that is the same in all recordings; values are told by their nodes."""
    return not isinstance(leaf, Ref | Size | Reciprocal | Literal | Number | str)


class Ref(int):
    """The number of a value, which is not a number that is computed with."""


class Held:
    """A tensor of the model, or made of such alone: it is a weight where something uses it."""

    def __init__(
        self, tensor: Tensor, name: str | None = None, of: Held | None = None, order: tuple[int, ...] = ()
    ) -> None:
        self.tensor, self.name = tensor.detach(), name
        self.of, self.order = of, order  # the weight of which it is another view


class Reciprocal:
    """1 over a size."""

    def __init__(self, size: Size) -> None:
        self.size = size


class Literal:
    """A number of no dimensions that torch made a tensor of."""

    def __init__(self, number: Number) -> None:
        self.number = number


def type_of(tensor: Tensor) -> str:
    if tensor.dtype not in NAMES:
        raise NotExportable(f"it computes in {tensor.dtype}, which a program does not have")
    return NAMES[tensor.dtype]


Handler = Callable[[Translator, Sequence[Node], list[Any], Mapping[str, Any]], Any]


def sized(found: Any) -> Size:
    """A merged whole number as a size."""
    if isinstance(found, Size):
        return found
    if isinstance(found, int):
        return Size.of(found)
    raise NotExportable("a size is computed from the values of its inputs")


def pointwise(kind: str) -> Handler:
    """Each number by itself, in the type of the result; comparisons in the type of what is compared."""

    def handle(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> int:
        value = t.value_of(nodes)
        operands = [t.operand(each) for each in arguments]
        if keywords.get("alpha", 1) != 1:
            alpha = t.operand(keywords["alpha"])
            operands[1] = t.add(
                "mul",
                [t.typed(operands[1], value.type), t.typed(alpha, value.type)],
                value_like(t, operands[1], value.type),
            )
        if keywords.get("rounding_mode") is not None:
            if keywords["rounding_mode"] != "floor":
                raise NotExportable("it divides and cuts off")
            return t.add("floor_divide", [t.typed(each, value.type) for each in operands], value)
        computing = value.type
        if kind in ("eq", "ne", "lt", "le", "gt", "ge"):
            metas = [node.value for node in nodes[0].args if isinstance(node, Node)]
            weak = [each for each in nodes[0].args if isinstance(each, int | float)]
            common = metas[0].dtype
            for meta in metas[1:]:
                common = torch.promote_types(common, meta.dtype)
            if any(isinstance(each, float) for each in weak) and not common.is_floating_point:
                common = torch.float32
            computing = NAMES[common]
        elif kind in ("and", "or", "not") and value.type == "bool":
            computing = "bool"
        elif kind in ("and", "or", "not"):
            raise NotExportable(f"it uses {nodes[0].target} of whole numbers")
        return t.add(kind, [t.typed(each, computing) for each in operands], value)

    return handle


def value_like(t: Translator, operand: Operand, kind: str) -> Value:
    return Value(kind, t.known(operand).shape)


def squared(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> int:
    """x^2 and x^½ are more common than all other powers, and are computed exactly."""
    exponent, value = arguments[1], t.value_of(nodes)
    x = t.typed(t.operand(arguments[0]), value.type)
    if exponent == 2:
        return t.add("mul", [x, x], value)
    if exponent == 0.5:
        return t.add("sqrt", [x], value)
    return t.add("pow", [x, t.typed(t.operand(exponent), value.type)], value)


def where(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> int:
    value = t.value_of(nodes)
    condition, one, other = map(t.operand, arguments)
    return t.add("where", [t.typed(condition, "bool"), t.typed(one, value.type), t.typed(other, value.type)], value)


def cast(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    return t.typed(t.operand(arguments[0]), t.value_of(nodes).type)


def same(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    return arguments[0]


def clamped(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    found = t.typed(t.operand(arguments[0]), value.type)
    bounds = [*arguments[1:], *[None] * (3 - len(arguments))]
    bounds = [keywords.get("min", bounds[0]), keywords.get("max", bounds[1])]
    for kind, bound in zip(("maximum", "minimum"), bounds, strict=True):
        if bound is not None:
            found = t.add(kind, [found, t.typed(t.operand(bound), value.type)], value)
    return found


def filled(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    value = t.value_of(nodes)
    number = t.typed(t.operand(arguments[1]), value.type)
    return Literal(number) if not value.shape and isinstance(number, Number) else t.add("full", [number], value)


def zeros(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    return filled(t, nodes, [None, 0], keywords)


def scalar(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    return filled(t, nodes, [None, arguments[0]], keywords)


def arange(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    start, step = arguments[0], arguments[2] if len(arguments) > 2 else 1
    whole = t.add("iota", [], Value("int64", value.shape), start=sized(start), step=sized(step))
    return t.typed(whole, value.type)


def reshaped(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    return t.reshaped(t.operand(arguments[0]), t.value_of(nodes).shape)


def expanded(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value, x = t.value_of(nodes), t.operand(arguments[0])
    if isinstance(x, Number):
        return t.add("full", [t.typed(x, value.type)], value)
    return x if t.known(x).shape == value.shape else t.add("expand", [x], value)


def permuted(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    order = tuple(dim % len(value.shape) for dim in arguments[1])
    return t.add("permute", [t.array(t.operand(arguments[0]))], value, order=order)


def transposed(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    order = list(range(len(value.shape)))
    one, other = (dim % len(order) for dim in arguments[1:3])
    order[one], order[other] = order[other], order[one]
    return t.add("permute", [t.operand(arguments[0])], value, order=tuple(order))


def cut(t: Translator, x: Operand, dim: int, first: Size, value: Value, by: int = 1) -> Operand:
    if t.known(x).shape == value.shape:
        return x
    return t.add("slice", [x], value, dim=dim, first=first, by=by)


def sliced(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    x, value = t.operand(arguments[0]), t.value_of(nodes)
    dim = (arguments[1] if len(arguments) > 1 else 0) % len(value.shape)
    by = arguments[4] if len(arguments) > 4 else 1
    if isinstance(by, Size):
        raise NotExportable("it takes every so many steps, depending on their number")
    starts = [argument(node, 2, 0) or 0 for node in nodes]
    lengths = [node.args[0].value.shape[dim] for node in nodes]
    starts = [min(start + n if start < 0 else start, n) for start, n in zip(starts, lengths, strict=True)]
    return cut(t, x, dim, t.sizes.solved(starts), value, by)


def argument(node: Node, place: int, default: Any) -> Any:
    return node.args[place] if place < len(node.args) else default


def unfolded(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    """Windows along a dimension: the first numbers of all of them, the second ones, … side by side."""
    x, value = t.operand(arguments[0]), t.value_of(nodes)
    shape, (width, step) = t.known(x).shape, arguments[2:4]
    dim = arguments[1] % len(shape)
    if not isinstance(width, int) or not isinstance(step, int):
        raise NotExportable("it reads windows whose width depends on the sizes of its inputs")
    one = Value(value.type, (*shape[:dim], value.shape[dim], *shape[dim + 1 :]))
    parts = [cut(t, x, dim, Size.of(first), one, step) for first in range(width)]
    columns = [t.reshaped(part, (*one.shape, Size.of(1))) for part in parts]
    return columns[0] if width == 1 else t.add("cat", columns, value, dim=len(shape))


def selected(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    x, value = t.operand(arguments[0]), t.value_of(nodes)
    shape = t.known(x).shape
    dim = arguments[1] % len(shape)
    places = [argument(node, 2, 0) % node.args[0].value.shape[dim] for node in nodes]
    one = Value(value.type, (*shape[:dim], Size.of(1), *shape[dim + 1 :]))
    return t.reshaped(cut(t, x, dim, t.sizes.solved(places), one), value.shape)


def split(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> list[Operand]:
    if len({len(node.value) for node in nodes}) > 1:
        raise NotExportable("it splits its inputs into as many parts as they are long")
    x = t.operand(arguments[0])
    dim = arguments[2] if len(arguments) > 2 else keywords.get("dim", 0)
    found, first = [], Size()
    for part in range(len(nodes[0].value)):
        value = t.value_of(nodes, part)
        dim %= len(value.shape)
        found.append(cut(t, x, dim, first, value))
        first = first + value.shape[dim]
    return found


def unbound(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> list[Operand]:
    if len({len(node.value) for node in nodes}) > 1:
        raise NotExportable("it loops over the steps of its inputs")
    x = t.operand(arguments[0])
    shape, found = t.known(x).shape, []
    dim = (arguments[1] if len(arguments) > 1 else 0) % len(shape)
    for part in range(len(nodes[0].value)):
        value = t.value_of(nodes, part)
        one = Value(value.type, (*shape[:dim], Size.of(1), *shape[dim + 1 :]))
        found.append(t.reshaped(cut(t, x, dim, Size.of(part), one), value.shape))
    return found


def joined(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    dim = (arguments[1] if len(arguments) > 1 else keywords.get("dim", 0)) % len(value.shape)
    # torch leaves out empty vectors, whatever else is joined.
    parts = [t.typed(t.operand(each), value.type) for each in arguments[0]]
    parts = [each for each in parts if len(t.known(each).shape) == len(value.shape)]
    return parts[0] if len(parts) == 1 else t.add("cat", parts, value, dim=dim)


def stacked(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    dim = (arguments[1] if len(arguments) > 1 else keywords.get("dim", 0)) % len(value.shape)
    one = (*value.shape[:dim], Size.of(1), *value.shape[dim + 1 :])
    parts = [t.reshaped(t.typed(t.operand(each), value.type), one) for each in arguments[0]]
    return t.add("cat", parts, value, dim=dim) if len(parts) > 1 else parts[0]


def flipped(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    return t.add("flip", [t.operand(arguments[0])], value, dims=tuple(dim % len(value.shape) for dim in arguments[1]))


def repeated(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    """(a, b) repeated (m, n) times is (m, a, n, b) that repeats along its new dimensions."""
    x, value = t.operand(arguments[0]), t.value_of(nodes)
    shape = t.known(x).shape
    shape = (*[Size.of(1)] * (len(value.shape) - len(shape)), *shape)
    counts = [sized(each) for each in arguments[1]]
    apart = tuple(size for pair in zip([Size.of(1)] * len(shape), shape, strict=True) for size in pair)
    wide = tuple(size for pair in zip(counts, shape, strict=True) for size in pair)
    spread = t.add("expand", [t.reshaped(x, apart)], Value(value.type, wide))
    return t.reshaped(spread, value.shape)


def padded(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    x, value = t.operand(arguments[0]), t.value_of(nodes)
    rank = len(value.shape)
    edges = [(argument(node, 1, []), node.args[0].value.shape) for node in nodes]
    before = []
    for dim in range(rank):
        place = 2 * (rank - 1 - dim)
        starts = [pads[place] if place < len(pads) else 0 for pads, _ in edges]
        if any(start < 0 for start in starts):
            raise NotExportable("it pads with less than nothing")
        before.append(t.sizes.solved(starts))
    fill = t.typed(t.operand(arguments[2] if len(arguments) > 2 else 0), value.type)
    return t.add("pad", [x, fill], value, before=tuple(before))


def embedded(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    return t.add("take", [t.operand(arguments[0]), t.typed(t.operand(arguments[1]), "int64")], t.value_of(nodes))


def picked(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    """Rows along any dimension by ids: that dimension first, and back."""
    x, ids, value = t.operand(arguments[0]), t.typed(t.operand(arguments[2]), "int64"), t.value_of(nodes)
    rank = len(value.shape)
    dim = arguments[1] % rank
    if dim == 0:
        return t.add("take", [x, ids], value)
    order = (dim, *(each for each in range(rank) if each != dim))
    shape = t.known(x).shape
    moved = t.add("permute", [x], Value(value.type, tuple(shape[each] for each in order)), order=order)
    taken = t.add("take", [moved, ids], Value(value.type, tuple(value.shape[each] for each in order)))
    return t.add("permute", [taken], value, order=tuple(order.index(each) for each in range(rank)))


def indexed(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    given = [None if each is None else t.operand(each) for each in arguments[1]]
    if any(each is not None and t.known(each).type == "bool" for each in given):
        raise NotExportable("it picks by a mask, so that sizes depend on the values of its inputs")
    x, value = t.operand(arguments[0]), t.value_of(nodes)
    places = [dim for dim, each in enumerate(given) if each is not None]
    ids = [t.typed(each, "int64") for each in given if each is not None]
    if places == list(range(len(places))):
        return t.add("take" if len(ids) == 1 else "index", [x, *ids], value)
    shape = t.known(x).shape
    if places != list(range(places[0], places[-1] + 1)):
        raise NotExportable("it picks along dimensions that lie apart")
    order = (*places, *(dim for dim in range(len(shape)) if dim not in places))
    moved = t.add("permute", [x], Value(value.type, tuple(shape[dim] for dim in order)), order=order)
    rank = len(value.shape) - (len(shape) - len(places))  # of the ids
    before = places[0]
    back = (*range(before, before + rank), *range(before), *range(before + rank, len(value.shape)))
    taken = t.add(
        "take" if len(ids) == 1 else "index", [moved, *ids], Value(value.type, tuple(value.shape[d] for d in back))
    )
    return t.add("permute", [taken], value, order=tuple(back.index(dim) for dim in range(len(value.shape))))


def gathered(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    ids = t.typed(t.operand(arguments[2]), "int64")
    return t.add("gather", [t.operand(arguments[0]), ids], value, dim=arguments[1] % len(value.shape))


def scattered(adds: bool) -> Handler:
    def handle(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
        value = t.value_of(nodes)
        x, ids, numbers = t.operand(arguments[0]), t.operand(arguments[2]), t.operand(arguments[3])
        numbers = t.typed(numbers, value.type)
        shape = t.known(ids).shape
        if not isinstance(numbers, Number) and t.known(numbers).shape != shape:
            raise NotExportable("it scatters fewer numbers than it has")
        return t.add("scatter", [x, ids, numbers], value, dim=arguments[1] % len(value.shape), adds=adds)

    return handle


def multiplied(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    return t.add("matmul", [t.operand(each) for each in arguments[:2]], t.value_of(nodes))


def added_product(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    if any(keywords.get(name, 1) != 1 for name in ("alpha", "beta")):
        raise NotExportable("it multiplies and adds with other factors than 1")
    bias, left, right = map(t.operand, arguments[:3])
    value = t.value_of(nodes)
    return t.add("add", [t.add("matmul", [left, right], value), bias], value)


def dims_of(found: Any, rank: int) -> tuple[int, ...]:
    if found is None or found == []:
        return tuple(range(rank))
    return tuple(dim % rank for dim in (found if isinstance(found, list) else [found])) if rank else ()


def reduced(kind: str) -> Handler:
    def handle(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
        value = t.value_of(nodes)
        x = t.operand(arguments[0])
        wanted = "bool" if kind in ("any", "all") else t.known(x).type if kind.startswith("arg") else value.type
        x = t.typed(x, wanted)
        dims = dims_of(arguments[1] if len(arguments) > 1 else keywords.get("dim"), len(t.known(x).shape))
        return t.add(kind, [x], value, dims=dims) if dims else x

    return handle


def mean(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value, x = t.value_of(nodes), t.operand(arguments[0])
    shape = t.known(x).shape
    dims = dims_of(arguments[1] if len(arguments) > 1 else keywords.get("dim"), len(shape))
    total = t.add("sum", [t.typed(x, value.type)], value, dims=dims)
    count = t.sizes.solved([counted(node, dims) for node in nodes])
    return t.add("div", [total, t.typed(Number(count), value.type)], value)


def counted(node: Node, dims: Sequence[int]) -> int:
    shape = node.args[0].value.shape
    return math.prod(shape[dim] for dim in dims)


def mean_over(t: Translator, x: Operand, dims: Sequence[int], less: float = 0.0) -> Operand:
    """The mean along dimensions, which are kept; as if there were `less` numbers fewer."""
    value = t.known(x)
    kept = tuple(Size.of(1) if dim in dims else size for dim, size in enumerate(value.shape))
    count = Size.of(1)
    for dim in dims:
        count = count * value.shape[dim]
    total = t.add("sum", [x], Value(value.type, kept), dims=tuple(dims))
    divisor = t.typed(Number(count + -int(less)), value.type)
    return t.add("div", [total, divisor], Value(value.type, kept))


def variance_over(t: Translator, x: Operand, dims: Sequence[int], less: float) -> tuple[Operand, Operand, Operand]:
    """The variance, the mean and x less its mean; dimensions are kept."""
    middle = mean_over(t, x, dims)
    centred = t.add("sub", [x, middle], t.known(x))
    square = t.add("mul", [centred, centred], t.known(x))
    return mean_over(t, square, dims, less), middle, centred


def variance(also_mean: bool) -> Handler:
    def handle(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
        x = t.operand(arguments[0])
        dims = dims_of(arguments[1] if len(arguments) > 1 else keywords.get("dim"), len(t.known(x).shape))
        correction = keywords.get("correction", 1)
        spread, middle, _ = variance_over(t, x, dims, 1 if correction is None else correction)
        shape = t.value_of(nodes, 0 if also_mean else None).shape
        return (t.reshaped(spread, shape), t.reshaped(middle, shape)) if also_mean else t.reshaped(spread, shape)

    return handle


def normalised(
    t: Translator, x: Operand, dims: Sequence[int], gain: Operand | None, bias: Operand | None, epsilon: float
) -> tuple[Operand, Operand, Operand]:
    """g ∘ (x − mean) · rstd + b, the mean and rstd."""
    spread, middle, centred = variance_over(t, x, dims, 0)
    value, small = t.known(x), t.known(spread)
    rstd = t.add("rsqrt", [t.add("add", [spread, Number(float(epsilon))], small)], small)
    out: Operand = t.add("mul", [centred, rstd], value)
    for kind, weight in (("mul", gain), ("add", bias)):
        if weight is not None:
            out = t.add(kind, [out, weight], value)
    return out, middle, rstd


def layer_norm(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    x, shape, gain, bias, epsilon = arguments[:5]
    rank = len(t.known(t.operand(x)).shape)
    dims = range(rank - len(shape), rank)
    g, b = (None if each is None else t.operand(each) for each in (gain, bias))
    return normalised(t, t.operand(x), dims, g, b, epsilon)


def group_norm(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    given, gain, bias, _, _, _, groups, epsilon = arguments[:8]
    x = t.operand(given)
    value = t.known(x)
    rows, channels, *rest = value.shape
    each = channels * Size.of(1)
    inner = Size.of((each.constant or 0) // groups)
    for size in rest:
        inner = inner * size
    apart = t.reshaped(x, (rows, Size.of(groups), inner))
    out, middle, rstd = normalised(t, apart, [2], None, None, epsilon)
    out = t.reshaped(out, value.shape)
    for kind, weight in (("mul", gain), ("add", bias)):
        if weight is not None:
            wide = t.reshaped(t.operand(weight), (channels, *[Size.of(1)] * len(rest)))
            out = t.add(kind, [out, wide], value)
    return out, t.reshaped(middle, (rows, Size.of(groups))), t.reshaped(rstd, (rows, Size.of(groups)))


def batch_norm(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    """g ∘ (x − m) / √(v + ε) + b by the mean and variance that training has kept: one factor and one term a channel."""
    given, gain, bias, mean, spread, _, epsilon = arguments[:7]
    if not all(isinstance(each, Held) for each in (gain, bias, mean, spread)):
        raise NotExportable("it normalises by numbers that are no weights")
    factor = gain.tensor * (spread.tensor + epsilon).rsqrt()
    value = t.known(x := t.operand(given))
    found: Operand = x
    for kind, weight in (("mul", factor), ("add", bias.tensor - mean.tensor * factor)):
        wide = weight.reshape(-1, *[1] * (len(value.shape) - 2))
        found = t.add(kind, [found, t.operand(Held(wide))], value)
    return found, Number(0.0), Number(0.0)  # what training would keep, which nothing reads


def largest(kind: str) -> Handler:
    def handle(
        t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]
    ) -> tuple[Operand, Operand]:
        x = t.operand(arguments[0])
        dims = dims_of(arguments[1], len(t.known(x).shape))
        found = t.add(kind, [x], t.value_of(nodes, 0), dims=dims)
        return found, t.add(f"arg{kind}", [x], t.value_of(nodes, 1), dims=dims)

    return handle


def summed_up(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    x = t.typed(t.operand(arguments[0]), value.type)
    return t.add("cumsum", [x], value, dim=arguments[1] % len(value.shape))


def multiplied_up(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    value = t.value_of(nodes)
    x = t.typed(t.operand(arguments[0]), value.type)
    return t.add("cumprod", [x], value, dim=arguments[1] % len(value.shape))


def log_summed_up(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    """h_t = log (exp h_{t-1} + exp x_t), all but one dimension side by side: a scan of one row.

    Before the first step h is the least number there is, not -∞, so that no difference is one of two infinities.
    """
    value = t.value_of(nodes)
    x = t.array(t.typed(t.operand(arguments[0]), value.type))
    dim = arguments[1] % len(value.shape)
    order = (dim, *(each for each in range(len(value.shape)) if each != dim))
    turned = tuple(value.shape[each] for each in order)
    steps, width = turned[0], product_of(turned[1:])
    least = float(np.finfo(value.type).min)
    one = Value(value.type, (Size.of(1), width))

    def step(kind: str, *operands: Operand) -> Operation:
        return Operation(kind, operands, (one,))

    body = Function(
        (Named("x", one), Named("state0", one)),
        (
            step("maximum", 0, 1),
            *(step("sub", 0, 2), step("exp", 3), step("sub", 1, 2), step("exp", 5)),
            *(step("add", 4, 6), step("log", 7), step("add", 2, 8)),
        ),
        (("state0", 9),),
    )
    whole = Value(value.type, (Size.of(1), steps, width))
    rows = t.reshaped(t.add("permute", [x], Value(value.type, turned), order=order), whole.shape)
    lengths = t.add("full", [Number(steps)], Value("int64", (Size.of(1),)))
    start = t.add("full", [Number(least)], one)
    details = {"body": body, "states": 1, "backward": False}
    t.operations.append(Operation("scan", (rows, lengths, start), (whole, one), details))
    t.values += [whole, one]
    summed = len(t.values) - 2
    is_nothing = t.add("le", [summed, Number(least)], Value("bool", whole.shape))
    summed = t.add("where", [is_nothing, Number(-math.inf), summed], whole)
    back = tuple(order.index(each) for each in range(len(order)))
    return t.add("permute", [t.reshaped(summed, turned)], value, order=back)


def convolved(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    x, weight, bias, stride, padding, dilation, is_transposed, _, groups = arguments
    if is_transposed:
        raise NotExportable("it uses a transposed convolution, which a program does not have")
    value = t.value_of(nodes)
    details = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation), "groups": groups}
    found = t.add("convolution", [t.operand(x), t.operand(weight)], value, **details)
    if bias is None:
        return found
    shape = (t.known(t.operand(bias)).shape[0], *[Size.of(1)] * (len(value.shape) - 2))
    return t.add("add", [found, t.reshaped(t.operand(bias), shape)], value)


def put_slice(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    """An array with another in place of one slice: what is before it, the other, what is after it."""
    base, part, value = t.operand(arguments[0]), t.operand(arguments[1]), t.value_of(nodes)
    dim = (arguments[2] if len(arguments) > 2 else 0) % len(value.shape)
    if len(arguments) > 5 and arguments[5] != 1:
        raise NotExportable("it writes to every so many steps")
    starts = [argument(node, 3, 0) or 0 for node in nodes]
    lengths = [node.args[0].value.shape[dim] for node in nodes]
    starts = [min(start + n if start < 0 else start, n) for start, n in zip(starts, lengths, strict=True)]
    widths = [node.args[1].value.shape[dim] for node in nodes]
    return put(t, base, t.typed(part, value.type), dim, starts, widths, lengths, value)


def put_selected(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    base, value = t.operand(arguments[0]), t.value_of(nodes)
    dim = arguments[2] % len(value.shape)
    lengths = [node.args[0].value.shape[dim] for node in nodes]
    starts = [argument(node, 3, 0) % n for node, n in zip(nodes, lengths, strict=True)]
    shape = (*value.shape[:dim], Size.of(1), *value.shape[dim + 1 :])
    part = t.reshaped(t.typed(t.operand(arguments[1]), value.type), shape)
    return put(t, base, part, dim, starts, [1] * len(nodes), lengths, value)


def put(
    t: Translator,
    base: Operand,
    part: Operand,
    dim: int,
    starts: Sequence[int],
    widths: Sequence[int],
    lengths: Sequence[int],
    value: Value,
) -> Operand:
    def between(first: Sequence[int], last: Sequence[int]) -> list[Operand]:
        counts = [b - a for a, b in zip(first, last, strict=True)]
        if not any(counts):
            return []
        shape = (*value.shape[:dim], t.sizes.solved(counts), *value.shape[dim + 1 :])
        return [cut(t, base, dim, t.sizes.solved(first), Value(value.type, shape))]

    ends = [start + width for start, width in zip(starts, widths, strict=True)]
    parts = [*between([0] * len(starts), starts), part, *between(ends, lengths)]
    return parts[0] if len(parts) == 1 else t.add("cat", parts, value, dim=dim)


def copied(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Operand:
    """What is written over a whole array."""
    value = t.value_of(nodes)
    x = t.typed(t.operand(arguments[1]), value.type)
    if isinstance(x, Number):
        return t.add("full", [x], value)
    return x if t.known(x).shape == value.shape else t.add("expand", [x], value)


def scanned(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> list[int]:
    numbers = [node.args[0] for node in nodes]
    steps = [known[number] for known, number in zip(t.steps, numbers, strict=True)]
    x, lengths = t.operand(arguments[1]), t.operand(arguments[2])
    states = [t.array(t.operand(each), "float32") for each in arguments[3]]
    given = [t.operand(each) for each in arguments[4] if not isinstance(each, Held)]
    held = [*[None] * (1 + len(states)), *(each if isinstance(each, Held) else None for each in arguments[4])]
    operands = [x, lengths, *states, *given]
    shapes = [t.known(each) for each in operands]
    B, _, P = shapes[0].shape
    inputs = [Named("x", Value(shapes[0].type, (B, P)))]
    inputs += [Named(f"state{number}", t.known(each)) for number, each in enumerate(states)]
    inputs += [Named(f"given{number}", t.known(each)) for number, each in enumerate(given)]
    body = Translator([step.nodes for step in steps], inputs, t.sizes, t.names, t.weights, (), held).function(
        [f"state{number}" for number in range(len(states))]
    )
    body = with_values_out(body)
    results = tuple(t.value_of(nodes, part) for part in range(1 + len(states)))
    details = {"body": body, "states": len(states), "backward": steps[0].backward}
    t.operations.append(Operation("scan", tuple(operands), results, details))
    t.values += results
    return list(range(len(t.values) - len(results), len(t.values)))


def with_values_out(body: Function) -> Function:
    """A body whose outputs are values, each its own: a number or an input becomes one."""
    operations, outputs, values = list(body.operations), [], body.values
    count = len(values)
    wanted = [each.value for each in body.inputs[1 : 1 + len(body.outputs)]]
    seen: set[int] = set()
    for (name, operand), value in zip(body.outputs, wanted, strict=True):
        if isinstance(operand, int) and len(body.inputs) <= operand and operand not in seen:
            seen.add(operand)
            outputs.append((name, operand))
            continue
        kind = "expand" if not isinstance(operand, Number) else "full"
        if kind == "expand":
            operations.append(Operation("add", (operand, Number(0.0)), (value,)))
        else:
            operations.append(Operation("full", (operand,), (value,)))
        outputs.append((name, count))
        count += 1
    return Function(body.inputs, tuple(operations), tuple(outputs))


SPREADING = {
    aten.expand.default,
    aten.repeat.default,
    aten.full_like.default,
    aten.zeros_like.default,
    aten.empty_like.default,
}
"""What would make weights larger, or has nothing to do with their numbers."""


def sorted_along(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    x = t.operand(arguments[0])
    shape = t.known(x).shape
    dim = keywords.get("dim", arguments[1] if len(arguments) > 1 else -1) % len(shape)
    falls = bool(keywords.get("descending", arguments[2] if len(arguments) > 2 else False))
    order = t.add("argsort", [x], t.value_of(nodes, 1), dim=dim, falls=falls)
    return t.add("gather", [x, order], t.value_of(nodes, 0), dim=dim), order


def not_numbers(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> int:
    """What is not a number is not equal to itself."""
    x = t.operand(arguments[0])
    return t.add("ne", [x, x], t.value_of(nodes))


def places_in_order(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> int:
    """Of each number its place in an ascending list: how many there are smaller."""
    listed, x, value = t.operand(arguments[0]), t.operand(arguments[1]), t.value_of(nodes)
    known, given = t.known(listed), t.known(x)
    if len(known.shape) != 1 or keywords.get("right") or keywords.get("side") == "right" or "sorter" in keywords:
        raise NotExportable("it looks up places in another way than from the left of one list")
    apart = t.reshaped(x, (*given.shape, Size.of(1)))
    is_smaller = t.add("lt", [listed, t.typed(apart, known.type)], Value("bool", (*given.shape, *known.shape)))
    counted = t.typed(is_smaller, value.type)
    return t.add("sum", [counted], value, dims=(len(given.shape),))


CENTRAL: Final = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 2.1858087e-04),
    *(-1.25372503e-03, -4.17768164e-03, 0.246640727, 1.50140941),
)
OUTER: Final = (
    *(-2.00214257e-04, 1.00950558e-04, 1.34934322e-03, -3.67342844e-03, 5.73950773e-03),
    *(-7.6224613e-03, 9.43887047e-03, 1.00167406, 2.83297682),
)
"""Polynomials by which Giles (2012) approximates erf⁻¹(x) / x, in w − 2.5 and √w − 3 of w = −log (1 − x²)."""


def normal_quantile(t: Translator, nodes: Sequence[Node], arguments: list[Any], keywords: Mapping[str, Any]) -> int:
    """Φ⁻¹(p) = √2 erf⁻¹(x) with x = 2p − 1; 1 − x² is 4 p (1 − p)."""
    value = t.value_of(nodes)
    p = t.typed(t.operand(arguments[0]), value.type)

    def sum_of(polynomial: Sequence[float], at: Operand) -> Operand:
        found: Operand = Number(polynomial[0])
        for coefficient in polynomial[1:]:
            found = t.add("add", [t.add("mul", [found, at], value), Number(coefficient)], value)
        return found

    x = t.add("sub", [t.add("mul", [p, Number(2.0)], value), Number(1.0)], value)
    product = t.add("mul", [t.add("mul", [p, Number(4.0)], value), t.add("sub", [Number(1.0), p], value)], value)
    w = t.add("neg", [t.add("log", [product], value)], value)
    central = sum_of(CENTRAL, t.add("sub", [w, Number(2.5)], value))
    outer = sum_of(OUTER, t.add("sub", [t.add("sqrt", [w], value), Number(3.0)], value))
    is_central = t.add("lt", [w, Number(5.0)], Value("bool", value.shape))
    ratio = t.add("where", [is_central, central, outer], value)
    return t.add("mul", [t.add("mul", [ratio, x], value), Number(math.sqrt(2.0))], value)


HANDLERS: dict[Any, Handler] = {
    aten.isnan.default: not_numbers,
    aten.searchsorted.Tensor: places_in_order,
    aten.special_ndtri.default: normal_quantile,
    **{aten_op: pointwise("add") for aten_op in (aten.add.Tensor, aten.add.Scalar)},
    **{aten_op: pointwise("sub") for aten_op in (aten.sub.Tensor, aten.sub.Scalar)},
    **{aten_op: pointwise("mul") for aten_op in (aten.mul.Tensor, aten.mul.Scalar)},
    **{
        aten_op: pointwise("div")
        for aten_op in (aten.div.Tensor, aten.div.Scalar, aten.div.Tensor_mode, aten.div.Scalar_mode)
    },
    **{aten_op: pointwise("remainder") for aten_op in (aten.remainder.Tensor, aten.remainder.Scalar)},
    **{aten_op: pointwise("fmod") for aten_op in (aten.fmod.Tensor, aten.fmod.Scalar)},
    **{aten_op: pointwise("floor_divide") for aten_op in (aten.floor_divide.default,)},
    **{aten_op: pointwise("pow") for aten_op in (aten.pow.Tensor_Tensor, aten.pow.Scalar)},
    aten.pow.Tensor_Scalar: squared,
    aten.maximum.default: pointwise("maximum"),
    aten.minimum.default: pointwise("minimum"),
    aten.atan2.default: pointwise("atan2"),
    **{
        getattr(getattr(aten, name), overload): pointwise(name)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for overload in ("Tensor", "Scalar")
    },
    **{
        getattr(aten, name).default: pointwise(name)
        for name in ("neg", "reciprocal", "sigmoid", "tanh", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10")
    },
    **{
        getattr(aten, name).default: pointwise(name)
        for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf")
    },
    **{
        getattr(aten, name).default: pointwise(name)
        for name in ("sqrt", "rsqrt", "abs", "sign", "floor", "ceil", "round", "trunc", "relu")
    },
    aten.bitwise_and.Tensor: pointwise("and"),
    aten.logical_and.default: pointwise("and"),
    aten.bitwise_or.Tensor: pointwise("or"),
    aten.logical_or.default: pointwise("or"),
    aten.bitwise_not.default: pointwise("not"),
    aten.logical_not.default: pointwise("not"),
    aten.bitwise_xor.Tensor: pointwise("ne"),
    aten.where.self: where,
    aten.clamp.default: clamped,
    aten.clamp.Tensor: clamped,
    aten.clamp_min.default: clamped,
    aten._to_copy.default: cast,
    **dict.fromkeys((aten.alias.default, aten.clone.default, aten.detach.default, aten.lift_fresh_copy.default), same),
    aten.full.default: filled,
    aten.full_like.default: filled,
    aten.scalar_tensor.default: scalar,
    **dict.fromkeys((aten.zeros_like.default, aten.empty.memory_format, aten.empty_like.default), zeros),
    **dict.fromkeys((aten.new_empty.default, aten.empty_strided.default, aten.new_empty_strided.default), zeros),
    aten.arange.start_step: arange,
    **dict.fromkeys((aten.view.default, aten._unsafe_view.default, aten.reshape.default), reshaped),
    **dict.fromkeys((aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default), reshaped),
    aten.expand.default: expanded,
    aten.permute.default: permuted,
    aten.transpose.int: transposed,
    aten.slice.Tensor: sliced,
    aten.select.int: selected,
    aten.unfold.default: unfolded,
    **dict.fromkeys((aten.split.Tensor, aten.split_with_sizes.default), split),
    aten.unbind.int: unbound,
    aten.cat.default: joined,
    aten.stack.default: stacked,
    aten.flip.default: flipped,
    aten.repeat.default: repeated,
    aten.constant_pad_nd.default: padded,
    aten.embedding.default: embedded,
    aten.index_select.default: picked,
    aten.index.Tensor: indexed,
    aten.gather.default: gathered,
    **dict.fromkeys((aten.scatter.src, aten.scatter.value), scattered(adds=False)),
    aten.scatter_add.default: scattered(adds=True),
    **dict.fromkeys((aten.mm.default, aten.bmm.default), multiplied),
    aten.addmm.default: added_product,
    aten.sum.dim_IntList: reduced("sum"),
    aten.sum.default: reduced("sum"),
    aten.prod.dim_int: reduced("prod"),
    aten.amax.default: reduced("max"),
    aten.amin.default: reduced("min"),
    **dict.fromkeys((aten.any.dim, aten.any.default, aten.any.dims), reduced("any")),
    **dict.fromkeys((aten.all.dim, aten.all.default, aten.all.dims), reduced("all")),
    aten.argmax.default: reduced("argmax"),
    aten.argmin.default: reduced("argmin"),
    aten.max.dim: largest("max"),
    aten.min.dim: largest("min"),
    aten.mean.dim: mean,
    aten.mean.default: mean,
    aten.cumsum.default: summed_up,
    aten.logcumsumexp.default: log_summed_up,
    aten.convolution.default: convolved,
    aten.var.correction: variance(also_mean=False),
    aten.var_mean.correction: variance(also_mean=True),
    aten.native_layer_norm.default: layer_norm,
    aten.native_group_norm.default: group_norm,
    aten._native_batch_norm_legit_no_training.default: batch_norm,
    aten.sort.stable: sorted_along,
    aten.sort.default: sorted_along,
    aten.cumprod.default: multiplied_up,
    aten.slice_scatter.default: put_slice,
    aten.select_scatter.default: put_selected,
    aten.copy.default: copied,
    torch.ops.recurra_export.scan.default: scanned,
}
"""How each operation of torch is put into those of a program."""
