"""Row values: what the equations of a step do to one row of a batch.

A row value is a row of numbers. It is a leaf (inputs, a state, a weight that all rows share), a constant, a product
with a weight, a function of other values number by number, a sum along stretches of another value, or a *move*: the
numbers of other values in another order. Slices, joins, permutations and expansions are all moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

MOST_PIECES = 64
"""Into how many pieces, each with statements of its own in C, one operation may take a row apart."""


class NoPlan(Exception):
    """The cell cannot be planned; the message is the reason, in words."""


@dataclass(frozen=True, eq=False)
class Value:
    """A row of `width` numbers.

    op        what makes it: 'leaf', 'constant', 'product', 'move', one of STRETCHES, or a function of each number
    args      the values it is made of (a float for a constant); an argument of width 1 serves every number
    detail    leaf: its name, or the weight; product: the weight; move: where each number comes from; STRETCHES: how
              many numbers each stretch of the argument has
    """

    op: str
    args: tuple[Value | float, ...]
    width: int
    detail: Any = None

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(arg for arg in self.args if isinstance(arg, Value))


STRETCHES = ("sum", "largest", "place of the largest", "running sum")
"""Functions of stretches of a value; the running sum has a number for each number, the others one for each stretch."""


@dataclass(frozen=True, eq=False)
class Weight:
    """A tensor that no row owns: a parameter, a weight out of `fixed`, or something computed from these alone."""

    node: fx.Node
    shape: tuple[int, ...]


class Run(NamedTuple):
    """out[start + step · j] = source[offset + stride · j] for j < length."""

    start: int
    step: int
    length: int
    source: int
    offset: int
    stride: int


class Moves(NamedTuple):
    """Where each number of a move comes from: of which source, and from which place in it; and the same as runs."""

    sources: Tensor
    places: Tensor
    runs: tuple[Run, ...]


def constant(number: float, width: int = 1) -> Value:
    return Value("constant", (float(number),), width)


def moved(parts: Sequence[Value], sources: Tensor, places: Tensor) -> Value:
    """The numbers at those places of those parts as one value; moves of moves become one move.

    >>> x = Value("leaf", (), 4, "x")
    >>> moved([x], torch.zeros(2).long(), torch.tensor([3, 1])).detail.runs
    (Run(start=0, step=1, length=2, source=0, offset=3, stride=-2),)
    >>> moved([x], torch.zeros(4).long(), torch.arange(4)) is x
    True
    """
    found: dict[Value | float, int] = {}
    roots: list[Value] = []

    def number_of(value: Value) -> int:
        is_constant = value.op == "constant"
        key = value.args[0] if is_constant else value
        if key not in found:
            found[key] = len(roots)
            roots.append(constant(value.args[0]) if is_constant else value)  # type: ignore[arg-type]
        return found[key]

    of, at = torch.empty_like(sources), torch.empty_like(places)
    for number in sources.unique().tolist():
        part, here = parts[number], sources == number
        if part.op == "move":
            within = part.detail.sources[places[here]]
            numbers = torch.zeros(len(part.values), dtype=torch.int64)
            for each in within.unique().tolist():
                numbers[each] = number_of(part.values[each])
            of[here], at[here] = numbers[within], part.detail.places[places[here]]
        else:
            of[here] = number_of(part)
            at[here] = 0 if part.op == "constant" else places[here]
    width = len(of)
    if len(roots) == 1:
        [root] = roots
        if root.op == "constant":
            return constant(root.args[0], width)  # type: ignore[arg-type]
        if root.width == width and torch.equal(at, torch.arange(width)):
            return root
    return Value("move", tuple(roots), width, Moves(of, at, runs_of(of, at)))


def runs_of(sources: Tensor, places: Tensor) -> tuple[Run, ...]:
    """As few runs as can be found quickly.

    >>> first, second = runs_of(torch.tensor([0, 1] * 10), torch.arange(20) // 2)  # two values, number by number
    >>> second
    Run(start=1, step=2, length=10, source=1, offset=0, stride=1)
    """
    runs = side_by_side(sources, places)
    width = len(sources)
    if len(runs) > 8:
        for period in range(2, min(len(runs), width // 2 + 1)):
            if width % period == 0 and (found := interleaved(sources, places, period)) is not None:
                return found
    if len(runs) > MOST_PIECES:
        raise NoPlan(f"its step splits a row into {len(runs)} pieces, but a row pass supports at most {MOST_PIECES}")
    return tuple(runs)


def side_by_side(sources: Tensor, places: Tensor) -> list[Run]:
    of, at = sources.tolist(), places.tolist()
    runs, start, width = [], 0, len(of)
    while start < width:
        end = start + 1
        stride = at[end] - at[start] if end < width and of[end] == of[start] else 1
        while end < width and of[end] == of[start] and at[end] - at[end - 1] == stride:
            end += 1
        # One number whose neighbour belongs to what follows: x0, y0, y1, y2, … is x0 and a run.
        if end == start + 2 and end < width and of[end] == of[end - 1] and stride != 1:
            end -= 1
        runs.append(Run(start, 1, end - start, of[start], at[start], stride if end > start + 1 else 1))
        start = end
    return runs


def interleaved(sources: Tensor, places: Tensor, period: int) -> tuple[Run, ...] | None:
    """One run for each remainder of the place by the period, if that is all there is."""
    of, at = sources.view(-1, period), places.view(-1, period)
    strides = at[1] - at[0]
    if not torch.equal(of, of[:1].expand_as(of)) or not torch.equal(at[1:] - at[:-1], strides.expand(len(at) - 1, -1)):
        return None
    columns = zip(of[0].tolist(), at[0].tolist(), strides.tolist(), strict=True)
    return tuple(Run(k, period, len(of), source, offset, stride) for k, (source, offset, stride) in enumerate(columns))


def picked(value: Value, places: Tensor) -> Value:
    """Some numbers of one value; a single place that serves all of them stays a single number."""
    return moved([value], torch.zeros_like(places), places)


def reduced(op: str, value: Value, places: Tensor) -> Value:
    """Σ or max over each row of `places`, (outer, n): stretch by stretch, or by n values of `outer` numbers."""
    outer, n = places.shape
    if n == 1:
        return picked(value, places[:, 0])
    is_dense = bool((places[:, 1:] - places[:, :-1] == 1).all())
    is_row_by_row = (outer <= 4 * n) if is_dense else (4 * outer < n)
    if op == "place of the largest" or (is_row_by_row and outer <= MOST_PIECES):
        if outer > MOST_PIECES:
            raise NoPlan(f"its step takes {outer} maxima with their places of a row, a row pass at most {MOST_PIECES}")
        return Value(op, (picked(value, places.flatten()),), outer, n)
    if n > MOST_PIECES:
        raise NoPlan(f"its step adds up {outer} times {n} numbers of a row, and {MOST_PIECES} is the most that can be")
    total = picked(value, places[:, 0])
    for column in range(1, n):
        pair = (total, picked(value, places[:, column]))
        total = Value("add" if op == "sum" else "maximum", pair, outer)
    return total
