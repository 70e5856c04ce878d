"""Rows that occur more than once, in a file or in two: sixteen bytes a row are kept, however long it is."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.data.checking.columns import SHOWN
from recurra.data.formats.reader import Value

Pair: TypeAlias = tuple[int, int]


class Repeated(NamedTuple):
    """Rows equal to an earlier one."""

    rows: int
    share: float
    pairs: list[Pair]  # the first few: the line, and the line that it repeats


class RowSurvey:
    """Sees the rows of a file and remembers a hash and a line of each.

    >>> survey = RowSurvey()
    >>> for line, text in enumerate(["a", "b", "a", "a"], 1):
    ...     survey.see({"text": text}, line)
    >>> survey.repeated()
    Repeated(rows=2, share=0.5, pairs=[(3, 1), (4, 1)])
    """

    def __init__(self) -> None:
        self.hashes = array("Q")
        self.lines = array("Q")

    def see(self, values: Mapping[str, Value], line: int) -> None:
        content = repr(sorted(values.items(), key=lambda item: item[0])).encode()
        self.hashes.append(int.from_bytes(blake2b(content, digest_size=8).digest(), "little"))
        self.lines.append(line)

    def array(self) -> NDArray[np.uint64]:
        """The hashes of the rows, in order."""
        return _array(self.hashes)

    def repeated(self) -> Repeated:
        """Rows that stand earlier in the same file."""
        distinct, first, which = np.unique(_array(self.hashes), return_index=True, return_inverse=True)
        again = np.flatnonzero(first[which] != np.arange(len(which)))
        lines = _array(self.lines)
        pairs = [(int(lines[row]), int(lines[first[which[row]]])) for row in again[:SHOWN]]
        return Repeated(len(which) - len(distinct), _share(len(again), len(which)), pairs)

    def repeated_in(self, other: RowSurvey) -> Repeated:
        """Rows that stand in the other file too."""
        distinct, first = np.unique(_array(other.hashes), return_index=True)
        mine = _array(self.hashes)
        if not len(distinct):
            return Repeated(0, 0.0, [])
        nearest = np.minimum(np.searchsorted(distinct, mine), len(distinct) - 1)
        again = np.flatnonzero(distinct[nearest] == mine)
        pairs = [(self.lines[row], other.lines[first[nearest[row]]]) for row in again[:SHOWN]]
        return Repeated(len(again), _share(len(again), len(mine)), pairs)


def _array(numbers: array[int]) -> NDArray[np.uint64]:
    return np.frombuffer(numbers, dtype=np.uint64) if len(numbers) else np.empty(0, dtype=np.uint64)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
