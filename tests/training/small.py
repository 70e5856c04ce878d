"""A tiny language to tag: letters that say what they are, but for one whose tag depends on its neighbour."""

from __future__ import annotations

import random
from pathlib import Path

from recurra.runs import Setup, setup

SMALL = [
    "model.hidden=12",
    "model.embedding=8",
    "model.characters.hidden=5",
    "model.characters.embedding=4",
    "model.dropout=0.2",
    "training.batch_tokens=60",
    "training.threads=1",
    "training.device=cpu",
    "data.min_count=1",
]


def write_sentences(path: Path, count: int, seed: int = 0) -> Path:
    """Two-column CoNLL: 'run' is a verb after 'they' and a noun after 'the'."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        for _ in range(draw.randint(1, 4)):
            first, tag = draw.choice([("they", "PRON"), ("the", "DET")])
            word = draw.choice(["run", "walk", "talk", f"zig{draw.randint(0, 99)}"])
            lines += [f"{first}\t{tag}", f"{word}\t{'VERB' if first == 'they' else 'NOUN'}"]
        lines.append("")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def small(*overrides: str) -> list[str]:
    """What makes a tagger small, and the overrides; a size of batches in rows takes the place of one in tokens."""
    has_size = any(override.startswith("training.batch_size=") for override in overrides)
    return [each for each in SMALL if not (has_size and each.startswith("training.batch_tokens="))] + [*overrides]


def small_setup(folder: Path, *overrides: str) -> Setup:
    train, valid = folder / "train.conll", folder / "valid.conll"
    if not train.exists():
        write_sentences(train, 40, seed=1)
        write_sentences(valid, 20, seed=2)
    given = {"train": str(train), "valid": str(valid)}
    return setup("tagging", given=given, overrides=small("training.epochs=3", *overrides))
