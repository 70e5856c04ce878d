"""A running text in pieces: parallel streams, cut into chunks that follow on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

SHORTEST = 5
"""Steps that a chunk of drawn length has at least."""

DEVIATION = 5.0
HALVED = 0.05
"""How chunk lengths vary (Merity et al. 2017): normally around the usual length or, with this chance, its half."""


class Chunk(NamedTuple):
    """Steps `first` up to `last` of every stream. Stream b begins at token offset + b · length of the text."""

    epoch: int
    number: int  # in its epoch, from 0
    offset: int
    streams: int
    length: int
    first: int
    last: int

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where in the text each stream's steps begin."""
        return self.offset + self.first + self.length * np.arange(self.streams, dtype=np.int64)


@final
class Chunks(Sequence["NDArray[np.int64]"]):
    """The chunks of one epoch, each the fields of a `Chunk`: a pure function of its arguments.

        streams   at most so many, and each at least `steps` long
        offset    drawn for the epoch, below `steps`, so that a chunk's borders are elsewhere in each epoch
        length    (tokens − 1 − offset) / streams, rounded down: behind a stream's last step there is one more token

    >>> chunks = Chunks(21, streams=2, steps=4, vary=False, seed=1, epoch=0)
    >>> [Chunk(*chunk.tolist())[4:] for chunk in chunks]
    [(10, 0, 4), (10, 4, 8), (10, 8, 10)]
    """

    def __init__(self, tokens: int, *, streams: int, steps: int, vary: bool, seed: int, epoch: int) -> None:
        assert tokens >= 2, "a text of one token has nothing to predict"
        draw = np.random.default_rng([seed, epoch])
        self.epoch = epoch
        self.streams = max(1, min(streams, (tokens - 1) // steps))
        # A short text loses little to the offset.
        self.offset = int(draw.integers(min(steps, (tokens - 1) // self.streams // 8 + 1)))
        self.length = (tokens - 1 - self.offset) // self.streams
        self._edges = _edges(self.length, steps, draw) if vary else _even_edges(self.length, steps)

    def __len__(self) -> int:
        return len(self._edges) - 1

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        first, last = self._edges[number], self._edges[number + 1]
        return np.array([self.epoch, number, self.offset, self.streams, self.length, first, last], np.int64)

    def shape(self, number: int) -> tuple[int, int]:
        """How many rows a chunk has, and how long they are."""
        return self.streams, int(self._edges[number + 1] - self._edges[number])


def _even_edges(length: int, steps: int) -> NDArray[np.int64]:
    return np.append(np.arange(0, length, steps, dtype=np.int64), length)


def _edges(length: int, steps: int, draw: np.random.Generator) -> NDArray[np.int64]:
    edges = np.zeros(1, np.int64)
    while edges[-1] < length:
        count = int(length - edges[-1]) // steps + 16
        usual = np.where(draw.random(count) < HALVED, steps / 2, float(steps))
        drawn = np.maximum(min(SHORTEST, steps), draw.normal(usual, DEVIATION).astype(np.int64))
        edges = np.concatenate([edges, edges[-1] + np.cumsum(drawn)])
    return np.append(edges[edges < length], length)
