"""A model as a probabilistic graph: which variables are random, which follow from others, and how they depend.

Circles are random variables, shaded where they are given; diamonds are deterministic, functions of what points at them
(the manner of Murphy 2022). Lines without a head join variables that are scored together, as in a CRF.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path as File
from typing import Any, NamedTuple

from recurra.analysis.anatomy import Anatomy, UnrolledLevel
from recurra.reports.unrolled import AHEAD, DASHES, FROM_END, MARGIN, STEPS, Drawing, top_of, write
from recurra.tasks.task import Task
from recurra.views.scene import Circle, Colour, Label, Path, Scene, moved, width_of

RADIUS, PITCH, ROW, APART = 20.0, 92.0, 84.0, 120.0
"""Pixels: of a node, between columns, between rows, between what reads and what writes."""

SHIFT = 23.0
"""By which the two directions of a layer stand to the left and to the right of their step."""

SIZE = 13.0


class Node(NamedTuple):
    """A variable at a place."""

    x: float
    y: float


class Graph:
    """Nodes and edges; nodes are drawn last, so that they cover the ends of edges."""

    def __init__(self) -> None:
        self.edges = Drawing()
        self.nodes = Drawing()

    def random(self, x: float, y: float, name: str, *, given: bool = False) -> Node:
        """A random variable: a circle, shaded where it is given."""
        about = "given" if given else "random"
        self.nodes.shapes += [
            Circle(x, y, RADIUS, "ink", filled=True),
            Circle(x, y, RADIUS - 1.5, "line" if given else "paper", filled=True, title=f"{name}: {about}"),
        ]
        self._named(x, y, name)
        return Node(x, y)

    def function(self, x: float, y: float, name: str, about: str) -> Node:
        """A function of what points at it: a diamond."""
        far = 1.2 * RADIUS
        corners = [(x - far, y), (x, y - far), (x + far, y), (x, y + far), (x - far, y)]
        self.nodes.shapes += [
            Path(corners, "paper", filled=True),
            Path(corners, "ink", title=f"{name}: {about}, deterministic"),
        ]
        self._named(x, y, name)
        return Node(x, y)

    def _named(self, x: float, y: float, name: str) -> None:
        self.nodes.shapes.append(Label(name, x, y + 4.5, "middle", SIZE))

    def edge(
        self, start: Node, end: Node, *, dashed: bool = False, headless: bool = False, colour: Colour = "soft"
    ) -> None:
        """From one node to another; dashed where steps are left out between them."""
        across, down = end.x - start.x, end.y - start.y
        length = max(1e-6, (across**2 + down**2) ** 0.5)
        near = 1.2 * RADIUS
        points = [
            (start.x + across * near / length, start.y + down * near / length),
            (end.x - across * near / length, end.y - down * near / length),
        ]
        if headless:
            self.edges.shapes.append(Path(points, "soft", dashes=DASHES if dashed else ()))
        else:
            self.edges.arrow(*points, dashed=dashed, colour=colour)

    def chain(self, nodes: Sequence[Node], *, backward: bool = False, headless: bool = False) -> None:
        """Each node to the next; before the last, steps are left out."""
        pairs = list(pairwise(nodes))
        for number, (one, other) in enumerate(pairs):
            ends = (other, one) if backward else (one, other)
            self.edge(*ends, dashed=number == len(pairs) - 1, headless=headless)


def draw(tasks: Mapping[str, Task[Any, Any, Any]], path: File) -> None:
    """Write the picture of a run to a file, .svg or .png; of several, by their names, one below the other."""
    write(path, {name: picture(task) for name, task in tasks.items()}, "--graph")


def picture(task: Task[Any, Any, Any]) -> Scene:
    """The graph of a task's model over some steps, what it says of probabilities, and what the shapes mean."""
    anatomy, graph = task.anatomy(task.build()), Graph()
    columns = [RADIUS + PITCH * number for number in range(len(STEPS))]
    if anatomy.writer:
        _written(graph, anatomy, columns)
    elif anatomy.answers == "ahead":
        _ahead(graph, anatomy, columns)
    else:
        _answered(graph, anatomy, columns)
    shapes = [*graph.edges.shapes, *graph.nodes.shapes]
    top = min(top_of(shape) - (RADIUS if isinstance(shape, Circle) else 0) for shape in shapes)
    bottom = max(_bottom(shape) for shape in shapes)
    down = MARGIN - top
    shapes_mean = "circle: random, shaded where given; diamond: a function of what points at it"
    said = [factors(anatomy), shapes_mean + "; orange: attention" * bool(anatomy.attention)]
    said.append(task.described())
    lines = [
        Label(text, MARGIN, down + bottom + 34 + 22 * number, colour="ink" if number == 0 else "soft")
        for number, text in enumerate(said)
    ]
    aside = MARGIN - min(0.0, *(_left(shape) for shape in shapes))
    right = max(_right(shape) for shape in shapes) + aside - MARGIN
    width = max(right + 2 * MARGIN, *(width_of(text) + 2 * MARGIN for text in said))
    placed = [moved(shape, aside, down) for shape in shapes]
    label = f"A {task.name} model as a probabilistic graph: {said[0]}"
    return Scene(width, down + bottom + 34 + 22 * len(said), [*placed, *lines], label)


