"""Items sorted by length: whether long ones are harder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

BUCKETS = 6


class Bucket(NamedTuple):
    """The items whose length lies from low to high, both included.

    >>> Bucket(low=1, high=5, items=np.array([0, 2])).label
    '1-5'
    """

    low: int
    high: int
    items: NDArray[np.int64]  # their numbers

    @property
    def label(self) -> str:
        """The range, as a table shows it."""
        return f"{self.low}-{self.high}" if self.low < self.high else str(self.low)


def buckets(lengths: Sequence[int] | NDArray[np.int64], *, ends: Sequence[int] | None = None) -> list[Bucket]:
    """The items in buckets of about as many each, at most six, the shortest first; or in buckets that end as given.

    A bucket without items is left out; what is longer than the last end makes a bucket of its own.

    >>> [(bucket.label, bucket.items.tolist()) for bucket in buckets([7, 3, 9, 3], ends=[5, 8])]
    [('3-5', [1, 3]), ('6-8', [0]), ('9', [2])]
    """
    every = np.asarray(lengths, np.int64)
    if not every.size:
        raise DataError("length buckets need at least one item, but there are none.")
    if ends is None:
        shares = np.arange(1, BUCKETS + 1) / BUCKETS
        last = np.unique(np.quantile(every, shares, method="inverted_cdf"))
    else:
        if list(ends) != sorted({*ends}):
            raise DataError(f"the upper ends of buckets must increase, but are {list(ends)}.")
        last = np.asarray(ends, np.int64)
    if not last.size or last[-1] < every.max():
        last = np.append(last, every.max())
    place = np.searchsorted(last, every)
    first = np.concatenate([[every.min()], last[:-1] + 1])
    return [Bucket(int(first[k]), int(last[k]), np.flatnonzero(place == k)) for k in np.unique(place)]
