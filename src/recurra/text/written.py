r"""A sentence as it is written: its text, where each token stands in it, and the blanks around it.

    text      "du pain."
    tokens    (0, 2, 2 words)  (3, 7, 1 word)  (7, 8, 1 word)      in code points
    after     what stands between this sentence and the next

A token may stand for several words (du: de, le), and several tokens may follow each other without a blank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recurra.frozen import NamedTuple

ESCAPES = {" ": r"\s", "\t": r"\t", "\n": r"\n", "\r": r"\r", "|": r"\p", "\\": "\\\\"}
"""How blanks are written in MISC, as in SpacesAfter=\\n."""

_ESCAPED = {written: blank for blank, written in ESCAPES.items()}
_ONE = r"\\(?:[stnrp\\]|u[0-9a-f]{4})"


class Token(NamedTuple):
    """A stretch of a sentence's text, and how many words it stands for."""

    start: int
    end: int
    words: int = 1


class Written(NamedTuple):
    """A sentence as it stands in a text.

    >>> found = Written("du pain.", (Token(0, 2, 2), Token(3, 7), Token(7, 8)), after="\\n")
    >>> found.forms, [found.blanks_after(number) for number in range(3)]
    (['du', 'pain', '.'], [' ', '', '\\n'])
    """

    text: str
    tokens: tuple[Token, ...]
    after: str = " "  # blanks between this sentence and the next
    before: str = ""  # blanks before the first sentence of an input
    opens: bool = False  # a paragraph begins here
    start: int = 0  # of the text in the whole input, in code points

    @property
    def forms(self) -> list[str]:
        """What the tokens are in the text."""
        return [self.text[token.start : token.end] for token in self.tokens]

    def blanks_after(self, number: int) -> str:
        """What stands between a token and the next."""
        if number + 1 < len(self.tokens):
            return self.text[self.tokens[number].end : self.tokens[number + 1].start]
        return self.after

    @property
    def in_text(self) -> str:
        """The sentence with what stands around it: a new paragraph begins after an empty line."""
        return ("\n\n" if self.opens else "") + self.text + self.after

    def word_places(self) -> list[tuple[int, int]]:
        """Where each word stands, in code points of the whole input; words of one token stand where it does."""
        return [(self.start + token.start, self.start + token.end) for token in self.tokens for _ in range(token.words)]


def written_as(
    forms: Sequence[str], words: Sequence[int], after: Sequence[str], *, text: str | None, opens: bool
) -> Written:
    """The sentence that tokens make: found in a text where that has them in this order, else put together.

    forms, words and after are those of each token: what it is, how many words it stands for, and the blanks after it.

    >>> written_as(["a", "b"], [1, 1], [" ", ""], text="a  b", opens=False).tokens
    (Token(start=0, end=1, words=1), Token(start=3, end=4, words=1))
    >>> written_as(["a", "b"], [1, 1], ["", " "], text="something else", opens=False).text
    'ab'
    """
    found = None if text is None else _found_in(text, forms)
    if found is None or text is None:
        text, found, place = "", [], 0
        for form, blanks in zip(forms, [*after[:-1], ""], strict=True):
            found.append((place, place + len(form)))
            text += form + blanks
            place = len(text)
    tokens = tuple(Token(start, end, count) for (start, end), count in zip(found, words, strict=True))
    return Written(text[: found[-1][1]], tokens, after[-1], opens=opens)


def _found_in(text: str, forms: Sequence[str]) -> list[tuple[int, int]] | None:
    """Where the forms stand in a text, with nothing but blanks between them; None where they do not."""
    found, place = [], 0
    for form in forms:
        while place < len(text) and text[place].isspace() and not text.startswith(form, place):
            place += 1
        if not text.startswith(form, place):
            return None
        found.append((place, place + len(form)))
        place += len(form)
    return None if text[place:].strip() else found


def escaped(blanks: str) -> str:
    r"""Blanks as MISC holds them; those that have no letter by their code point.

    >>> escaped(" \n\xa0")
    '\\s\\n\\u00a0'
    """
    return "".join(ESCAPES.get(character) or f"\\u{ord(character):04x}" for character in blanks)


def unescaped(written: str) -> str:
    r"""The blanks that `escaped` wrote.

    >>> unescaped(r"\s\n\u00a0") == " \n\xa0"
    True
    """
    return re.sub(_ONE, lambda match: _ESCAPED.get(match[0]) or chr(int(match[0][2:], 16)), written)


def blanks_in_misc(blanks: str) -> str | None:
    r"""What MISC says of the blanks after a token; None where there is one space, which goes without saying.

    >>> blanks_in_misc(" "), blanks_in_misc(""), blanks_in_misc("\n\n")
    (None, 'SpaceAfter=No', 'SpacesAfter=\\n\\n')
    """
    if blanks == " ":
        return None
    return f"SpacesAfter={escaped(blanks)}" if blanks else "SpaceAfter=No"


def blanks_of_misc(misc: str) -> str:
    """The blanks after a token by its MISC.

    >>> blanks_of_misc("SpaceAfter=No|Translit=a"), blanks_of_misc("_")
    ('', ' ')
    """
    for part in misc.split("|"):
        if part == "SpaceAfter=No":
            return ""
        if part.startswith("SpacesAfter="):
            return unescaped(part.removeprefix("SpacesAfter="))
    return " "
