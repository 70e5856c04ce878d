"""A task of every kind of input, with what it learned of a few rows; no network is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recurra.runs import setup
from recurra.tasks.task import Task
from tests.tasks import small_givens, small_pairs
from tests.tasks.small_pairs import jsonl, table

AnyTask = Task[Any, Any, Any]

KINDS = {
    "tagging": "text",
    "tagging of frames": "frames",
    "classification": "text",
    "classification of series": "frames",
    "classification of pictures": "picture",
    "classification of strokes": "strokes",
    "language_model": "text",
    "seq2seq": "text",
    "seq2seq of frames": "frames",
    "vector to text": "vector",
    "places to text": "places",
    "pictures to text": "picture",
    "strokes to text": "strokes",
    "forecasting": "series",
}
"""What each is asked with."""

TEXT = "\n".join(f"{word} {sounds}" for word, sounds in small_pairs.WORDS)


def prepared(task: str, train: str, *overrides: str) -> AnyTask:
    """A task that has seen its training data."""
    this = setup(task, given={"train": train}, overrides=["data.cache=false", *overrides])
    return this.kind.prepared(this.kind.resolved(this.settings))


def of_every_kind(folder: Path) -> dict[str, AnyTask]:
    """Tasks by the names of KINDS."""
    tags = "\n".join("\n".join(f"{word}\t{tag}" for tag in sounds.split()) + "\n" for word, sounds in small_pairs.WORDS)
    (folder / "tags.conll").write_text(tags, "utf-8")
    (folder / "text.txt").write_text(TEXT, "utf-8")
    (folder / "level.csv").write_text("time,level\n" + "".join(f"{t},{t % 7}\n" for t in range(300)), "utf-8")
    frames = [[[float(row), float(step)] for step in range(2 + row)] for row in range(4)]
    tagged = [{"frames": each, "tags": ["A"] * len(each)} for each in frames]
    series = [{"frames": each, "label": str(row % 2)} for row, each in enumerate(frames)]
    spoken = [{"frames": each, "target": "yes"} for each in frames]
    drawn = [{"strokes": each, "label": str(row % 2)} for row, each in enumerate(small_givens.drawings())]
    pixels = [{"image": small_givens.picture(row).tolist(), "label": str(row % 2)} for row in range(8)]
    return {
        "tagging": prepared("tagging", str(folder / "tags.conll")),
        "tagging of frames": prepared("tagging", jsonl(folder / "frames.jsonl", tagged)),
        "classification": prepared("classification", table(folder / "labels.tsv", small_pairs.WORDS)),
        "classification of series": prepared("classification", jsonl(folder / "series.jsonl", series)),
        "classification of pictures": prepared(
            "classification", jsonl(folder / "seen.jsonl", pixels), "data.image=image"
        ),
        "classification of strokes": prepared(
            "classification", jsonl(folder / "drawn.jsonl", drawn), "data.image.strokes=strokes"
        ),
        "language_model": prepared("language_model", str(folder / "text.txt")),
        "seq2seq": prepared("seq2seq", small_pairs.words(folder)),
        "seq2seq of frames": prepared("seq2seq", jsonl(folder / "spoken.jsonl", spoken)),
        "vector to text": prepared("vec2seq", small_givens.colours(folder)),
        "places to text": prepared("vec2seq", small_givens.places(folder)),
        "pictures to text": prepared("vec2seq", small_givens.pixels(folder)),
        "strokes to text": prepared("vec2seq", small_givens.strokes(folder)),
        "forecasting": prepared("forecasting", str(folder / "level.csv")),
    }
