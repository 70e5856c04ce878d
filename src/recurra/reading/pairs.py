"""Pairs of a source and a target: which columns or files hold what, and every row checked against it."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from recurra.data.files import extension, parallel_files
from recurra.data.formats import Row, Value, endings, reader, rows
from recurra.data.formats.layout import named_cells
from recurra.errors import DataError
from recurra.frozen import NamedTuple
from recurra.reading.asked import PLAIN
from recurra.reading.pair_columns import BETWEEN_FEATURES, as_trained, names, pair_rows, place_of, with_roles
from recurra.reading.pair_tokens import ENOUGH, LOOKED_AT, with_tokens
from recurra.reading.tables import task_rows, value_in
from recurra.settings import Part

if TYPE_CHECKING:
    from recurra.config import Seq2SeqData


class Pair(NamedTuple):
    """One example: what is read, what is to be written, and where they stand."""

    source: tuple[str, ...]  # the texts of its columns, usually one; () with frames
    features: tuple[str, ...]  # symbols that stand before the source: a language, morphological features
    frames: NDArray[np.float32] | None  # (S, F), in place of a text
    target: str | None  # None in a question
    file: int
    line: int


def key_of(pair: Pair) -> str:
    """What is the same for pairs with the same source, which are several references of one answer."""
    if pair.frames is not None:
        return f"{pair.file}:{pair.line}"
    return "\t".join((*pair.source, *pair.features))


def with_columns(data: Seq2SeqData) -> Seq2SeqData:
    """The settings with the columns that the first training file has and the tokens that suit it, where not named."""
    data = with_roles(data)
    if "auto" not in (data.source.tokens, data.target.tokens):
        return with_tokens(data, (), (), 0)
    seen = list(itertools.islice(pairs(data.files("train"), data), ENOUGH))
    sources = [text for pair in seen[:LOOKED_AT] for text in pair.source]
    return with_tokens(data, sources, [pair.target or "" for pair in seen[:LOOKED_AT]], len(seen))


def pairs(files: Sequence[str | Path], data: Seq2SeqData) -> Iterator[Pair]:
    """The pairs of some files, each checked; a path such as "train.en,train.de" means two files, line by line."""

    def found() -> Iterator[Pair]:
        for number, path in enumerate(files):
            by = as_trained(path, data)
            for row in pair_rows(path, by):
                yield pair_of(row, number, path, by)

    from recurra.reading.parts import drawn

    return drawn(files, found, _source_of)


def _source_of(pair: Pair) -> bytes:
    """What is the same for pairs with the same source: all its answers belong together."""
    text = "\t".join((*pair.source, *pair.features)).encode("utf-8", "surrogatepass")
    return text if pair.frames is None else pair.frames.tobytes()


def pair_of(row: Row, file: int, path: str | Path, data: Seq2SeqData, *, asked: bool = False) -> Pair:
    """The pair of a row, checked; of one that is asked for its target, that may be missing."""
    place = place_of(path, row.line)
    frames: NDArray[np.float32] | None = None
    source: tuple[str, ...] = ()
    if data.frames is not None:
        frames = _frames(value_in(row, data.frames, place), place, data.frames)
    else:
        assert data.source.column is not None, "with_columns() has named the column"
        source = _texts(value_in(row, data.source.column, place), place, data.source.column, data)
    features = tuple(
        itertools.chain.from_iterable(
            _features(value_in(row, name, place), place, name) for name in data.features or ()
        )
    )
    assert data.target.column is not None, "with_columns() has named the column"
    target: str | None
    if asked:
        target = text_of(row.values.get(data.target.column), place, data.target.column) or None
        return Pair(source, features, frames, target, file, row.line)
    target = text_of(value_in(row, data.target.column, place), place, data.target.column)
    if data.empty == "refuse":
        is_empty = {"source": not (len(frames) if frames is not None else "".join(source).strip())}
        is_empty["target"] = not target.strip()
        if any(is_empty.values()):
            raise DataError(_nothing_there(path, row.line, is_empty))
    return Pair(source, features, frames, target, file, row.line)


def asked(file: str | Path | None, lines: Iterable[str | Sequence[str]], data: Seq2SeqData) -> Iterator[Pair]:
    r"""Questions: the rows of a table or of parallel files, or else one a line.

    A line is a source; where training has more columns, these follow after tabs, in their order. The target may be
    there or not, for a question has an answer either way.
    """
    by = _read_by(file, data)
    if file is not None and by is not None:
        for row in task_rows(file, by, *names(by)):
            yield pair_of(row, 0, file, by, asked=True)
        return
    for number, line in enumerate(lines, 1):
        values = _line_of_values(line, f"{file or 'input'}:{number}", data)
        yield pair_of(Row(values, number), 0, file or "input", data, asked=True)


def _read_by(file: str | Path | None, data: Seq2SeqData) -> Seq2SeqData | None:
    """The settings to read a file of questions by; None where every line is one."""
    if file is None:
        return None
    trained = data.files("train")[0]
    number = len(parallel_files(file))
    are_alike = (number > 1) == (len(parallel_files(trained)) > 1) and (
        number > 1 or extension(file) == extension(trained)
    )
    is_known = extension(file) in endings() or (are_alike and data.format is not None)
    if number == 1 and (extension(file) in PLAIN or not is_known):
        return None
    format = data.format if are_alike else None
    by = dataclasses.replace(data, format=format, columns=data.columns if are_alike else None)
    if number > 1:
        return dataclasses.replace(by, columns=_fitting(number, data) or by.columns)
    if not reader(file, format).is_table:
        return by
    cells = [str(cell).strip() for cell in next(rows(file, format=_without_header(file, format))).values.values()]
    if {*cells} & {*names(data)}:  # a header
        columns = by.columns and [name for name in by.columns if name in cells or name != data.target.column]
        return dataclasses.replace(by, columns=columns)
    return dataclasses.replace(by, columns=_fitting(len(cells), data) or by.columns)


def _fitting(width: int, data: Seq2SeqData) -> list[str] | None:
    """The columns of training, or all but the target, where there are so many."""
    source = data.frames or str(data.source.column)
    full = data.columns or [source, str(data.target.column), *(data.features or ())]
    if len(full) == width:
        return full
    questions = [name for name in full if name != data.target.column]
    return questions if len(questions) == width else None


def _without_header(file: str | Path, format: Part | None) -> dict[str, Any]:
    options = dict(format) if isinstance(format, dict) else {"name": format or endings()[extension(file)]}
    return {**options, "header": False}


def _line_of_values(line: str | Sequence[str], place: str, data: Seq2SeqData) -> dict[str, Value]:
    missing: dict[str, Value] = dict.fromkeys(data.features or (), None)
    if data.frames is not None:
        from recurra.reading.labelled import series_in

        return {data.frames: cast(Value, series_in(line, place))}
    source = str(data.source.column)
    if not isinstance(line, str):
        return {**missing, source: text_of(list(line), place, source)}
    cells = line.split("\t")
    columns = [source] if len(cells) == 1 else _fitting(len(cells), data)
    if columns is None:
        wanted = ", ".join(_fitting(len(data.features or ()) + 1, data) or [source])
        raise DataError(
            f"{place}: found {len(cells)} texts separated by tabs, but this model needs {wanted} per line. Replace "
            "tabs inside a text by spaces."
        )
    return {**missing, **named_cells(columns, cells)}


def text_of(value: object, place: str, name: str) -> str:
    """A text; words that came as a list are joined by blanks."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return " ".join(value)
    from recurra.reading.sentences import shown

    raise DataError(f"{place}: '{name}' must hold a text, but is {shown(value)}. Write it in quotes, or leave it out.")


