"""A function of tensors recorded as a program.

What a model does with inputs of a few different sizes is written down, and these recordings are read side by side: what
differs between them are sizes (recurra.programs.solving). A layer of cells is one operation, a scan, whose body is the
cell's own step, recorded likewise. So any cell, attention, head or module of a user's own is recorded as it is written,
without an exporter of its own; what depends on the values of a batch, or does something that a program has no operation
for, is refused in words.

Lengths of rows are inputs, and recordings have rows of different lengths: masks are part of what is recorded.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from recurra.cells import AnyCell, AnyState
from recurra.cells.cell import fields
from recurra.engines import DirectedCell, Layer, Reading, Work
from recurra.engines.choice import instead
from recurra.engines.planning import leaves_of
from recurra.engines.vocabulary import TAKEN_APART
from recurra.padding import Padded
from recurra.programs.inputs import Call, Input, Recordable
from recurra.programs.program import Function
from recurra.programs.sizes import Size
from recurra.programs.solving import NotExportable, Sizes

aten = torch.ops.aten

RECORDINGS = 4
"""How often a function is recorded, each time with inputs of other sizes."""

DRAWN = (3, 7, 2, 5, 4, 11, 6, 9, 8, 13, 10)
"""Sizes of inputs that are recorded: each name takes every second of these, the next one begins three further on."""


class Recorded(NamedTuple):
    """A function as a program has it, and the tensors that it takes from the model, by name."""

    function: Function
    weights: Mapping[str, NDArray[Any]]


class Step(NamedTuple):
    """A cell's step, which a scan repeats: one recording of it."""

    nodes: list[Node]
    states: int
    backward: bool


class Recording(NamedTuple):
    """What torch recorded for inputs of certain sizes."""

    nodes: list[Node]
    outputs: tuple[str, ...]
    steps: dict[int, Step]


WHOLE = {aten.native_layer_norm.default, aten.native_group_norm.default, aten.var.correction, aten.var_mean.correction}
"""What torch must not take apart: translation.py does, into operations that can be recorded twice."""


@functools.cache
def decompositions() -> dict[Any, Any]:
    """torch's larger operations in terms of those that translation.py knows."""
    more = [
        *(each for each in TAKEN_APART if each is not aten.native_group_norm_backward),
        *(aten.softplus, aten.baddbmm, aten.addcmul, aten.addcdiv, aten.lerp),
        *(aten.masked_fill, aten.index_fill, aten._prelu_kernel, aten.hardsigmoid, aten.celu, aten.selu, aten.mish),
    ]
    table = {**core_aten_decompositions(), **get_decompositions(more)}
    return {operation: made for operation, made in table.items() if operation not in WHOLE}


# Layers of cells

_LIBRARY = torch.library.Library("recurra_export", "DEF")
_LIBRARY.define("scan(int number, Tensor inputs, Tensor lengths, Tensor[] states, Tensor[] given) -> Tensor[]")

_present: list[Recorder] = []  # at most one: that which records now


@torch.library.impl(_LIBRARY, "scan", "CompositeExplicitAutograd")
def _scan(number: int, inputs: Tensor, lengths: Tensor, states: list[Tensor], given: list[Tensor]) -> list[Tensor]:
    return _present[-1].scanned(number, inputs, lengths, states, given)


