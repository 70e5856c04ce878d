"""Words read by their characters: a function of its own, called for words of like length together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.spellings import SpeltOut
from recurra.programs.inputs import Input, Recordable, Running, called

SPELL = "spell"

WIDEST = (2, 3, 4, 5, 6, 8, 10, 13)
"""Words up to so many characters are read together: a few long ones would make all others as long as themselves."""

FEW = 16
"""So many words are read together, whatever their lengths."""


def spelling_function(spelling: Any, characters: int) -> Recordable:
    """characters (N, W) and their widths -> a vector for each word. (torch)"""
    from recurra.padding import Padded

    def spell(given: Any, widths: Any) -> Mapping[str, Any]:
        return {"vectors": spelling._read(Padded(given, widths))}

    inputs = [Input("characters", ("N", "W"), "ids", below=characters), Input("widths", ("N",), "lengths", along="W")]
    return Recordable(SPELL, inputs, spell)


def spelt_by(running: Running, words: SpeltOut) -> NDArray[np.float32]:
    """(N, E): a vector for each of N distinct words."""
    lengths = words.widths.tolist()
    kinds = [0] * len(lengths) if len(lengths) <= FEW else [bisect_left(WIDEST, length) for length in lengths]
    found: NDArray[np.float32] | None = None
    for kind in sorted(set(kinds)):
        rows = np.flatnonzero(np.array(kinds) == kind)
        widths = words.widths[rows]
        given = {"characters": words.characters[rows, : int(widths.max(initial=0))], "widths": widths}
        vectors = called(running, SPELL, given)["vectors"]
        found = np.zeros((len(lengths), vectors.shape[1]), np.float32) if found is None else found
        found[rows] = vectors
    assert found is not None, "a batch has at least one row of words"
    return found
