"""Which columns hold what is given at once, a vector, features of places or a picture, and which what is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from recurra.config import Vec2SeqData
from recurra.data.files import extension
from recurra.data.formats import reader, rows
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.asked import PLAIN, is_like
from recurra.reading.labelled import is_series
from recurra.reading.pair_tokens import LOOKED_AT, mostly
from recurra.reading.tables import task_rows, with_columns_of_format

TARGETS = ("target", "caption", "text", "latex", "name")
IMAGES, STROKES, PLACES = ("image", "picture", "file"), ("strokes", "ink"), ("frames", "features")
"""What columns are usually called."""


def names(data: Vec2SeqData) -> list[str]:
    """The columns that are named, by the user or after a look at the data."""
    given = (*(data.vector or ()), data.frames, data.image.given, data.target.column)
    return [name for name in given if name is not None]


def with_roles(path: str, data: Vec2SeqData) -> Vec2SeqData:
    """The settings with the columns of a file named, where they are not."""
    data = with_columns_of_format(data)
    if not names(data) and data.columns is None and _is_table(path, data):
        data = _with_found_columns(path, data)
    first = next(task_rows(path, data, *names(data)))
    place = f"{path}:{first.line}"
    for name in names(data):
        if name not in first.values:
            raise DataError(f"{place}: there is no column '{name}'. {did_you_mean(name, first.values)}")
    columns = list(first.values)
    target = data.target.column or next((name for name in TARGETS if name in columns), None)
    data = _with_given(data, first.values, target)
    if target is None:
        left = [name for name in columns if name not in names(data) and isinstance(first.values[name], str)]
        texts = [name for name in left if not are_numbers(first.values[name])] or left
        target = texts[0] if len(texts) == 1 else None
    if target is None or not (data.vector or data.frames or data.image.given):
        raise DataError(
            f"{place}: vector to sequence reads numbers from 'vector' (or 'frames', 'image' or 'strokes') and "
            f"writes 'target', but the columns are {', '.join(columns)}. Name them: data.vector = [\"…\"], or "
            'data.image = "…", and data.target = "…"; if the input is text, use the task '
            "seq2seq."
        )
    return dataclasses.replace(data, target=dataclasses.replace(data.target, column=target))


def _is_table(path: str | Path, data: Vec2SeqData) -> bool:
    return reader(path, data.format).is_table


def _with_found_columns(path: str, data: Vec2SeqData) -> Vec2SeqData:
    """Roles for a table whose columns have no names: the one of texts is the target, the others are a vector."""
    seen = [row.values for row in islice(task_rows(path, data), LOOKED_AT)]
    if not seen or list(seen[0]) != [f"column{k}" for k in range(1, len(seen[0]) + 1)]:
        return data
    cells = zip(*(row.values() for row in seen), strict=True)
    roles = ["vector" if mostly(are_numbers, column) else "target" for column in cells]
    return dataclasses.replace(data, columns=roles) if roles.count("target") == 1 < len(roles) else data


def _with_given(data: Vec2SeqData, first: Mapping[str, Any], target: str | None) -> Vec2SeqData:
    image = data.image
    if data.vector or data.frames or image.given:
        return data
    left = [name for name in first if name != target]

    def called(*usual: str) -> str | None:
        return next((name for name in usual if name in left), None)

    if (name := called("vector")) is not None:
        return dataclasses.replace(data, vector=[name])
    if (name := called(*PLACES)) is not None:
        return dataclasses.replace(data, frames=name)
    if (name := called(*STROKES)) is not None:
        return dataclasses.replace(data, image=dataclasses.replace(image, strokes=name))
    if (name := called(*IMAGES)) is not None:
        return dataclasses.replace(data, image=dataclasses.replace(image, column=name))
    numbers = [name for name in left if are_numbers(first[name]) or is_series(first[name])]
    return dataclasses.replace(data, vector=numbers) if numbers else data


def are_numbers(value: object) -> bool:
    """Whether a cell is a number, or several with blanks between them.

    >>> are_numbers("255"), are_numbers("0.5 1"), are_numbers("18th century"), are_numbers("")
    (True, True, False, False)
    """
    parts = value.split() if isinstance(value, str) else [value]
    try:
        return bool([float(part) for part in parts])  # type: ignore[arg-type]  # that is the question
    except (TypeError, ValueError):
        return False


def as_trained(path: str | Path, data: Vec2SeqData) -> Vec2SeqData:
    """The settings to read a file by: one of another kind than a table of the training data has names of its own."""
    if data.columns is None or _is_table(path, data):
        return data
    return dataclasses.replace(data, columns=None)


def read_by(file: str | Path, data: Vec2SeqData) -> Vec2SeqData | None:
    """The settings to read a file of questions by; None where every line is one.

    A file of the kind of the training data may lack the target; one of another kind has names of its own.
    """
    if extension(file) in PLAIN:
        return None
    by = dataclasses.replace(data, empty="keep")
    if not is_like(file, data):
        return dataclasses.replace(by, format=None, columns=None)
    if not _is_table(file, data):
        return by
    first = next(rows(file, format=_without_header(file, data)))
    cells = [str(cell).strip() for cell in first.values.values()]
    if {*cells} & {*names(data)}:
        wanted = None if data.columns is None else [name for name in data.columns if name in cells]
        return dataclasses.replace(by, columns=wanted)
    format = _without_header(file, data) if isinstance(data.format, dict) and data.format.get("header") else data.format
    return dataclasses.replace(by, format=format, columns=_fitting(cells, data) or data.columns)


def _fitting(cells: Sequence[str], data: Vec2SeqData) -> list[str] | None:
    """The columns of training, or all but the target, where there are so many."""
    full = data.columns or names(data)
    for columns in (full, [name for name in full if name != data.target.column]):
        if len(columns) == len(cells):
            return columns
    return None


def _without_header(file: str | Path, data: Vec2SeqData) -> dict[str, Any]:
    options = dict(data.format) if isinstance(data.format, dict) else {"name": data.format or extension(file)}
    return {**options, "header": False}
