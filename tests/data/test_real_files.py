"""Published files have the counts that their publishers state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recurra.data import rows
from recurra.data.check import check

DATA = Path(__file__).parents[2] / os.environ.get("RECURRA_DATA", "../shared/data")


def published(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not in RECURRA_DATA")
    return DATA / name


@pytest.mark.parametrize(
    ("name", "sentences", "words"),
    [("ud_english_ewt/en_ewt-ud-train.conllu.gz", 12_544, 204_577), ("wnut17/train.conll", 3_394, 62_730)],
)
def test_sentences_and_words_are_as_many_as_published(name: str, sentences: int, words: int) -> None:
    lengths = [len(row.values["tokens"]) for row in rows(published(name))]  # type: ignore[arg-type]
    assert (len(lengths), sum(lengths)) == (sentences, words)


def test_snips_has_as_many_tags_as_tokens_in_each_row() -> None:
    found = list(rows(published("snips/train.tsv"), columns=["tokens", "tags", "label"]))
    assert len(found) == 13_084
    assert all(len(str(r.values["tokens"]).split()) == len(str(r.values["tags"]).split()) for r in found)


def test_strokes_are_read_as_arrays() -> None:
    first = next(rows(published("crohme/train.jsonl.gz"), columns=["ink", "latex"]))
    strokes = first.values["ink"]
    assert first.values["latex"] == "\\phi ( x )"
    assert isinstance(strokes, list)
    assert all(len(stroke) == 2 for stroke in strokes)  # type: ignore[arg-type]


def test_what_is_odd_about_snips_is_found() -> None:
    train, valid = published("snips/train.tsv"), published("snips/valid.tsv")
    report = check([train], valid=[valid], columns=["tokens", "tags", "label"])
    seen = train.read_text().split("\n")
    known = set(seen)
    assert report.overlaps[0].rows.rows == sum(line in known for line in valid.read_text().split("\n") if line)
    lost = [number for number, line in enumerate(seen, 1) if "\ufffd" in line]
    assert [oddity.lines for oddity in report.files[0].oddities if "U+FFFD" in oddity.what] == [lost]
