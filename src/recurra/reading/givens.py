"""What a sequence is written from at once, a vector, features of places or a picture: every row checked."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config import Vec2SeqData
from recurra.data.formats import Row
from recurra.data.normal import numbers
from recurra.data.pictures import is_picture
from recurra.errors import DataError
from recurra.reading.given_columns import as_trained, names, read_by, with_roles
from recurra.reading.pair_tokens import ENOUGH, LOOKED_AT, mostly
from recurra.reading.pairs import text_of
from recurra.reading.parts import drawn
from recurra.reading.sentences import shown
from recurra.reading.tables import task_rows, value_in

SHORT = 40
"""A text of so many letters at most is written letter by letter."""

SEVERAL = 8
"""Numbers of a vector that are shown."""


STROKES = "pen strokes are a JSON list, [[[x, …], [y, …]], …]"


class Given(NamedTuple):
    """One example: what is given, what is to be written, and where they stand."""

    vector: NDArray[np.float32] | None  # (F,)
    places: NDArray[np.float32] | None  # (S, F), or (H, W, F)
    picture: object  # a path, an array or strokes as the file has them; None without a picture
    target: str | None  # None in a question
    place: str  # file:line, for what is said of it
    file: int
    line: int

    @property
    def steps(self) -> NDArray[np.float32]:
        """The numbers of a vector or of places, a row for each place."""
        values = self.vector if self.vector is not None else self.places
        assert values is not None, "there are numbers where there is no picture"
        return values.reshape(-1, values.shape[-1])

    @property
    def is_grid(self) -> bool:
        """Whether places stand in rows and columns."""
        return self.places is not None and self.places.ndim == 3

    def check_width(self, width: int, other: str) -> None:
        """Refuse another number of numbers than some other has."""
        found = self.steps.shape[1]
        if found != width:
            each = "" if self.places is None else " for each place"
            raise DataError(f"{self.place}: found {numbers(found)}{each}, but {other} has {width}.")


def with_columns(data: Vec2SeqData) -> Vec2SeqData:
    """The settings with the columns that the first training file has and the tokens that suit it, where not named."""
    path = data.files("train")[0]
    data = with_roles(path, data)
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


def givens(files: Sequence[str | Path], data: Vec2SeqData) -> Iterator[Given]:
    """The examples of some files, each checked but for its picture, which is opened when it is encoded."""

    def found() -> Iterator[Given]:
        for number, path in enumerate(files):
            by = as_trained(path, data)
            for row in task_rows(path, by, *names(by)):
                yield given_of(row, number, path, by)

    return drawn(files, found, lambda given: key_of(given).encode("utf-8", "surrogatepass"))


def given_of(row: Row, file: int, path: str | Path | None, data: Vec2SeqData, *, asked: bool = False) -> Given:
    """The example of a row, checked; of one that is asked for its target, that may be missing.

    The path of a picture starts from the folder of the file that names it, or from here where it was typed.
    """
    place = f"{path or 'input'}:{row.line}"
    vector = places = picture = None
    if data.vector is not None:
        vector = np.concatenate([_vector(value_in(row, name, place), place, name) for name in data.vector])
    elif data.frames is not None:
        places = _places(value_in(row, data.frames, place), place, data.frames)
    else:
        name = data.image.given
        assert name is not None, "with_columns() has named the column"
        picture = value_in(row, name, place)
        if picture is None or (isinstance(picture, str) and not picture.strip()):
            raise DataError(f"{place}: the picture in '{name}' is missing. Fill it in, or remove the row.")
        if isinstance(picture, str) and data.image.strokes is not None:
            picture = _from_json(picture, place, STROKES)
        elif isinstance(picture, str) and path is not None:
            picture = str(Path(path).parent / picture)
    column = data.target.column
    assert column is not None, "with_columns() has named the column"
    written = row.values.get(column) if asked else value_in(row, column, place)
    target: str | None = text_of(written, place, column)
    if asked:
        target = target or None
    elif data.empty == "refuse" and not (target or "").strip():
        raise DataError(f'{place}: the target is empty. Remove the row, or set data.empty = "keep".')
    return Given(vector, places, picture, target, place, file, row.line)


def asked(file: str | Path | None, lines: Iterable[Any], data: Vec2SeqData) -> Iterator[Given]:
    """Questions: a picture, the rows of a table, or else one a line: numbers, a JSON list of them, or a path."""
    if file is not None and data.image.column is not None and is_picture(file):
        yield Given(None, None, str(file), None, f"{file}:1", 0, 1)
        return
    if file is not None and (by := read_by(file, data)) is not None:
        for row in task_rows(file, by, *names(by)):
            yield given_of(row, 0, file, by, asked=True)
        return
    if data.vector is not None:  # a line holds all of it, whatever columns it was made of
        data = dataclasses.replace(data, vector=data.vector[:1])
    [name] = [name for name in names(data) if name != data.target.column]
    for number, line in enumerate(lines, 1):
        value = _typed(line, f"{file or 'input'}:{number}", data)
        yield given_of(Row({name: value}, number), 0, file, data, asked=True)


def _typed(line: Any, place: str, data: Vec2SeqData) -> Any:
    """What a line means, or what Python gives in place of one."""
    if not isinstance(line, str):
        return list(line)
    if data.image.column is not None and is_picture(line.strip()):
        return line.strip()
    if line.lstrip().startswith(("[", "{")):
        return _from_json(line, place)
    return line.strip() if data.image.given is not None else line.replace(",", " ").split()


def _from_json(text: str, place: str, what: str = "what is given is a JSON list of numbers") -> object:
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{place}: {what}, but found {shown(text)}.") from error
    if not isinstance(found, list):
        raise DataError(
            f"{place}: {what}, but this is an object. To use JSON objects, save them in a file that ends in .jsonl."
        )
    return found


def _vector(value: object, place: str, name: str) -> NDArray[np.float32]:
    """The numbers of one column: one, a list of them, or a text of them with blanks between."""
    if isinstance(value, str):
        value = _from_json(value, place) if value.lstrip().startswith("[") else value.split()
    parts = list(value) if isinstance(value, list | np.ndarray) else [value]
    try:
        found = np.array([np.nan if part is None else float(part) for part in parts], np.float64)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise DataError(f"{place}: '{name}' must hold numbers, as [0.5, 1] or 0.5 1, but is {shown(value)}.") from error
    return _usable(found, place, name)


def _places(value: object, place: str, name: str) -> NDArray[np.float32]:
    """Features of places: S × F numbers, or H × W × F."""
    value = _from_json(value, place) if isinstance(value, str) and value.lstrip().startswith("[") else value
    try:
        found = np.array(value, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{place}: '{name}' must have the same number of values for every place, S × F or H × W × F, but is "
            f"{shown(value)}."
        ) from error
    if not found.size:
        raise DataError(f"{place}: '{name}' has no places. Fill them in, or remove the row.")
    if found.ndim not in (2, 3):
        raise DataError(
            f"{place}: '{name}' must have the shape S × F or H × W × F (features of places), but has "
            f'{" × ".join(map(str, found.shape)) or "one number"}. For one vector, set data.vector = ["{name}"].'
        )
    return _usable(found, place, name)


def _usable(found: NDArray[np.float64], place: str, name: str) -> NDArray[np.float32]:
    if not np.isfinite(found).all():
        raise DataError(
            f"{place}: '{name}' contains a number that is missing, infinite or NaN. Correct it, or remove the row."
        )
    if np.abs(found).max(initial=0.0) > np.finfo(np.float32).max:
        raise DataError(f"{place}: '{name}' contains a number that is too large to compute with. Use other units.")
    if not found.size:
        raise DataError(f"{place}: '{name}' has no numbers. Fill them in, or remove the row.")
    return found.astype(np.float32)


def described_input(given: Given) -> str:
    """What a prediction calls what it was given.

    >>> described_input(Given(np.array([1, 0.25], np.float32), None, None, None, "input:1", 0, 1))
    '1 0.25'
    """
    if given.vector is not None:
        more = " …" if len(given.vector) > SEVERAL else ""
        return " ".join(f"{number:g}" for number in given.vector[:SEVERAL]) + more
    if given.places is not None:
        return f"features of {' × '.join(map(str, given.places.shape[:-1]))} places"
    return given.picture if isinstance(given.picture, str) else f"the picture of {given.place}"


def key_of(given: Given) -> str:
    """What is the same for examples of which the same is given."""
    if isinstance(given.picture, str):
        return given.picture
    values = given.vector if given.vector is not None else given.places
    content = repr(given.picture).encode() if values is None else repr(values.shape).encode() + values.tobytes()
    return blake2b(content, digest_size=16).hexdigest()
