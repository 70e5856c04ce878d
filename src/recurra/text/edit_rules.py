"""A word made of another by a rule: a lemma of a form.

    form  = a m z
    lemma = b m y         m: the longest string that both have in common, whatever its case
    rule  = how letters are cased; the shortest edits from a to b; the shortest edits from z to y

The same rule makes walk of walking and talk of talking. Where two words have nothing in common, the second one is the
rule: be of am.
Rules are texts, so that they can be tags:

    casing|edits of the beginning|edits of the end         or  =word

    casing   lower: small letters;  keep: as in the first word;  title: a capital first;  upper: capitals;
             @0,3: capitals at these places
    edits    . keeps a character, - drops it, +x writes an x
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

WHOLE = "="
"""Begins a rule that is the word itself."""


def rule_of(form: str, lemma: str) -> str:
    """The rule that makes a lemma of a form.

    >>> rule_of("walking", "walk"), rule_of("Talking", "talk"), rule_of("am", "be")
    ('lower||---', 'lower||---', '=be')
    >>> rule_of("Londons", "London"), rule_of("IBM", "Ibm"), rule_of("gegangen", "gehen")
    ('keep||-', 'title||', 'lower||----+h..')
    """
    places = _common(folded(form), folded(lemma))
    if not places:
        return WHOLE + lemma
    around = min(places, key=lambda place: len(_edits(folded(form), folded(lemma), place)))
    edits, as_written = _edits(folded(form), folded(lemma), around), _edits(form, lemma, around)
    for casing in ("lower", "keep", "title", "upper", _capitals(lemma)):
        rule = f"{casing}|{as_written if casing == 'keep' else edits}"
        if applied(rule, form) == lemma:
            return rule
    return WHOLE + lemma


def applied(rule: str, form: str) -> str:
    """What a rule makes of a form; of one that is too short for it, or of which nothing is left, the form itself.

    >>> applied("lower||---", "Singing"), applied("=be", "is"), applied("lower||---", "is")
    ('sing', 'be', 'is')
    """
    if rule.startswith(WHOLE):
        return rule[1:]
    casing, start, end, taken_first, taken_last, written_first, written_last = _parsed(rule)
    middle = len(form) - taken_last
    if middle < taken_first:
        return form
    read = form if casing == "keep" else folded(form)
    first = _edited(start, read[:taken_first]) if written_first is None else written_first
    last = _edited(end, read[middle:]) if written_last is None else written_last
    found = first + read[taken_first:middle] + last
    return _cased(casing, found) if found else form


def folded(text: str) -> str:
    """In small letters, each in the place of its capital: İ, whose small letter has two characters, stays.

    >>> folded("Straße İ")
    'straße İ'
    """
    small = text.lower()
    return small if len(small) == len(text) else "".join(map(_small, text))


def _small(character: str) -> str:
    small = character.lower()
    return small if len(small) == 1 else character


def _capital(character: str) -> str:
    capital = character.upper()
    return capital if len(capital) == 1 else character


def _capitals(lemma: str) -> str:
    """The casing that names the places of capitals."""
    return "@" + ",".join(str(place) for place, one in enumerate(lemma) if one != _small(one))


def _cased(casing: str, text: str) -> str:
    if casing in ("lower", "keep"):
        return text
    if casing == "title":
        return _capital(text[0]) + text[1:]
    if casing == "upper":
        return "".join(map(_capital, text))
    places = {int(place) for place in casing[1:].split(",") if place}
    return "".join(_capital(one) if place in places else one for place, one in enumerate(text))


class _Rule(NamedTuple):
    casing: str
    start: str  # edits
    end: str
    taken_first: int  # characters that the edits of the beginning take
    taken_last: int
    written_first: str | None  # what these edits make of any characters, if they keep none of them
    written_last: str | None


@functools.lru_cache(maxsize=1 << 14)
def _parsed(rule: str) -> _Rule:
    casing, _, edits = rule.partition("|")
    start, place = "", 0
    while edits[place] != "|":  # an edit may write this character too
        width = 2 if edits[place] == "+" else 1
        start, place = start + edits[place : place + width], place + width
    end = edits[place + 1 :]
    return _Rule(casing, start, end, _taken(start), _taken(end), _written(start), _written(end))


def _taken(edits: str) -> int:
    """How many characters edits keep or drop."""
    count = place = 0
    while place < len(edits):
        is_written = edits[place] == "+"
        count, place = count + (not is_written), place + 1 + is_written
    return count


def _written(edits: str) -> str | None:
    """What edits write, whatever they are applied to; None where they keep a character."""
    found, place = "", 0
    while place < len(edits):
        if edits[place] == ".":
            return None
        if edits[place] == "+":
            found, place = found + edits[place + 1], place + 1
        place += 1
    return found


def _edited(edits: str, text: str) -> str:
    found, place, at = [], 0, 0
    while place < len(edits):
        if edits[place] == "+":
            found.append(edits[place + 1])
            place += 2
            continue
        if edits[place] == ".":
            found.append(text[at])
        at, place = at + 1, place + 1
    return "".join(found)


def _edits(form: str, lemma: str, common: tuple[int, int, int]) -> str:
    """The shortest edits before and after a common string, given where it begins in both and its length."""
    form_at, lemma_at, size = common
    before = shortest_edits(form[:form_at], lemma[:lemma_at])
    return f"{before}|{shortest_edits(form[form_at + size :], lemma[lemma_at + size :])}"


def _common(form: str, lemma: str) -> Sequence[tuple[int, int, int]]:
    """Where the longest common strings begin in both, and their length."""
    for size in range(min(len(form), len(lemma)), 0, -1):
        found = [
            (form_at, lemma_at, size)
            for form_at in range(len(form) - size + 1)
            if form[form_at : form_at + size] in lemma
            for lemma_at in range(len(lemma) - size + 1)
            if lemma.startswith(form[form_at : form_at + size], lemma_at)
        ]
        if found:
            return found
    return ()


def shortest_edits(one: str, other: str) -> str:
    """The fewest characters to drop and to write; what is dropped is dropped as early as can be.

    >>> shortest_edits("eve", "ave"), shortest_edits("", "to"), shortest_edits("ies", "y")
    ('-+a..', '+t+o', '---+y')
    """
    if not one or not other:
        return "-" * len(one) + "".join(f"+{each}" for each in other)
    # cost[i][j]: the fewest for one[i:] and other[j:].
    rows, columns = len(one), len(other)
    cost = [[rows - i + columns - j for j in range(columns + 1)] for i in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            fewest = 1 + min(cost[i + 1][j], cost[i][j + 1])
            cost[i][j] = min(fewest, cost[i + 1][j + 1]) if one[i] == other[j] else fewest
    edits, i, j = "", 0, 0
    while i < rows or j < columns:
        if i < rows and j < columns and one[i] == other[j] and cost[i][j] == cost[i + 1][j + 1]:
            edits, i, j = edits + ".", i + 1, j + 1
        elif i < rows and cost[i][j] == 1 + cost[i + 1][j]:
            edits, i = edits + "-", i + 1
        else:
            edits, j = edits + f"+{other[j]}", j + 1
    return edits
