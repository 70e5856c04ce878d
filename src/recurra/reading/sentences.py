"""Sentences out of files: which columns hold what, and every row checked against it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.data.formats import reader
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.offsets import words_in
from recurra.reading.parts import drawn
from recurra.reading.tables import task_rows, value_in
from recurra.settings import Part, SettingError
from recurra.text.key_values import EVERY, NONE, column_and_key, pairs_of

if TYPE_CHECKING:
    from recurra.config import TaggingData
    from recurra.data.formats import Row
    from recurra.text.written import Written

TOKENS, TAGS = ("tokens", "text", "words", "sentence"), ("upos", "tags", "pos", "ner", "pos_tags", "ner_tags")
"""What columns are usually called."""

EDITED = ("lemma", "lemmas")
"""Columns that are learned as edits of the words, where nothing else is said."""

LOOKED_AT = 2000
"""Sentences that are looked at to see in which scheme their tags are."""


class Sentence(NamedTuple):
    """One example: words or frames, what is wanted of them, and where it stands."""

    tokens: tuple[str, ...]
    frames: NDArray[np.float64] | None  # (T, d)
    tags: tuple[tuple[str, ...], ...]  # per column; "" is unlabelled
    values: NDArray[np.float64] | None  # (T, k)
    label: str | None
    file: int
    line: int
    written: Written | None = None  # as it stands in its text, where that is known

    def __len__(self) -> int:
        return len(self.tokens) if self.frames is None else len(self.frames)


def with_columns(data: TaggingData, row: Row, path: str | Path) -> TaggingData:
    """The settings with the columns that the first row has, where none were named."""
    columns = list(row.values)
    tokens, frames = data.tokens, data.frames
    if tokens is None and frames is None:
        tokens = next((name for name in TOKENS if name in columns), None)
        frames = "frames" if tokens is None and "frames" in columns else None
    tags: list[str] | None = data.tags
    values, label = data.values, data.label
    if tags is None and values is None:
        tags = [name for name in columns if name in TAGS][:1] or None
        values = ["values"] if tags is None and "values" in columns else None
    if label is None and "label" in columns:
        label = "label"
    for name in tags or ():
        _refuse_uneven(data.columns or [], tokens or "tokens", name)
    if tags and any(column_and_key(name)[1] == EVERY for name in tags):
        tags = _with_every_key(data, tags)
    edits = data.edits
    if edits is None:
        edits = [] if frames is not None else [name for name in tags or () if name in EDITED]
    found = dataclasses.replace(
        data, tokens=tokens, frames=frames, tags=tags or [], edits=edits, values=values, label=label
    )
    for name in names(found):
        if name not in columns and column_and_key(name)[0] not in columns:
            raise DataError(f"{path}:{row.line}: there is no column '{name}'. {did_you_mean(name, columns)}")
    if tokens is None and frames is None:
        raise DataError(
            f"{path}:{row.line}: tagging reads words from a column 'tokens' (or numbers from 'frames'), but the "
            f'columns are {", ".join(columns)}. Name them: data.columns = ["tokens", "tags"], or data.tokens = "…".'
        )
    if not tags and not values and label is None:
        if columns == ["text"]:
            raise DataError(
                f"{path}:{row.line}: tagging needs tags, but this file was read as plain text. If each line holds a "
                f"word and its tags, and a blank line ends a sentence, add --format conll (data.format = 'conll')."
            )
        raise DataError(
            f"{path}:{row.line}: tagging needs a column with tags, but the columns are {', '.join(columns)}. "
            f'Name it: data.tags = ["…"].'
        )
    return found


def _with_every_key(data: TaggingData, tags: Sequence[str]) -> list[str]:
    """The names of columns, with one of each key of the training files in place of feats:*."""
    files, named = data.files("train"), [column_and_key(name) for name in tags]
    keys: dict[str, set[str]] = {column: set() for column, key in named if key == EVERY}
    for path in files:
        for row in task_rows(path, data, *names(data)):
            for column, found in keys.items():
                for cell in set(words_of(value_in(row, column, f"{path}:{row.line}"), f"{path}:{row.line}", column)):
                    found.update(pairs_of(cell))
    for column, found in keys.items():
        if not found:
            raise SettingError(
                f"data.tags = '{column}:{EVERY}': the column '{column}' of {', '.join(files)} has no pairs such as "
                "Case=Nom. Leave it out.",
                ("data", "tags"),
            )
    every = [
        [f"{column}:{each}" for each in sorted(keys[column], key=str.lower)] if key == EVERY else [name]
        for name, (column, key) in zip(tags, named, strict=True)
    ]
    return list(dict.fromkeys(itertools.chain.from_iterable(every)))


def _refuse_uneven(columns: Sequence[str], tokens: str, tags: str) -> None:
    """Refuse several columns of tags of one name beside another number of columns of tokens: a cell is a tag there."""
    count, words = columns.count(tags), columns.count(tokens)
    if count > 1 and count != words:
        raise SettingError(
            f"data.columns names '{tags}' {count} times, so that these cells together are the tags of a row, one for "
            f"each word, but '{tokens}' {words} times. For several kinds of tags, give them names of their own: "
            f'data.columns = ["tokens", "first", "second"] and data.tags = ["first", "second"].',
            ("data", "columns"),
        )


def names(data: TaggingData) -> list[str]:
    """The columns that are named, by the user or after a look at the data."""
    given = (data.tokens, data.frames, data.label, *(data.tags or ()), *(data.values or ()))
    return [name for name in given if name is not None]


def fitting_crf(data: TaggingData, *columns: str) -> Part:
    """A CRF that forbids what BIO forbids, unless the data itself does it: IOB1 looks like BIO by its labels alone."""
    from recurra.metrics.spans import breaches, scheme_of

    looked_at = list(itertools.islice(sentences(data.files("train"), data), LOOKED_AT))
    for number, column in enumerate(data.tags or ()):
        if columns and column not in columns:
            continue
        labelled = [[tag for tag in sentence.tags[number] if tag] for sentence in looked_at]
        is_bio = scheme_of(itertools.chain.from_iterable(labelled)) == "bio"
        if is_bio and breaches(labelled, "bio") > len(labelled) / 20:
            return {"name": "crf", "constraints": "none"}
    return "crf"


def sentences(files: Sequence[str | Path], data: TaggingData) -> Iterator[Sentence]:
    """The sentences of some files, each checked: as many tags as elements, numbers that are numbers."""

    def found() -> Iterator[Sentence]:
        for number, path in enumerate(files):
            for row in task_rows(path, data, *names(data)):
                yield _sentence(row, number, path, data)

    return drawn(files, found, _key_of)


def _key_of(sentence: Sentence) -> bytes:
    """What is the same for sentences of the same words."""
    frames = b"" if sentence.frames is None else sentence.frames.tobytes()
    return repr(sentence.tokens).encode("utf-8", "surrogatepass") + frames


def _sentence(row: Row, file: int, path: str | Path, data: TaggingData) -> Sentence:
    place = f"{path}:{row.line}"
    tokens: tuple[str, ...] = ()
    frames = None
    if data.frames is not None:
        frames = matrix(value_in(row, data.frames, place), place, data.frames, np.float64)
    else:
        assert data.tokens is not None, "with_columns() has named the column"
        text = row.values.get("text") if data.cut == "signs" and data.tokens not in row.values else None
        if isinstance(text, str):  # a text in which nothing is marked
            return cut_sentence(text, data, file, row.line)
        tokens = words_of(value_in(row, data.tokens, place), place, data.tokens)
    length = len(tokens) if frames is None else len(frames)
    if length == 0 and data.empty == "refuse":
        raise DataError(f'{place}: this example is empty. Remove it, or set data.empty = "keep".')
    tags = []
    for name in data.tags or ():
        found = _tags_in(row, name, place)
        if len(found) != length:
            raise DataError(
                f"{place}: found {length} elements, but {len(found)} tags in '{name}'. Each element needs one tag."
            )
        tags.append(found if data.scheme is None else _in_scheme(found, data.scheme, place, name))
    values = None
    if data.values:
        parts = [matrix(value_in(row, name, place), place, name, np.float64, missing=True) for name in data.values]
        for name, part in zip(data.values, parts, strict=True):
            if len(part) != length:
                raise DataError(
                    f"{place}: '{name}' has {len(part)} numbers, but the sequence has {length} elements: there must be "
                    "one for each."
                )
        values = np.concatenate(parts, axis=1) if parts else None
    label = None
    if data.label is not None:
        found_label = value_in(row, data.label, place)
        if not isinstance(found_label, str) or not found_label.strip():
            raise DataError(f"{place}: the label in '{data.label}' must be a word, but is {found_label!r}.")
        label = found_label.strip()
    return Sentence(tokens, frames, tuple(tags), values, label, file, row.line, row.written)


def cut_of(data: TaggingData) -> Literal["blanks", "signs"] | None:
    """How texts to tag are cut into tokens: as set, or around signs where texts were marked that were cut so."""
    if data.cut is not None or data.frames is not None:
        return data.cut
    return "signs" if any(reader(path, data.format).marks_texts for path in data.files("train")) else None


def cut_sentence(text: str, data: TaggingData, file: int, line: int) -> Sentence:
    """A text to tag, cut into tokens as data.cut says."""
    written = words_in(text, data.cut) if text.strip() else None
    return Sentence(() if written is None else tuple(written.forms), None, (), None, None, file, line, written)


def _in_scheme(tags: tuple[str, ...], scheme: str, place: str, name: str) -> tuple[str, ...]:
    from recurra.metrics.spans import converted

    try:
        return tuple(converted(tags, scheme))
    except DataError as error:
        raise DataError(
            f"{place}: data.scheme = '{scheme}' reads tags of spans, O, B-type, I-type, E-type and S-type, but the "
            f"column '{name}' has others, such as {next(tag for tag in tags if tag[:1] not in 'OBIES')!r}."
            if any(tag[:1] not in "OBIES" for tag in tags)
            else f"{place}: {error}"
        ) from error


def found_schemes(data: TaggingData) -> list[tuple[str, str]]:
    """The columns whose tags are spans, each with the scheme it is written in."""
    from recurra.metrics.spans import found_scheme

    written = dataclasses.replace(data, scheme=None)
    looked_at = list(itertools.islice(sentences(data.files("train"), written), LOOKED_AT))
    found = []
    for column, name in enumerate(data.tags or ()):
        scheme = found_scheme([[tag for tag in sentence.tags[column] if tag] for sentence in looked_at])
        found += [(name, scheme)] if scheme is not None else []
    return found


def _tags_in(row: Row, name: str, place: str) -> tuple[str, ...]:
    """The tags of a column, or the values of one key of it."""
    column, key = column_and_key(name)
    if key is None or name in row.values:
        return words_of(value_in(row, name, place), place, name, empty=True)
    cells = words_of(value_in(row, column, place), place, column, empty=True)
    return tuple(pairs_of(cell).get(key, NONE) if cell else "" for cell in cells)


def words_of(value: object, place: str, name: str, *, empty: bool = False) -> tuple[str, ...]:
    """A list of strings, or a string split at blanks; where `empty`, an item may be missing."""
    if isinstance(value, str):
        return tuple(value.split())
    if isinstance(value, list) and all(isinstance(item, str) or (empty and item is None) for item in value):
        words = tuple(item or "" for item in value)
        if empty or all(words):
            return words
        raise DataError(f"{place}: word {words.index('') + 1} of '{name}' is empty.")
    raise DataError(f"{place}: '{name}' must contain words, as a list or separated by spaces, but is {shown(value)}.")


def matrix(value: object, place: str, name: str, dtype: type, *, missing: bool = False) -> NDArray[Any]:
    """Numbers per step, (T, n), from lists of lists, a list, or a string of numbers separated by spaces.

    Where numbers may be missing, null is NaN.
    """
    if isinstance(value, str):
        value = value.split()
    if not isinstance(value, list):
        raise DataError(f"{place}: '{name}' must hold numbers, but is {shown(value)}.")
    try:
        array: NDArray[Any] = np.array(value, dtype)
    except (ValueError, TypeError) as error:
        widths = {len(step) for step in value if isinstance(step, list)}
        if len(widths) < 2 and (strange := _strange(value)) is not None:
            raise DataError(f"{place}: '{name}' must contain only numbers, but has {shown(strange)}.") from error
        why = f"steps of {min(widths)} and of {max(widths)} numbers" if len(widths) > 1 else shown(value)
        raise DataError(
            f"{place}: '{name}' must have the same number of values at every step, but has {why}."
        ) from error
    if len(array) == 0:
        return np.zeros((0, 0), dtype)
    array = array.reshape(len(array), -1) if array.ndim < 2 else array
    if array.ndim != 2:
        raise DataError(f"{place}: '{name}' must be a list of steps, each a list of numbers, but is nested deeper.")
    wrong = np.isinf(array) if missing else ~np.isfinite(array)
    if wrong.any():
        step = int(wrong.any(1).argmax()) + 1
        raise DataError(
            f"{place}: '{name}' contains a number at step {step} that is missing, infinite or NaN. Correct it, or "
            "remove that step."
        )
    return array


def _strange(steps: list[Any]) -> object:
    """The first item of steps that is no number; None where there is none."""
    for item in itertools.chain.from_iterable(step if isinstance(step, list) else [step] for step in steps):
        try:
            float(item)
        except (TypeError, ValueError):
            if item is not None:
                return item
    return None


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
