"""The characters of running text as numbers: each known one its own, any other by its Unicode category."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from recurra.text.vocabulary import UNKNOWN, Vocabulary

SPACE, PARAGRAPH = "<space>", "<paragraph>"

CATEGORIES = ("Lu", "Ll", "Lt", "Lm", "Lo", "M", "Nd", "N", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sc", "S", "C")
"""Kinds of characters: a character that is not in the alphabet is read as its kind."""

SPECIALS = (UNKNOWN, SPACE, PARAGRAPH, *(f"<{kind}>" for kind in CATEGORIES))

RARE = 2
"""A character that occurs less often is read as its kind, so that kinds are learned."""


class Stream(NamedTuple):
    """A text as a network reads it: a run of blanks is one step."""

    ids: NDArray[np.int32]  # (N,)
    places: NDArray[np.int64]  # (N,): where in the text each step stands, a run of blanks at its first
    is_blank: NDArray[np.bool_]  # (N,)
    is_break: NDArray[np.bool_]  # (N,): a run of blanks with an empty line, or one that no token may hold


@final
class Alphabet:
    r"""The characters of a text to their ids.

    >>> letters = Alphabet.counted({"a": 5, "b": 5, "é": 1})
    >>> [letters.vocabulary.tokens[number] for number in letters.read("aÀ\n\nb").ids]
    ['a', '<Lu>', '<paragraph>', 'b']
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        points = [ord(token) for token in vocabulary.tokens[len(SPECIALS) :]]
        self._table = np.full(max([*points, 0x2FFF]) + 1, -1, np.int32)
        self._table[points] = np.arange(len(SPECIALS), len(vocabulary))
        for point in range(0x3000):
            if self._table[point] < 0:
                self._table[point] = self._kind(point)
        self.kinds = np.array(
            [number if number < len(SPECIALS) else self._kind(ord(token)) for number, token in enumerate(vocabulary)],
            np.int32,
        )
        """(V,): the kind that each character is read as where it is not known."""

    @classmethod
    def counted(cls, counts: Mapping[str, int]) -> Alphabet:
        """The characters that are not rare; blanks are never among them."""
        kept = {character: count for character, count in counts.items() if not character.isspace()}
        return cls(Vocabulary.counted(kept, specials=SPECIALS, min_count=RARE))

    def __len__(self) -> int:
        return len(self.vocabulary)

    def _kind(self, point: int) -> int:
        character = chr(point)
        if character.isspace():
            return SPECIALS.index(SPACE)
        category = unicodedata.category(character)
        name = category if category in CATEGORIES else category[0]
        return SPECIALS.index(f"<{name}>")

    def read(self, text: str) -> Stream:
        """A text as a network reads it."""
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
        ids = np.full(len(points), -1, np.int32)
        is_near = points < len(self._table)
        ids[is_near] = self._table[points[is_near]]
        if (ids < 0).any():
            rare, which = np.unique(points[ids < 0], return_inverse=True)
            ids[ids < 0] = np.array([self._kind(int(point)) for point in rare], np.int32)[which]
        space, paragraph = SPECIALS.index(SPACE), SPECIALS.index(PARAGRAPH)
        is_blank = ids == space
        starts = is_blank.copy()
        starts[1:] &= ~is_blank[:-1]
        run = np.cumsum(starts)  # of each character, the number of the run of blanks at or before it
        size = int(run[-1]) + 1 if len(run) else 1
        ends_line = np.bincount(run[points == 10], minlength=size)
        is_plain = np.isin(points, (0x20, 0xA0, 0x202F))  # the blanks that a token may hold, one at a time
        held = np.bincount(run[is_blank & is_plain], minlength=size)
        length = np.bincount(run[is_blank], minlength=size)
        kept = starts | ~is_blank
        places = np.flatnonzero(kept)
        ids, is_blank = ids[places], is_blank[places]
        runs = run[places]
        is_paragraph = is_blank & (ends_line[runs] > 1)
        ids[is_paragraph] = paragraph
        is_break = is_blank & ~((length[runs] == 1) & (held[runs] == 1))
        return Stream(ids, places, is_blank, is_break)
