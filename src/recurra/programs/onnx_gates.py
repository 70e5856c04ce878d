"""Which equations of ONNX's RNN, GRU and LSTM give the same states as a cell: tried with random inputs.

The matrices of a cell are blocks of H rows, one for each gate, in an order that is not known; nor is it known which
function comes after each, or whether a gate is what another leaves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

CLOSE = 1e-6
"""How far the states of a scan and of an operator may be apart, beside the largest number, or 1."""


def _sigmoid(x: Array) -> Array:
    found: Array = np.tanh(x / 2) / 2 + 0.5
    return found


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "Tanh": np.tanh,
    "Sigmoid": _sigmoid,
    "Relu": lambda x: np.maximum(x, 0),
    "Affine": lambda x: x,
}
"""What ONNX computes under these names; Affine is a x + b with a = 1 and b = 0."""


class Blocks(NamedTuple):
    """The matrices by which the body of a scan multiplies, below each other, and what it adds to their products."""

    R: Array  # (G·H, H)
    b: Array  # (G·H,)
    vectors: tuple[Array, ...]  # of H numbers, with which something is multiplied


class Example(NamedTuple):
    """Random inputs of a body, and the states that it made of them."""

    x: Array
    states: tuple[Array, ...]
    after: tuple[Array, ...]


class Chosen(NamedTuple):
    """How the blocks of a cell are those of an operator."""

    operator: str
    order: tuple[int | None, ...]  # the block of each gate in the order of ONNX; None: zeros
    signs: tuple[int, ...]  # of the gates
    activations: tuple[str, ...]
    peepholes: tuple[int | None, ...] = ()  # the vector of each of i, o, f
    settings: tuple[tuple[str, int], ...] = ()


def fitting(shown: Example, blocks: Blocks, H: int) -> Iterator[Chosen]:
    """Every operator that makes the same states."""
    gates, rest = divmod(len(blocks.R), H)
    tries = {(1, 1): rnn, (3, 1): gru, (3, 2): coupled, (4, 2): lstm}.get((gates, len(shown.states)))
    if tries is not None and not rest:
        x = np.split(shown.x, gates, axis=1)
        yield from tries(shown, x, Recurrence(blocks, shown.states[0], gates))


class Recurrence:
    """R h + b of each block, for any h."""

    def __init__(self, blocks: Blocks, h: Array, gates: int) -> None:
        self.R, self.b = np.split(double(blocks.R), gates), np.split(double(blocks.b), gates)
        self.vectors: list[Array | None] = [None, *map(double, blocks.vectors)]
        self.here = [self.of(number, h) for number in range(gates)]

    def of(self, number: int, h: Array) -> Array:
        found: Array = h @ self.R[number].T + self.b[number]
        return found

    def places(self, count: int) -> Iterator[tuple[int, ...]]:
        """Which vector, or 0 for none, may stand at each of so many peepholes."""
        return itertools.product(range(len(self.vectors)), repeat=count)

    def peep(self, a: Array, place: int, c: Array) -> Array:
        vector = self.vectors[place]
        return a if vector is None else a + vector * c


def close(one: Array, other: Array) -> bool:
    scale = max(1.0, float(np.abs(other).max(initial=0.0)))
    return bool(np.abs(one - other).max(initial=0.0) <= CLOSE * scale)


def rnn(shown: Example, x: Sequence[Array], recurrence: Recurrence) -> Iterator[Chosen]:
    """h' = φ(W x + R h + b)"""
    for name, phi in ACTIVATIONS.items():
        if close(phi(x[0] + recurrence.here[0]), shown.after[0]):
            yield Chosen("RNN", (0,), (1,), (name,))


def gru(shown: Example, x: Sequence[Array], recurrence: Recurrence) -> Iterator[Chosen]:
    """h' = (1 − z) ∘ ĥ + z ∘ h, with r before or after the product; a z that takes is 1 − one that keeps."""
    [h] = shown.states
    for z, r, n in itertools.permutations(range(3)):
        reset = _sigmoid(x[r] + recurrence.here[r])
        for after in (0, 1):
            a = x[n] + (reset * recurrence.here[n] if after else recurrence.of(n, reset * h))
            for (name, phi), sign in itertools.product(ACTIVATIONS.items(), (-1, 1)):
                keep = _sigmoid(sign * (x[z] + recurrence.here[z]))
                if close((1 - keep) * phi(a) + keep * h, shown.after[0]):
                    settings = (("linear_before_reset", 1),) if after else ()
                    yield Chosen("GRU", (z, r, n), (sign, 1, 1), ("Sigmoid", name), (), settings)


def lstm(shown: Example, x: Sequence[Array], recurrence: Recurrence) -> Iterator[Chosen]:
    """c' = f ∘ c + i ∘ ĉ and h' = o ∘ φ(c'), where i and f may see c, and o c'."""
    c = shown.states[1]
    a = [one + other for one, other in zip(x, recurrence.here, strict=True)]
    for i, f, n in itertools.permutations(range(4), 3):
        for (name, phi), (p_i, p_f) in itertools.product(ACTIVATIONS.items(), recurrence.places(2)):
            kept = _sigmoid(recurrence.peep(a[f], p_f, c)) * c
            if close(kept + _sigmoid(recurrence.peep(a[i], p_i, c)) * phi(a[n]), shown.after[1]):
                [o] = {0, 1, 2, 3} - {i, f, n}
                for p_o, last in outputs(shown, a[o], recurrence):
                    yield Chosen("LSTM", (i, o, f, n), (1, 1, 1, 1), ("Sigmoid", name, last), (p_i, p_o, p_f))


def coupled(shown: Example, x: Sequence[Array], recurrence: Recurrence) -> Iterator[Chosen]:
    """c' = f ∘ c + i ∘ ĉ with f = 1 − i: where the cell computes f, its i is that of −a."""
    c = shown.states[1]
    a = [one + other for one, other in zip(x, recurrence.here, strict=True)]
    for i, n in itertools.permutations(range(3), 2):
        for (name, phi), sign, [p_i] in itertools.product(ACTIVATIONS.items(), (-1, 1), recurrence.places(1)):
            taken = _sigmoid(sign * recurrence.peep(a[i], p_i, c))
            if close((1 - taken) * c + taken * phi(a[n]), shown.after[1]):
                [o] = {0, 1, 2} - {i, n}
                for p_o, last in outputs(shown, a[o], recurrence):
                    signs, names = (sign, 1, 1, 1), ("Sigmoid", name, last)
                    yield Chosen("LSTM", (i, o, None, n), signs, names, (p_i, p_o, 0), (("input_forget", 1),))


def outputs(shown: Example, a: Array, recurrence: Recurrence) -> Iterator[tuple[int, str]]:
    """The peephole of o and the φ with which h' = o ∘ φ(c')."""
    c = shown.after[1]
    for (name, phi), [place] in itertools.product(ACTIVATIONS.items(), recurrence.places(1)):
        if close(_sigmoid(recurrence.peep(a, place, c)) * phi(c), shown.after[0]):
            yield place, name


def double(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == np.float32 else array