class Recorder:
    """The engine while a model is recorded: it runs a layer as one operation, and records the step of its cells."""

    name = "export"

    def __init__(self) -> None:
        self.readers: list[DirectedCell] = []
        self.met: dict[int, tuple[int, tuple[Tensor, ...]]] = {}  # of each scan, its states and a step's arguments

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        return None

    def cost(self, work: Work) -> float:
        return 0.0

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        if any(reader.resets is not None for reader in layer):
            raise NotExportable("it begins rows anew in the middle")
        return [self.read_every(reader, x) if every else self.read(reader, x) for reader in layer]

    def read(self, reader: DirectedCell, x: Padded) -> Reading:
        inputs = reader.cell.project(x.values, reader.fixed)
        leaves = leaves_of(reader.fixed)
        given = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        self.readers.append(reader)
        outputs, *states = torch.ops.recurra_export.scan(
            len(self.readers) - 1, inputs, x.lengths, list(reader.state), given
        )
        return Reading(outputs, reader.cell.State(*states))

    def read_parts(self, reader: DirectedCell, x: Padded) -> Any:
        """Every named value of every step."""
        first = reader.cell.project(x.values[:, 0], reader.fixed)
        shown = reader.cell.parts(first, reader.state, reader.fixed)
        sizes = [part.flatten(1).shape[1] for part in shown]
        return type(shown)(*self.revealed(reader, x, sizes, of_state=False))

    def read_every(self, reader: DirectedCell, x: Padded) -> Reading:
        """The states after every step."""
        states = self.revealed(reader, x, [field.shape[1] for field in reader.state], of_state=True)
        return Reading(states[0], reader.cell.State(*states))

    def revealed(self, reader: DirectedCell, x: Padded, sizes: list[int], *, of_state: bool) -> Sequence[Tensor]:
        """What a step has, of every step: by a scan whose first state is all of it, side by side."""
        state: Any = (x.values.new_zeros(len(x.values), sum(sizes)), *reader.state)
        revealing: Any = Revealing(reader.cell, of_state=of_state)
        outputs, _ = self.read(reader._replace(cell=revealing, state=state), x)
        return outputs.split(sizes, dim=2)

    def scanned(
        self, number: int, inputs: Tensor, lengths: Tensor, states: Sequence[Tensor], given: Sequence[Tensor]
    ) -> list[Tensor]:
        """The scan itself, of plain tensors."""
        reader = self.readers[number]
        step = functools.partial(stepped, reader)
        self.met.setdefault(number, (len(states), tuple(each.clone() for each in (inputs[:, 0], *states, *given))))
        outputs = inputs.new_zeros(*inputs.shape[:2], states[0].shape[1])
        rows, current = torch.arange(len(inputs)), tuple(states)
        for t in range(int(lengths.max()) if len(lengths) else 0):
            places = (lengths - 1 - t).clamp_min(0) if reader.backward else torch.full_like(lengths, t)
            real = t < lengths
            new = step(inputs[rows, places], current, given)
            current = tuple(torch.where(real[:, None], now, then) for now, then in zip(new, current, strict=True))
            outputs[rows[real], places[real]] = current[0][real]
        return [outputs, *(each.clone() for each in current)]

    def steps(self) -> dict[int, Step]:
        """The steps of all scans, recorded; not while anything else is."""
        found = {}
        for number, (states, arguments) in self.met.items():
            reader = self.readers[number]

            def step(x: Tensor, *rest: Tensor, reader: DirectedCell = reader, states: int = states) -> Any:
                return stepped(reader, x, rest[:states], rest[states:])

            found[number] = Step(traced(step, arguments), states, reader.backward)
        return found


class Revealing:
    """A cell with one state more, before its own: every named value of the step side by side, or its state."""

    def __init__(self, cell: AnyCell, *, of_state: bool) -> None:
        self.cell, self.project, self.of_state = cell, cell.project, of_state

    @staticmethod
    def State(*states: Tensor) -> tuple[Tensor, ...]:
        return states

    def step(self, x: Tensor, state: tuple[Tensor, ...], fixed: Any) -> tuple[Tensor, ...]:
        if self.of_state:
            after = self.cell.step(x, self.cell.State(*state[1:]), fixed)
            return torch.cat([*after], dim=1), *after
        parts = self.cell.parts(x, self.cell.State(*state[1:]), fixed)
        own = (getattr(parts, name) for name in fields(self.cell.State))
        return torch.cat([part.flatten(1) for part in parts], dim=1), *own


