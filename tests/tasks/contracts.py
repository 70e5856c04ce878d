"""Every task with a tiny run: those of the house and the two that live outside of the package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from recurra.cli import main
from tests.outside import ctc, similarity

STEPS, HALF = 4, 2
"""Updates of a run, and those after which the broken one is resumed."""

SMALL = [
    *("training.device=cpu", "training.threads=1", f"training.steps={STEPS}", "training.batch_size=4"),
    *("training.validate=2", "training.warmup=0", "training.schedule=constant", "data.cache=false", "model.hidden=5"),
]
LOOP = ["model.engine=loop", "model.dropout=0.2"]
WRITES = [*LOOP, "model.embedding=4", "decoding.min_length=2", "decoding.max_length=4", "decoding.width=2"]
INK = [[[0, 0], [0, 9]], [[0, 9], [5, 5]]]


class Case(NamedTuple):
    """A task, what makes its run tiny, a file to train on and to be scored on, and two inputs as JSON has them.

    `views` are those that there are to see of both answers; what else the task offers is refused in words.
    """

    task: str
    settings: Sequence[str]
    file: str
    content: str
    asked: tuple[object, object]
    views: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """The settings as options of a command."""
        return [word for each in (*SMALL, *self.settings) for word in ("--set", each)]

    @property
    def lines(self) -> list[str]:
        """The inputs as lines of a file."""
        return [each if isinstance(each, str) else json.dumps(each) for each in self.asked]


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


def objects(*rows: Mapping[str, object]) -> str:
    return lines(*map(json.dumps, rows))


CASES = {
    "tagging": Case(
        "tagging",
        [*LOOP, "model.embedding=4", "model.characters.cell=none", "data.min_count=1"],
        "tags.conll",
        "the\tD\ncat\tN\n\na\tD\n<b>\tN\n\nthe\tD\nb\tN\nruns\tV\n\n",
        ("the cat", "a b runs"),
        ("saliency", "gates"),
    ),
    "classification": Case(
        "classification",
        [*LOOP, "model.embedding=4", "model.characters.cell=none", "model.encoder=rnn", "model.summary=attention"],
        "intents.tsv",
        lines("text\tlabel", "a good film\tpraise", "a bad film\tblame", "so good\tpraise", "bad\tblame"),
        ("a good film", "bad"),
        ("attention", "saliency", "gates"),
    ),
    "classification of pairs": Case(
        "classification",
        [*LOOP, "model.embedding=4", "model.characters.cell=none", "model.pairing=word_by_word"],
        "pairs.tsv",
        lines(
            "premise\thypothesis\tlabel",
            "a dog runs\tan animal runs\tyes",
            "a dog runs\ta dog sleeps\tno",
            "a cat sleeps\tan animal sleeps\tyes",
            "a cat sleeps\ta <b> dog\tno",
        ),
        ("a dog runs\ta dog sleeps", "a cat\tan animal"),
        ("attention", "saliency", "gates"),
    ),
    "language_model": Case(
        "language_model",
        [*LOOP, "model.embedding=4", "data.independent=true"],
        "text.txt",
        lines("one two three", "two three one", "three"),
        ("one t", "three"),
        ("probabilities", "saliency", "gates"),
    ),
    "forecasting": Case(
        "forecasting",
        [*LOOP, "data.window=8", "decoding.horizon=2", "evaluation.season=5"],
        "levels.csv",
        lines("series,time,level", *(f"{name},{step},{(step + name) % 5}" for name in range(3) for step in range(20))),
        ([1, 2, 3, 4], [4, 0, 1, 2, 3]),
        ("forecast", "gates"),
    ),
    "seq2seq": Case(
        "seq2seq",
        WRITES,
        "sounds.tsv",
        lines("cat\tK AE T", "dog\tD AO G", "a\tAH", "tree\tT R IY", "coat\tK OW T"),
        ("cat", "dog"),
        ("attention", "probabilities", "saliency", "tree", "gates", "decoder"),
    ),
    "vec2seq": Case(
        "vec2seq",
        WRITES,
        "colours.tsv",
        lines("1\t0\tred", "0\t1\tblue", "1\t1\tpurple", "0.5\t0\tdark red"),
        ([1, 0], [0.5, 0.5]),
        ("probabilities", "tree", "decoder"),
    ),
    "vec2seq of pictures": Case(
        "vec2seq",
        [*WRITES, "model.image.widths=[4]", "model.image.layers=0"],
        "ink.jsonl",
        objects(*({"strokes": [INK[0]] * n + [INK[1]], "latex": "1 " * n + "-"} for n in range(1, 4))),
        (INK, [INK[0]]),
        ("attention", "probabilities", "tree", "decoder"),
    ),
    "question_answering": Case(
        "question_answering",
        ["model.engine=loop", "model.sentence=recurrent", "model.hops=2", "model.memories=3"],
        "stories.txt",
        lines(
            *("1 Ann went home.", "2 Bob went out.", "3 Where is Ann?\thome\t1", "4 Ann went out."),
            *("5 Where is Ann?\tout\t4", "1 Bob slept.", "2 Bob went home.", "3 Where is Bob?\thome\t2"),
        ),
        ("Ann went home. Bob went out.\tWhere is Ann?", "Bob slept\tWhere is he?"),
        ("attention", "gates"),
    ),
    "ctc": Case(
        f"{ctc.CTC.__module__}:CTC",
        ["training.learning_rate=0.1"],  # then the best path is clearly not blank
        "speech.jsonl",
        objects(
            {"frames": [[1, 0], [1, 0.5], [0, 0], [1, 0], [0, 1]], "target": "a a b"},
            {"frames": [[0, 1], [0, 0]], "target": "b"},
            {"frames": [[0.5, 1], [1, 0], [0, 0]], "target": "b a"},
        ),
        ([[1, 0], [0, 0], [0, 1]], [[0.5, 0.5]]),
        ("alignment", "gates"),
    ),
    "similarity": Case(
        f"{similarity.Similarity.__module__}:Similarity",
        ["model.embedding=4"],
        "pairs.tsv",
        lines("the cat\ta cat sat\t4.5", "a dog\tthe sun\t0.5", "the dog\tthe cat\t2", "sun\tsun\t5"),
        ("the cat\ta dog ran", "sun\tthe sun"),
        ("saliency", "gates"),
    ),
}


def train(case: Case, folder: Path) -> None:
    """An unbroken run, `whole`, and one that was stopped half-way and resumed, `resumed`; and the inputs in a file."""
    data = folder / case.file
    data.write_text(case.content, "utf-8")
    (folder / "asked.txt").write_text(lines(*case.lines), "utf-8")
    given = ["--train", str(data), "--valid", str(data), "--quiet", *case.options]
    run(["train", case.task, *given, "--out", str(folder / "whole")])
    run(["train", case.task, *given, "--set", f"training.steps={HALF}", "--out", str(folder / "resumed")])
    run(["train", str(folder / "resumed"), "--resume", "--quiet", "--set", f"training.steps={STEPS}"])


def run(arguments: Sequence[str]) -> None:
    assert main(arguments) == 0, arguments
