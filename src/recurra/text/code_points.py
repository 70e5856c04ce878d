"""Characters to their numbers, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from recurra.text.vocabulary import UNKNOWN, Vocabulary

LONGEST_WORD = 40
"""Characters of a word that its spelling keeps: the first and the last twenty."""


@final
class CodePoints:
    """The id of each character of a text, looked up by its code point in one step.

    >>> of = CodePoints(Vocabulary("bc", specials=("<unk>", "\\n")))
    >>> of.ids("abc\\n").tolist()
    [0, 2, 3, 1]
    """

    def __init__(self, characters: Vocabulary) -> None:
        """A special of one character, such as a line end, is a character too."""
        known = [token for token in characters.tokens if len(token) == 1]
        points = list(map(ord, known))
        # The last place is that of all that lie beyond.
        self._ids = np.full(max(points, default=0) + 2, characters.id(UNKNOWN), np.int32)
        self._ids[points] = [characters.id(character) for character in known]

    def ids(self, text: str) -> NDArray[np.int32]:
        """(T,): the id of every character."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        return self._ids[np.minimum(points, len(self._ids) - 1)]

    def spelt(self, words: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The characters of all words, one after another, and how many each has.

        >>> characters, widths = CodePoints(Vocabulary("bc")).spelt(["cb", "b"])
        >>> characters.tolist(), widths.tolist()
        ([2, 1, 1], [2, 1])
        """
        widths = list(map(len, words))
        if max(widths, default=0) > LONGEST_WORD:
            words = [clipped(word) for word in words]
            widths = list(map(len, words))
        return self.ids("".join(words)), np.array(widths, np.int32)


def clipped(word: str) -> str:
    return word if len(word) <= LONGEST_WORD else word[: LONGEST_WORD // 2] + word[-LONGEST_WORD // 2 :]
