"""A run reads and encodes each example once, however often it is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from recurra.data.store import Encoded
from recurra.runs import begin, resume, setup
from recurra.tasks.tagging import Tagging
from recurra.training.progress import Silent

LONG = " ".join(["cat"] * 70)
"""Longer than the pictures of a report show, which look at a few short examples again."""


class Counting(Tagging):
    """Tagging that counts how often a file is read, and how often its examples are encoded."""

    read_files: ClassVar[Counter[str]] = Counter()
    encoded: ClassVar[Counter[str]] = Counter()

    def read(self, files: Sequence[str | Path]) -> Iterator[Any]:
        self.read_files.update(Path(file).stem for file in files)
        return super().read(files)

    def encode(self, example: Any) -> Encoded:
        self.encoded[example.tokens[0]] += 1
        return super().encode(example)


@pytest.fixture
def counts() -> Iterator[type[Counting]]:
    Counting.read_files.clear()
    Counting.encoded.clear()
    yield Counting
    Counting.read_files.clear()
    Counting.encoded.clear()


def write(folder: Path, part: str, count: int) -> str:
    """Sentences that begin with the name of their file."""
    words = [part, *LONG.split()]
    (folder / f"{part}.conll").write_text("\n".join([*(f"{word}\tX" for word in words), ""] * count))
    return str(folder / f"{part}.conll")


def test_training_and_resuming_encode_each_example_once(tmp_path: Path, counts: type[Counting]) -> None:
    sizes = {"train": 4, "valid": 3, "test": 2}
    given = {part: write(tmp_path, part, count) for part, count in sizes.items()}
    few = ["model.hidden=3", "model.embedding=3", "model.characters.cell=none", "data.cache=false", "data.min_count=1"]
    few += ["training.steps=3", "training.validate=1", "training.threads=1", "training.device=cpu"]
    task = f"{__name__}:Counting"
    begin(setup(task, given=given, overrides=few), tmp_path / "run", Silent())
    assert counts.encoded == sizes
    assert counts.read_files["valid"] == counts.read_files["test"] == 1
    counts.encoded.clear()
    resume(tmp_path / "run", Silent(), overrides=["training.steps=5"])
    assert counts.encoded == sizes
