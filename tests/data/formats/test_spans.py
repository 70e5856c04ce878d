"""Spans that are marked in a text: brat, and JSONL as annotation tools write it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data.formats import rows
from recurra.data.formats.marked import Marked, tagged
from recurra.errors import ConfigError, DataError
from recurra.metrics.spans import spans
from recurra.text.tokens_of_text import tokens_of_text

TEXT = "Anna Smith went to the University of Paris .\nShe liked Berlin.\n"
ANN = "T1\tPER 0 10\tAnna Smith\nT2\tORG 23 42\tUniversity of Paris\nT3\tLOC 37 42\tParis\nT4\tLOC 55 61\tBerlin\n"


@pytest.fixture
def brat(tmp_path: Path) -> Any:
    def write(ann: str = ANN, text: str = TEXT) -> Any:
        (tmp_path / "a.txt").write_bytes(text.encode())
        (tmp_path / "a.ann").write_text(ann, "utf-8")
        return tmp_path / "a.ann"

    return write


def jsonl(tmp_path: Path, *objects: Any) -> Any:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects), "utf-8")
    return file


def test_brat_gives_a_row_for_each_line_and_keeps_the_outermost_spans(brat: Callable[..., Path]) -> None:
    with pytest.warns(UserWarning, match="1 nested or overlapping span was dropped"):
        found: Any = list(rows(brat(ANN + "R1\tIn Arg1:T1 Arg2:T2\nA1\tSure T1\n")))
    assert [row.line for row in found] == [1, 2]
    assert found[0].values["tags"] == ["B-PER", "I-PER", "O", "O", "O", "B-ORG", "I-ORG", "I-ORG", "O"]
    assert found[1].values == {"tokens": ["She", "liked", "Berlin", "."], "tags": ["O", "O", "B-LOC", "O"]}
    assert TEXT[found[1].written.start :].startswith(found[1].written.text)


def test_layers_keep_nested_spans_in_columns_of_their_own(brat: Callable[..., Path]) -> None:
    found = list(rows(brat(), format={"name": "brat", "layers": 2}))
    assert found[0].values["tags2"] == ["O"] * 7 + ["B-LOC", "O"]


def test_a_span_over_a_line_end_keeps_both_lines_in_one_row(brat: Callable[..., Path]) -> None:
    [row] = rows(brat("T1\tORG 4 7;9 13\tNew York\n", "the New\r\nYork\n"))
    assert row.values == {"tokens": ["the", "New", "York"], "tags": ["O", "B-ORG", "I-ORG"]}


@pytest.mark.parametrize(
    ("ann", "said"),
    [
        ("T1\tPER 0 4;11 15\tAnna went\n", r"a\.ann:1: the span T1 is in several pieces \(0 4;11 15\)"),
        ("\nT1\tPER 0 400\tAnna\n", r"a\.ann:2: the span 0 400 does not lie in the text"),
        ("T1\tPER 4 4\t\n", r"a\.ann:1: the span 4 4 does not lie"),
        ("T1\tPER 4 5\t \n", r"a\.ann:1: the span 4 5 holds nothing but blanks"),
        ("T1 PER 0 4 Anna\n", r"a\.ann:1: found 'T1 PER 0 4 Anna', but a span is written as"),
    ],
)
def test_a_bad_span_of_brat_is_refused_with_its_line(brat: Callable[..., Path], ann: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        list(rows(brat(ann)))


def test_brat_without_its_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ann").write_text(ANN)
    with pytest.raises(DataError, match=r"there is no .*a\.txt\. brat keeps the text beside"):
        list(rows(tmp_path / "a.ann"))


@pytest.mark.parametrize(
    "marks",
    [
        {"spans": [{"start": 8, "end": 14, "label": "LOC"}]},
        {"label": [[8, 14, "LOC"]]},
        {"labels": [[8, 14, "LOC"]]},
        {"entities": [{"id": 3, "start_offset": 8, "end_offset": 14, "label": "LOC"}], "relations": []},
    ],
)
def test_spans_are_read_in_every_spelling_and_offsets_are_code_points(tmp_path: Path, marks: dict[str, Any]) -> None:
    [row] = rows(jsonl(tmp_path, {"text": "in 😀 the Berlin"[:4] + " to Berlin", **marks}))
    assert row.values == {"tokens": ["in", "😀", "to", "Berlin"], "tags": ["O", "O", "O", "B-LOC"]}


def test_tokens_of_prodigy_are_taken(tmp_path: Path) -> None:
    tokens = [{"text": "New York", "start": 0, "end": 8, "id": 0}, {"text": "!", "start": 8, "end": 9, "id": 1}]
    [row] = rows(
        jsonl(tmp_path, {"text": "New York!", "tokens": tokens, "spans": [{"start": 0, "end": 3, "label": "LOC"}]})
    )
    assert row.values == {"tokens": ["New York", "!"], "tags": ["B-LOC", "O"]}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"text": "ab", "spans": [{"start": 1, "end": 3, "label": "x"}]}, "the span 1 to 3 does not lie in the text"),
        ({"text": "ab", "spans": [{"start": 1, "end": 2}]}, "a span is"),
        ({"text": "a b", "spans": [{"start": 1, "end": 2, "label": "x"}]}, "holds nothing but blanks"),
        ({"text": "ab"}, 'there are no "spans"'),
        ({"spans": []}, "there is no text"),
        ({"text": " ", "spans": []}, "the text has no words"),
        ({"text": "ab", "spans": [], "tokens": [{"start": 0, "end": 9}]}, "the tokens do not lie in the text"),
    ],
)
def test_bad_spans_are_refused_with_their_line(tmp_path: Path, value: dict[str, Any], said: str) -> None:
    good = {"text": "ab", "spans": [{"start": 0, "end": 1, "label": "x"}]}
    with pytest.raises(DataError, match=said) as found:
        list(rows(jsonl(tmp_path, good, value), format="spans"))
    assert "a.jsonl:2: " in str(found.value)


def test_layers_must_be_a_number_of_columns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="layers must be at least 1"):
        list(rows(jsonl(tmp_path, {"text": "a", "spans": []}), format={"name": "spans", "layers": 0}))


def test_jsonl_without_spans_is_read_as_before(tmp_path: Path) -> None:
    [row] = rows(jsonl(tmp_path, {"text": "a b", "label": "good"}))
    assert row.values == {"text": "a b", "label": "good"}


TEXTS = st.text("ab é.\u0301😀", min_size=1, max_size=12)


@given(TEXTS, st.data())
def test_spans_come_back_out_of_the_tags(text: str, data: Any) -> None:
    places = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda p: text[p[0] : p[1]].strip())
    start, end = data.draw(places) if text.strip() else (0, 0)
    found: Any = tagged(text, [Marked(start, end, "x")] if start < end else [], layers=1)
    if not text.strip():
        assert found is None
        return
    written = found.written
    assert [text[token.start + written.start : token.end + written.start] for token in written.tokens] == found.values[
        "tokens"
    ]
    for span in spans(found.values["tags"]):
        covered = text[
            written.start + written.tokens[span.start].start : written.start + written.tokens[span.end - 1].end
        ]
        assert covered == text[start:end].strip()


@given(TEXTS)
def test_tokens_by_rule_are_the_text_without_its_blanks(text: str) -> None:
    assert "".join(text[start:end] for start, end in tokens_of_text(text)) == "".join(text.split())
