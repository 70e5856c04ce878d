"""Series cut into windows from whose last steps forecasts start, for training."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

COUNT = 32
"""Origins of a window."""


Integers = NDArray[np.int64]


class Window(NamedTuple):
    """Parts of rows, the place in each of the first step from which a forecast starts, and how many do; (N,) each."""

    row: Integers
    start: Integers
    end: Integers
    first: Integers
    origins: Integers


@final
class Origins:
    """All windows of rows of some lengths, numbered from 0, in which every origin of a row stands once.

    An origin is the last step that a forecast knows. Those of a row are its steps from the `earliest` on (of a row
    that is not that long, from its first on) that have a step after them. They are dealt out evenly to windows of at
    most `count`. A window also has `lead` steps before its first origin, and `horizon` steps after its last; or less
    at either end of its row.

    >>> windows = Origins(np.array([3, 10]), count=4, lead=3, horizon=2, earliest=2)
    >>> np.stack(windows.at(np.arange(len(windows))), axis=1).tolist()
    [[0, 0, 3, 0, 2], [1, 0, 8, 2, 4], [1, 3, 10, 3, 3]]
    """

    def __init__(self, rows: Integers, *, count: int, lead: int, horizon: int, earliest: int) -> None:
        self._rows, self._count, self._lead, self._horizon = rows, count, lead, horizon
        self._earliest = np.where(rows - 1 > earliest, earliest, 0)
        left = np.maximum(rows - 1 - self._earliest, 0)
        self._counts = -(-left // count)
        self._each = -(-left // np.maximum(self._counts, 1))  # of all windows of a row but its last
        self._ends = np.cumsum(self._counts)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def at(self, numbers: Integers) -> Window:
        """Several windows at once."""
        row = np.searchsorted(self._ends, numbers, side="right")
        place = numbers - (self._ends[row] - self._counts[row])
        first = self._earliest[row] + place * self._each[row]
        start = np.maximum(0, first - self._lead)
        count = np.minimum(self._each[row], self._rows[row] - 1 - first)
        end = np.minimum(first + self._each[row] + self._horizon, self._rows[row])
        return Window(row, start, end, first - start, count)

    @property
    def counts(self) -> Integers:
        """How many origins every window has."""
        left = np.maximum(self._rows - 1 - self._earliest, 0)
        found = np.repeat(self._each, self._counts)
        has_some = self._counts > 0
        found[self._ends[has_some] - 1] = left[has_some] - (self._counts[has_some] - 1) * self._each[has_some]
        return found

    def drawn(self, most: int | None, *, seed: int, epoch: int) -> Integers | None:
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
