"""Series cut into windows from whose last steps forecasts start, for training."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

COUNT = 32
"""Origins of a window."""


class Window(NamedTuple):
    """A part of a row, and the place in it of the first step from which a forecast starts."""

    row: int
    start: int
    end: int
    first: int


@final
class Origins:
    """All windows of rows of some lengths, numbered from 0, in which every origin of a row stands once.

    An origin is the last step that a forecast knows. Those of a row are its steps from the `earliest` on (of a row
    that is not that long, from its first on) that have a step after them. A window has `count` of them, `lead` steps
    before the first, and `horizon` steps after the last; or less at either end of its row.

    >>> windows = Origins(np.array([3, 10]), count=4, lead=3, horizon=2, earliest=2)
    >>> [tuple(windows[number]) for number in range(len(windows))]
    [(0, 0, 3, 0), (1, 0, 8, 2), (1, 3, 10, 3)]
    """

    def __init__(self, rows: NDArray[np.int64], *, count: int, lead: int, horizon: int, earliest: int) -> None:
        self._rows, self._count, self._lead, self._horizon = rows, count, lead, horizon
        self._earliest = np.where(rows - 1 > earliest, earliest, 0)
        self._counts = -(-np.maximum(rows - 1 - self._earliest, 0) // count)
        self._ends = np.cumsum(self._counts)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, number: int) -> Window:
        row = int(np.searchsorted(self._ends, number, side="right"))
        place = number - int(self._ends[row] - self._counts[row])
        first = int(self._earliest[row]) + place * self._count
        start = max(0, first - self._lead)
        return Window(row, start, min(first + self._count + self._horizon, int(self._rows[row])), first - start)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many origins every window has."""
        left = np.maximum(self._rows - 1 - self._earliest, 0)
        found: NDArray[np.int64] = np.full(len(self), self._count, np.int64)
        has_some = self._counts > 0
        found[self._ends[has_some] - 1] = left[has_some] - (self._counts[has_some] - 1) * self._count
        return found

    def drawn(self, most: int | None, *, seed: int, epoch: int) -> NDArray[np.int64] | None:
        """The windows of an epoch, which has about so many origins at most; None: all.

        >>> windows = Origins(np.array([100]), count=10, lead=5, horizon=2, earliest=0)
        >>> len(windows.drawn(30, seed=1, epoch=0)), windows.drawn(200, seed=1, epoch=0)
        (3, None)
        """
        wanted = len(self) if most is None else max(1, most // self._count)
        if wanted >= len(self):
            return None
        # Not the numbers by which batches are drawn: the same draws would order what they choose.
        return np.random.default_rng([seed, epoch, wanted]).choice(len(self), wanted, replace=False)