def factors(anatomy: Anatomy) -> str:
    """What the graph says: how the probability of all is a product.

    >>> factors(Anatomy([], chained="crf"))
    'p(y | x) ∝ ∏ₜ ψ(yₜ₋₁, yₜ, hₜ)'
    >>> factors(Anatomy([], answers="ahead"))
    'p(x) = ∏ₜ p(xₜ₊₁ | hₜ),  hₜ a function of x₁ … xₜ'
    """
    if anatomy.writer:
        return f"p(y | x) = ∏ₜ p(yₜ | {'yₜ₊₁ … y_T' if anatomy.is_turned else 'y₁ … yₜ₋₁'}, x)"
    if anatomy.answers == "ahead":
        return "p(x) = ∏ₜ p(xₜ₊₁ | hₜ),  hₜ a function of x₁ … xₜ"
    if anatomy.answers == "whole":
        return "p(y | x) = p(y | s),  s a function of x₁ … xₜ"
    if anatomy.is_aligned:
        return "p(y | x) = Σₐ ∏ₜ p(aₜ | hₜ),  over all alignments a of y,  hₜ a function of x"
    return "p(y | x) ∝ ∏ₜ ψ(yₜ₋₁, yₜ, hₜ)" if anatomy.chained else "p(y | x) = ∏ₜ p(yₜ | hₜ),  hₜ a function of x"


def _levels(
    graph: Graph, levels: Sequence[UnrolledLevel], below: Sequence[Node], y: float, symbol: str, *, causal: bool = False
) -> list[Node]:
    """Rows of deterministic states over what is below, upwards; the last row."""
    nodes = list(below)
    for number, level in enumerate(levels, 1):
        ways = level.ways or ("",)
        rows: list[list[Node]] = []
        for way in ways:
            y -= ROW
            mark = {"forward": "→", "backward": "←"}.get(way, "") if len(ways) > 1 else ""
            shift = 0.0 if len(ways) == 1 else -SHIFT if way == "forward" else SHIFT
            layer = f", layer {number}" if len(levels) > 1 else ""
            row = [
                graph.function(node.x + shift, y, f"{mark}{symbol}{step}", f"{level.name}{layer}")
                for node, step in zip(below, STEPS, strict=True)
            ]
            rows.append(row)
            if way:
                for one, other in zip(nodes, row, strict=True):
                    graph.edge(one, other)
                graph.chain(row, backward=way == "backward")
            else:  # every step sees all, or those before it
                for place, other in enumerate(row):
                    for one in nodes[: place + 1] if causal else nodes:
                        graph.edge(one, other)
        nodes = rows[-1] if len(rows) == 1 else _joined(graph, rows, symbol, level)
        y = nodes[0].y
    return nodes


def _joined(graph: Graph, rows: Sequence[Sequence[Node]], symbol: str, level: UnrolledLevel) -> list[Node]:
    """Both directions of each step as one."""
    y = rows[-1][0].y - ROW
    found = []
    for step, forward, backward in zip(STEPS, *rows, strict=True):
        node = graph.function(forward.x + SHIFT, y, f"{symbol}{step}", level.joined or "both directions")
        graph.edge(backward, node)
        graph.edge(forward, node)
        found.append(node)
    return found


def _answered(graph: Graph, anatomy: Anatomy, columns: Sequence[float]) -> None:
    """A label for each step, or one for all."""
    given = [graph.random(x, 0, f"x{step}", given=True) for x, step in zip(columns, STEPS, strict=True)]
    states = _levels(graph, anatomy.reader, given, 0, "h")
    y = states[0].y - ROW
    if anatomy.answers == "whole":
        middle = (columns[0] + columns[-1]) / 2
        summary = graph.function(middle, y, "s", anatomy.summary)
        for node in states:
            graph.edge(node, summary)
        graph.edge(summary, graph.random(middle, y - ROW, "y"))
        return
    symbol = "a" if anatomy.is_aligned else "y"
    answers = [graph.random(node.x, y, f"{symbol}{step}") for node, step in zip(states, STEPS, strict=True)]
    for node, answer in zip(states, answers, strict=True):
        graph.edge(node, answer)
    if anatomy.is_aligned:
        written = graph.function((columns[0] + columns[-1]) / 2, y - ROW, "y", "repetitions as one, blanks left out")
        for answer in answers:
            graph.edge(answer, written)
    if anatomy.chained:
        graph.chain(answers, headless=True)


