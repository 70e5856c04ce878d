"""Eight colours and their names, and the same as places, strokes and pictures; models that learn them by heart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recurra.runs import Setup, begin, setup
from recurra.tasks.vec2seq import Vec2Seq
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.small_pairs import jsonl, table

SMALL = [
    *("model.hidden=16", "model.embedding=8", "model.dropout=0", "model.label_smoothing=0", "data.cache=false"),
    *("model.image.widths=[6, 12]", "model.image.layers=0", "model.image.dropout=0"),
    *("training.batch_size=8", "training.steps=60", "training.learning_rate=0.03", "training.warmup=0"),
    *("training.average=none", "training.device=cpu", "training.threads=1"),
]

COLOURS = [
    ("red", (255, 0, 0)),
    ("green", (0, 255, 0)),
    ("blue", (0, 0, 255)),
    ("white", (255, 255, 255)),
    ("ink", (0, 0, 0)),
    ("mint", (150, 255, 180)),
    ("rust", (180, 60, 10)),
    ("navy", (0, 0, 120)),
]

SHAPES = ["up", "down", "left", "right", "box", "cross", "bar", "dot"]


def colours(folder: Path) -> str:
    """name, R, G, B."""
    return table(folder / "colours.tsv", [(name, *map(str, rgb)) for name, rgb in COLOURS])


def places(folder: Path, *, rows: int | None = None) -> str:
    """The same three numbers as features of one place more for each next colour; or of a grid of so many rows."""
    found = []
    for number, (name, rgb) in enumerate(COLOURS):
        each = [[float(value), 1.0 * place] for place, value in enumerate((*rgb, *rgb)[: 3 + number % 4])]
        found.append({"frames": each if rows is None else [each] * rows, "target": name})
    return jsonl(folder / "places.jsonl", found)


def drawings() -> list[list[list[list[int]]]]:
    """Eight drawings of one stroke or two, x and y of each."""
    return [
        [[[0, 0], [0, 9]]],
        [[[0, 9], [9, 9]], [[4, 4], [0, 9]]],
        [[[0, 9], [4, 4]]],
        [[[0, 9], [0, 9]]],
        [[[0, 9, 9, 0, 0], [0, 0, 9, 9, 0]]],
        [[[0, 9], [0, 9]], [[0, 9], [9, 0]]],
        [[[0, 9], [0, 0]], [[0, 9], [9, 9]]],
        [[[0, 9], [9, 0]]],
    ]


def strokes(folder: Path) -> str:
    rows = [{"strokes": each, "target": name} for name, each in zip(SHAPES, drawings(), strict=True)]
    return jsonl(folder / "strokes.jsonl", rows)


def picture(number: int) -> np.ndarray:
    """(H, W) in 0 … 255: a bright square somewhere, of a picture that is larger for each next one."""
    pixels = np.zeros((8 + number % 3, 9 + number), np.uint8)
    pixels[number % 4 : number % 4 + 4, number : number + 3 + number % 2] = 255 - 20 * number
    return pixels


def pixels(folder: Path) -> str:
    rows = [{"image": picture(number).tolist(), "target": name} for number, name in enumerate(SHAPES)]
    return jsonl(folder / "pixels.jsonl", rows)


def small(train: str, *overrides: str, valid: str = "") -> Setup:
    return setup("vec2seq", given={"train": train, "valid": valid}, overrides=[*SMALL, *overrides])


def trained(folder: Path, train: str, *overrides: str, valid: str = "", run: str = "run") -> Trained:
    begin(small(train, *overrides, valid=valid), folder / run, Silent())
    return load(folder / run)


def untrained(folder: Path, train: str, *overrides: str, run: str = "run") -> Trained:
    """A model that has seen hardly anything, for all that does not depend on what was learned."""
    return trained(folder, train, "training.steps=1", *overrides, run=run)


def task_of(model: Trained) -> Vec2Seq:
    assert isinstance(model.task, Vec2Seq)
    return model.task
