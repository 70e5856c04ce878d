"""Graphs of ONNX as data, and what writes them: names for nodes, weights, numbers and sizes.

Named sizes stay open: each is read from the shape of an input, and what follows from it is computed by the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.programs.program import Function, Named, Number, Operand, Value, factor
from recurra.programs.sizes import Size, quotient

Array: TypeAlias = NDArray[Any]


class Node(NamedTuple):
    """An operator of ONNX, the names of what it takes and makes; an attribute may be a graph."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def reads(self) -> Iterator[str]:
        """The names that it takes, those of a graph within it among them."""
        yield from self.inputs
        for value in self.attributes.values():
            if isinstance(value, Graph):
                yield from (name for name, _ in value.outputs)
                for inner in value.nodes:
                    yield from inner.reads()


@dataclass
class Graph:
    """Nodes in their order, what they start from and what comes out."""

    name: str
    inputs: list[tuple[str, Value]] = field(default_factory=list)
    outputs: list[tuple[str, Value]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)

    def needed(self) -> Graph:
        """The same graph without nodes and weights of which nothing comes out."""
        wanted, nodes = {name for name, _ in self.outputs}, list[Node]()
        for node in reversed(self.nodes):
            if wanted.intersection(node.outputs):
                nodes.append(node)
                wanted.update(node.reads())
        weights = {name: array for name, array in self.weights.items() if name in wanted}
        return Graph(self.name, self.inputs, self.outputs, nodes[::-1], weights)


