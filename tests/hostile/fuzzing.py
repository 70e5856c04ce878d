"""Damaged data and config files, drawn by a seed: a valid file of some kind, with a few changes."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from recurra.config.given import Given
from recurra.data.check import check
from recurra.errors import RecurraError
from recurra.runs import setup, setup_of

WORDS = ["the", "cat", "sees", "a", "dog", "sleeps", "élan", "ß", "猫", "عربي", "run-of", "3.5", "I'm"]

NASTY = [
    b"\0", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\xed\xa0\x80", b"\xff", "\u202eabc\u202c".encode(), "\u2028".encode(),
    b'"', b"'", b"\t\t\t", b",,,", b"\n\n\n", b"-1", b"1e999", b"NaN", b"-inf", b"9" * 400, b"{", b"]", b"\\u0000",
    b"\\", b"#", b"1-2\t", b"1.1\t", b"=", b"[", b"%", b"\x1b[2J", b"__label__", b"true", b"null", b"2023-13-45",
    b"\x1a",
]  # fmt: skip


class Kind(NamedTuple):
    """A kind of file, and the task that reads it."""

    task: str
    ending: str
    content: bytes
    options: tuple[str, ...] = ()


def _conllu(draw: random.Random) -> bytes:
    rows = []
    for sentence in range(3):
        rows.append(f"# sent_id = {sentence}")
        for number in range(1, draw.randint(2, 5)):
            word = draw.choice(WORDS)
            rows.append(f"{number}\t{word}\t{word}\tNOUN\tNN\tCase=Nom|Number=Sing\t0\troot\t_\tSpaceAfter=No")
        rows.append("")
    return "\n".join(rows).encode() + b"\n"


def _table(draw: random.Random, dialect: str, columns: list[str], numbers: int) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter={"csv": ",", "tsv": "\t", "semicolon": ";"}[dialect], lineterminator="\n")
    writer.writerow(columns)
    for row in range(6):
        words = [" ".join(draw.choices(WORDS, k=draw.randint(1, 4))) for _ in range(len(columns) - numbers)]
        writer.writerow([*words, *(f"{row + draw.random():.3f}" for _ in range(numbers))])
    return text.getvalue().encode()


def _jsonl(draw: random.Random, columns: list[str]) -> bytes:
    rows = [{name: " ".join(draw.choices(WORDS, k=3)) for name in columns} for _ in range(5)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def kinds(draw: random.Random) -> list[Kind]:
    """One valid file of every kind that the tasks read."""
    series = "date,load,sun\n" + "".join(f"2024-01-{day:02d},{day % 7},{draw.random():.2f}\n" for day in range(1, 29))
    return [
        Kind("tagging", "conllu", _conllu(draw)),
        Kind("tagging", "conll", b"".join(f"{w}\tX\n".encode() for w in WORDS[:4]) + b"\n" + b"a\tY\nb\tX\n\n"),
        Kind("tagging", "jsonl", b'{"tokens": ["a", "b"], "tags": ["X", "Y"]}\n{"tokens": ["c"], "tags": ["X"]}\n'),
        Kind("classification", "csv", _table(draw, "csv", ["text", "label"], 0)),
        Kind("classification", "tsv", _table(draw, "tsv", ["label", "text"], 0)),
        Kind("classification", "csv", _table(draw, "semicolon", ["text", "label"], 0)),
        Kind("classification", "jsonl", _jsonl(draw, ["text", "label"])),
        Kind("classification", "ft", b"__label__a ein\n__label__b zwei drei\n__label__a vier\n"),
        Kind("seq2seq", "tsv", _table(draw, "tsv", ["source", "target"], 0)),
        Kind("seq2seq", "jsonl", _jsonl(draw, ["source", "target"])),
        Kind("language_model", "txt", ("\n".join(" ".join(draw.choices(WORDS, k=6)) for _ in range(6))).encode()),
        Kind("forecasting", "csv", series.encode()),
        Kind("vec2seq", "csv", _table(draw, "csv", ["text", "red", "green"], 2), ('data.vector=["red","green"]',)),
        Kind("vec2seq", "jsonl", b'{"vector": [1, 2], "text": "a b"}\n{"vector": [3, 4.5], "text": "c"}\n'),
    ]  # fmt: skip


CONFIGS = {
    "tagging": '[data]\ntrain = "a.conll"\ncolumns = ["tokens", "tags"]\n[model]\ncell = {name = "lstm"}\nhidden = 8\n',
    "seq2seq": '[model]\nattention = {name = "dot"}\nhidden = 8\nlayers = 2\n[training]\nschedule = "cosine"\n',
    "language_model": '[reading]\nsteps = 7\n[training]\noptimizer = {name = "adam", betas = [0.9, 0.9]}\n',
}


def changed(content: bytes, draw: random.Random) -> bytes:
    """The content with a few changes."""
    found = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        place = draw.randint(0, len(found))
        how = draw.random()
        if how < 0.25 and found:
            found[place % len(found)] ^= 1 << draw.randint(0, 7)
        elif how < 0.65:
            found[place:place] = draw.choice(NASTY)
        elif how < 0.8:
            del found[place : place + draw.choice((1, 2, 10, 100))]
        elif how < 0.95:
            end = place + draw.choice((1, 5, 40))
            found[place:place] = found[place:end] * draw.choice((1, 3))
        else:
            del found[place:]
    return bytes(found)


class Outcome(NamedTuple):
    """What became of a file."""

    is_read: bool
    said: str  # where it was refused


def data_case(seed: int, folder: Path) -> Outcome:
    """Read a damaged data file as training does, and let `recurra check` look at it."""
    draw = random.Random(seed)
    kind = draw.choice(kinds(draw))
    path = folder / f"case.{kind.ending}"
    path.write_bytes(changed(kind.content, draw))
    if draw.random() < 0.2:
        return _outcome(lambda: str(check([str(path)])))
    return _outcome(lambda: prepare(kind, path))


def prepare(kind: Kind, path: Path) -> str:
    """Read a file as training does, and encode the first of its examples."""
    this = setup(kind.task, given={"train": str(path)}, overrides=["data.cache=false", *kind.options])
    settings = this.kind.resolved(this.settings)
    task = this.kind.prepared(settings)
    for example in islice(task.read([path]), 20):
        task.encode(example)
    return "read"


def config_case(seed: int, folder: Path) -> Outcome:
    """Read a damaged config file."""
    draw = random.Random(seed)
    task, text = draw.choice(list(CONFIGS.items()))
    path = folder / "case.toml"
    path.write_bytes(changed(f'task = "{task}"\n{text}'.encode(), draw))
    return _outcome(lambda: str(setup_of(Given.of(path)).settings))


def _outcome(work: Callable[[], str]) -> Outcome:
    try:
        work()
    except RecurraError as error:
        return Outcome(False, str(error))
    return Outcome(True, "")
