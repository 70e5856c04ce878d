"""Targets that are elements of the source, as numbers from 1 with blanks between them: "3 1 2"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.sequences.pair_texts import SEPARATOR
from recurra.text.vocabulary import END


def elements_in(target: str, count: int, place: str = "target") -> list[int]:
    """The elements, from 0, that a target names, of a source with so many.

    >>> elements_in("3 1", 3)
    [2, 0]
    """
    found = []
    for word in target.split():
        number = int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 0
        if not 1 <= number <= count:
            raise DataError(
                f"{place}: the target names the element {word!r}, but the source has {count} "
                f"element{'s' * (count != 1)}: with model.pointer, a target is numbers from 1 to {count} with blanks "
                "between them."
            )
        found.append(number - 1)
    return found


def numbered(tokens: Sequence[str], features: int, specials: int) -> NDArray[np.int32]:
    """The id by which each token of a source is pointed at; 0 for features, <sep> and </s>, which are no elements.

    >>> numbered(["⟨PL⟩", "a", "b", "<sep>", "c", "</s>"], 1, 4).tolist()
    [0, 4, 5, 0, 6, 0]
    """
    are_elements = np.array([token != SEPARATOR for token in tokens], np.bool_)
    are_elements[:features] = False
    if tokens and tokens[-1] == END:
        are_elements[-1] = False
    found: NDArray[np.int32] = np.where(are_elements, specials + are_elements.cumsum() - 1, 0).astype(np.int32)
    return found
