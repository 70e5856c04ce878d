"""Makes first sentences of news and their headlines: python examples/data/headlines.py FOLDER [--train 4000 …]

    the old president of france visited a harbour in oslo on monday , officials said
    french president visits oslo harbour

Sentences are put together by chance out of a few words and patterns. FOLDER gets train.tsv, valid.tsv and test.tsv: a
sentence, a tab, and its headline. Sentences of valid and test are not in train.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

COUNTRIES = {"france": "french", "japan": "japanese", "kenya": "kenyan", "chile": "chilean", "turkey": "turkish"}
PEOPLE = ["president", "minister", "singer", "sailor", "novelist"]
VERBS = {"visited": "visits", "opened": "opens", "bought": "buys", "painted": "paints", "closed": "closes"}
THINGS = ["harbour", "museum", "school", "bridge", "garden"]
TOWNS = ["oslo", "lima", "cairo", "quito", "turin"]
DAYS = ["monday", "tuesday", "friday", "sunday"]
ADJECTIVES = ["old", "famous", "former", "young"]
ENDINGS = ["", ", officials said", ", the police said", "despite the rain"]


def pair(chance: random.Random) -> tuple[str, str]:
    """A sentence and its headline."""
    country, verb = chance.choice([*COUNTRIES]), chance.choice([*VERBS])
    person, thing, town = chance.choice(PEOPLE), chance.choice(THINGS), chance.choice(TOWNS)
    who = f"the {chance.choice(ADJECTIVES)} {person} of {country}"
    day, ending = f"on {chance.choice(DAYS)}", chance.choice(ENDINGS)
    if chance.random() < 0.5:
        sentence = f"{who} {verb} a {thing} in {town} {day} {ending}"
    else:
        sentence = f"{day} a {thing} in {town} was {verb} by {who} {ending}"
    return " ".join(sentence.split()), f"{COUNTRIES[country]} {person} {VERBS[verb]} {town} {thing}"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for part, count in (("train", 4000), ("valid", 300), ("test", 500)):
        parser.add_argument(f"--{part}", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(given)
    options.folder.mkdir(parents=True, exist_ok=True)
    chance, seen = random.Random(options.seed), set[str]()
    for part in ("train", "valid", "test"):
        found: dict[str, str] = {}
        while len(found) < getattr(options, part):
            sentence, headline = pair(chance)
            if sentence not in seen:
                found[sentence] = headline
        seen |= {*found}
        (options.folder / f"{part}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in found.items()), "utf-8")


if __name__ == "__main__":
    main()
