"""Two segmentations of one text, compared as the CoNLL 2018 shared task compares them.

Every token, word and sentence stands at [start, end) of the text; blanks count or do not count, alike on both sides.

    tokens, sentences   are right where the other side has the same [start, end)
    words               outside of multi-word tokens likewise; where a multi-word token of either side overlaps others,
                        the words of the whole overlap are aligned by a longest common subsequence of their forms
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """A word of a text: where it stands, what it is, and whether it is one of several words of a token."""

    start: int
    end: int
    form: str
    is_part: bool = False


def same_places(gold: Sequence[tuple[int, int]], said: Sequence[tuple[int, int]]) -> list[bool]:
    """Which of the places of one side the other side has too.

    >>> same_places([(0, 2), (2, 5)], [(0, 2), (2, 3), (3, 5)])
    [True, False]
    """
    known = set(said)
    return [place in known for place in gold]


def aligned_words(gold: Sequence[Place], said: Sequence[Place]) -> list[tuple[int, int]]:
    """Which word of one side is which of the other, by their numbers; both sides are in the order of the text.

    >>> du = [Place(0, 2, "de", True), Place(0, 2, "le", True), Place(3, 6, "thé")]
    >>> aligned_words(du, [Place(0, 2, "du"), Place(3, 6, "thé")])
    [(2, 1)]
    >>> aligned_words(du, [Place(0, 2, "des", True), Place(0, 2, "Le", True), Place(3, 5, "th"), Place(5, 6, "é")])
    [(1, 1)]
    """
    found: list[tuple[int, int]] = []
    g = s = 0
    while g < len(gold) and s < len(said):
        if gold[g].is_part or said[s].is_part:
            g, s, g_end, s_end = _overlap(gold, said, g, s)
            found += [(g + i, s + j) for i, j in _common(gold[g:g_end], said[s:s_end])]
            g, s = g_end, s_end
        elif gold[g][:2] == said[s][:2]:
            found.append((g, s))
            g, s = g + 1, s + 1
        elif gold[g].start <= said[s].start:
            g += 1
        else:
            s += 1
    return found


def _overlap(gold: Sequence[Place], said: Sequence[Place], g: int, s: int) -> tuple[int, int, int, int]:
    """From where to where words of both sides are aligned by their forms, around a multi-word token at g or s.

    Words of multi-word tokens belong to it where they begin in it, and make it longer; others where they end in it.
    As in the shared task's own script, one word of the other side that began before is left out, and only one: further
    such words belong to the stretch.
    """
    many, is_gold = (gold[g], True) if gold[g].is_part else (said[s], False)
    others, number = (said, s) if is_gold else (gold, g)
    if not others[number].is_part and others[number].start < many.start:
        number += 1
    g, s, end = (g, number, many.end) if is_gold else (number, s, many.end)
    first = (g, s)

    def belongs(words: Sequence[Place], number: int) -> bool:
        if number >= len(words):
            return False
        return words[number].start < end if words[number].is_part else words[number].end <= end

    while belongs(gold, g) or belongs(said, s):
        is_gold = s >= len(said) or (g < len(gold) and gold[g].start <= said[s].start)
        word = gold[g] if is_gold else said[s]
        end = max(end, word.end) if word.is_part else end
        g, s = (g + 1, s) if is_gold else (g, s + 1)
    return (*first, g, s)


def _common(gold: Sequence[Place], said: Sequence[Place]) -> list[tuple[int, int]]:
    """A longest common subsequence of the forms, in small letters."""
    ours, theirs = [word.form.lower() for word in gold], [word.form.lower() for word in said]
    longest = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for i in reversed(range(len(ours))):
        for j in reversed(range(len(theirs))):
            is_same = ours[i] == theirs[j]
            longest[i][j] = 1 + longest[i + 1][j + 1] if is_same else max(longest[i + 1][j], longest[i][j + 1])
    found, i, j = [], 0, 0
    while i < len(ours) and j < len(theirs):
        if ours[i] == theirs[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found