def _ahead(graph: Graph, anatomy: Anatomy, columns: Sequence[float]) -> None:
    """Each state predicts the next step, which is read in its turn."""
    steps = [graph.random(x, 0, f"x{step}") for x, step in zip(columns, STEPS, strict=True)]
    last = graph.random(columns[-1] + PITCH, 0, f"x{AHEAD[-1]}")
    states = _levels(graph, anatomy.reader, steps, 0, "h", causal=True)
    for node, following in zip(states, [*steps[1:], last], strict=True):
        graph.edge(node, following, dashed=following is steps[-1])


def _written(graph: Graph, anatomy: Anatomy, columns: Sequence[float]) -> None:
    """What is read on the left, what is written on the right, and how the one enters the other."""
    if anatomy.is_whole:
        read = [graph.random(columns[0], 0, "x", given=True)]
    else:
        given = [graph.random(x, 0, f"x{step}", given=True) for x, step in zip(columns, STEPS, strict=True)]
        read = _levels(graph, anatomy.reader, given, 0, "h")
    left = (columns[0] if anatomy.is_whole else columns[-1]) + APART
    xs = [left + PITCH * number for number in range(len(STEPS))]
    comes_first = bool(anatomy.attention) and anatomy.wiring in BEFORE_STATES
    lowest = read[0].y - ROW * bool(anatomy.attention) - ROW * comes_first
    states = _states(graph, anatomy, xs, lowest)
    answers = [
        graph.random(x, states[-1][0].y - ROW * (1 + (bool(anatomy.attention) and not comes_first)), f"y{step}")
        for x, step in zip(xs, FROM_END if anatomy.is_turned else STEPS, strict=True)
    ]
    for node, answer in zip(states[-1], answers, strict=True):
        graph.edge(node, answer)
    for number, node in enumerate(states[0]):  # a state reads the last token; without a state, all those before
        first = max(0, number - 1) if anatomy.writer[0].ways else 0
        for answer in answers[first:number]:
            graph.edge(answer, node, dashed=number == len(answers) - 1)
    if anatomy.attention:
        _attended(graph, anatomy, read, states, answers)
    if anatomy.enters or not anatomy.attention:
        for node in states[0] if "every" in anatomy.enters else states[0][:1]:
            graph.edge(read[-1], node)
        for answer in answers if "output" in anatomy.enters else ():
            graph.edge(read[-1], answer)


BEFORE_STATES = ("inside", "conditional")
"""Wirings in which what was seen enters the state of the same step."""


def _attended(
    graph: Graph, anatomy: Anatomy, read: Sequence[Node], states: Sequence[Sequence[Node]], answers: Sequence[Node]
) -> None:
    """What each step sees of what was read: it depends on a state, and a state or the answer depends on it."""
    comes_first, is_between = anatomy.wiring in BEFORE_STATES, anatomy.wiring == "between" and len(states) > 1
    lower = states[0] if comes_first or is_between else states[-1]
    # Beside the ways from a state to its answer, and from an answer to the next state.
    y = lower[0].y + (ROW if comes_first else -ROW / 2 if is_between else -0.75 * ROW)
    shift = -PITCH / 2 if comes_first else 1.3 * RADIUS
    seen = [
        graph.function(node.x + shift, y, f"c{step}", anatomy.attention)
        for node, step in zip(lower, STEPS, strict=True)
    ]
    for number, (context, answer) in enumerate(zip(seen, answers, strict=True)):
        is_last = number == len(seen) - 1
        for node in read:
            graph.edge(node, context, colour="less")
        graph.edge(context, answer)
        if comes_first:
            graph.edge(context, states[0][number])
            if number:
                graph.edge(states[0][number - 1], context, dashed=is_last)
            continue
        graph.edge(lower[number], context)
        if is_between:
            graph.edge(context, states[1][number])
        if anatomy.wiring == "feeding" and not is_last:
            graph.edge(context, states[0][number + 1], dashed=number == len(seen) - 2)


def _states(graph: Graph, anatomy: Anatomy, xs: Sequence[float], y: float) -> list[list[Node]]:
    """The rows of the writer's states, from below."""
    rows: list[list[Node]] = []
    for number, level in enumerate(anatomy.writer, 1):
        y -= ROW
        layer = f", layer {number}" if len(anatomy.writer) > 1 else ""
        row = [graph.function(x, y, f"s{step}", f"{level.name}{layer}") for x, step in zip(xs, STEPS, strict=True)]
        if level.ways:
            graph.chain(row)
        for one, other in zip(rows[-1], row, strict=True) if rows else ():
            graph.edge(one, other)
        rows.append(row)
    return rows


def _bottom(shape: Any) -> float:
    if isinstance(shape, Path):
        return max(y for _, y in shape.points)
    return float(shape.y + (shape.radius if isinstance(shape, Circle) else 0))


def _left(shape: Any) -> float:
    if isinstance(shape, Path):
        return min(x for x, _ in shape.points)
    return float(shape.x - (shape.radius if isinstance(shape, Circle) else 0))


def _right(shape: Any) -> float:
    if isinstance(shape, Path):
        return max(x for x, _ in shape.points)
    return float(shape.x + (shape.radius if isinstance(shape, Circle) else 0))
