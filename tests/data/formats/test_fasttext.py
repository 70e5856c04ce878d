"""fastText's format: labels are found wherever they stand, and one label a line is a label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data import Row, rows
from recurra.data.formats import FastText, reader
from recurra.errors import ConfigError, DataError


def read(folder: Path, content: str, **options: Any) -> list[Row]:
    file = folder / "a.ft"
    file.write_bytes(content.encode())
    return list(rows(file, format={"name": "fasttext", **options}))


def one(text: str, label: str) -> dict[str, object]:
    return {"text": text, "labels": [label], "label": label}


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("__label__a b c\n__label__d e\n", {}, [one("b c", "a"), one("e", "d")]),
        ("__label__a b\n__label__c __label__d e\n", {},
         [{"text": "b", "labels": ["a"]}, {"text": "e", "labels": ["c", "d"]}]),
        ("b  c\t__label__a\n", {}, [one("b  c", "a")]),
        ("b __label__a c\n", {}, [one("b  c", "a")]),
        ("__label__a  b  \n\n \t\n__label__a c\n", {}, [one("b", "a"), one("c", "a")]),
        ("__label__a __label__a b\n", {}, [one("b", "a")]),
        ("__label__a\n", {}, [one("", "a")]),
        ("__label____label__a b\n", {}, [one("b", "__label__a")]),
        ("__label__a x__label__b __label\n", {}, [one("x__label__b __label", "a")]),
        ("__label__very-good,indeed b\n", {}, [one("b", "very-good,indeed")]),
        ("__label__a\u00a0b c\n", {}, [one("c", "a\u00a0b")]),
        ("__label__a b\n", {"several": True}, [{"text": "b", "labels": ["a"]}]),
        ("b\n__label__a __label__c d\n", {"several": True},
         [{"text": "b", "labels": []}, {"text": "d", "labels": ["a", "c"]}]),
        ("__label__a b\n", {"several": False}, [one("b", "a")]),
        ("#a __label__b\n", {"prefix": "#"}, [one("__label__b", "a")]),
    ],
)  # fmt: skip
def test_a_line_is_its_labels_and_the_rest(
    content: str, options: dict[str, Any], expected: list[dict[str, object]], tmp_path: Path
) -> None:
    assert [dict(row.values) for row in read(tmp_path, content, **options)] == expected


def test_rows_know_their_lines(tmp_path: Path) -> None:
    assert [row.line for row in read(tmp_path, "\n__label__a b\n\n__label__a c\n")] == [2, 4]


@pytest.mark.parametrize("name", ["a.ft", "a.fasttext", "a.ft.gz"])
def test_the_ending_says_the_format(name: str) -> None:
    assert isinstance(reader(name), FastText)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("__label__a b\nc d\n", {},
         ":2: this line has no label: 'c d'. Begin it with __label__name, or set several = true in data.format if"),
        ("__label__a b\n" + "c" * 40 + "\n", {"several": False}, f":2: this line has no label: '{'c' * 29}…'. Begin"),
        ("__label__ b\n", {}, ":1: a label has no name: write it right after __label__."),
        ("__label__a b\n__label__a __label__ b\n", {"several": True}, ":2: a label has no name"),
        ("__label__a __label__c b\n", {"several": False},
         ":1: this line has 2 labels (a, c), but several = false allows one. Leave several out of data.format."),
        ("a b\n", {"prefix": "#"}, ":1: this line has no label: 'a b'. Begin it with #name"),
    ],
)  # fmt: skip
def test_a_line_with_another_number_of_labels_is_refused_with_its_line(
    content: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as refusal:
        read(tmp_path, content, **options)
    assert str(refusal.value).startswith(f"{tmp_path / 'a.ft'}{message}")


@pytest.mark.parametrize("prefix", ["", "my label"])
def test_a_prefix_that_marks_nothing_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigError, match="prefix must be characters without blanks, such as __label__, but is"):
        FastText(prefix=prefix)


word = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=4).filter(
    lambda text: not text.startswith("__label__")
)


@given(st.lists(st.tuples(st.lists(word, unique=True, max_size=3), st.lists(word, min_size=1)), min_size=1))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[list[str], list[str]]]
) -> None:
    content = "".join(f"{' '.join([f'__label__{label}' for label in ls] + ws)}\n" for ls, ws in table)
    found = read(tmp_path_factory.getbasetemp(), content, several=True)
    assert [(row.values["labels"], row.values["text"]) for row in found] == [(ls, " ".join(ws)) for ls, ws in table]
