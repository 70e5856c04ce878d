"""What is where in a picture, from given features of its places: python examples/captions.py [STEPS]

Another network has seen the picture already, and says of each place of a grid what it looks like, in numbers: arrays
(rows, columns, features) in a file of NumPy's. Here such features are made up. Attention looks at the place of which
the next word tells. In ten seconds:

    77% of 200 new captions are right
    right: a yellow heart above a blue star
    said:  a yellow heart above a blue star
    token  row column  share places with half
    a        1      1 0.4151                2
    yellow   2      1 0.9984                1
    heart    2      1 0.9995                1
    above    1      3 0.1447                5
    a        3      3 0.1860                4
    blue     3      2 0.9943                1
    star     3      2 0.9991                1
    ∎        3      4 0.5592                1
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import recurra
from recurra.analysis.picture_attention import picture_attention_of

COLOURS, SHAPES = ("red", "green", "blue", "yellow"), ("circle", "square", "star", "heart")
ROWS, COLUMNS, FEATURES = 3, 4, 12
LOOK = np.random.default_rng(0).normal(size=(len(COLOURS) + len(SHAPES), FEATURES))  # what each looks like


def scene(chance: np.random.Generator) -> tuple[NDArray[np.float64], str]:
    """Two things on a grid as features (ROWS, COLUMNS, FEATURES + 2), and what is said of them."""
    features = chance.normal(0, 0.3, (ROWS, COLUMNS, FEATURES))
    found = []
    for place in sorted(chance.choice(ROWS * COLUMNS, 2, replace=False)):
        colour, shape = chance.integers(len(COLOURS)), chance.integers(len(SHAPES))
        row, column = divmod(int(place), COLUMNS)
        features[row, column] += LOOK[colour] + LOOK[len(COLOURS) + shape]
        found.append((f"a {COLOURS[colour]} {SHAPES[shape]}", row))
    (first, high), (second, low) = found
    where = np.moveaxis(np.mgrid[:ROWS, :COLUMNS], 0, 2)  # attention knows of a place what its features say
    return np.concatenate([features, where], axis=2), f"{first} {'left of' if high == low else 'above'} {second}"


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    chance = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for name, count in (("train", 2000), ("test", 200)):
            scenes = [scene(chance) for _ in range(count)]
            features, captions = zip(*scenes, strict=True)
            np.savez(Path(folder, f"{name}.npz"), features=np.stack(features), caption=np.array(captions))
        settings = {
            "data": {"target": {"tokens": "words"}, "cache": False},
            "model": {"embedding": 32, "hidden": 64, "dropout": 0.1},
            "training": {"steps": steps, "batch_size": 32, "learning_rate": 0.01, "average": "none"},
        }
        model = recurra.train("vec2seq", train=f"{folder}/train.npz", out=f"{folder}/run", settings=settings)
        print(f"{model.evaluate(f'{folder}/test.npz').values['exact_match']:.0%} of 200 new captions are right")
        [answer] = model.predict([features[0].tolist()], detail=True)  # nested lists, or JSON of them
        print(f"right: {captions[0]}\nsaid:  {answer.text}\n{picture_attention_of(answer).text()}")


if __name__ == "__main__":
    main()
