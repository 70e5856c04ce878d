"""Eight words and their sounds, and models small enough to learn them by heart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recurra.runs import Setup, begin, setup
from recurra.sequences.pair_texts import PairTexts
from recurra.tasks.seq2seq import Seq2Seq
from recurra.text.vocabulary import UNKNOWN
from recurra.training.progress import Silent
from recurra.training.trained import Trained, load
from tests.training.test_trainer import StopsAt

SMALL = [
    *("model.hidden=24", "model.embedding=12", "model.dropout=0", "model.label_smoothing=0", "data.cache=false"),
    *("training.batch_size=8", "training.steps=60", "training.learning_rate=0.03", "training.warmup=0"),
    *("training.average=none", "training.device=cpu", "training.threads=1"),
]

WORDS = [
    ("cat", "K AE T"),
    ("dog", "D AO G"),
    ("house", "HH AW S"),
    ("a", "AH"),
    ("tree", "T R IY"),
    ("mouse", "M AW S"),
    ("coat", "K OW T"),
    ("god", "G AA D"),
]


def table(path: Path, rows: Sequence[Sequence[str]]) -> str:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    return str(path)


def jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return str(path)


def words(folder: Path) -> str:
    return table(folder / "words.tsv", WORDS)


def small(train: str, *overrides: str, valid: str = "") -> Setup:
    return setup("seq2seq", given={"train": train, "valid": valid}, overrides=[*SMALL, *overrides])


def trained(folder: Path, train: str, *overrides: str, valid: str = "", run: str = "run") -> Trained:
    begin(small(train, *overrides, valid=valid), folder / run, Silent())
    return load(folder / run)


def untrained(folder: Path, train: str, *overrides: str, run: str = "run") -> Trained:
    """A model that has seen hardly anything, for all that does not depend on what was learned."""
    return trained(folder, train, "training.steps=1", *overrides, run=run)


def task_of(model: Trained) -> Seq2Seq:
    assert isinstance(model.task, Seq2Seq)
    return model.task


def spelt(texts: PairTexts, ids: Iterable[int]) -> str:
    """The text that a target's ids stand for, its end and other specials left out."""
    vocabulary = texts.target.vocabulary
    tokens = vocabulary.tokens_of([int(number) for number in ids])
    return texts.target.tokenizer.join([t for t in tokens if t == UNKNOWN or t not in vocabulary.specials])


class Noted(StopsAt):
    """A progress that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(last=-1)
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)
