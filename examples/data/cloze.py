"""Short documents about people, and questions with a gap whose answer is one of them.

    document    entity3 met entity0 at noon . entity1 praised entity3 . entity0 lost a coat .
    question    placeholder lost a coat
    answer      entity0

As in the set of Hermann et al. (2015), names are replaced by entity0, entity1, … that are dealt out anew for each
document: which entity is the answer can be known from the document alone.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

GAP = "placeholder"
DOES = ("praised", "called", "followed", "thanked", "visited", "warned", "helped", "painted")
THINGS = ("coat", "key", "letter", "clock", "boat", "lamp", "map", "ring")
VERBS = ("lost", "found", "bought", "sold", "broke", "kept")


class Cloze(NamedTuple):
    document: str
    question: str
    answer: str


def cloze(draw: random.Random, *, entities: int, sentences: int) -> Cloze:
    """A document of so many sentences about some of so many entities, and a question about one sentence."""
    names = draw.sample([f"entity{number}" for number in range(entities)], min(entities, sentences))
    told = []
    facts = draw.sample([(verb, thing) for verb in VERBS for thing in THINGS], sentences)
    for verb, thing in facts:
        told.append((draw.choice(names), f"{verb} a {thing}"))
    asked, fact = draw.choice(told)
    spoken = [f"{who} {what} ." for who, what in told]
    for _ in range(sentences // 2):
        spoken.append(f"{draw.choice(names)} {draw.choice(DOES)} {draw.choice(names)} .")
    draw.shuffle(spoken)
    return Cloze(" ".join(spoken), f"{GAP} {fact}", asked)


def clozes(count: int, *, seed: int, entities: int = 12, sentences: int = 6) -> list[Cloze]:
    """So many of them."""
    draw = random.Random(seed)
    return [cloze(draw, entities=entities, sentences=sentences) for _ in range(count)]


def write(path: Path, rows: list[Cloze]) -> None:
    """A table with a header."""
    lines = ["document\tquestion\tanswer", *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
