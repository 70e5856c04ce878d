"""Stories, questions about them and their answers: which columns hold what, and every row checked."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from recurra.config import QuestionAnsweringData
from recurra.data.formats import Row, Text, reader
from recurra.data.formats.babi import is_babi
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.labelled import class_of
from recurra.reading.parts import drawn
from recurra.reading.sentences import shown
from recurra.reading.tables import task_rows, value_in, with_columns_of_format
from recurra.text.tokenizers.words import Words

CONTEXTS, QUESTIONS, ANSWERS = ("context", "story", "passage"), ("question",), ("answer", "label")
"""Usual names of the columns."""

_END = re.compile(r"(?<=[.!?])\s+|\n+")


class Story(NamedTuple):
    """One example: sentences, a question about them, and its answer where it is known."""

    sentences: tuple[str, ...]
    question: str
    answer: str | None
    file: int
    line: int


def with_columns(data: QuestionAnsweringData) -> QuestionAnsweringData:
    """The settings with the columns that the first training file has, where none were named."""
    path = data.files("train")[0]
    data = with_columns_of_format(data)
    if data.format is None and isinstance(reader(path), Text) and is_babi(path):
        data = dataclasses.replace(data, format="babi")
    first = next(task_rows(path, data, *names(data)))
    columns, place = list(first.values), f"{path}:{first.line}"
    if columns == ["column1", "column2", "column3"] and data.columns is None and not names(data):  # without a header
        data = dataclasses.replace(data, columns=["context", "question", "answer"])
        columns = ["context", "question", "answer"]
    return dataclasses.replace(
        data,
        context=_column("context", data.context, CONTEXTS, columns, place),
        question=_column("question", data.question, QUESTIONS, columns, place),
        answer=_column("answer", data.answer, ANSWERS, columns, place),
    )


def _column(role: str, named: str | None, usual: Sequence[str], columns: Sequence[str], place: str) -> str:
    """The column that has a role: the one that was named, or one with a usual name."""
    if named is not None and named not in columns:
        raise DataError(f"{place}: there is no column '{named}'. {did_you_mean(named, columns)}")
    found = named or next((name for name in usual if name in columns), None)
    if found is None:
        raise DataError(
            f"{place}: question answering needs a column '{role}', but the columns are {', '.join(columns)}. Name it: "
            f'data.{role} = "…".'
        )
    return found


def names(data: QuestionAnsweringData) -> list[str]:
    """The columns that are named, by the user or after a look at the data."""
    return [name for name in (data.context, data.question, data.answer) if name is not None]


def stories(files: Sequence[str | Path], data: QuestionAnsweringData) -> Iterator[Story]:
    """The examples of some files, each checked."""

    def found() -> Iterator[Story]:
        for number, path in enumerate(files):
            for row in task_rows(path, data, *names(data)):
                yield story_of(row, number, path, data)

    return drawn(files, found, lambda story: repr(story[:2]).encode("utf-8", "surrogatepass"))


def story_of(row: Row, file: int, path: str | Path, data: QuestionAnsweringData) -> Story:
    """The example that a row is; one without an answer where data.answer names none."""
    place = f"{path}:{row.line}"
    assert data.context is not None, "with_columns() has named the columns"
    assert data.question is not None
    sentences = sentences_of(value_in(row, data.context, place), place, data.context)
    question = value_in(row, data.question, place)
    if not isinstance(question, str):
        raise DataError(f"{place}: '{data.question}' must hold a question, but is {shown(question)}.")
    if data.empty == "refuse" and not (sentences and words_of(question)):
        what = "the context has no sentence" if not sentences else "the question has no word"
        raise DataError(f'{place}: {what}. Remove the row, or set data.empty = "keep".')
    answer = None if data.answer is None else class_of(value_in(row, data.answer, place), place, data.answer)
    return Story(sentences, question.strip(), answer, file, row.line)


def sentences_of(value: object, place: str, name: str) -> tuple[str, ...]:
    """The sentences of a story: those of a list, or a text cut after . ! ? and at line breaks.

    >>> sentences_of("Mary went home. John slept.", "a.tsv:1", "context")
    ('Mary went home.', 'John slept.')
    """
    if isinstance(value, str):
        value = _END.split(value)
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        raise DataError(f"{place}: '{name}' must hold a text or a list of sentences, but is {shown(value)}.")
    return tuple(part.strip() for part in value if part.strip())


def words_of(sentence: str, *, lowercase: bool = True) -> list[str]:
    """Its words, without punctuation.

    >>> words_of("Where is Mary?")
    ['where', 'is', 'mary']
    """
    said = sentence.lower() if lowercase else sentence
    return [token for token in Words().split(said) if any(map(str.isalnum, token))]
