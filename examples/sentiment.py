"""Whether a sentence is praise or blame, and which words say so: python examples/sentiment.py"""

from __future__ import annotations

import tempfile
from pathlib import Path

import recurra

SENTENCES = Path(__file__).parent / "data" / "sentiment.tsv"
NEW = ["the soup was delicious and the staff were friendly", "a boring film with awful music", "the bed was dirty"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "data": {"cache": False},
            "model": {
                "cell": "min_gru",  # it carries little along, so that a weight says something about its own word
                "embedding": 32,
                "hidden": 16,
                "summary": {"name": "attention", "queries": 1, "size": 16},  # one learned query: one weight a word
                "dropout": 0.3,
                "word_dropout": 0.1,
                "characters": {"cell": "none"},
            },
            "training": {"epochs": 20, "batch_size": 12, "learning_rate": 0.01, "average": None},
        }
        model = recurra.train("classification", train=str(SENTENCES), out=Path(folder) / "run", settings=settings)

        for answer in model.predict(NEW, detail=True):
            [weights] = answer.detail["attention"]
            print(f"{answer.input}: {answer.output}")
            for word, weight in zip(answer.detail["tokens"], weights, strict=True):
                print(f"  {word:12}{weight:5.2f} {'#' * round(40 * weight)}")


if __name__ == "__main__":
    main()
