"""Long rows cut into windows that overlap, for training: the batch's memory is bounded, and every step has a past."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Window(NamedTuple):
    """Parts of rows, (N,) each."""

    row: Integers
    start: Integers
    end: Integers


@final
class Windows:
    """All windows of rows of some lengths, numbered from 0.

    A window begins every `size − overlap` steps, and the last one of a row ends with the row; a row that is no longer
    than `size` is a window by itself.

    >>> windows = Windows(np.array([3, 10]), size=6, overlap=3)
    >>> np.stack(windows.at(np.arange(len(windows))), axis=1).tolist()
    [[0, 0, 3], [1, 0, 6], [1, 3, 9], [1, 4, 10]]
    """

    def __init__(self, rows: Integers, *, size: int, overlap: int) -> None:
        assert 0 <= overlap < size
        self._size, self._stride = size, size - overlap
        self._rows = rows
        self._counts = 1 + -(-np.maximum(rows - size, 0) // self._stride)
        self._ends = np.cumsum(self._counts)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def at(self, numbers: Integers) -> Window:
        """Several windows at once."""
        row = np.searchsorted(self._ends, numbers, side="right")
        place = numbers - (self._ends[row] - self._counts[row])
        start = np.minimum(place * self._stride, np.maximum(0, self._rows[row] - self._size))
        return Window(row, start, np.minimum(start + self._size, self._rows[row]))

    @property
    def lengths(self) -> Integers:
        """The length of every window."""
        return np.repeat(np.minimum(self._rows, self._size), self._counts)
