"""Stems of English words, after Porter (1980)."""

from __future__ import annotations

import re
from collections.abc import Mapping

PLURAL = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
LONG = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
SHORTER = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
DROPPED = {
    "al": "", "ance": "", "ence": "", "er": "", "ic": "", "able": "", "ible": "", "ant": "", "ement": "", "ment": "",
    "ent": "", "ion": "", "ou": "", "ism": "", "ate": "", "iti": "", "ous": "", "ive": "", "ize": "",
}  # fmt: skip
LATIN = re.compile(r"[a-z]{3,}")


def stem(word: str) -> str:
    """The stem of an English word in small letters; what is not made of three letters or more of a to z stays.

    >>> [stem(word) for word in "generalizations hopping happy skies relational Größe".split()]
    ['gener', 'hop', 'happi', 'ski', 'relat', 'größe']
    """
    word = word.lower()
    if not LATIN.fullmatch(word):
        return word
    word = _replaced(word, PLURAL, more_than=-1)
    word = _without_ed_and_ing(word)
    if word[-1] == "y" and "v" in _form(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, LONG, more_than=0)
    word = _replaced(word, SHORTER, more_than=0)
    if not word.endswith("ion") or word[-4:-3] in ("s", "t"):
        word = _replaced(word, DROPPED, more_than=1)
    if word[-1] == "e":
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_in_short_syllable(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _replaced(word: str, endings: Mapping[str, str], *, more_than: int) -> str:
    """The word with its longest ending replaced, if what stands before it has a measure above a limit."""
    for size in range(min(7, len(word)), 0, -1):
        if (ending := word[-size:]) in endings:
            before = word[:-size]
            return before + endings[ending] if _measure(before) > more_than else word
    return word


def _without_ed_and_ing(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    before = next((word[: -len(ending)] for ending in ("ed", "ing") if word.endswith(ending)), None)
    if before is None or "v" not in _form(before):
        return word
    if before.endswith(("at", "bl", "iz")):
        return before + "e"
    if len(before) > 1 and before[-1] == before[-2] and _form(before)[-1] == "c" and before[-1] not in "lsz":
        return before[:-1]
    return before + "e" if _measure(before) == 1 and _ends_in_short_syllable(before) else before


def _form(word: str) -> str:
    """c and v for consonants and vowels; y is a vowel after a consonant."""
    form = ""
    for letter in word:
        form += "v" if letter in "aeiou" or (letter == "y" and form.endswith("c")) else "c"
    return form


def _measure(word: str) -> int:
    """m of [C](VC)^m[V], C and V being runs of consonants and vowels."""
    return _form(word).count("vc")


def _ends_in_short_syllable(word: str) -> bool:
    """Consonant, vowel, consonant, the last not w, x or y: then an e was, or is, needed."""
    return _form(word).endswith("cvc") and word[-1] not in "wxy"
