"""Texts, series and pictures with a class, several or numbers: which columns hold what, and every row checked."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.data.checking.pictures import is_drawing, is_path
from recurra.data.formats import reader
from recurra.data.roles import label_columns, number_in, text_columns, two_texts
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.parts import drawn
from recurra.reading.sentences import matrix, shown, words_of
from recurra.reading.tables import task_rows, value_in, with_columns_of_format

if TYPE_CHECKING:
    from recurra.config import ClassificationData, ImageData
    from recurra.data.formats import Row

LOOKED_AT = 2000
"""Rows that are looked at to see whether two columns were swapped."""

FEWEST_SWAPPED = 20
"""Fewer rows than that say nothing about it."""

WANTED = ("label", "category", "labels", "target", "score")
IMAGES, STROKES = ("image", "picture", "photo"), ("strokes", "ink")
KNOWN = frozenset(("text", "tokens", "frames", "values", "series", *IMAGES, *STROKES, *WANTED))
"""Names of columns that say what they hold."""


class Pictured(NamedTuple):
    """A picture as a file has it, to be opened or drawn when it is encoded."""

    value: object  # a path, pixels or strokes
    place: str  # where it stands
    folder: str  # where a relative path starts


class LabelledSequence(NamedTuple):
    """One example: a text, a series or a picture, what is wanted of it, and where it stands."""

    text: str  # of a picture its path
    words: tuple[str, ...] | None  # where the words came as a list
    frames: NDArray[np.float64] | None  # (T, d)
    labels: tuple[str, ...]  # one class, or any number
    targets: NDArray[np.float64] | None  # (k,)
    file: int
    line: int
    picture: Pictured | None = None
    second: str | None = None  # the other text, where two are read together
    second_words: tuple[str, ...] | None = None


def with_columns(data: ClassificationData) -> ClassificationData:
    """The settings with the columns that the first training file has, where none were named."""
    path = data.files("train")[0]
    data = with_columns_of_format(data)
    first = next(task_rows(path, data, *names(data)))
    columns = list(first.values)
    is_table = data.columns is None and reader(path, data.format).is_table
    if is_table and not names(data) and columns == ["column1", "column2"]:  # there is no header
        read = "image" if is_path(first.values[columns[0]]) else "text"
        data = dataclasses.replace(data, columns=[read, "label"])
        first = next(task_rows(path, data, *names(data)))
        columns = list(first.values)
    elif is_table and not names(data) and len(columns) == 2 and not {*columns} & KNOWN:
        data = _by_usual_names(data, first.values)
    place = f"{path}:{first.line}"
    for name in names(data):
        if name not in columns:
            raise DataError(f"{place}: there is no column '{name}'. {did_you_mean(name, columns)}")
    data = _what_is_wanted(_what_is_read(data, first.values, place), columns, place)
    if data.label is not None and data.text.column is not None:
        _refuse_swapped(data, path)
    return data


def _by_usual_names(data: ClassificationData, first: Mapping[str, Any]) -> ClassificationData:
    """The settings for a header of two names: what they say, or else first what is read, then the label."""
    columns = list(first)
    labels, texts = label_columns(columns), text_columns(columns)
    label = labels[0] if len(labels) == 1 else next((name for name in columns if [name] != texts), columns[1])
    if len(texts) != 1 and len(labels) != 1:
        label = columns[1]
    read = next(name for name in columns if name != label)
    if is_path(first[read]):
        return dataclasses.replace(data, image=dataclasses.replace(data.image, column=read), label=label)
    return dataclasses.replace(data, text=dataclasses.replace(data.text, column=read), label=label)


def names(data: ClassificationData) -> list[str]:
    """The columns that are named, by the user or after a look at the data."""
    given = (
        data.text.column,
        data.second,
        data.frames,
        data.image.given,
        data.label,
        data.labels,
        *(data.targets or ()),
    )
    return [name for name in given if name is not None]


def _what_is_read(data: ClassificationData, first: Mapping[str, Any], place: str) -> ClassificationData:
    if data.text.column is not None or data.frames is not None or data.image.given is not None:
        return data
    columns = list(first)
    pair = two_texts(name for name in columns if isinstance(first[name], str | list) and not is_series(first[name]))
    if data.second is not None:
        return _with_the_other(data, first, pair, place)
    if pair is not None and "text" not in columns:
        return dataclasses.replace(data, text=dataclasses.replace(data.text, column=pair[0]), second=pair[1])
    text: str | None = next((name for name in ("text", "tokens") if name in columns), None)
    if text is None and not {"frames", "values", "series"} & {*columns} and (image := _pictures(data, first)):
        return dataclasses.replace(data, image=image)
    if text is None:
        numeric = [name for name in columns if is_series(first[name])]
        named = [name for name in ("frames", "values", "series") if name in columns] or numeric
        if named and (named[0] in ("frames", "values", "series") or len(numeric) == 1):
            return dataclasses.replace(data, frames=named[0])
        wanted = {data.label, data.labels, *(data.targets or ()), *WANTED}
        others = [name for name in columns if name not in wanted]
        if len(others) > 1:
            usual = text_columns(name for name in others if isinstance(first[name], str))
            if len(usual) > 1:
                raise DataError(
                    f"{place}: classification reads one text, but {' and '.join(map(repr, usual))} could both be it. "
                    f'Name it: data.text = "{usual[0]}"; to read both, one after the other, call both "text" in '
                    f"data.columns."
                )
            others = usual or others
        text = others[0] if len(others) == 1 and isinstance(first[others[0]], str) else None
    if text is None:
        raise DataError(
            f"{place}: classification reads a text from a column 'text', numbers from 'frames' or pictures from "
            f"'image', but the columns "
            f'are {", ".join(columns)}. Name them: data.columns = ["text", "label"], or data.text = "…".'
        )
    return dataclasses.replace(data, text=dataclasses.replace(data.text, column=text))


def _with_the_other(
    data: ClassificationData, first: Mapping[str, Any], pair: tuple[str, str] | None, place: str
) -> ClassificationData:
    """The settings with the text that is read before data.second."""
    wanted = {data.second, data.label, data.labels, *(data.targets or ()), *WANTED}
    others = [name for name, value in first.items() if name not in wanted and isinstance(value, str)]
    found = ["text"] if "text" in others else [pair[0]] if pair is not None and pair[1] == data.second else others
    if len(found) != 1:
        raise DataError(
            f"{place}: data.second = '{data.second}' is read together with another text, but "
            + (f"{' and '.join(map(repr, others))} could be it." if others else "there is no other column of text.")
            + ' Name it: data.text = "…".'
        )
    return dataclasses.replace(data, text=dataclasses.replace(data.text, column=found[0]))


def _pictures(data: ClassificationData, first: Mapping[str, Any]) -> ImageData | None:
    """The settings of pictures with the column that holds them; None where none does."""
    wanted = {data.label, data.labels, *(data.targets or ()), *WANTED}
    columns = {name: value for name, value in first.items() if name not in wanted}
    strokes = [name for name, value in columns.items() if name in STROKES or is_drawing(value)]
    if strokes:
        return dataclasses.replace(data.image, strokes=strokes[0])
    images = [name for name, value in columns.items() if name in IMAGES or is_path(value)]
    return dataclasses.replace(data.image, column=images[0]) if images else None


def _what_is_wanted(data: ClassificationData, columns: Sequence[str], place: str) -> ClassificationData:
    if data.label is not None or data.labels is not None or data.targets:
        return data
    for name in ("label", "category"):
        if name in columns:
            return dataclasses.replace(data, label=name)
    if "labels" in columns:
        return dataclasses.replace(data, labels="labels")
    for name in ("target", "score"):
        if name in columns:
            return dataclasses.replace(data, targets=[name])
    usual = label_columns(name for name in columns if name not in names(data))
    if len(usual) == 1:
        return dataclasses.replace(data, label=usual[0])
    if usual:
        raise DataError(
            f"{place}: classification predicts one label, but {' and '.join(map(repr, usual))} could both be it. Name "
            f'it: data.label = "{usual[0]}".'
        )
    raise DataError(
        f"{place}: classification needs a column 'label' (one class), 'labels' (several) or 'target' (a number), but "
        f'the columns are {", ".join(columns)}. Name it: data.label = "…", data.labels = "…" or data.targets = ["…"].'
    )


def is_series(value: object) -> bool:
    """Whether a value is a list of numbers, or of lists of them.

    >>> is_series([[1, 2.5], [3, 4]]), is_series(["a"]), is_series(1)
    (True, False, False)
    """
    if not isinstance(value, list | np.ndarray):
        return False
    while isinstance(value, list | np.ndarray) and len(value):
        value = value[0]
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _refuse_swapped(data: ClassificationData, path: str) -> None:
    """Refuse a file whose classes are all different and long while its texts are few."""
    texts, labels = [], []
    for row in itertools.islice(task_rows(path, data, *names(data)), LOOKED_AT):
        texts.append(str(row.values.get(str(data.text.column), "")))
        labels.append(str(row.values.get(str(data.label), "")))
    count = len(texts)
    words = [sum(len(value.split()) for value in values) for values in (texts, labels)]
    if count >= FEWEST_SWAPPED and len({*labels}) >= 0.9 * count and len({*texts}) <= count / 2 and words[1] > words[0]:
        raise DataError(
            f"{path}: text and label look swapped: '{data.label}' has {len({*labels}):,} different values in {count:,} "
            f"rows, such as {shown(labels[0])}, and '{data.text.column}' only {len({*texts}):,}, such as "
            f'{shown(texts[0])}. Set data.columns = ["label", "text"].'
        )


def labelled(files: Sequence[str | Path], data: ClassificationData) -> Iterator[LabelledSequence]:
    """The examples of some files, each checked; without those whose class is to be left out."""
    leaves_out = {*data.leave_out} if data.label is not None else set()

    def found() -> Iterator[LabelledSequence]:
        for number, path in enumerate(files):
            for row in task_rows(path, data, *names(data)):
                example = _labelled(row, number, path, data)
                if not leaves_out or not leaves_out.issuperset(example.labels):
                    yield example

    return drawn(files, found, _key_of)


def _key_of(example: LabelledSequence) -> bytes:
    """What is the same for examples of which the same is read."""
    frames = b"" if example.frames is None else example.frames.tobytes()
    read = [example.text, example.picture and example.picture.value]
    read += [] if example.second is None else [example.second]
    return repr(read).encode("utf-8", "surrogatepass") + frames


def _labelled(row: Row, file: int, path: str | Path, data: ClassificationData) -> LabelledSequence:
    place = f"{path}:{row.line}"
    text, words, frames, picture = "", None, None, None
    if data.image.given is not None:
        picture = Pictured(value_in(row, data.image.given, place), place, str(Path(path).parent))
        text = picture.value if isinstance(picture.value, str) else ""
    elif data.frames is not None:
        frames = series(value_in(row, data.frames, place), place, data.frames, missing=data.missing == "mean")
    else:
        assert data.text.column is not None, "with_columns() has named the column"
        value = value_in(row, data.text.column, place)
        if isinstance(value, list) and data.columns is not None and data.columns.count(data.text.column) > 1:
            value = " ".join(map(str, value))  # several columns are read as one text, one after the other
        text, words = text_of(value, place, data.text.column)
    second, second_words = None, None
    if data.second is not None:
        second, second_words = text_of(value_in(row, data.second, place), place, data.second)
    if data.empty == "refuse" and picture is None and not _is_there(text, second, frames):
        what = "the text is empty" if frames is None else "the series has no step"
        if second is not None:
            what = f"'{data.second if text.strip() else data.text.column}' is empty"
        raise DataError(f'{place}: {what}. Remove the row, or set data.empty = "keep".')
    labels: tuple[str, ...] = ()
    if data.label is not None:
        labels = (class_of(value_in(row, data.label, place), place, data.label),)
    elif data.labels is not None:
        labels = classes_of(value_in(row, data.labels, place), place, data.labels)
    targets = None
    if data.targets:
        targets = np.concatenate([numbers_of(value_in(row, name, place), place, name) for name in data.targets])
    return LabelledSequence(text, words, frames, labels, targets, file, row.line, picture, second, second_words)


def _is_there(text: str, second: str | None, frames: NDArray[np.float64] | None) -> bool:
    """Whether there is something to read, of two texts in both."""
    if frames is not None:
        return len(frames) > 0
    return bool(text.strip()) and (second is None or bool(second.strip()))


def text_of(value: object, place: str, name: str) -> tuple[str, tuple[str, ...] | None]:
    """A text, and its words where they came as a list."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, list | tuple) and not is_series(list(value)):
        words = words_of(list(value), place, name)
        return " ".join(words), words
    if value is None:
        return "", None
    raise DataError(
        f"{place}: '{name}' must hold a text, but is {shown(value)}. If these are numbers to be read as a series, "
        f'set data.frames = "{name}".'
    )


