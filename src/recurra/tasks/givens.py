"""What a sequence is written from at once, a vector, features of places or a picture: which columns hold it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config import Vec2SeqData
from recurra.data.formats import CSV, TSV, Row, reader
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.tasks.asked import read_by
from recurra.tasks.labelled import is_series, series_in
from recurra.tasks.pair_tokens import ENOUGH, LOOKED_AT, mostly
from recurra.tasks.pairs import text_of
from recurra.tasks.sentences import shown
from recurra.tasks.tables import task_rows, value_in

TARGETS = ("target", "caption", "text", "latex", "name")
IMAGES, STROKES, PLACES = ("image", "picture", "file"), ("strokes", "ink"), ("frames", "features")
"""What columns are usually called."""

SHORT = 40
"""A text of so many letters at most is written letter by letter."""

SEVERAL = 8
"""Numbers of a vector that are shown."""


class Given(NamedTuple):
    """One example: what is given, what is to be written, and where they stand."""

    vector: NDArray[np.float32] | None  # (F,)
    places: NDArray[np.float32] | None  # (S, F), or (H, W, F)
    picture: object  # a path, an array or strokes as the file has them; None without a picture
    target: str | None  # None in a question
    file: int
    line: int


def names(data: Vec2SeqData) -> list[str]:
    """The columns that are named, by the user or after a look at the data."""
    given = (*(data.vector or ()), data.frames, data.image.column, data.image.strokes, data.target.column)
    return [name for name in given if name is not None]


def with_columns(data: Vec2SeqData) -> Vec2SeqData:
    """The settings with the columns that the first training file has and the tokens that suit it, where not named."""
    path = data.files("train")[0]
    data = _with_roles(path, data)
    if data.target.tokens != "auto":
        return data
    texts = [given.target or "" for given in islice(givens([path], data), ENOUGH)]
    seen = texts[:LOOKED_AT]
    tokens = "subwords" if len(texts) >= ENOUGH else "words"
    if mostly(is_formula, seen):
        tokens = "symbols"
    elif mostly(lambda text: len(text) <= SHORT, seen):
        tokens = "characters"
    return dataclasses.replace(data, target=dataclasses.replace(data.target, tokens=tokens))


def is_formula(text: str) -> bool:
    r"""Whether a text is single signs and commands with blanks between them.

    >>> is_formula(r"\frac { a } { b } + 1"), is_formula("a dog on a bench")
    (True, False)
    """
    parts = text.split()
    signs = [part for part in parts if len(part) == 1 or part.startswith("\\")]
    return len(parts) > 1 and len(signs) >= 0.75 * len(parts)


def _with_roles(path: str, data: Vec2SeqData) -> Vec2SeqData:
    first = next(task_rows(path, data, *names(data)))
    place = f"{path}:{first.line}"
    is_table = data.columns is None and isinstance(reader(path, data.format), TSV | CSV)
    nameless = [f"column{number}" for number in range(1, len(first.values) + 1)]
    if is_table and not names(data) and list(first.values) == nameless:
        roles = ["vector" if _is_number(cell) else "target" for cell in first.values.values()]
        if roles.count("target") == 1 and len(roles) > 1:
            data = dataclasses.replace(data, columns=roles)
            first = next(task_rows(path, data))
    for name in names(data):
        if name not in first.values:
            raise DataError(f"{place}: there is no column '{name}'. {did_you_mean(name, first.values)}")
    columns = list(first.values)
    target = data.target.column or next((name for name in TARGETS if name in columns), None)
    data = _what_is_given(data, first.values, target)
    if target is None:
        texts = [name for name in columns if name not in names(data) and isinstance(first.values[name], str)]
        target = texts[0] if len(texts) == 1 else None
    if target is None or not names(dataclasses.replace(data, target=dataclasses.replace(data.target, column=None))):
        raise DataError(
            f"{place}: vector to sequence reads numbers from 'vector' (or 'frames', 'image' or 'strokes') and writes "
            f"'target', but the columns are {', '.join(columns)}. Name them: data.vector = [\"…\"], or "
            f'data.image.column = "…", and data.target.column = "…"; for a text to be read, the task is seq2seq.'
        )
    return dataclasses.replace(data, target=dataclasses.replace(data.target, column=target))


def _what_is_given(data: Vec2SeqData, first: Mapping[str, Any], target: str | None) -> Vec2SeqData:
    image = data.image
    if data.vector or data.frames or image.column or image.strokes:
        return data
    left = [name for name in first if name != target]
    for roles, put in (
        (("vector",), lambda name: {"vector": [name]}),
        (PLACES, lambda name: {"frames": name}),
        (STROKES, lambda name: {"image": dataclasses.replace(image, strokes=name)}),
        (IMAGES, lambda name: {"image": dataclasses.replace(image, column=name)}),
    ):
        found = [name for name in roles if name in left]
        if found:
            return dataclasses.replace(data, **put(found[0]))
    numbers = [name for name in left if _is_number(first[name]) or is_series(first[name])]
    return dataclasses.replace(data, vector=numbers) if numbers else data


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]  # that is the question
    except (TypeError, ValueError):
        return False
    return True


def givens(files: Sequence[str | Path], data: Vec2SeqData) -> Iterator[Given]:
    """The examples of some files, each checked but for its picture, which is opened when it is encoded."""
    for number, path in enumerate(files):
        for row in task_rows(path, data, *names(data)):
            yield given_of(row, number, path, data)


def given_of(row: Row, file: int, path: str | Path, data: Vec2SeqData, *, asked: bool = False) -> Given:
    """The example of a row, checked; of one that is asked for its target, that may be missing."""
    place = f"{path}:{row.line}"
    vector = places = picture = None
    if data.vector is not None:
        vector = np.concatenate([_vector(value_in(row, name, place), place, name) for name in data.vector])
    elif data.frames is not None:
        places = _places(value_in(row, data.frames, place), place, data.frames)
    else:
        name = data.image.column or data.image.strokes
        assert name is not None, "with_columns() has named the column"
        picture = value_in(row, name, place)
        if picture is None or (isinstance(picture, str) and not picture.strip()):
            raise DataError(f"{place}: there is no picture in '{name}'. Give the row one, or remove it.")
    column = data.target.column
    assert column is not None, "with_columns() has named the column"
    if asked:
        target = text_of(row.values.get(column), place, column) or None
        return Given(vector, places, picture, target, file, row.line)
    target = text_of(value_in(row, column, place), place, column)
    if data.empty == "refuse" and not target.strip():
        raise DataError(f'{place}: the target is empty. Remove the row, or set data.empty = "keep".')
    return Given(vector, places, picture, target, file, row.line)


def asked(file: str | Path | None, lines: Iterable[str | Sequence[str]], data: Vec2SeqData) -> Iterator[Given]:
    """Questions: the rows of a table, or else one a line: numbers, a list of them as JSON, or the path of a picture."""
    if file is not None and (by := read_by(file, data)) is not None:
        for row in task_rows(file, by, *names(by)):
            yield given_of(row, 0, file, by, asked=True)
        return
    for number, line in enumerate(lines, 1):
        place = f"{file or 'input'}:{number}"
        yield given_of(Row(_values(line, place, data), number), 0, file or "input", data, asked=True)


def _values(line: Any, place: str, data: Vec2SeqData) -> dict[str, Any]:
    """A line, or what Python gives in place of one, by the names of the columns."""
    if data.image.column is not None or data.image.strokes is not None:
        is_json = isinstance(line, str) and line.lstrip().startswith("[")
        return {str(data.image.column or data.image.strokes): series_in(line, place) if is_json else line}
    if isinstance(line, str) and not line.lstrip().startswith(("[", "{")):
        line = line.replace(",", " ").split()
    found = series_in(line.tolist() if isinstance(line, np.ndarray) else line, place)
    if data.frames is not None:
        return {data.frames: found}
    assert data.vector is not None, "what is given is a vector, places or a picture"
    if len(data.vector) == 1:
        return {data.vector[0]: found}
    cells = list(found) if isinstance(found, list) else [found]
    if len(cells) != len(data.vector):
        raise DataError(
            f"{place}: found {len(cells)} numbers, but a vector here has {len(data.vector)}: {', '.join(data.vector)}."
        )
    return dict(zip(data.vector, cells, strict=True))


def _vector(value: object, place: str, name: str) -> NDArray[np.float32]:
    """The numbers of one column: one, a list of them, or a text of them with blanks between."""
    parts = (
        value.split() if isinstance(value, str) else list(value) if isinstance(value, list | np.ndarray) else [value]
    )
    try:
        found = np.array([float(part) for part in parts], np.float64)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise DataError(f"{place}: '{name}' must hold numbers, as [0.5, 1] or 0.5 1, but is {shown(value)}.") from error
    return _usable(found, place, name)


def _places(value: object, place: str, name: str) -> NDArray[np.float32]:
    """Features of places: S × F numbers, or H × W × F."""
    try:
        found = np.array(value, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{place}: '{name}' must hold as many numbers for every place, S × F or H × W × F, but is {shown(value)}."
        ) from error
    if found.ndim not in (2, 3) or not found.size:
        raise DataError(
            f"{place}: '{name}' must hold features of places, S × F numbers or H × W × F, but is of "
            f'{" × ".join(map(str, found.shape)) or "one number"}. For one vector, set data.vector = ["{name}"].'
        )
    return _usable(found, place, name)


def _usable(found: NDArray[np.float64], place: str, name: str) -> NDArray[np.float32]:
    if not np.isfinite(found).all():
        raise DataError(f"{place}: '{name}' holds a number that is missing or not finite. Fill it in, or leave it out.")
    if np.abs(found).max(initial=0.0) > np.finfo(np.float32).max:
        raise DataError(f"{place}: '{name}' holds a number that is too large to compute with. Use other units.")
    if not found.size:
        raise DataError(f"{place}: there is no number in '{name}'. Give the row some, or remove it.")
    return found.astype(np.float32)


def described_input(given: Given) -> str:
    """What a prediction calls what it was given.

    >>> described_input(Given(np.array([1, 0.25], np.float32), None, None, None, 0, 1))
    '1 0.25'
    """
    if given.vector is not None:
        more = " …" if len(given.vector) > SEVERAL else ""
        return " ".join(f"{number:g}" for number in given.vector[:SEVERAL]) + more
    if given.places is not None:
        return f"features of {' × '.join(map(str, given.places.shape[:-1]))} places"
    if isinstance(given.picture, str):
        return given.picture
    strokes = given.picture if isinstance(given.picture, list) else []
    return f"{len(strokes)} strokes" if strokes else "a picture"


def key_of(given: Given) -> str:
    """What is the same for examples of which the same is given."""
    if given.vector is not None:
        return given.vector.tobytes().hex()
    if isinstance(given.picture, str):
        return given.picture
    if given.places is not None:
        return given.places.tobytes().hex()
    return json.dumps(given.picture, default=str)
