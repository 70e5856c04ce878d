"""A small run of each task, none of which has learned much: what is seen inside does not depend on that."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.tasks.small_pairs import jsonl, table, untrained, words

FEW = [
    *("model.hidden=5", "model.embedding=4", "model.engine=loop", "data.cache=false"),
    *("training.steps=1", "training.batch_size=2", "training.threads=1", "training.device=cpu"),
]
LABELLED = [("a good film", "praise"), ("a bad film", "blame"), ("so good <img onerror=x>", "praise"), ("bad", "blame")]


OTHERS = {"model.encoder=cnn": ("hidden", "engine"), "model.encoder=bag": ("hidden", "engine", "embedding")}
"""Settings that these encoders have no use for."""


def small_settings(*overrides: str) -> list[str]:
    """What makes a run small, and the overrides."""
    others = [f"model.{name}=" for each in overrides for name in OTHERS.get(each, ())]
    return [*(each for each in FEW if not each.startswith(tuple(others))), *overrides]


def _begun(task: str, folder: Path, train: str, *overrides: str) -> Trained:
    begin(setup(task, given={"train": train}, overrides=small_settings(*overrides)), folder, Silent())
    return load(folder)


@cache
def classifier(*overrides: str) -> Trained:
    here = Path(mkdtemp())
    return _begun("classification", here / "run", table(here / "train.tsv", LABELLED), *overrides)


@cache
def tagger(*overrides: str) -> Trained:
    here = Path(mkdtemp())
    (here / "train.conll").write_text("the\tD\ncat\tN\nsleeps\tV\n\na\tD\n<b>\tN\n\n")
    spelling = [] if any("characters" in each for each in overrides) else ["model.characters.cell=none"]
    return _begun("tagging", here / "run", str(here / "train.conll"), "data.min_count=1", *spelling, *overrides)


@cache
def language_model(*overrides: str) -> Trained:
    here = Path(mkdtemp())
    (here / "train.txt").write_text("one two\nthree\n" * 4)
    return _begun("language_model", here / "run", str(here / "train.txt"), "reading.steps=4", *overrides)


@cache
def of_frames(task: str) -> Trained:
    """Series of pairs of numbers, with a tag for each or a class for all."""
    here = Path(mkdtemp())
    rows = [{"frames": [[n, 1], [2, n], [n % 2, 0]], "tags": [*"ABA"], "label": "xy"[n % 2]} for n in range(6)]
    train = jsonl(here / "train.jsonl", rows)
    own = ['data.tags=["tags"]'] if task == "tagging" else ["data.label=label", "model.encoder=rnn"]
    numbers = [each for each in FEW if "embedding" not in each]
    begin(setup(task, given={"train": train}, overrides=[*numbers, "data.frames=frames", *own]), here / "run", Silent())
    return load(here / "run")


@cache
def writer(*overrides: str) -> Trained:
    """Sequence to sequence, from letters to sounds."""
    here = Path(mkdtemp())
    short = ["decoding.min_length=2", "decoding.max_length=5", "model.hidden=5", "model.embedding=4"]
    return untrained(here, words(here), *short, "model.engine=loop", *overrides)
