"""A folder with a tiny run of every task, none of which has learned much, and what each may be asked."""

from __future__ import annotations

from pathlib import Path

from recurra.runs import begin, setup
from recurra.training.progress import Silent
from tests.tasks.small_pairs import jsonl, table, words

FEW = [
    *("model.hidden=5", "model.engine=loop", "data.cache=false", "training.steps=1", "training.batch_size=2"),
    *("training.threads=1", "training.device=cpu"),
]
SHORT = ["model.embedding=4", "decoding.min_length=2", "decoding.max_length=4", "decoding.width=3"]
INK = [[[0, 0], [0, 9]], [[0, 9], [5, 5]]]

ASKED: dict[str, object] = {
    "sounds": "cat",
    "intents": "a good film",
    "tags": "the cat",
    "text": "one t",
    "levels": [1, 2, 3, 4],
    "ink": INK,
    "colours": [1, 0],
}
"""By the name of each run, an input."""


def train(data: Path) -> None:
    """The runs, in a folder of that name beside what they were trained with."""
    labelled = [("a good film", "praise"), ("a bad film", "blame"), ("so good", "praise"), ("bad", "blame")]
    (data / "tags.conll").write_text("the\tD\ncat\tN\n\na\tD\n<b>\tN\n\n")
    (data / "text.txt").write_text("one two\nthree\n" * 4)
    (data / "levels.csv").write_text("time,level\n" + "".join(f"{step},{step % 5}\n" for step in range(40)))
    rows = [{"strokes": [INK[0]] * n + [INK[1]], "latex": "1 " * n + "-"} for n in range(1, 4)]
    writes = [*SHORT, "model.image.widths=[4]", "model.image.layers=0"]
    summary = ["model.embedding=4", "model.characters.cell=none", "model.encoder=rnn", "model.summary=attention"]
    for name, task, train, own in (
        ("sounds", "seq2seq", words(data), SHORT),
        ("intents", "classification", table(data / "intents.tsv", labelled), summary),
        ("tags", "tagging", str(data / "tags.conll"), ["model.embedding=4", "model.characters.cell=none"]),
        ("text", "language_model", str(data / "text.txt"), ["model.embedding=4", "reading.steps=4"]),
        ("levels", "forecasting", str(data / "levels.csv"), ["model.ahead=recursive"]),
        ("ink", "vec2seq", jsonl(data / "ink.jsonl", rows), writes),
        ("colours", "vec2seq", table(data / "colours.tsv", [("1", "0", "red"), ("0", "1", "blue")]), SHORT),
    ):
        begin(setup(task, given={"train": train}, overrides=[*FEW, *own]), data / "runs" / name, Silent())