class Builder:
    """Adds nodes to a graph; `outer` is that of the graph around it, which holds what does not change between steps."""

    def __init__(self, graph: Graph, given: Sequence[Named], taken: set[str], outer: Builder | None = None) -> None:
        self.graph, self.given, self.taken, self.outer = graph, given, taken, outer
        self.outermost: Builder = self if outer is None else outer.outermost
        self.shared: dict[Any, str] = {}  # the names of numbers, sizes and masks that were written before
        self.unknown: set[str] = set()  # names of sizes that are being looked for

    def name(self, kind: str) -> str:
        """A name that nothing has yet."""
        number = len(self.taken)
        while (found := f"{kind.lower()}_{number}") in self.taken:
            number += 1
        self.taken.add(found)
        return found

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The name of what an operator with one output makes."""
        [found] = self.nodes(kind, inputs, 1, attributes)
        return found

    def nodes(self, kind: str, inputs: Sequence[str], outputs: int, attributes: Mapping[str, Any]) -> list[str]:
        """The names of all that an operator makes."""
        found = [self.name(kind) for _ in range(outputs)]
        self.graph.nodes.append(Node(kind, tuple(inputs), tuple(found), attributes))
        return found

    def weight(self, kind: str, array: Array) -> str:
        """The name of an array that is kept."""
        name = self.name(kind)
        self.outermost.graph.weights[name] = array
        return name

    def constant(self, array: Array) -> str:
        """The name of a small array, the same for all that are alike."""
        shared, key = self.outermost.shared, (str(array.dtype), array.shape, array.tobytes())
        if key not in shared:
            shared[key] = self.weight("number", array)
        return shared[key]

    def number(self, value: float, kind: str) -> str:
        return self.constant(np.asarray(value, kind))

    def whole(self, numbers: Sequence[int]) -> str:
        """Whole numbers as an array."""
        return self.constant(np.array(numbers, np.int64))

    # Sizes: all in the outermost graph, so that the body of a scan does not compute them at every step

    def size(self, size: Size) -> str:
        """A size as an array of one number."""
        if size.constant is not None:
            return self.whole([size.constant])
        outermost, key = self.outermost, f"size {size}"
        if key not in outermost.shared:
            outermost.shared[key] = outermost._size(size)
        return outermost.shared[key]

    def scalar(self, size: Size) -> str:
        """A size as a number of no dimensions."""
        if size.constant is not None:
            return self.number(size.constant, "int64")
        outermost, key = self.outermost, f"scalar {size}"
        if key not in outermost.shared:
            outermost.shared[key] = outermost.node("Squeeze", self.size(size))
        return outermost.shared[key]

    def shape(self, sizes: Sequence[Size]) -> str:
        """Sizes as one array."""
        constants = [size.constant for size in sizes if size.constant is not None]
        if len(constants) == len(sizes):
            return self.whole(constants)
        outermost, key = self.outermost, f"shape {', '.join(map(str, sizes))}"
        if key not in outermost.shared:
            parts = [self.size(size) for size in sizes]
            outermost.shared[key] = parts[0] if len(parts) == 1 else outermost.node("Concat", *parts, axis=0)
        return outermost.shared[key]

    def _size(self, size: Size) -> str:
        total = ""
        for product, coefficient in size.terms:
            factors = [self._factor(each, size) for each in product]
            if coefficient != 1 or not factors:
                factors.append(self.whole([coefficient]))
            term = factors[0]
            for other in factors[1:]:
                term = self.node("Mul", term, other)
            total = self.node("Add", total, term) if total else term
        return total

    def _factor(self, text: str, within: Size) -> str:
        if not text.startswith("("):
            return self._named(text) if within == Size.named(text) else self.size(Size.named(text))
        above, over = quotient(text)
        number = self.size(above)
        if isinstance(over, int):
            return self.floored(number, self.whole([over]))
        by, one = self.size(Size.named(over)), self.whole([1])
        shared = self.floored(number, self.node("Max", by, one))
        return self.node("Mul", shared, self.node("Min", by, one))  # nothing, shared by nobody, is 0

    def floored(self, above: str, by: str) -> str:
        """A quotient rounded down; Div rounds toward 0."""
        return self.node("Div", self.node("Sub", above, self.node("Mod", above, by)), by)

    def _named(self, name: str) -> str:
        """The size of this name: that of an input, or one that follows from the product of several."""
        places = [
            (each.name, dim, size)
            for each in self.given
            for dim, size in enumerate(each.value.shape)
            if name in size.names
        ]
        for given, dim, size in places:
            if size == Size.named(name):
                return self.node("Shape", given, start=dim, end=dim + 1)
        self.unknown.add(name)
        for given, dim, size in places:
            if follows(size, name) and not (size.names - {name}) & self.unknown:
                [(product, coefficient)] = size.terms
                rest = Size(((tuple(each for each in product if each != name), coefficient),))
                there = self.node("Shape", given, start=dim, end=dim + 1)
                return self.node("Div", there, self.node("Max", self.size(rest), self.whole([1])))
        raise ValueError(f"{name} does not follow from the shapes of inputs")


def follows(size: Size, name: str) -> bool:
    """Whether a size is a product in which a name stands once, so that the name follows from it."""
    try:
        factor(size, name, 1, dict.fromkeys(size.names, 1))
    except ValueError:
        return False
    return True


class Writer:
    """A function that is written into a graph: its values and weights by their names there."""

    def __init__(self, to: Builder, function: Function, weights: Mapping[str, Array], known: list[str]) -> None:
        self.to, self.function, self.weights = to, function, weights
        self.known = known  # the name of each value
        self.values = function.values

    def outside(self) -> Writer:
        """The same function, written into the graph around."""
        assert self.to.outer is not None, "the outermost graph has none around it"
        return Writer(self.to.outer, self.function, self.weights, self.known)

    def value(self, operand: Operand) -> Value:
        """Type and shape of an operand."""
        if isinstance(operand, int):
            return self.values[operand]
        if isinstance(operand, str):
            array = self.weights[operand]
            return Value(str(array.dtype), tuple(map(Size.of, array.shape)))
        number = operand.value
        return Value("bool" if isinstance(number, bool) else "float32" if isinstance(number, float) else "int64", ())

    def operand(self, operand: Operand, kind: str | None = None) -> str:
        """The name of an operand; a number is written in the type `kind`."""
        if isinstance(operand, int):
            return self.known[operand]
        if isinstance(operand, str):
            self.to.outermost.graph.weights[operand] = self.weights[operand]
            return operand
        assert isinstance(operand, Number), "an operand is a value, a weight or a number"
        if isinstance(operand.value, Size):
            whole = self.to.scalar(operand.value)
            return whole if kind in (None, "int64") else self.to.node("Cast", whole, to=kind)
        return self.to.number(operand.value, kind or self.value(operand).type)
