"""Train a tagger on a few sentences, look at its answers, and load it again: python examples/tag_words.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

import recurra

SENTENCES = """
the/DET old/ADJ man/NOUN feeds/VERB the/DET birds/NOUN
the/DET birds/NOUN sing/VERB
they/PRON feed/VERB a/DET small/ADJ bird/NOUN
she/PRON likes/VERB old/ADJ songs/NOUN
a/DET man/NOUN sings/VERB
they/PRON like/VERB the/DET man/NOUN
she/PRON sings/VERB a/DET small/ADJ song/NOUN
the/DET small/ADJ man/NOUN likes/VERB birds/NOUN
"""


def conll(sentences: str) -> str:
    """A word and its tag a line, a blank line after each sentence."""
    return "\n\n".join(line.replace(" ", "\n").replace("/", "\t") for line in sentences.strip().splitlines()) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data, run = Path(folder) / "train.conll", Path(folder) / "run"
        data.write_text(conll(SENTENCES), encoding="utf-8")
        settings = {
            "model": {"cell": "lstm", "hidden": 32, "embedding": 32, "dropout": 0.2},
            "training": {"epochs": 25, "learning_rate": 0.02},
            "data": {"min_count": 1, "cache": False},
        }
        model = recurra.train("tagging", train=str(data), out=run, settings=settings)

        for answer in model.predict(["she feeds the small birds", "old men sing"], detail=True):
            words, tags, [sure] = answer.detail["tokens"], answer.detail["tags"], answer.detail["probabilities"]
            print(" ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)))
            print(f"  log p = {answer.score:.2f}; least sure of '{words[sure.index(min(sure))]}'")

        scores = recurra.load(run).evaluate(data)
        print(f"on its own training data: {scores.values['accuracy']:.3f} of the tags are right")
        print(scores.tables["tags: tags"].text())


if __name__ == "__main__":
    main()
