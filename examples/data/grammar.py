"""Makes sentences and their parse trees out of a small grammar: python examples/data/grammar.py FOLDER [--train 4000 …]

A probabilistic context-free grammar of English: rules below, each with its weight. FOLDER gets train.tsv, valid.tsv and
test.tsv: a sentence, a tab, and its tree as Vinyals et al. (2015) write it: closing brackets have their labels too, and
XX stands for every word.

    the dog saw a cat of the queen    (S (NP XX XX )NP (VP XX (NP (NP XX XX )NP (PP XX (NP XX XX )NP )PP )NP )VP )S

"of" belongs to the noun before it and "with" to the verb, so that a sentence has one tree. Sentences of test and valid
are not in train.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import NamedTuple

RULES: dict[str, list[tuple[int, str]]] = {
    "S": [(6, "NP VP"), (1, "S , and S")],
    "NP": [(8, "Det Noun"), (4, "Det Adj Noun"), (3, "Name"), (2, "NP OfPP"), (1, "NP SBAR")],
    "VP": [(6, "Verb NP"), (3, "Sleeps"), (3, "Verb NP WithPP"), (1, "Says SBAR'")],
    "OfPP": [(1, "of NP'")],
    "WithPP": [(1, "with NP'")],
    "NP'": [(3, "Det Noun"), (1, "Name")],
    "SBAR": [(1, "who VP'")],
    "VP'": [(2, "Verb NP'"), (1, "Sleeps")],
    "SBAR'": [(1, "that S'")],
    "S'": [(1, "NP' VP'")],
}
WORDS: dict[str, str] = {
    "Det": "the a every this",
    "Noun": "dog cat queen child teacher bird king sailor telescope garden",
    "Adj": "old small red quiet",
    "Name": "mary john ada",
    "Verb": "saw liked followed heard found",
    "Sleeps": "slept left sang laughed",
    "Says": "said thought knew",
}
LABELS = {"OfPP": "PP", "WithPP": "PP", "NP'": "NP", "VP'": "VP", "SBAR'": "SBAR", "S'": "S"}
DEEPEST = 7


class Tree(NamedTuple):
    """A word, or a label and what stands under it."""

    label: str
    parts: tuple[Tree, ...] = ()

    def words(self) -> list[str]:
        """What the tree says."""
        return [word for part in self.parts for word in part.words()] if self.parts else [self.label]

    def linear(self) -> list[str]:
        """The tree as tokens, XX for every word.

        >>> Tree("S", (Tree("NP", (Tree("ada"),)), Tree("VP", (Tree("slept"),)))).linear()
        ['(S', '(NP', 'XX', ')NP', '(VP', 'XX', ')VP', ')S']
        """
        if not self.parts:
            return ["XX"]
        return [f"({self.label}", *(token for part in self.parts for token in part.linear()), f"){self.label}"]


def drawn(symbol: str, chance: random.Random, depth: int = 0) -> Tree:
    """A tree under a symbol; the deeper it is, the shorter are its rules."""
    if symbol in WORDS:
        return Tree(chance.choice(WORDS[symbol].split()))
    if symbol not in RULES:
        return Tree(symbol)
    rules = RULES[symbol]
    if depth >= DEEPEST:
        rules = [rule for rule in rules if symbol not in rule[1].split()][:1]
    [(_, rule)] = chance.choices(rules, [weight for weight, _ in rules])
    return Tree(LABELS.get(symbol, symbol), tuple(drawn(part, chance, depth + 1) for part in rule.split()))


def pairs(count: int, chance: random.Random, longest: int, without: set[str]) -> list[tuple[str, str]]:
    """Different sentences of at most so many words, and their trees."""
    found: dict[str, str] = {}
    while len(found) < count:
        tree = drawn("S", chance)
        sentence = " ".join(tree.words())
        if len(tree.words()) <= longest and sentence not in without:
            found[sentence] = " ".join(tree.linear())
    return list(found.items())


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for part, count in (("train", 4000), ("valid", 300), ("test", 500)):
        parser.add_argument(f"--{part}", type=int, default=count)
    parser.add_argument("--longest", type=int, default=20, help="words of a sentence, at most (20)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(given)
    options.folder.mkdir(parents=True, exist_ok=True)
    chance, seen = random.Random(options.seed), set[str]()
    for part in ("train", "valid", "test"):
        found = pairs(getattr(options, part), chance, options.longest, seen)
        seen |= {sentence for sentence, _ in found}
        (options.folder / f"{part}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in found), "utf-8")


if __name__ == "__main__":
    main()
