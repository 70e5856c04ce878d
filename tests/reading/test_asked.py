"""Questions as rows: what a task gets that does not write `questions` and `sent` itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from recurra.config.common import Data
from recurra.data.formats.reader import Row
from recurra.errors import DataError
from recurra.reading.asked import asked_row, sent_row
from recurra.reading.schema import Kind, Schema
from recurra.reading.tables import rows_of

PAIR = Schema("text", ["first", "second"])


@pytest.mark.parametrize(
    ("schema", "value", "column", "found"),
    [
        (Schema("text"), "tea for two", "text", "tea for two"),
        (Schema("text"), ["tea", "for", "two"], "text", "tea for two"),
        (Schema("text", ["review"]), "a\tb", "review", "a\tb"),
        (PAIR, "tea\tfor two", "second", "for two"),
        (PAIR, ["tea", "for two"], "second", "for two"),
        (Schema("frames"), "[[1, 2]]", "frames", [[1, 2]]),
        (Schema("frames"), [[1, 2]], "frames", [[1, 2]]),
        (Schema("vector", ["red", "green"]), [1, 2], "vector", [1, 2]),
    ],
)
def test_a_line_or_json_becomes_a_row_by_the_schema(schema: Schema, value: object, column: str, found: object) -> None:
    row = asked_row(value, schema, "input:7", 7)  # type: ignore[arg-type]
    assert row.values[column] == found
    assert row.line == 7


@pytest.mark.parametrize("schema", [Schema("text"), PAIR, Schema("frames")])
def test_what_is_sent_asks_the_same(schema: Schema) -> None:
    row = Row({"text": "tea", "first": "a b", "second": "c", "frames": [[1.0], [2.0]], "label": "x"}, 3)
    sent = sent_row(row, schema)
    asked = asked_row(sent, schema, "input:3", 3)  # type: ignore[arg-type]
    assert {name: row.values[name] for name in asked.values} == asked.values


def test_a_row_that_lacks_a_column_cannot_be_sent() -> None:
    assert sent_row(Row({"first": "a"}, 1), PAIR) is None


@pytest.mark.parametrize(("line", "count"), [("only one", "1 text"), ("a\tb\tc", "3 texts"), (["a"], "1 text")])
def test_another_number_of_texts_is_refused_with_the_columns(line: str | list[str], count: str) -> None:
    with pytest.raises(DataError, match=rf"input:2: found {count}, but this model needs 2 per input \(first, second\)"):
        asked_row(line, PAIR, "input:2", 2)


@pytest.mark.parametrize(("kind", "about"), [("frames", "a list of steps"), ("vector", "a list of numbers")])
def test_a_line_that_is_no_json_is_refused_with_what_an_input_is(kind: Kind, about: str) -> None:
    with pytest.raises(DataError, match=f"input:1: the input of this model must be {about}.*, as JSON"):
        asked_row("[1, 2", Schema(kind), "input:1", 1)


def test_rows_of_several_files_say_which_file_they_are_from(tmp_path: Path) -> None:
    files = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    for file in files:
        file.write_text("x\t1\ny\t2\n")
    found = list(rows_of(files, Data(train=str(files[0]), columns=["text", "label"])))
    assert [(row.file, row.line, row.values["text"]) for row in found] == [
        (0, 1, "x"),
        (0, 2, "y"),
        (1, 1, "x"),
        (1, 2, "y"),
    ]
