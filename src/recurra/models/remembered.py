"""Stories as arrays, and what is said of one; torch is not needed for that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Rows


class StoryOutput(NamedTuple):
    """What was found for one story."""

    probabilities: NDArray[np.float64]  # (L,) of the answers
    sentences: int  # that were read
    attention: NDArray[np.float64] | None  # (K, N): what each hop looked at, the oldest sentence first


def remembered(rows: Rows, memories: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The last `memories` sentences of each story, the newest first: words (B, N, J), widths (B, N) and counts (B,)."""
    kept = [row["widths"][::-1][:memories] for row in rows]
    most, widest = max(map(len, kept), default=0), max((int(each.max()) for each in kept if len(each)), default=0)
    words = np.zeros((len(kept), most, widest), np.int64)
    widths = np.zeros((len(kept), most), np.int64)
    for number, (row, newest) in enumerate(zip(rows, kept, strict=True)):
        widths[number, : len(newest)] = newest
        ends = len(row["words"]) - newest.cumsum() + newest
        for place, (end, width) in enumerate(zip(ends.tolist(), newest.tolist(), strict=True)):
            words[number, place, :width] = row["words"][end - width : end]
    return words, widths, np.array([len(each) for each in kept], np.int64)
