"""Sentences that look real, and what a poor translator makes of them."""

from __future__ import annotations

import random

PLAIN = "the The a dog cat's e-mail and/or A&B a,b x.y c++ wait... @home #tag _under_ <skipped> &quot;x&quot; &amp;"
NUMBERS = 'U.S. 3,000.50 1990-1991 5% $7 4- 2.,3 ½ ² ٣ €5 "quoted" it\'s (so) . , ; : ! ? - --'
FOREIGN = "«Größe» naïve 東京 ’ “ ” … ĳ ǅ İstanbul"
WORDS = f"{PLAIN} {NUMBERS} {FOREIGN}".split(" ")


def sentence(chance: random.Random, longest: int = 14) -> str:
    words = [chance.choice(WORDS) for _ in range(chance.randint(0, longest))]
    return chance.choice(["", " "]) + chance.choice([" ", "  "]).join(words) + chance.choice(["", " ", "."])


def changed(text: str, chance: random.Random) -> str:
    words = [word for word in text.split(" ") if chance.random() > 0.15]
    if chance.random() < 0.3:
        words.insert(chance.randint(0, len(words)), chance.choice(WORDS))
    if chance.random() < 0.3:
        chance.shuffle(words)
    return " ".join(words)


def corpus(seed: int, items: int, references: int = 1) -> tuple[list[list[str]], list[str]]:
    """References of each item, and answers."""
    chance = random.Random(seed)
    gold = []
    for _ in range(items):
        text = sentence(chance)
        gold.append([text, *(changed(text, chance) for _ in range(references - 1))])
    return gold, [changed(texts[0], chance) for texts in gold]