def series(value: object, place: str, name: str, *, missing: bool = False) -> NDArray[np.float64]:
    """Numbers per step, (T, d); NaN where one is missing and may be."""
    given = value.tolist() if isinstance(value, np.ndarray) else value
    return matrix(given, place, name, np.float64, missing=missing)


def series_in(line: str | Sequence[str], place: str) -> object:
    """What a line means where a question is a series: JSON, or numbers with blanks between them as they are."""
    try:
        found = json.loads(line) if isinstance(line, str) and line.lstrip().startswith(("[", "{")) else line
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{place}: a series is a JSON list of numbers, or of lists of them.") from error
    if isinstance(found, dict):
        raise DataError(
            f"{place}: a series is a JSON list of numbers, or of lists of them, but this is an object. To use JSON "
            "objects, save them in a file that ends in .jsonl."
        )
    return list(found) if isinstance(found, tuple) else found


def class_of(value: object, place: str, name: str) -> str:
    """The name of a class: a word, or a whole number."""
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int | np.integer) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    if isinstance(value, float):
        raise DataError(
            f"{place}: the class in '{name}' is {value!r}, which is a number, not a class name. To predict numbers, "
            f"set "
            f'data.targets = ["{name}"].'
        )
    if value is None or isinstance(value, str):
        raise DataError(f"{place}: the class in '{name}' is missing. Fill it in, or remove the row.")
    raise DataError(
        f"{place}: the class in '{name}' must be a word, but is {shown(value)}. For rows with several classes, set "
        f'data.labels = "{name}".'
    )


