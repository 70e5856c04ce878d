"""Tokens that stand for several words, as du stands for de le: a dictionary, and rules for forms that are not in it.

A rule is what is left of a form and its words when what they share is taken away:

    suffix   form = p + s,  words = (p + s₁, w₂, …)      don't: n't → "" n't      du: u → e le
    prefix   form = s + p,  words = (w₁, …, sₙ + p)      wal: wa → w al

A form is expanded as it was most often; an unknown one by the rule with the longest s, then by the most frequent one.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple, Self, TypeAlias

from recurra.errors import DataError
from recurra.text.json_file import read_json, write_json

Words: TypeAlias = tuple[str, ...]

LONGEST = 12
"""Characters of a rule at most."""


class Expansions(NamedTuple):
    """What tokens stand for.

    >>> known = Expansions.counted([("du", ("de", "le")), ("don't", ("do", "n't")), ("can't", ("ca", "n't"))])
    >>> known.words("Du"), known.words("won't"), known.words("tea")
    (('De', 'le'), ('wo', "n't"), None)
    """

    forms: dict[str, Words]
    suffixes: dict[str, Words]  # s: what the first word ends with, and the other words
    prefixes: dict[str, Words]  # s: the first words, and what the last begins with

    @classmethod
    def counted(cls, pairs: Iterable[tuple[str, Sequence[str]]]) -> Self:
        """Learned from tokens and their words."""
        forms: dict[str, Counter[Words]] = defaultdict(Counter)
        for form, words in pairs:
            forms[form][tuple(words)] += 1
        rules: tuple[dict[str, Counter[Words]], ...] = (defaultdict(Counter), defaultdict(Counter))
        for form, found in forms.items():
            [(words, _)] = found.most_common(1)
            for kind, (rest, said) in zip(rules, (_suffix_rule(form, words), _prefix_rule(form, words)), strict=True):
                if 0 < len(rest) <= LONGEST and len(rest) < len(form):
                    kind[rest][said] += 1
        suffixes, prefixes = ({s: said.most_common(1)[0][0] for s, said in kind.items()} for kind in rules)
        return cls({form: found.most_common(1)[0][0] for form, found in forms.items()}, suffixes, prefixes)

    def words(self, form: str) -> Words | None:
        """What a form stands for; None where nothing like it was seen."""
        if form in self.forms:
            return self.forms[form]
        lower = form.lower()
        if lower in self.forms:
            first, *rest = self.forms[lower]
            if len(form) > 1 and form.isupper():
                return (first.upper(), *(word.upper() for word in rest))
            return (first[:1].upper() + first[1:] if form[:1].isupper() else first, *rest)
        for size in range(min(LONGEST, len(form) - 1), 0, -1):
            if (said := self.suffixes.get(form[-size:])) is not None:
                return (form[:-size] + said[0], *said[1:])
            if (said := self.prefixes.get(form[:size])) is not None:
                return (*said[:-1], said[-1] + form[size:])
        return None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them as JSON."""
        write_json(path, {name: {s: list(words) for s, words in table.items()} for name, table in _tables(self)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save` wrote."""
        value = read_json(path)
        try:
            tables = ({s: tuple(words) for s, words in value[name].items()} for name in cls._fields)  # type: ignore[index]
            return cls(*tables)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: this is no table of tokens and their words ({error}).") from error


def _tables(known: Expansions) -> Iterable[tuple[str, dict[str, Words]]]:
    return zip(known._fields, known, strict=True)


def _common(one: str, other: str) -> int:
    """How many characters two words have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _suffix_rule(form: str, words: Words) -> tuple[str, Words]:
    same = _common(form, words[0])
    return form[same:], (words[0][same:], *words[1:])


def _prefix_rule(form: str, words: Words) -> tuple[str, Words]:
    same = _common(form[::-1], words[-1][::-1])
    if same == 0:
        return "", words
    return form[:-same], (*words[:-1], words[-1][:-same])
