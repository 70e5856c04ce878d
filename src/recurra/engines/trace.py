"""A cell's step and its gradient as a graph of row values: what the equations do to one row of a batch.

torch traces the step and its vector-Jacobian product (make_fx); here every operation of that trace is put into one of
a few forms (values.py), each of which says what it does to a single row. What an operation does to shapes is not read
from its arguments: it is done to the addresses of the numbers, and where each number then lies tells all. So any
operation that only moves numbers is known, rows may stand in any dimension, and rows that see each other are found out.
Nothing is scheduled yet: see plan.py.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

from recurra.cells import AnyCell
from recurra.engines import vocabulary
from recurra.engines.rows import After, Layout, Rows
from recurra.engines.values import NoPlan, Value, Weight, constant, moved, picked, reduced

aten = torch.ops.aten


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
    table = {**dict(core_aten_decompositions().items()), **get_decompositions(vocabulary.TAKEN_APART)}
    return {operation: made for operation, made in table.items() if operation not in vocabulary.WHOLE}


def trace(cell: AnyCell, input_width: int, like: Tensor) -> Trace:
    """Trace one step of a cell and its gradient; NoPlan says why it cannot be."""
    taken = {size for weight in weights_of(cell).values() for size in weight.shape}
    taken.update((input_width, cell.input_size, cell.hidden_size))
    # A number of rows that is no other size: so a weight that is spread over rows is known by its size.
    primes = [prime for prime in (13, 17, 19, 23, 29, 31, 37, 41, 43) if all(size % prime for size in taken)]
    try:
        return trace_rows(cell, input_width, like, primes[0])
    except NoPlan:
        # The step may make tensors of just that size; hardly of another prime as well.
        return trace_rows(cell, input_width, like, primes[1])


def of_type(tensor: Tensor, like: Tensor) -> Tensor:
    """Numbers of half precision in the type that a step is traced in; all else as it is."""
    return tensor.to(like.dtype) if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def trace_rows(cell: AnyCell, input_width: int, like: Tensor, rows: int) -> Trace:
    """The same with a batch of so many rows."""
    weights = {name: of_type(weight.detach(), like) for name, weight in weights_of(cell).items()}
    state = cell.start(rows, like)
    leaves, structure = tree_flatten(cell.fixed(rows, like))
    given = [of_type(leaf.detach(), like) for leaf in leaves if isinstance(leaf, Tensor)]
    inputs = like.new_zeros(rows, input_width)
    step = OneStep(cell)

    def run(inputs: Tensor, state: tuple[Tensor, ...], given: list[Tensor], weights: dict[str, Tensor]) -> Any:
        tensors = iter(given)
        filled = [next(tensors) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        named = {f"cell.{name}": weight for name, weight in weights.items()}
        return torch.func.functional_call(step, named, (inputs, state, tree_unflatten(filled, structure)))

    def both(gradients: tuple[Tensor, ...], *arguments: Any) -> Any:
        # A mask or an index has no gradient.
        flat, structure = tree_flatten(arguments)
        is_smooth = [tensor.is_floating_point() for tensor in flat]

        def run_smooth(*smooth: Tensor) -> Any:
            tensors = iter(smooth)
            filled = [next(tensors) if is_one else tensor for tensor, is_one in zip(flat, is_smooth, strict=True)]
            return run(*tree_unflatten(filled, structure))

        smooth = (tensor for tensor, is_one in zip(flat, is_smooth, strict=True) if is_one)
        outputs, pull, *_ = torch.func.vjp(run_smooth, *smooth)
        found = iter(pull(gradients))
        return outputs, [next(found) if is_one else None for is_one in is_smooth]

    gradients = tuple(torch.zeros_like(part) for part in state)
    arguments = (inputs, tuple(part.detach() for part in state), given, weights)
    try:
        # Steps that write in place are traced as steps that do not.
        module = make_fx(functionalize(both), decomposition_table=decompositions())(gradients, *arguments)
    except Exception as error:  # whatever the user's own step may raise under tracing is a reason, not a crash
        if "_local_scalar_dense" in str(error):
            raise NoPlan("its step depends on the values of a batch (such as an `if` or `item()`)") from error
        raise NoPlan(f"its step cannot be traced ({str(error).strip().splitlines()[0]})") from error
    module.graph.eliminate_dead_code()
    return StepReader(module, rows, like.dtype, len(state), len(given), len(weights)).read()


class StepReader:
    """Reads a traced graph node by node into row values."""

    def __init__(
        self, module: fx.GraphModule, rows: int, dtype: torch.dtype, states: int, given: int, weights: int
    ) -> None:
        self.module = module
        self.rows = rows
        self.dtype = dtype
        self.found: dict[fx.Node, Any] = {}
        self.counts = (states, given, weights)
        self.contractions: list[Contraction] = []
        self.layouts: dict[tuple[tuple[int, ...], int], Layout] = {}
        self.values: dict[tuple[Any, ...], Value] = {}

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
            leaves[name] = Value("leaf", (), math.prod(shape[1:]), name)
            self.found[node] = self.whole(leaves[name], self.standard(shape, 0))
            if name.startswith("fixed"):
                row_inputs.append(name)
        for node in nodes:
            if node.op in ("call_function", "get_attr"):
                self.found[node] = self.read_node(node)
                self.check_type(node)
        outputs = tree_flatten(nodes[-1].args)[0]
        new_states = [self.output(node, leaves[f"state {n}"].width) for n, node in enumerate(outputs[:states])]
        of_rows = [leaves["inputs"], *(leaves[f"state {n}"] for n in range(states))]
        gradients = zip(outputs[states : 2 * states + 1], of_rows, strict=True)
        d_inputs, *d_states = (self.output(node, leaf.width) for node, leaf in gradients)
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

    def check_type(self, node: fx.Node) -> None:
        """Masks and whole numbers are held as numbers of the one type that a row pass computes in."""
        value = node.meta.get("val")
        if not isinstance(self.found[node], Rows) or not isinstance(value, Tensor) or value.dtype == self.dtype:
            return
        is_exact = node.target in vocabulary.CONSTANTS or node.target in vocabulary.EXACT
        if value.is_floating_point() and not is_exact:
            raise NoPlan(f"its step computes in {value.dtype}, but a row pass supports only {self.dtype}")

    def gradient(self, node: fx.Node | None) -> fx.Node | None:
        """The node of a weight's gradient; None where the step does not use the weight."""
        if node is None:
            return None
        found = self.found[node]
        if isinstance(found, Weight) or (isinstance(found, Rows) and found.is_constant):  # a constant zero
            return None
        if not isinstance(found, After):
            raise NoPlan(f"the gradient of a weight is made by {node.target}, which is not a sum over rows")
        return node

    def output(self, node: fx.Node, width: int) -> Value:
        """What the step returns for each row."""
        rows = self.as_rows(node)
        if rows.layout is None and rows.places.dim() and rows.shape[0] == self.rows:
            rows = Rows(rows.value, rows.places, self.standard(rows.shape, 0))
        if rows.layout is None or rows.layout.dimension != 0 or rows.shape != (self.rows, width):
            raise NoPlan(f"its step returns a state of shape {rows.shape} for {self.rows} rows of {width} numbers")
        return self.one_row(rows)

    # Tensors of the trace

    def standard(self, shape: tuple[int, ...], dimension: int) -> Layout:
        """The layout of a tensor with the rows along one dimension."""
        key = (tuple(shape), dimension)
        if key not in self.layouts:
            along = [1] * len(shape)
            along[dimension] = self.rows
            self.layouts[key] = Layout(torch.arange(self.rows).view(along).expand(shape).contiguous(), self.rows)
        return self.layouts[key]

    def layout(self, rows: Tensor) -> Layout:
        """The layout with these rows; the same object for the same layout where rows come first."""
        if rows.dim() and rows.shape[0] == self.rows:
            standard = self.standard(tuple(rows.shape), 0)
            if torch.equal(standard.rows, rows):
                return standard
        return Layout(rows.contiguous(), self.rows)

    def by_size(self, shape: tuple[int, ...]) -> Layout | None:
        """Of numbers that all rows share: the rows are along the dimension that is as large as there are rows."""
        along = [d for d, size in enumerate(shape) if size == self.rows]
        if len(along) == 1:
            return self.standard(shape, along[0])
        if any(size % self.rows == 0 for size in shape if size):
            raise NoPlan("its step repeats a weight in a shape that does not tell rows from columns")
        return None

    def whole(self, value: Value, layout: Layout) -> Rows:
        """A value whose numbers lie in order."""
        return Rows(value, layout.places, layout)

    def is_in_order(self, rows: Rows, layout: Layout) -> bool:
        """Whether each row's numbers are those of its value, all of them, as they lie."""
        return rows.places is layout.places and rows.value.width == layout.positions.shape[1]

    def as_rows(self, node: Any) -> Rows:
        """A node as a value of each row; a weight becomes a vector that all rows share."""
        found = self.found[node] if isinstance(node, fx.Node) else float(node)
        if isinstance(found, Rows):
            return found
        if isinstance(found, float):
            return Rows(constant(found), torch.zeros((), dtype=torch.int64), None)
        if isinstance(found, Weight):
            return self.weight_as_rows(self.in_real(found))
        raise NoPlan(f"{getattr(node, 'target', node)} is used where a value per row is needed")

    def weight_as_rows(self, weight: Weight) -> Rows:
        leaf = Value("leaf", (), math.prod(weight.shape), weight)
        return Rows(leaf, torch.arange(leaf.width).view(weight.shape), None)

    def in_real(self, weight: Weight) -> Weight:
        """A weight in the type that the passes compute in: a mask is 0 and 1 there."""
        value = weight.node.meta.get("val")
        if value is None or value.dtype == self.dtype:
            return weight
        return self.new_weight(weight.node, aten._to_copy.default, (weight.node,), weight.shape, dtype=self.dtype)

    def new_node(self, before: fx.Node, function: Any, arguments: tuple[Any, ...], **keywords: Any) -> fx.Node:
        with self.module.graph.inserting_before(before):
            return self.module.graph.call_function(function, arguments, keywords)

    def new_weight(
        self, at: fx.Node, function: Any, arguments: tuple[Any, ...], shape: tuple[int, ...], **keywords: Any
    ) -> Weight:
        node = self.new_node(at.next, function, arguments, **keywords)
        weight = self.found[node] = Weight(node, shape)
        return weight

    def indices(self, rows: Rows, positions: Tensor) -> Tensor:
        """Where a row finds its numbers in the value: the same for every row, or there is no plan."""
        found = rows.places.flatten()[positions]
        if not bool((found == found[:1]).all()):
            raise NoPlan("its step does not treat all rows alike")
        return found[0]

    def once(self, value: Value) -> Value:
        """One value for one thing: what the way back asks for is then known from the way there."""
        args = [each.args if isinstance(each, Value) and each.op == "constant" else each for each in value.args]
        detail = value.detail
        if value.op == "move":
            detail = (detail.sources.numpy().tobytes(), detail.places.numpy().tobytes())
        return self.values.setdefault((value.op, *args, value.width, detail), value)

    def one_row(self, rows: Rows) -> Value:
        """A row's numbers in the order in which they lie."""
        assert rows.layout is not None
        if self.is_in_order(rows, rows.layout):
            return rows.value
        return self.once(picked(rows.value, self.indices(rows, rows.layout.positions)))

    # Operations

    def read_node(self, node: fx.Node) -> Any:
        if node.op == "get_attr":
            return Weight(node, tuple(getattr(self.module, str(node.target)).shape))
        target: Any = node.target
        if torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()):
            raise NoPlan(f"its step draws random numbers ({target}); draw them in `fixed` or in `project`")
        inputs = [self.found[argument] for argument in node.all_input_nodes]
        if target is operator.getitem:
            return After(node) if isinstance(inputs[0], After) else inputs[0][node.args[1]]
        if any(isinstance(each, After) for each in inputs):
            if not all(isinstance(each, After | Weight) or each.is_constant for each in inputs):
                raise NoPlan(f"{target} mixes a sum over rows with a value of a row")
            return After(node)
        if target in vocabulary.CONSTANTS:
            number = torch.tensor(vocabulary.CONSTANTS[target](node), dtype=node.meta["val"].dtype).item()
            return Rows(constant(number), torch.zeros(shape_of(node), dtype=torch.int64), None)
        if self.is_of_weights(node, inputs):
            return self.of_weights(node)
        if target in vocabulary.HANDLERS:
            return vocabulary.HANDLERS[target](self, node)
        if target in vocabulary.POINTWISE:
            return self.pointwise(node)
        if target in vocabulary.MOVES:
            return self.move(node)
        if not inputs:
            raise NoPlan(f"its step creates a tensor of the batch's size ({target})")
        raise NoPlan(f"its step uses {target}, which a row pass does not support")

    def is_of_weights(self, node: fx.Node, inputs: list[Any]) -> bool:
        """Whether a node is computed from weights alone, once per sequence, by torch."""
        if not all(isinstance(each, Weight) or (isinstance(each, Rows) and each.is_constant) for each in inputs):
            return False
        is_constant = bool(inputs) and not any(isinstance(each, Weight) for each in inputs)
        sizes = [size for shape in shapes_of(node) for size in shape]
        return not is_constant and not any(size and size % self.rows == 0 for size in sizes)

    def of_weights(self, node: fx.Node) -> Any:
        if isinstance(node.meta.get("val"), list | tuple):
            parts = []
            for number, shape in enumerate(shapes_of(node)):
                parts.append(self.new_weight(node, operator.getitem, (node, number), shape))
                parts[-1].node.meta["val"] = node.meta["val"][number]
            return parts
        return Weight(node, shape_of(node))

    def pointwise(self, node: fx.Node) -> Rows:
        if any(key not in vocabulary.IGNORED for key in node.kwargs):
            raise NoPlan(f"its step uses {node.target} with {dict(node.kwargs)}, which a row pass does not support")
        return self.apply(vocabulary.POINTWISE[node.target], *(self.as_rows(each) for each in node.args))

    def apply(self, op: str, *args: Rows) -> Rows:
        """A function of each number, the arguments broadcast to one shape."""
        shape = tuple(torch.broadcast_shapes(*(arg.shape for arg in args)))
        layout = self.common_layout(args, shape)
        positions = torch.arange(math.prod(shape)).unsqueeze(0) if layout is None else layout.positions
        values = []
        for arg in args:
            if arg.is_constant:
                values.append(constant(arg.value.args[0]))  # type: ignore[arg-type]
            elif layout is not None and self.is_in_order(arg, layout):
                values.append(arg.value)
            else:
                spread = Rows(arg.value, arg.places.expand(shape), None)
                places = self.indices(spread, positions)
                is_single = len(places) > 0 and bool((places == places[0]).all())
                values.append(self.once(picked(arg.value, places[:1] if is_single else places)))
        width = max(value.width for value in values)
        value = self.once(Value(op, tuple(values), width))
        if width == 1:
            return Rows(value, torch.zeros(shape, dtype=torch.int64), layout)
        if layout is None:
            return Rows(value, positions.view(shape), None)
        return self.whole(value, layout)

    def common_layout(self, args: Sequence[Rows], shape: tuple[int, ...]) -> Layout | None:
        layout: Layout | None = None
        for arg in args:
            if arg.layout is None or arg.layout is layout:
                continue
            rows = arg.layout.rows
            if tuple(rows.shape) == shape and layout is None:
                layout = arg.layout
                continue
            if layout is None:
                layout = self.layout(rows.expand(shape))
            elif not torch.equal(rows.expand(shape), layout.rows):
                raise NoPlan("its step mixes rows")
        return self.by_size(shape) if layout is None else layout

    def move(self, node: fx.Node) -> Any:
        """An operation that only moves numbers: done to their addresses."""
        nodes = [each for each in node.all_input_nodes if not self.is_index(each)]
        parts = [self.as_rows(each) for each in nodes]
        size = max(part.value.width for part in parts)

        def address(given: fx.Node) -> Tensor:
            if self.is_index(given):
                return self.constant_tensor(given)
            number = nodes.index(given)
            part = parts[number]
            rows = -1 if part.layout is None else part.layout.rows
            found = (number * (self.rows + 1) + rows + 1) * size + part.places
            if "as_strided" in str(node.target):  # the one move that depends on how numbers lie in memory
                strides = given.meta["val"].stride()
                return torch.empty_strided(found.shape, strides, dtype=torch.int64).copy_(found)
            return found

        arguments, keywords = fx.node.map_arg((node.args, dict(node.kwargs)), address)
        target: Any = node.target
        moved_addresses = target(*arguments, **{key: each for key, each in keywords.items() if key != "dtype"})
        if isinstance(moved_addresses, Tensor):
            return self.found_at(moved_addresses, parts, size)
        return [self.found_at(each, parts, size) for each in moved_addresses]

    def is_index(self, node: fx.Node) -> bool:
        value = node.meta.get("val")
        found = self.found[node]
        return isinstance(found, Weight) and isinstance(value, Tensor) and value.dtype is torch.int64

    def constant_tensor(self, node: fx.Node) -> Tensor:
        """A tensor that the step makes of nothing but numbers."""
        if node.op == "get_attr":
            found: Tensor = getattr(self.module, str(node.target))
            return found
        if node.op == "placeholder":
            raise NoPlan("its step indexes with a tensor of the cell, which could change")
        arguments, keywords = fx.node.map_arg((node.args, dict(node.kwargs)), self.constant_tensor)
        target: Any = node.target
        made: Tensor = target(*arguments, **keywords)
        return made

    def found_at(self, addresses: Tensor, parts: list[Rows], size: int) -> Rows:
        """What lies at these addresses now."""
        places = (addresses % size).contiguous()
        rows = (addresses // size) % (self.rows + 1) - 1
        sources = addresses // (size * (self.rows + 1))
        if bool((rows >= 0).all()):
            layout: Layout | None = self.layout(rows)
        else:
            layout = self.by_size(tuple(addresses.shape))
            if layout is None and bool((rows >= 0).any()):
                raise NoPlan("its step concatenates rows with values that are not rows")
            if layout is not None and not torch.equal(torch.where(rows < 0, layout.rows, rows), layout.rows):
                raise NoPlan("its step mixes rows")
        used = sources.unique().tolist()
        if len(used) == 1:
            part = parts[used[0]]
            is_in_order = layout is not None and torch.equal(places, layout.places)
            return Rows(part.value, layout.places if is_in_order and layout is not None else places, layout)
        positions = torch.arange(places.numel()).unsqueeze(0) if layout is None else layout.positions
        of = self.indices(Rows(parts[0].value, sources, layout), positions)
        at = self.indices(Rows(parts[0].value, places, layout), positions)
        value = self.once(moved([part.value for part in parts], of, at))
        if layout is None:
            return Rows(value, positions.view(places.shape), None)
        return self.whole(value, layout)

    def reshaped(self, rows: Rows, function: Any) -> Rows:
        """A view of a tensor: `function` takes the tensors of places and of rows."""
        places = function(rows.places)
        if rows.layout is None:
            return Rows(rows.value, places, None)
        layout = self.layout(function(rows.layout.rows))
        return Rows(rows.value, layout.places if torch.equal(places, layout.places) else places, layout)

    def reduce(self, op: str, rows: Rows, dims: Sequence[int], keep: bool) -> Rows:
        """A sum or a maximum along some dimensions, the rows not among them."""
        rank = len(rows.shape)
        dims = sorted(dim % rank for dim in dims) if dims else list(range(rank))
        others = [dim for dim in range(rank) if dim not in dims]
        shape = [1 if dim in dims else size for dim, size in enumerate(rows.shape) if keep or dim in others]
        n = math.prod(rows.shape[dim] for dim in dims)
        layout = rows.layout
        places = rows.places.permute(others + dims).reshape([*(rows.shape[dim] for dim in others), n])
        if rows.is_constant:
            number = float(rows.value.args[0]) * (n if op == "sum" else 1)  # type: ignore[arg-type]
            return Rows(constant(number), torch.zeros(shape, dtype=torch.int64), None)
        if layout is None:
            raise NoPlan("its step sums a weight that it has expanded over rows")
        if layout.dimension in dims:
            raise NoPlan("its step mixes rows")
        left = self.layout(layout.rows.permute(others + dims).reshape(places.shape)[..., 0])
        table = places.reshape(-1, n)[left.positions]  # (rows, outer, n)
        if not bool((table == table[:1]).all()):
            raise NoPlan("its step does not treat all rows alike")
        value = reduced(op, rows.value, table[0])
        whole = self.whole(value, left)
        return self.reshaped(whole, lambda tensor: tensor.reshape(shape))

    def sum(self, node: fx.Node, rows: Rows, dims: Sequence[int], keep: bool) -> Rows | After:
        """A sum along some dimensions; over the rows it is a gradient, added up by the passes."""
        rank = len(rows.shape)
        dims = [dim % rank for dim in dims] if dims else list(range(rank))
        layout = rows.layout if rows.layout is not None or rows.is_constant else self.by_size(rows.shape)
        if layout is None or layout.dimension not in dims:
            return self.reduce("sum", Rows(rows.value, rows.places, layout), dims, keep)
        left = self.one_row(Rows(rows.value, rows.places, layout))
        total = self.new_node(node, torch.sum, (node.args[0], 0))
        shape = [size // self.rows if dim == layout.dimension else size for dim, size in enumerate(rows.shape)]
        self.contractions.append(Contraction(total, left, None))
        return self.replaced(node, rest_of_sum, (total, shape, dims, keep))

    def replaced(self, node: fx.Node, function: Any, arguments: tuple[Any, ...]) -> After:
        """Something else is evaluated after the loop in place of a node."""
        new = self.new_node(node, function, arguments)
        node.replace_all_uses_with(new)
        self.found[arguments[0]], self.found[new] = After(arguments[0]), After(new)
        return After(new)

    def product(self, node: fx.Node, left: Rows | Weight, right: Rows | Weight) -> Rows | After:
        """(b, n, k) times (b, k, m)."""
        if isinstance(left, Weight) and isinstance(right, Rows):
            swapped = tuple(left.shape[d] for d in (0, 2, 1))
            transposed = self.new_weight(left.node, aten.permute.default, (left.node, [0, 2, 1]), swapped)
            product = self.product(node, self.reshaped(right, lambda tensor: tensor.transpose(1, 2)), transposed)
            assert isinstance(product, Rows)
            return self.reshaped(product, lambda tensor: tensor.transpose(1, 2))
        assert isinstance(left, Rows)
        if left.layout is None or (isinstance(right, Rows) and right.layout is None):
            raise NoPlan("its step multiplies by a matrix computed from both weights and rows")
        if isinstance(right, Weight):
            return self.product_with_weight(left, left.layout, right)
        assert right.layout is not None
        (b, n, _), m = left.shape, right.shape[2]
        where = left.layout.dimension, right.layout.dimension
        if where == (0, 0):
            spread = self.reshaped(left, lambda tensor: tensor.unsqueeze(3))
            other = self.reshaped(right, lambda tensor: tensor.unsqueeze(1))
            return self.reduce("sum", self.apply("mul", spread, other), [2], keep=False)
        if where == (2, 1) and torch.equal(left.layout.rows[0, 0], right.layout.rows[0, :, 0]):
            of_left = self.one_row(self.reshaped(left, lambda tensor: tensor.transpose(1, 2)))
            total = self.new_node(node, torch.matmul, (node.args[0], node.args[1]))
            self.contractions.append(Contraction(total, of_left, self.one_row(right)))
            return self.replaced(node, diagonal_blocks, (total, b, n, m, shape_of(node)))
        raise NoPlan("its step mixes rows")

    def product_with_weight(self, left: Rows, layout: Layout, right: Weight) -> Rows:
        if layout.dimension != 1:
            raise NoPlan("its step mixes rows")
        operand = self.one_row(left)
        b, k, m = right.shape
        times = operand.width // (b * k)  # how many vectors of a row are multiplied with each matrix
        shape = (b * times * k, b * times * m)
        weight = self.new_weight(right.node, block_diagonal, (right.node, times), shape)
        rows = layout.rows[:, :, :1].expand(b, layout.rows.shape[1], m)
        return self.whole(Value("product", (operand,), shape[1], weight), self.layout(rows))


def shape_of(node: fx.Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def shapes_of(node: fx.Node) -> list[tuple[int, ...]]:
    """Of all results of a node."""
    return [tuple(value.shape) for value in tree_flatten(node.meta.get("val"))[0] if isinstance(value, Tensor)]


# What torch computes of weights before the loop, and of their gradients after it.


def block_diagonal(weights: Tensor, times: int) -> Tensor:
    """(b, k, m) to a matrix with each of the b matrices `times` times on its diagonal.

    >>> block_diagonal(torch.tensor([[[1, 2]], [[3, 4]]]), 1)
    tensor([[1, 2, 0, 0],
            [0, 0, 3, 4]])
    """
    if len(weights) == 1 and times == 1:
        return weights[0]
    return torch.block_diag(*(matrix for matrix in weights for _ in range(times)))


def diagonal_blocks(matrix: Tensor, b: int, n: int, m: int, shape: tuple[int, ...]) -> Tensor:
    """The gradient of `b` matrices (n, m) of which each stands in `matrix`, one or more times, on its diagonal."""
    times = matrix.shape[0] // (b * n)
    if b == times == 1:
        return matrix.reshape(shape)
    blocks = matrix.view(b * times, n, b * times, m).diagonal(dim1=0, dim2=2)  # (n, m, b · times)
    return blocks.reshape(n, m, b, times).sum(-1).permute(2, 0, 1).reshape(shape)


def rest_of_sum(total: Tensor, shape: list[int], dims: list[int], keep: bool) -> Tensor:
    """A sum over rows and more, when the rows are added up already."""
    total = total.view(shape)
    if all(shape[dim] == 1 for dim in dims):
        return total if keep else total.squeeze(tuple(dims))
    return total.sum(dims, keepdim=keep)
