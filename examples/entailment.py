"""Does one sentence follow from another: python examples/entailment.py [STEPS]

A grammar (data/entailment.py) makes pairs of sentences: one follows from the other, contradicts it, or neither. The
words of both are aligned by attention, compared, and added up. In ten seconds:

    of 300 new pairs, 96% are right
    a tired boy plays a red guitar / a child plays an instrument: entailment 0.91, contradiction 0.09, neutral 0.00
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from data.entailment import pairs, write

import recurra

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
NEW = [
    ("a tired boy plays a red guitar", "a child plays an instrument"),
    ("a tired boy plays a red guitar", "a child paints an instrument"),
    ("a tired boy plays a guitar", "a child plays an instrument at home"),
]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {part: Path(folder) / f"{part}.tsv" for part in ("train", "test")}
        write(files["train"], pairs(3000, seed=1))
        write(files["test"], pairs(300, seed=2))
        print("3,000 pairs to learn from, 300 to judge")
        settings = {
            "data": {"cache": False},  # premise, hypothesis and label are found by their names
            "model": {
                "pairing": {"name": "decomposable", "size": 64, "layers": 1, "compare": "all"},
                "embedding": 48,
                "dropout": 0.1,
                "word_dropout": 0.0,
                "characters": {"cell": "none"},
            },
            "training": {"steps": STEPS, "batch_size": 32, "learning_rate": 0.005, "average": None},
        }
        model = recurra.train("classification", train=str(files["train"]), out=Path(folder) / "run", settings=settings)
        right = model.evaluate(files["test"]).values["accuracy"]
        print(f"of 300 new pairs, {100 * right:.0f}% are right")
        for answer in model.predict(["\t".join(pair) for pair in NEW], detail=True):
            p = ", ".join(f"{name} {value:.2f}" for name, value in answer.detail["probabilities"].items())
            print(f"{answer.input.replace(chr(9), ' / ')}: {p}")


if __name__ == "__main__":
    main()
