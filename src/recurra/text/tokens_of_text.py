"""Tokens of a text by rule, where nothing better is known: words, and every other sign by itself."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable


def tokens_of_text(text: str, cuts: Iterable[int] = ()) -> list[tuple[int, int]]:
    """Where the tokens of a text stand: runs of letters and digits, and other signs one by one.

    A mark belongs to what stands before it. No token goes on over one of the cuts.

    >>> [text[start:end] for text in ["don't 3"] for start, end in tokens_of_text(text)]
    ['don', "'", 't', '3']
    >>> tokens_of_text("Berliner", cuts=[6])
    [(0, 6), (6, 8)]
    """
    found: list[tuple[int, int]] = []
    bounds, goes_on = set(cuts), False  # whether a letter may follow in the same token
    for place, character in enumerate(text):
        if character.isspace():
            goes_on = False
            continue
        is_letter = character.isalnum() or character == "_"
        is_mark = not is_letter and unicodedata.category(character)[0] == "M"
        is_next = bool(found) and found[-1][1] == place and place not in bounds
        if is_next and (is_mark or (is_letter and goes_on)):
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
            goes_on = is_letter
    return found
