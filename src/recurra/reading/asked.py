"""Questions: files of them, which may be tables, and lines or JSON as rows of the columns that a schema names."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from recurra.config.common import Data
from recurra.data.files import extension
from recurra.data.formats.reader import Row
from recurra.errors import DataError
from recurra.reading.schema import ABOUT, Schema

PLAIN = ("txt", "text", "")
"""Endings of files of which every line is a question."""

AnyData = TypeVar("AnyData", bound=Data)


def read_by(file: str | Path | None, data: AnyData) -> AnyData | None:
    """The settings to read a file of questions by; None where every line is one.

    A file with the ending of the training data is read like it, another by its own ending and names. A row without an
    element is kept, for it is to have an answer too.

    >>> data = Data(train="a.tsv", columns=["text", "label"])
    >>> [None if (by := read_by(file, data)) is None else by.columns for file in ("b.tsv.gz", "b.jsonl", "b.txt")]
    [['text', 'label'], None, None]
    """
    if file is None or extension(file) in PLAIN:
        return None
    like = data if is_like(file, data) else dataclasses.replace(data, format=None, columns=None)
    return dataclasses.replace(like, empty="keep")


def is_like(file: str | Path, data: Data) -> bool:
    """Whether a file has the ending of the training data."""
    return extension(file) == extension(data.files("train")[0])


def asked_row(line: str | Sequence[object], schema: Schema, place: str, number: int) -> Row:
    r"""The row that a line asks with: the columns of a text with tabs between them, anything else as JSON.

    What came as JSON is given as it is: a list is the columns of a text, the words of one, or numbers.

    >>> asked_row("tea\tcoffee", Schema("text", ["first", "second"]), "input:1", 1).values
    {'first': 'tea', 'second': 'coffee'}
    >>> asked_row("[[1, 2], [3, 4]]", Schema("frames"), "input:1", 1).values
    {'frames': [[1, 2], [3, 4]]}
    """
    columns = _columns_of(schema)
    if schema.kind != "text":
        return Row({columns[0]: _parsed(line, schema, place)}, number)  # type: ignore[dict-item]  # checked by the task
    parts: list[str] = line.split("\t") if isinstance(line, str) and len(columns) > 1 else [*_texts(line, columns)]
    if len(parts) != len(columns):
        raise DataError(
            f"{place}: found {len(parts)} text{'s' * (len(parts) != 1)}, but this model needs {len(columns)} per "
            f"input ({', '.join(columns)}), separated by tabs."
        )
    return Row(dict(zip(columns, parts, strict=True)), number)


def sent_row(row: Row, schema: Schema) -> object | None:
    r"""A row as `asked_row` takes it; None where a column is missing.

    >>> sent_row(Row({"first": "tea", "second": "coffee", "score": "3"}, 1), Schema("text", ["first", "second"]))
    'tea\tcoffee'
    """
    values = [row.values.get(column) for column in _columns_of(schema)]
    if None in values:
        return None
    return values[0] if schema.kind != "text" else "\t".join(map(str, values))


def _columns_of(schema: Schema) -> Sequence[str]:
    """The columns that an input has: those that the schema names, or one that is called like its kind."""
    return schema.columns if schema.kind == "text" and schema.columns else [schema.kind]


def _texts(line: str | Sequence[object], columns: Sequence[str]) -> list[str]:
    if isinstance(line, str):
        return [line]
    return [str(each) for each in line] if len(columns) > 1 else [" ".join(map(str, line))]


def _parsed(line: str | Sequence[object], schema: Schema, place: str) -> object:
    if not isinstance(line, str):
        return list(line)
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{place}: the input of this model must be {ABOUT[schema.kind]}, as JSON.") from error