def _texts(value: object, place: str, name: str, data: Seq2SeqData) -> tuple[str, ...]:
    """The texts of the source: several where data.columns names it more than once."""
    if data.columns is not None and data.columns.count(name) > 1 and isinstance(value, list):
        return tuple(text_of(part, place, name) for part in value)
    if isinstance(value, str):  # as most are
        return (value,)
    from recurra.reading.labelled import is_series
    from recurra.reading.sentences import shown

    if is_series(value):
        raise DataError(
            f"{place}: '{name}' must hold a text, but is {shown(value)}. To read these numbers as a series, set "
            f'data.frames = "{name}".'
        )
    return (text_of(value, place, name),)


def _frames(value: object, place: str, name: str) -> NDArray[np.float32]:
    from recurra.reading.labelled import series

    found = series(value, place, name)
    if np.abs(found).max(initial=0.0) > np.finfo(np.float32).max:
        raise DataError(f"{place}: '{name}' contains a number that is too large to compute with. Use other units.")
    return found.astype(np.float32)


def _features(value: object, place: str, name: str) -> tuple[str, ...]:
    """The symbols in a column, which blanks, commas, semicolons or bars are between.

    >>> _features("V;PST;3|SG", "a.tsv:1", "features")
    ('V', 'PST', '3', 'SG')
    """
    if isinstance(value, list):
        return tuple(itertools.chain.from_iterable(_features(part, place, name) for part in value))
    if isinstance(value, float | int) and not isinstance(value, bool):
        value = f"{value:g}"
    return tuple(part for part in re.split(BETWEEN_FEATURES, text_of(value, place, name)) if part)


def _nothing_there(path: str | Path, line: int, is_empty: Mapping[str, bool]) -> str:
    sides = [side for side, empty in is_empty.items() if empty]
    what = "both sides are empty" if len(sides) == 2 else f"the {sides[0]} is empty"
    row = "this line of both files" if len(parallel_files(path)) > 1 else "the row"
    place = place_of(path, line, side=0 if is_empty["source"] else 1)
    return f'{place}: {what}. Remove {row}, or set data.empty = "keep".'
