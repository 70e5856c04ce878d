"""Text as words and punctuation."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from typing import final

from recurra.text.tokenizers.tokenizer import Tokenizer

# Han characters and the two signs written among them, 々 and 〇.
_IDEOGRAPHS = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u30ff"
# What may stand inside a word: apostrophes, hyphens, and the two joiners of Persian and Indic scripts.
_JOINERS = "'\u2019\u2010\u2011\u200c\u200d-"
_STICKS_LEFT = set(",.;:!?%…")
_STICKS_RIGHT = set("¿¡#@")
_STICKS_BOTH = set("/")
_QUOTES = set("\"'")

_ASCII_WORD = re.compile(r"[A-Za-z0-9_]++(?:['-][A-Za-z0-9_]++)*+|\S")


@final
class Words(Tokenizer):
    """Words, and every other character that is not a blank by itself, with the marks upon it.

    A word is a run of letters, digits, marks and underscores, with apostrophes and hyphens inside it. An ideograph is
    a word by itself. Blanks are forgotten; `join` puts them where they are usual, so that splitting again gives the
    same tokens.

    >>> Words().split("Don't go (yet), 東京!")
    ["Don't", 'go', '(', 'yet', ')', ',', '東', '京', '!']
    >>> Words().join(["Don't", "go", "(", "yet", ")", ",", "東", "京", "!"])
    "Don't go (yet), 東京!"
    >>> Words(lowercase=True).split("Well-known FACTS")
    ['well-known', 'facts']
    """

    def __init__(self, *, lowercase: bool = False) -> None:
        self.lowercase = lowercase

    def split(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        if not text.isascii():
            return _word_pattern().findall(text)
        # The same, in a fraction of the time; without punctuation in a twentieth.
        return text.split() if text.replace(" ", "").isalnum() else _ASCII_WORD.findall(text)

    def join(self, tokens: Iterable[str]) -> str:
        pieces: list[str] = []
        open_quotes: set[str] = set()
        before, is_opening = "", False
        for token in tokens:
            is_closing = token in open_quotes
            sticks = is_opening or is_closing or not before or _belong_together(before, token)
            if not sticks or (before and _starts_with_mark(token)):
                pieces.append(" ")
            pieces.append(token)
            is_opening = token in _QUOTES and not is_closing
            open_quotes ^= {token} & _QUOTES
            before = token
        return "".join(pieces)


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    letter = rf"(?:[^\W{_IDEOGRAPHS}]++|[{_marks()}]++)++"
    return re.compile(rf"[{_IDEOGRAPHS}][{_marks()}]*+|{letter}(?:[{_JOINERS}]{letter})*+|\S[{_marks()}]*+")


@functools.cache
def _marks() -> str:
    """All combining marks as ranges of a character class; Python's \\w leaves them out."""
    # The planes between hold Han characters or nothing, and would take most of the time.
    codes = [*range(0x20000), *range(0xE0000, 0xE1000)]
    marks = [code for code in codes if unicodedata.category(chr(code))[0] == "M"]
    starts = [code for code, before in zip(marks, [-1, *marks], strict=False) if code != before + 1]
    ends = [code for code, after in zip(marks, [*marks[1:], -1], strict=True) if code != after - 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


def _starts_with_mark(token: str) -> bool:
    """True where a token would become a part of the one before it, had they no blank between them."""
    return unicodedata.category(token[:1] or " ")[0] == "M"


@functools.lru_cache(maxsize=1 << 14)
def _belong_together(before: str, token: str) -> bool:
    """True where two tokens are usually written with no blank between them."""
    is_amount = unicodedata.category(before[-1]) == "Sc" and token[:1].isdigit()
    return is_amount or _sticks_to_right(before) or _sticks_to_left(token) or _are_of_one_script(before, token)


@functools.lru_cache(maxsize=4096)
def _sticks_to_left(token: str) -> bool:
    if len(token) != 1:
        return False
    is_closing = unicodedata.category(token) in ("Pe", "Pf")
    return is_closing or token in _STICKS_LEFT or token in _STICKS_BOTH or _is_wide_punctuation(token)


@functools.lru_cache(maxsize=4096)
def _sticks_to_right(token: str) -> bool:
    if len(token) != 1:
        return False
    is_opening = unicodedata.category(token) in ("Ps", "Pi")
    return is_opening or token in _STICKS_RIGHT or token in _STICKS_BOTH or _is_wide_punctuation(token)


def _is_wide_punctuation(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "FW" and unicodedata.category(letter)[0] == "P"


_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_KANA_OR_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}{_KANA}]")


def _are_of_one_script(before: str, token: str) -> bool:
    """Two tokens of Chinese or Japanese with no blank between; two runs of kana had one, or would be one token."""
    if not (_KANA_OR_IDEOGRAPH.match(before[-1:]) and _KANA_OR_IDEOGRAPH.match(token)):
        return False
    return bool(_IDEOGRAPH.match(before) or _IDEOGRAPH.match(token))