def classes_of(value: object, place: str, name: str) -> tuple[str, ...]:
    """Any number of classes: a list, or a string in which commas, or else blanks, are between them.

    >>> classes_of("news, sport", "a.tsv:1", "labels"), classes_of("", "a.tsv:2", "labels")
    (('news', 'sport'), ())
    """
    if value is None:
        return ()
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")] if "," in value else value.split()
        return tuple(dict.fromkeys(part for part in parts if part))
    if isinstance(value, list | np.ndarray):
        return tuple(dict.fromkeys(class_of(part, place, name) for part in value))
    return (class_of(value, place, name),)


def _number(part: object) -> float:
    if isinstance(part, str) and not math.isnan(number := number_in(part)):
        return number
    return float(part)  # type: ignore[arg-type]  # that is the question


def numbers_of(value: object, place: str, name: str) -> NDArray[np.float64]:
    """The numbers of one column, (k,): one, or a list of them."""
    parts = list(value) if isinstance(value, list | np.ndarray) else [value]
    try:
        found = np.array([math.nan if part in (None, "") else _number(part) for part in parts], np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{place}: '{name}' must hold a number, but is {shown(value)}. To predict classes, set "
            f'data.label = "{name}".'
        ) from error
    if not len(found) or not np.isfinite(found).all():
        raise DataError(
            f"{place}: the number in '{name}' is missing, infinite or NaN: {shown(value)}. Correct it, or remove "
            "the row."
        )
    return found
