"""Where is the football? A memory network answers questions about stories: python examples/answer_questions.py"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import recurra

PEOPLE, THINGS = ("Mary", "John", "Sandra"), ("football", "apple")
PLACES = ("kitchen", "garden", "office", "bathroom")


def story(seed: int, *, steps: int) -> dict[str, Any]:
    """People move, take and drop things; the simulation knows where each of them is."""
    draw = random.Random(seed)
    where: dict[str, str] = {}  # a person or a thing that lies somewhere
    held: dict[str, str] = {}  # from things to who carries them
    told: list[str] = []
    while len(told) < steps:
        person, thing = draw.choice(PEOPLE), draw.choice(THINGS)
        if draw.random() < 0.6:
            where[person] = draw.choice([place for place in PLACES if place != where.get(person)])
            told.append(f"{person} {draw.choice(('went', 'moved'))} to the {where[person]}.")
        elif held.get(thing) == person:
            where[thing] = where[person]
            del held[thing]
            told.append(f"{person} dropped the {thing}.")
        elif thing not in held and person in where and where.get(thing, where[person]) == where[person]:
            held[thing] = person
            told.append(f"{person} took the {thing}.")
    known = [*where, *(thing for thing in held if thing not in where)]
    asked = draw.choice(known)
    place = where[held[asked]] if asked in held else where[asked]
    called = f"the {asked}" if asked in THINGS else asked
    return {"context": told, "question": f"Where is {called}?", "answer": place}


def write(path: Path, seeds: range, *, steps: int) -> None:
    path.write_text("".join(json.dumps(story(seed, steps=steps)) + "\n" for seed in seeds), "utf-8")


def main() -> None:
    updates = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    with tempfile.TemporaryDirectory() as folder:
        train, valid = Path(folder) / "train.jsonl", Path(folder) / "valid.jsonl"
        write(train, range(min(4000, 8 * updates)), steps=8)
        write(valid, range(10000, 10500), steps=8)
        settings = {
            "data": {"cache": False},
            "model": {"hidden": 20, "hops": 3, "memories": 10},
            "training": {"steps": updates, "epochs": None, "learning_rate": 0.01},
        }
        model = recurra.train(
            "question_answering", train=str(train), valid=str(valid), out=Path(folder) / "run", settings=settings
        )

        text = "Mary went to the garden. Mary took the apple. Mary moved to the office."
        [answer] = model.predict([f"{text}\tWhere is the apple?"], detail=True)
        print(f"{text} Where is the apple? {answer.output}")
        print("simulated: the apple is in the office")
        for sentence, *weights in zip(answer.detail["sentences"], *answer.detail["attention"], strict=True):
            print("  " + " ".join(f"{weight:4.2f}" for weight in weights) + f"  {sentence}")
        scores = model.evaluate(valid)
        print(f"{scores.values['accuracy']:.1%} of 500 new questions are answered right")


if __name__ == "__main__":
    main()
