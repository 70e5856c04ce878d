"""The rows of a task's files: how each is read, by its own kind and by the names of columns that are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from recurra.config.common import Data
from recurra.data.excerpt import whole
from recurra.data.files import extension, parallel_files
from recurra.data.formats import reader, rows
from recurra.errors import DataError, RecurraError
from recurra.named import did_you_mean, options_of
from recurra.settings import Part, table_of

if TYPE_CHECKING:
    from recurra.data.formats import Row

AnyData = TypeVar("AnyData", bound=Data)


def task_rows(path: str | Path, data: Data, *named: str | None) -> Iterator[Row]:
    """The rows of a file by the settings of a task.

    A file of another kind than the training data needs no data.columns where its format has columns of its own. The
    first line of a table is a header where a column that was named stands in it.
    """
    return rows(path, format=with_header(path, data, *named), columns=_columns(path, data))


def with_columns_of_format(data: AnyData) -> AnyData:
    """The settings with the list of columns that data.format of a table gives as data.columns, which means the same."""
    if not isinstance(data.format, dict) or data.columns is not None or data.format.get("name") not in ("tsv", "csv"):
        return data
    columns = data.format.get("columns")
    if not isinstance(columns, list):
        return data
    left = {name: value for name, value in data.format.items() if name != "columns"}
    return dataclasses.replace(data, format=left, columns=columns)


def rows_of(files: Sequence[str | Path], data: Data) -> Iterator[Row]:
    """The rows of several files, read with the settings of a task; each row names its file."""

    def found() -> Iterator[Row]:
        return (row._replace(file=number) for number, file in enumerate(files) for row in task_rows(file, data))

    from recurra.reading.parts import drawn

    return drawn(files, found, lambda row: repr(sorted(row.values.items())).encode("utf-8", "surrogatepass"))


def with_header(path: str | Path, data: Data, *named: str | None) -> Part | None:
    """The format to read a file by: as set, with header = true where a named column stands in its first line."""
    known = {name for name in named if name is not None}
    format = data.format
    if not known or data.columns is not None or not reader(path, format).is_table:
        return format
    options: dict[str, Any] = dict(format) if isinstance(format, dict) else {"name": format or extension(path)}
    if "header" in options:
        return options
    first = next(rows(whole(path), format={**options, "header": False}))
    return {**options, "header": True} if known & {str(cell).strip() for cell in first.values.values()} else format


def header_of(path: str | Path, data: Data) -> list[str] | None:
    """The names in the first line of a table, where that is taken for a header by settings that are resolved."""
    if len(parallel_files(path)) > 1 or not reader(path, data.format).is_table:
        return None
    options: dict[str, Any] = dict(data.format) if isinstance(data.format, dict) else {"name": data.format}
    options = {name: value for name, value in options.items() if name != "columns"}
    options["name"] = options["name"] or extension(path)
    above = next(rows(path, format={**options, "header": False}))
    first = next(task_rows(path, data, *_texts_in(table_of(data))))
    return [str(cell).strip() for cell in above.values.values()] if first.line > above.line else None


def header_in_words(path: str | Path, data: Data, *, also_known: bool = True) -> str | None:
    """What is said about a header; None where there is none, or one with a column that the settings name."""
    try:
        names = header_of(path, data)
    except RecurraError:  # a folder, or a file that a task of one's own reads in its own way
        return None
    if names is None or (not also_known and {*names} & {*_texts_in(table_of(data))}):
        return None
    used = {*_texts_in(table_of(data))}
    idle = [name for name in names if name and name not in used] if data.columns is None and also_known else []
    aside = f"; not used: {', '.join(idle)}" if idle and len(idle) < len(names) else ""
    return f"{path}: the first line is taken for a header: {', '.join(names)}{aside}"


def _texts_in(table: Mapping[str, Any]) -> Iterator[str]:
    """All texts in settings: the names of columns are among them."""
    for value in table.values():
        if isinstance(value, Mapping):
            yield from _texts_in(value)
        else:
            yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, str))


def value_in(row: Row, name: str, place: str) -> Any:
    """What a row has in a column, which must be there."""
    if name not in row.values:
        raise DataError(f"{place}: there is no column '{name}'. {did_you_mean(name, row.values)}")
    return row.values[name]


def _columns(path: str | Path, data: Data) -> list[str] | None:
    trained = [data.train] if isinstance(data.train, str) else data.train
    is_like = not trained or extension(trained[0]) == extension(path)
    if data.columns is None or is_like or "columns" in options_of(type(reader(path, data.format))):
        return data.columns
    return None
