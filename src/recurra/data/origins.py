"""Series cut into windows from whose last steps forecasts start, for training."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray


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
    def lengths(self) -> NDArray[np.int64]:
        """The length of every window."""
        firsts = np.concatenate(
            [early + np.arange(n) * self._count for early, n in zip(self._earliest, self._counts, strict=True)]
            or [np.zeros(0, np.int64)]
        )
        ends = np.minimum(firsts + self._count + self._horizon, np.repeat(self._rows, self._counts))
        found: NDArray[np.int64] = ends - np.maximum(firsts - self._lead, 0)
        return found
