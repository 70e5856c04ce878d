"""Pairs of sentences in which one follows from the other, contradicts it, or neither, by a grammar of a few rules.

    premise       a young man plays a guitar in the park
    entailment    words replaced by wider ones (man -> person), or adjectives and places left out
    contradiction another person, deed or thing (plays -> repairs, guitar -> fruit), or nobody does it
    neutral       something is added or narrowed of which the premise does not speak (guitar -> red guitar)

A label follows from how a pair was made. The hypothesis alone does not tell it, except where nobody does something.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

PEOPLE = {"man": "person", "woman": "person", "boy": "child", "girl": "child", "cook": "person", "nurse": "person"}
THINGS = {
    "guitar": "instrument",
    "violin": "instrument",
    "apple": "fruit",
    "pear": "fruit",
    "car": "vehicle",
    "truck": "vehicle",
    "rose": "flower",
    "tulip": "flower",
}
VERBS = ("plays", "paints", "carries", "repairs", "sells", "washes")
ADJECTIVES = ("young", "tall", "happy", "tired")
COLOURS = ("red", "green", "old", "small")
PLACES = ("in the park", "on the beach", "at home", "near the river")
LABELS = ("entailment", "neutral", "contradiction")


class Said(NamedTuple):
    """What a sentence says; an empty text: nothing about it."""

    who: str
    how: str
    does: str
    what: str
    kind: str
    where: str

    def text(self, nobody: bool = False) -> str:
        """The sentence."""
        who = "nobody" if nobody else with_article(f"{self.how} {self.who}")
        return " ".join(filter(None, [who, self.does, with_article(f"{self.kind} {self.what}"), self.where]))


def with_article(words: str) -> str:
    words = words.strip()
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


class Pair(NamedTuple):
    premise: str
    hypothesis: str
    label: str


def pair(draw: random.Random, label: str) -> Pair:
    """A pair with this label."""
    said = Said(
        draw.choice([*PEOPLE]),
        draw.choice(ADJECTIVES),
        draw.choice(VERBS),
        draw.choice([*THINGS]),
        draw.choice(("", *COLOURS)),
        draw.choice(("", *PLACES)),
    )
    wider = said._replace(
        who=draw.choice((said.who, PEOPLE[said.who])),
        how=draw.choice((said.how, "")),
        what=draw.choice((said.what, THINGS[said.what])),
        kind=draw.choice((said.kind, "")),
        where=draw.choice((said.where, "")),
    )
    if label == "entailment":
        return Pair(said.text(), wider.text(), label)
    if label == "contradiction":
        people = [name for name in (*PEOPLE, "child") if name not in (said.who, PEOPLE[said.who])]
        others = [name for name in (*THINGS, *THINGS.values()) if name not in (said.what, THINGS[said.what])]
        wrong = (
            wider._replace(does=draw.choice([verb for verb in VERBS if verb != said.does])),
            wider._replace(who=draw.choice(people)),
            wider._replace(what=draw.choice(others)),
        )
        return Pair(said.text(), draw.choice(wrong).text() if draw.random() < 0.8 else wider.text(nobody=True), label)
    told = said._replace(kind="", where="")
    more = wider._replace(kind="", where="")
    if draw.random() < 0.5:
        return Pair(told.text(), more._replace(kind=draw.choice(COLOURS)).text(), label)
    return Pair(told.text(), more._replace(where=draw.choice(PLACES)).text(), label)


def pairs(count: int, *, seed: int) -> list[Pair]:
    """So many pairs, of each label a third."""
    draw = random.Random(seed)
    return [pair(draw, LABELS[number % len(LABELS)]) for number in range(count)]


def write(path: Path, rows: list[Pair]) -> None:
    """A table with a header."""
    lines = ["premise\thypothesis\tlabel", *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
