"""Which examples go together: rows of like length, under a budget of elements, in an order drawn from the seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

POOL = 64
"""So many batches' worth of rows are sorted by length together: little padding, and still a random order."""


@final
class Batches(Sequence["NDArray[np.int64]"]):
    """The batches of one epoch as row indices: a pure function of lengths, budget, seed and epoch.

        rows × longest row ≤ tokens          (one row longer than that is a batch of its own)

    or, where `rows` is given, so many rows; a row without elements counts as one. Rows of like length go together, or
    where `order` is given, rows of like number in it: pictures have two sizes that are padded. `of` are the rows that
    the epoch has; None: all.

    >>> batches = Batches(np.array([5, 1, 5, 1]), tokens=10, seed=1, epoch=0)
    >>> sorted(sorted(batch.tolist()) for batch in batches)
    [[0, 2], [1, 3]]
    """

    def __init__(
        self,
        lengths: NDArray[np.int64],
        *,
        tokens: int | None = None,
        rows: int | None = None,
        seed: int,
        epoch: int,
        order: NDArray[np.int64] | None = None,
        of: NDArray[np.int64] | None = None,
    ) -> None:
        assert (tokens is None) != (rows is None), "a batch is bounded by its elements or by its rows"
        self._lengths = lengths
        draw = np.random.default_rng([seed, epoch])
        by = lengths if order is None else order
        drawn = draw.permutation(np.arange(len(lengths)) if of is None else of)
        average = max(1.0, float(lengths.mean())) if len(lengths) else 1.0
        pool = POOL * (rows if rows is not None else max(1, int((tokens or 1) / average)))
        self._order = np.empty_like(drawn)
        starts: list[int] = []
        for first in range(0, len(drawn), pool):
            part = drawn[first : first + pool]
            part = part[np.argsort(by[part], kind="stable")]
            self._order[first : first + len(part)] = part
            cuts = range(0, len(part), rows) if rows is not None else _cuts(lengths[part], tokens or 1)
            starts.extend(first + cut for cut in cuts)
        edges = np.array([*starts, len(drawn)], np.int64)
        self._bounds = draw.permutation(np.stack([edges[:-1], edges[1:]], axis=1), axis=0)

    def __len__(self) -> int:
        return len(self._bounds)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        start, end = self._bounds[number]
        return self._order[start:end]

    def shape(self, number: int) -> tuple[int, int]:
        """How many rows a batch has, and how long its longest is.

        >>> Batches(np.array([5, 2]), rows=2, seed=1, epoch=0).shape(0)
        (2, 5)
        """
        start, end = self._bounds[number]
        return int(end - start), int(self._lengths[self._order[start:end]].max())


def in_order_of_length(lengths: NDArray[np.int64], *, tokens: int) -> list[NDArray[np.int64]]:
    """All rows, each once, in batches of like length: for prediction, where the order is put right afterwards.

    >>> [batch.tolist() for batch in in_order_of_length(np.array([2, 9, 3]), tokens=6)]
    [[0, 2], [1]]
    """
    order = np.argsort(lengths, kind="stable")
    cuts = _cuts(lengths[order], tokens)
    return np.split(order, cuts[1:]) if len(order) else []


def _cuts(lengths: NDArray[np.int64], budget: int) -> list[int]:
    """Where batches begin, so that each holds as many rows as the budget allows."""
    cuts, start = [], 0
    while start < len(lengths):
        cuts.append(start)
        # The cost of taking the first n rows from here, n × the longest of them, grows with n, and is at least n × the
        # first, which says how far to look.
        most = budget // max(int(lengths[start]), 1) + 1
        ahead = np.maximum.accumulate(np.maximum(lengths[start : start + most], 1))
        costs = ahead * np.arange(1, len(ahead) + 1)
        start += max(1, int(np.searchsorted(costs, budget, side="right")))
    return cuts
