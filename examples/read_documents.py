"""Who is asked for: a reader looks into a short document: python examples/read_documents.py [STEPS | --write FOLDER]

Documents and questions with a gap are made by data/cloze.py; names are dealt out anew for each document, so that only
reading helps. With --write FOLDER the files for recipes/attentive_reader.toml are written. In a minute:

    of 200 new questions, 100% are right
    entity4 found a letter . entity1 warned entity1 . … entity5 bought a clock . entity0 kept a letter .
    placeholder bought a clock: entity5
      it looked at bought 0.90, found 0.07, entity5 0.01
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from data.cloze import clozes, write

import recurra

PARTS = {"train": 12_000, "valid": 1_000, "test": 2_000}


def main() -> None:
    if "--write" in sys.argv:
        folder = Path(sys.argv[-1])
        folder.mkdir(parents=True, exist_ok=True)
        for seed, (part, count) in enumerate(PARTS.items(), 1):
            write(folder / f"{part}.tsv", clozes(count, seed=seed))
        print(f"{folder} has {', '.join(f'{part}.tsv' for part in PARTS)}")
        return
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 900
    with tempfile.TemporaryDirectory() as private:
        train, test = Path(private) / "train.tsv", Path(private) / "test.tsv"
        write(train, clozes(min(6000, 64 * steps), seed=1, entities=6, sentences=4))
        asked = clozes(200, seed=2, entities=6, sentences=4)
        write(test, asked)
        settings = {
            "data": {"label": "answer", "cache": False},  # document and question are found by their names
            "model": {
                "pairing": "attentive",
                "candidates": "text",  # the answer is an entity of the document
                "embedding": 32,
                "hidden": 32,
                "dropout": 0.0,
                "word_dropout": 0.0,
                "characters": {"cell": "none"},
            },
            "training": {"steps": steps, "batch_size": 64, "learning_rate": 0.01, "average": None},
        }
        model = recurra.train("classification", train=str(train), out=Path(private) / "run", settings=settings)
        print(f"of 200 new questions, {100 * model.evaluate(test).values['accuracy']:.0f}% are right")
        [answer] = model.predict([f"{asked[0].document}\t{asked[0].question}"], detail=True)
        weights, words = np.array(answer.detail["attention"][0]), answer.detail["first_tokens"]
        most = [f"{words[place]} {weights[place]:.2f}" for place in weights.argsort()[::-1][:3]]
        print(f"{asked[0].document}\n{asked[0].question}: {answer.output}\n  it looked at {', '.join(most)}")


if __name__ == "__main__":
    main()
