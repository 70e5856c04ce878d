"""What brackets leave to be chosen, in NumPy: the same as `BracketTable`, whose equations these are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recurra.search.brackets import Brackets


def barred(
    brackets: Brackets, ends: Sequence[int], vocabulary: int, past: NDArray[np.int64], limits: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(N, V): true for what may not follow `past` (N, t) in at most `limits` (N,) tokens.

    >>> found = barred(Brackets(((3, 4), (5, 6))), [0], 8, np.array([[3, 5, 7]]), np.array([9]))
    >>> np.flatnonzero(~found[0]).tolist()            # 6 closes the 5; 1, 2 and 7 are no brackets
    [1, 2, 3, 5, 6, 7]
    """
    known = [pair for pair in brackets.pairs if max(pair) < vocabulary]
    closes = np.full(vocabulary, -1)
    closes[[pair[0] for pair in known]] = [pair[1] for pair in known]
    is_open, is_close, is_end = closes >= 0, np.zeros(vocabulary, bool), np.zeros(vocabulary, bool)
    is_close[[pair[1] for pair in known]] = True
    is_end[[end for end in ends if end < vocabulary]] = True
    step = past.shape[1]
    past = np.concatenate([np.zeros((len(past), 1), np.int64), past], axis=1)  # a place 0, which is no bracket
    places = np.arange(step + 1)
    opens = is_open[past] & (places > 0)
    sums = np.cumsum(opens.astype(np.int64) - (is_close[past] & (places > 0)), axis=1)
    depths = sums - np.minimum(np.minimum.accumulate(sums, axis=1), 0)  # what falls below 0 is lifted to it
    needed = depths[:, -1:]
    top = ((opens & (depths == needed)) * places).max(axis=1, keepdims=True)
    wanted = np.where(needed == 0, -1, closes[np.take_along_axis(past, top, 1)])
    room = (limits - step)[:, None]
    is_other = ~(is_open | is_close | is_end)
    never = is_close & (np.arange(vocabulary) != wanted)
    never = never | (is_open & (room < needed + 3)) | (is_other & (room < needed + 2)) | (is_end & (needed > 0))
    if brackets.tree:
        never = never | ((~is_end & (needed == 0)) if step else ~is_open)
    return never
