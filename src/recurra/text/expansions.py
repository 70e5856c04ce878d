"""Tokens that stand for several words, as du stands for de le: a dictionary, and rules for forms that are not in it.

A rule is what is left of a form and its words when what they share is taken away:

    suffix   form = p + s,  words = (p + s₁, w₂, …)      don't: n't → "" n't      du: u → e le
    prefix   form = s + p,  words = (w₁, …, sₙ + p)      wal: wa → w al

A form is expanded as it was most often. An unknown one is expanded by the rule that holds for most of the known forms
with the same ending or beginning s, of which there are many rather than few:

    how many forms the rule holds for / (1 + how many forms have s)                then the longest s
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple, Self, TypeAlias

from recurra.errors import DataError
from recurra.text.json_file import read_json, write_json

Words: TypeAlias = tuple[str, ...]

LONGEST = 12
"""Characters of a rule at most."""


class Rule(NamedTuple):
    """What s becomes, and how far that can be relied on."""

    words: Words
    weight: float  # the share of known forms with s that it holds for, less where these are few


class Expansions(NamedTuple):
    """What tokens stand for.

    >>> known = Expansions.counted([("du", ("de", "le")), ("don't", ("do", "n't")), ("can't", ("ca", "n't"))])
    >>> known.words("Du"), known.words("won't"), known.words("tea")
    (('De', 'le'), ('wo', "n't"), None)
    """

    forms: dict[str, Words]
    suffixes: dict[str, Rule]  # s: what the first word ends with, and the other words
    prefixes: dict[str, Rule]  # s: the first words, and what the last begins with

    @classmethod
    def counted(cls, pairs: Iterable[tuple[str, Sequence[str]]]) -> Self:
        """Learned from tokens and their words."""
        forms: dict[str, Counter[Words]] = defaultdict(Counter)
        for form, words in pairs:
            forms[form][tuple(words)] += 1
        return cls.of({form: found.most_common(1)[0][0] for form, found in forms.items()})

    @classmethod
    def of(cls, forms: dict[str, Words]) -> Self:
        """By known forms, with the rules that they show."""
        suffixes = _rules(forms, _suffix_rule, lambda form, size: form[-size:])
        return cls(forms, suffixes, _rules(forms, _prefix_rule, lambda form, size: form[:size]))

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
        found, best = None, (0.0, 0)
        for size in range(min(LONGEST, len(form) - 1), 0, -1):
            if (rule := self.suffixes.get(form[-size:])) is not None and (rule.weight, size) > best:
                found, best = (form[:-size] + rule.words[0], *rule.words[1:]), (rule.weight, size)
            if (rule := self.prefixes.get(form[:size])) is not None and (rule.weight, size) > best:
                found, best = (*rule.words[:-1], rule.words[-1] + form[size:]), (rule.weight, size)
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them as JSON, so that earlier versions can read them too."""
        rules = {"suffixes": self.suffixes, "prefixes": self.prefixes}
        tables = {name: {s: list(rule.words) for s, rule in table.items()} for name, table in rules.items()}
        write_json(path, {"forms": {form: list(words) for form, words in self.forms.items()}, **tables})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save` wrote."""
        value = read_json(path)
        try:
            return cls.of({form: tuple(words) for form, words in value["forms"].items()})  # type: ignore[index]
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise DataError(f"{path}: this is no table of tokens and their words ({error}).") from error


def _rules(
    forms: Mapping[str, Words], rule_of: Callable[[str, Words], tuple[str, Words]], part: Callable[[str, int], str]
) -> dict[str, Rule]:
    """The rules of one kind that forms show, the most frequent one of each s."""
    found: dict[str, Counter[Words]] = defaultdict(Counter)
    having: Counter[str] = Counter()
    for form, words in forms.items():
        having.update(part(form, size) for size in range(1, min(LONGEST, len(form) - 1) + 1))
        rest, said = rule_of(form, words)
        if 0 < len(rest) <= LONGEST and len(rest) < len(form):
            found[rest][said] += 1
    most = {s: said.most_common(1)[0] for s, said in found.items()}
    return {s: Rule(words, count / (1 + having[s])) for s, (words, count) in most.items()}


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
