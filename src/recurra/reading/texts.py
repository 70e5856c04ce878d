"""Running text out of files: which column holds it, and how much of it is one example."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from recurra.config import LanguageModelData
from recurra.config.language_model import text_files
from recurra.config.share import FilePart
from recurra.data.formats import Row
from recurra.data.roles import text_columns
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.parts import nothing_left
from recurra.reading.tables import task_rows

PASSAGE = 1 << 14
"""Characters after which lines no longer join a passage."""


class Passage(NamedTuple):
    """One example: a line, or some lines that follow on each other, and where they begin."""

    text: str  # lines are separated by "\n"; that of the last is not written
    file: int
    line: int


def with_column(data: LanguageModelData, row: Row, path: str | Path) -> LanguageModelData:
    """The settings with the column that holds the text, where none was named."""
    return dataclasses.replace(data, text=dataclasses.replace(data.text, column=column_of(data, row, path)))


def column_of(data: LanguageModelData, row: Row, path: str | Path) -> str:
    """The column that holds the text: that of the settings, or one that suggests itself."""
    columns = list(row.values)
    if data.text.column is not None and data.text.column in columns:
        return data.text.column
    if len(columns) == 1:  # of a plain text, also where other files are tables
        return columns[0]
    if data.text.column is not None:
        name = data.text.column
        raise DataError(f"{path}:{row.line}: there is no column '{name}'. {did_you_mean(name, columns)}")
    for name in ("text", "tokens"):
        if name in columns:
            return name
    if len(usual := text_columns(columns)) == 1:
        return usual[0]
    raise DataError(
        f"{path}:{row.line}: a language model reads a column 'text', but the columns are {', '.join(columns)}. "
        f'Name it: data.text = "…".'
    )


def passages(files: Sequence[str | Path], data: LanguageModelData) -> Iterator[Passage]:
    """The text of some files, a passage at a time; where lines are independent, a line at a time."""
    paths = text_files([file if isinstance(file, str) else str(file) for file in files])
    for number, lines in enumerate(_lines_of_parts(paths, data)):
        if data.independent:
            for text, line in lines:
                yield Passage(text, number, line)
            continue
        kept: list[str] = []
        size = first = 0
        for text, line in lines:
            first = first or line
            kept.append(text)
            size += len(text) + 1
            if size >= PASSAGE:
                yield Passage("\n".join(kept), number, first)
                kept, size, first = [], 0, 0
        if kept:
            yield Passage("\n".join(kept), number, first)


def _lines_of_parts(paths: Sequence[str], data: LanguageModelData) -> Iterator[Iterator[tuple[str, int]]]:
    """The lines of each file that belong to the part of the whole text that is asked for.

    What is held out is the end of the text: a line belongs to the part in which its first character stands.
    """
    parts = [path for path in paths if isinstance(path, FilePart)]
    if not parts:
        yield from (texts(path, data) for path in paths)
        return
    sizes = [sum(len(text) + 1 for text, _ in texts(path, data)) for path in parts]
    total, found = sum(sizes), False

    def inside(part: FilePart, start: int) -> Iterator[tuple[str, int]]:
        nonlocal found
        for text, line in texts(part, data):
            if part.holds(start / total):
                found = True
                yield text, line
            start += len(text) + 1

    yield from (inside(part, start) for part, start in zip(parts, accumulate([0, *sizes]), strict=False))
    if not found:
        raise nothing_left(parts, f"{total:,} characters, cut at the end of a line")


def texts(path: str | Path, data: LanguageModelData) -> Iterator[tuple[str, int]]:
    """The text of each row of a file, and its line."""
    column = None
    for row in task_rows(path, data, data.text.column):
        if column is None or column not in row.values:
            column = column_of(data, row, path)
        yield text_of(row.values[column], f"{path}:{row.line}"), row.line


def text_of(value: object, place: str) -> str:
    """A text, or words, which are joined by blanks."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    shown = repr(value)
    raise DataError(f"{place}: expected a text or a list of words, but found {shown[:60]}.")
