"""Files of questions: which are tables, and how these are read."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TypeVar

from recurra.config.common import Data
from recurra.data.files import extension

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