def stepped(reader: DirectedCell, x: Tensor, state: Sequence[Tensor], given: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """One step of a cell; `given` are the tensors of its `fixed`."""
    fixed = refilled(reader.fixed, iter(given))
    found: AnyState = reader.cell.step(x, reader.cell.State(*state), fixed)
    return tuple(each.clone() if any(each is one for one in (x, *state, *given)) else each for each in found)


def refilled(tree: Any, tensors: Iterator[Tensor]) -> Any:
    """A tree of tuples with other tensors in it."""
    if isinstance(tree, Tensor):
        return next(tensors)
    if isinstance(tree, tuple):
        parts = [refilled(part, tensors) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree


# Recording


def traced(function: Callable[..., Any], arguments: Sequence[Tensor]) -> list[Node]:
    """What torch does in a function of tensors, in order; a NotExportable where that cannot be told."""
    try:
        try:
            return Log(arguments).read(function)
        except WritesInPlace:
            return functional(function, arguments)
    except NotExportable:
        raise
    except Exception as error:  # whatever a user's own module may raise while it is recorded is a reason
        raise NotExportable(f"torch cannot record it ({str(error).strip().splitlines()[0]})") from error


class WritesInPlace(Exception):
    """An operation changes a tensor that others may have seen."""


class Node:
    """An operation that was recorded; named like those of torch.fx."""

    def __init__(self, op: str, target: Any = None, args: Any = (), kwargs: Any = None, value: Any = None) -> None:
        self.op, self.target, self.args, self.kwargs = op, target, args, {} if kwargs is None else kwargs
        self.value = value  # a tensor, or several; of an output nothing

    @property
    def inputs(self) -> list[Node]:
        return [leaf for leaf in leaves_of_arguments((self.args, self.kwargs)) if isinstance(leaf, Node)]


def leaves_of_arguments(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for part in tree:
            yield from leaves_of_arguments(part)
    else:
        yield tree


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    """Lists, tuples and dicts with every leaf changed."""
    if isinstance(tree, dict):
        return {name: mapped(part, change) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [mapped(part, change) for part in tree]
    return change(tree)


class Log(TorchDispatchMode):
    """Writes down every operation of torch, larger ones taken apart."""

    def __init__(self, arguments: Sequence[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.nodes: list[Node] = []
        self.known: dict[int, Node] = {}
        self.kept: list[Any] = []  # so that no other tensor takes the place of one that is known
        self.variable: set[Node] = set()  # what follows from the inputs
        self.arguments = [argument.detach() for argument in arguments]
        for argument in self.arguments:
            self._add(Node("placeholder", value=argument), varies=True)

    def read(self, function: Callable[..., Any]) -> list[Node]:
        with self:
            results = function(*self.arguments)
        self.nodes.append(Node("output", args=([self._node(each) for each in results],)))
        return used(self.nodes)

    def _add(self, node: Node, *, varies: bool) -> Node:
        self.nodes.append(node)
        if isinstance(node.value, Tensor):
            self.known[id(node.value)] = node
        self.kept.append(node.value)
        if varies:
            self.variable.add(node)
        return node

    def _node(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) not in self.known:
            self._add(Node("constant", value=leaf), varies=False)
        return self.known[id(leaf)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        apart = decompositions().get(func)
        if apart is not None:
            with self:
                found = apart(*args, **kwargs)
            if found is not NotImplemented:
                return found
        elif func._can_decompose():
            with self:
                return func.decompose(*args, **kwargs)
        if torch.Tag.nondeterministic_seeded in func.tags:  # operations that may draw, but do not, were taken apart
            raise NotExportable("it draws random numbers")
        if func._schema.is_mutable:
            raise WritesInPlace
        arguments, keywords = mapped(args, self._node), mapped(kwargs, self._node)
        result = func(*args, **kwargs)
        node = Node("call_function", func, tuple(arguments), keywords, result)
        varies = any(each in self.variable for each in node.inputs)
        if not isinstance(result, Tensor | list | tuple):
            if varies:
                raise NotExportable("what it does depends on the values of its inputs (such as an `if` or `item()`)")
            return result
        self._add(node, varies=varies)
        if not isinstance(result, Tensor):
            for number, part in enumerate(result):
                if isinstance(part, Tensor):
                    self._add(Node("call_function", operator.getitem, (node, number), {}, part), varies=varies)
        return result


def used(nodes: Sequence[Node]) -> list[Node]:
    """All nodes that the last one needs, and the inputs."""
    needed = {nodes[-1]}
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.inputs)
    return [node for node in nodes if node in needed or node.op == "placeholder"]


def functional(function: Callable[..., Any], arguments: Sequence[Tensor]) -> list[Node]:
    """The same of a function that writes in place, as one that does not; torch takes long for it."""
    # Twice: Python may look at lengths the first time; the second finds a graph, and nothing to look at.
    first = make_fx(lambda *given: list(function(*given)), decomposition_table=decompositions())(*arguments)
    module = make_fx(functionalize(first), decomposition_table=decompositions())(*arguments)
    module.graph.eliminate_dead_code()
    known: dict[fx.Node, Node] = {}
    for each in module.graph.nodes:
        args, kwargs = fx.node.map_arg((each.args, each.kwargs), known.__getitem__)  # type: ignore[arg-type]
        if each.op == "get_attr":
            known[each] = Node("constant", value=getattr(module, str(each.target)))
        else:
            known[each] = Node(each.op, each.target, args, kwargs, each.meta.get("val"))
    return list(known.values())


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    _present.append(recorder)
    try:
        with torch.no_grad(), instead(recorder), sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        _present.pop()


def recorded(function: Recordable, sizes: Mapping[str, int], seed: int) -> Recording:
    """One recording, for these sizes."""
    call: Call = function.call
    recorder, names = Recorder(), list[str]()

    def once(*tensors: Tensor) -> list[Tensor]:
        recorder.readers.clear()
        found = call(*tensors)
        names[:] = found
        return list(found.values())

    with recording(recorder):
        nodes = traced(once, samples(function.inputs, sizes, seed, function.least))
        return Recording(nodes, tuple(names), recorder.steps())


def samples(inputs: Sequence[Input], sizes: Mapping[str, int], seed: int, least: Collection[str] = ()) -> list[Tensor]:
    """Inputs of these sizes, drawn; rows have different lengths, the longest all there is, the last one step less or,
    along sizes that have a least, 1."""
    draws = np.random.default_rng(seed)
    found = []
    for each in inputs:
        shape = tuple(Size.read(size).at(sizes) for size in each.shape)
        if each.kind == "ids":
            assert each.below is not None, "ids have an end"
            found.append(torch.from_numpy(draws.integers(0, each.below, shape)))
        elif each.kind == "lengths":
            longest = sizes[each.along]
            lengths = draws.integers(1, longest + 1, shape)
            if lengths.size:
                lengths.flat[-1] = 1 if each.along in least else max(1, longest - 1)  # shorter: what masks are for
                lengths.flat[0] = longest
            found.append(torch.from_numpy(lengths))
        elif each.kind == "copies":
            assert each.below is not None, "copies come after ids"
            found.append(torch.from_numpy(draws.integers(0, each.below + sizes[each.along], shape)))
        elif each.kind == "chances":
            found.append(torch.from_numpy(draws.random(shape)))
        elif each.kind == "counts":
            found.append(torch.from_numpy(draws.integers(0, 50, shape)))
        elif each.kind == "places":
            found.append(torch.from_numpy(draws.integers(0, sizes[each.along], shape)))
        elif each.kind == "flags":
            flags = draws.random(shape) < 0.7
            flags[..., :1] = True
            found.append(torch.from_numpy(flags))
        elif each.kind == "bytes":
            found.append(torch.from_numpy(draws.integers(0, 256, shape).astype(np.uint8)))
        else:
            found.append(torch.from_numpy(draws.standard_normal(shape).astype(each.type)))
    return found


def sizes_drawn(function: Recordable, recordings: int = RECORDINGS) -> Sizes:
    """Sizes of so many recordings, all different, for the names of a function's inputs."""
    rows = {}
    for number, name in enumerate(names_of(function)):
        more = function.least.get(name, 1) - 1
        known = [size + more for size in DRAWN if size + more <= function.most.get(name, max(DRAWN) + more)] or [1]
        step = 2 if len(known) % 2 else 1  # so that all of them have their turn
        rows[name] = [known[(step * k + 3 * number) % len(known)] for k in range(recordings)]
        if len(set(rows[name])) == 1:
            raise NotExportable(
                f"{name} is at most {function.most[name]}, too small to be told from what never changes"
            )
    return Sizes(rows)


def names_of(function: Recordable) -> list[str]:
    """The names of the sizes of its inputs."""
    return sorted({name for each in function.inputs for size in each.shape for name in Size.read(size).names})


def weights_by_place(model: torch.nn.Module) -> dict[tuple[int, tuple[int, ...]], str]:
    """The name of each parameter and buffer, by where it lies."""
    named = [*model.named_parameters(), *model.named_buffers()]
    found: dict[tuple[int, tuple[int, ...]], str] = {}
    for name, tensor in named:
        found.setdefault((tensor.data_ptr(), tuple(tensor.shape)), name)
    return found


def record(model: torch.nn.Module, function: Recordable) -> Recorded:
    """A function of a model as a program has it; a NotExportable says why it cannot be one."""
    from recurra.exporting.translation import translated

    try:
        sizes = sizes_drawn(function)
        found = [
            recorded(function, {name: each[k] for name, each in sizes.values.items()}, seed=k)
            for k in range(sizes.count)
        ]
        return translated(found, function.inputs, sizes, weights_by_place(model))
    except NotExportable as reason:
        raise NotExportable(f"this model cannot be exported: in `{function.name}`, {reason}.") from reason
