"""Which columns or files hold the source, its features and the target."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recurra.data.excerpt import whole
from recurra.data.files import parallel_files
from recurra.data.formats import reader, rows
from recurra.errors import DataError
from recurra.named import did_you_mean
from recurra.reading.tables import task_rows, with_columns_of_format
from recurra.settings import SettingError

if TYPE_CHECKING:
    from recurra.config import Seq2SeqData
    from recurra.data.formats import Row

BY_WIDTH = {2: ["source", "target"], 3: ["source", "target", "features"]}
"""What the columns of a table without names are taken for."""

FEATURES = ("features", "language")
"""Columns of these names stand before the source unless data.features says otherwise."""

BETWEEN_FEATURES = r"[;|,\s]+"
"""What separates the features of one source."""

LOOKED_AT = 200
"""Rows that are looked at to see whether a third column holds features."""

MOST_FEATURES = 50
"""Different features that these rows may have; more if there is one for every second row at most."""

USUAL_FEATURES = (*FEATURES, "msd", "tags", "feats", "lang")
"""What a third column is called beside a source and a target."""


def with_roles(data: Seq2SeqData) -> Seq2SeqData:
    """The settings with the columns that the first training file has, where none were named."""
    path = data.files("train")[0]
    data = with_columns_of_format(data)
    first = next(pair_rows(path, data))
    if data.columns is None and not names(data) and reader(path, data.format).is_table:
        data, first = _by_usual_names(path, *_by_width(path, data, first))
    place = place_of(path, first.line)
    for name in names(data):
        if name not in first.values:
            raise DataError(f"{place}: there is no column '{name}'. {_known(name, first)}")
    if data.columns is not None and data.columns.count(data.target.column or "target") > 1:
        raise SettingError(
            f"data.columns names {data.target.column or 'target'} twice, but a pair has one target: call the other "
            f'one "_", or write a pair for each.',
            ("data", "columns"),
        )
    data = _with_roles(data, first.values, place)
    is_table = reader(path, data.format).is_table
    return _with_repeated(path, data, first) if is_table and data.columns is None else data


def names(data: Seq2SeqData) -> list[str]:
    """The columns that are named, by the user or after a look at the data."""
    given = (data.source.column, data.frames, data.target.column, *(data.features or ()))
    return [name for name in given if name is not None]


def place_of(path: str | Path, line: int, side: int = 0) -> str:
    """file:line of a pair; of parallel files, in the first of them.

    >>> place_of("a.tsv", 7), place_of("a.en,a.de", 7), place_of("a.en,a.de", 7, side=1)
    ('a.tsv:7', 'a.en:7', 'a.de:7')
    """
    files = parallel_files(path)
    return f"{files[min(side, len(files) - 1)]}:{line}"


def pair_rows(path: str | Path, data: Seq2SeqData) -> Iterator[Row]:
    """The rows of a file or of parallel files."""
    return task_rows(path, data, *names(data))


def as_trained(path: str | Path, data: Seq2SeqData) -> Seq2SeqData:
    """The settings to read pairs by: a table without names has the columns of training, in their order."""
    is_one = len(parallel_files(path)) == 1
    if data.columns is not None or not is_one or not reader(path, data.format).is_table:
        return data
    first = next(pair_rows(whole(path), data))
    columns = [data.frames or str(data.source.column), str(data.target.column), *(data.features or ())]
    if not _is_nameless(first) or len(first.values) != len(columns):
        return data
    return dataclasses.replace(data, columns=columns)


def _is_nameless(first: Row) -> bool:
    return list(first.values) == [f"column{k}" for k in range(1, len(first.values) + 1)]


def _known(name: str, first: Row) -> str:
    """What a column may have been meant to be; of a table without names, also what its first line says."""
    written = did_you_mean(name, [str(value) for value in first.values.values()])
    is_near = _is_nameless(first) and written.startswith("Did you mean")
    return written if is_near else did_you_mean(name, first.values)


def _with_repeated(path: str, data: Seq2SeqData, first: Row) -> Seq2SeqData:
    """The settings with all names of a header, where one stands there twice: only a source may have several texts."""
    repeated = [name for name in names(data) if isinstance(first.values[name], list)]
    if not repeated:
        return data
    if data.target.column in repeated:
        raise DataError(
            f"{path}:1: several columns are called '{data.target.column}', but a pair has one target: rename all but "
            f"one of them."
        )
    options = (
        dict(data.format) if isinstance(data.format, Mapping) else {"name": reader(path, data.format).extensions[0]}
    )
    header = next(rows(path, format={**options, "header": False})).values.values()
    wanted = names(data)
    return dataclasses.replace(
        data, columns=[cell if cell in wanted else "_" for cell in (str(c).strip() for c in header)]
    )


def _by_width(path: str, data: Seq2SeqData, first: Row) -> tuple[Seq2SeqData, Row]:
    """The settings and the first row of a table with names for its columns, where it has none of its own."""
    count = len(first.values)
    if not _is_nameless(first):
        return data, first
    if count not in BY_WIDTH:
        many = "one column" if count == 1 else f"{count} columns"
        raise DataError(
            f"{place_of(path, first.line)}: found {many}, but a pair has two, a source and a target, or three with "
            f'features. Name them: data.columns = ["source", "target"]; "_" leaves one out.'
        )
    data = dataclasses.replace(data, columns=BY_WIDTH[count])
    if count == len(BY_WIDTH[3]):
        _refuse_text_as_features(path, data)
    return data, next(pair_rows(path, data))


def _refuse_text_as_features(path: str, data: Seq2SeqData) -> None:
    """Refuse a third column in which new symbols keep coming: a licence, a comment or an id is no feature."""
    seen = list(itertools.islice(pair_rows(path, data), LOOKED_AT))
    cells = [str(row.values["features"]) for row in seen]
    symbols = {symbol for cell in cells for symbol in re.split(BETWEEN_FEATURES, cell)}
    if len(symbols) > max(MOST_FEATURES, len(cells) / 2):
        from recurra.reading.sentences import shown

        raise DataError(
            f"{place_of(path, seen[0].line)}: the third column would be read as features of the source, but in "
            f"{len(cells)} rows it has {len(symbols)} different ones, as in {shown(cells[0])}. To leave it out, set "
            f'data.columns = ["source", "target", "_"]; to read it, ["source", "target", "features"].'
        )


def _by_usual_names(path: str, data: Seq2SeqData, first: Row) -> tuple[Seq2SeqData, Row]:
    """The settings and the first row with the roles that the names of a header are usually given."""
    from recurra.data.roles import pair_roles, usual

    roles = pair_roles(first.values)
    if data.columns is not None or roles is None or {*first.values} & {"source", "target", "frames"}:
        return data, first
    sources = [name for name, role in roles.items() if role == "source"]
    target = next(name for name, role in roles.items() if role == "target")
    features = [name for name in first.values if name not in roles and usual(name) in USUAL_FEATURES]
    if len(sources) == 1:
        source = dataclasses.replace(data.source, column=sources[0])
        data = dataclasses.replace(data, source=source, target=dataclasses.replace(data.target, column=target))
        return dataclasses.replace(data, features=features) if data.features is None else data, first
    named = {**roles, **dict.fromkeys(features, "features")}
    data = dataclasses.replace(data, columns=[named.get(name, "_") for name in first.values])
    return data, next(pair_rows(path, data))


def _with_roles(data: Seq2SeqData, first: Mapping[str, Any], place: str) -> Seq2SeqData:
    """The settings with a name for each role: a column is called by its role, or it is the only one left."""
    columns = list(first)
    source, target, frames, features = data.source.column, data.target.column, data.frames, data.features
    if features is None:
        features = [] if frames else [name for name in columns if name in FEATURES and name not in (source, target)]
    if source is None and frames is None:
        source = "source" if "source" in columns else None
        if source is None and "frames" in columns:
            frames = "frames"
        from recurra.reading.labelled import is_series

        if source is not None and is_series(first[source]):
            source, frames = None, source
    if data.features and frames is not None:
        raise SettingError(
            "data.features needs a text as source, but the source is a series of numbers: leave one of them out.",
            ("data", "features"),
        )
    if target is None and "target" in columns:
        target = "target"
    left = [name for name in columns if name not in {source, target, frames, *features}]
    missing = [source is None and frames is None, target is None]
    if len(left) == sum(missing):  # in the order of the columns, the source first
        if missing[0]:
            source = left.pop(0)
        if missing[1]:
            target = left.pop(0)
    if target is None or (source is None and frames is None):
        if columns == ["text"] and "\t" in str(first["text"]):
            raise DataError(
                f"{place}: this file is read as plain text, but its lines have tabs, as the rows of a table have. Set "
                f"data.format = tsv, or give --format tsv."
            )
        from recurra.data.roles import pair_roles

        sources = [name for name, role in (pair_roles(columns) or {}).items() if role == "source"]
        if len(sources) > 1:
            raise DataError(
                f"{place}: several texts, {' and '.join(sources)}, form one source only in a table: save these rows as "
                ".tsv or .csv with a header of the same names, or join the texts in one column."
            )
        raise DataError(
            f"{place}: sequence to sequence reads a column 'source' and writes a column 'target', but the columns are "
            f'{", ".join(columns)}. Name them: data.source = "…" and data.target = "…".'
        )
    return dataclasses.replace(
        data,
        source=dataclasses.replace(data.source, column=source),
        target=dataclasses.replace(data.target, column=target),
        frames=frames,
        features=[] if frames is not None else features,
    )
