"""The distinct words of some rows, spelt out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.data.store import Flat, Rows


class SpeltOut(NamedTuple):
    """N distinct words, and which of them stands where."""

    characters: NDArray[np.int64]  # (N, W)
    widths: NDArray[np.int64]  # (N,)
    places: NDArray[Any]  # (B, T)
    words: NDArray[np.int64]  # (N,): the number of each word


def spellings_of(rows: Rows) -> SpeltOut:
    """Each distinct word of the rows once, in the order in which they are first met.

    >>> met = {"characters": np.array([7, 8, 7, 7, 8]), "widths": np.array([2, 1, 2]), "words": np.array([4, 1, 4])}
    >>> other = {"characters": np.array([9]), "widths": np.array([1]), "words": np.array([5])}
    >>> found = spellings_of(Rows([met, other]))
    >>> found.characters.tolist(), found.places.tolist(), found.words.tolist()
    ([[7, 8], [7, 0], [9, 0]], [[0, 1, 0], [2, 0, 0]], [4, 1, 5])
    """
    characters, widths = rows.flat("characters").values, rows.flat("widths")
    text, size = characters.tobytes(), characters.itemsize
    ends = (np.cumsum(widths.values, dtype=np.int64) * size).tolist()
    known: dict[tuple[bytes, int], int] = {}
    pieces = zip(map(text.__getitem__, map(slice, [0, *ends], ends)), rows.flat("words").values.tolist(), strict=True)
    places = [known.setdefault(piece, len(known)) for piece in pieces]
    words = known or [(b"", 0)]  # a batch of empty rows
    lengths = np.array([len(word) // size for word, _ in words], np.int64)
    spellings = Flat(np.frombuffer(b"".join(word for word, _ in words), characters.dtype), lengths).padded(np.int64)
    index = Flat(np.array(places, np.int64), widths.lengths).padded(np.int64)
    return SpeltOut(spellings, lengths, index, np.array([number for _, number in words], np.int64))
