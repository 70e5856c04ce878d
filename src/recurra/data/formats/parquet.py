"""Parquet: a table with types, read batch by batch."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from recurra.data.excerpt import Excerpt
from recurra.data.files import PathLike, opened
from recurra.data.formats import values
from recurra.data.formats.reader import Reader, Row
from recurra.errors import DataError

ROWS_AT_ONCE = 1024


class Parquet(Reader):
    """One row a row, with the file's columns, or with those that columns names: a list, or a table of name = "column".

    Texts, numbers, true and false, and lists of them up to three deep are read; dates and times as ISO 8601 writes
    them; a null is None.
    """

    extensions = ("parquet",)

    def __init__(self, *, columns: Mapping[str, str] | Sequence[str] | None = None) -> None:
        self.columns = values.wanted(columns)

    def read(self, path: PathLike) -> Iterator[Row]:
        try:
            arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        except ImportError as error:
            raise DataError(f"'{path}' needs the pyarrow package: pip install 'recurra[data]'.") from error
        if str(path).lower().endswith((".gz", ".zst")):
            raise DataError(f"'{path}' is compressed, but Parquet files are compressed already. Unpack it first.")
        groups = path.groups if isinstance(path, Excerpt) else None
        number = path.first - 1 if isinstance(path, Excerpt) else 0
        with opened(path) as file:
            try:
                table = parquet.ParquetFile(file)
                roles = self._roles(path, table.schema_arrow, arrow)
                wanted = sorted(set(roles.values()))
                for batch in table.iter_batches(ROWS_AT_ONCE, row_groups=groups, columns=wanted):
                    columns = {name: _plain(batch.column(name), arrow) for name in set(roles.values())}
                    for row in range(batch.num_rows):
                        number += 1
                        place = f"{path}: row {number}"
                        found = {role: values.value(columns[key][row], key, place) for role, key in roles.items()}
                        yield Row(found, number)
            except (
                arrow.ArrowException,
                OSError,
                ValueError,
                KeyError,
                TypeError,
                OverflowError,
                MemoryError,
            ) as error:
                reason = str(error).strip().partition("\n")[0][:200] or type(error).__name__
                raise DataError(
                    f"{path}: this is not a Parquet file, or it is corrupt; {number:,} rows were read ({reason})."
                ) from error

    def _roles(self, path: PathLike, schema: Any, arrow: ModuleType) -> dict[str, str]:
        """From a row's names to the file's, all of which are there, once, and have a type that can be read."""
        names = list(schema.names)
        roles = self.columns or {name: name for name in names}
        if not roles:
            raise DataError(f"{path}: the table has no columns.")
        for name in roles.values():
            if name not in names:
                raise values.missing(str(path), name, names)
            if names.count(name) > 1:
                raise DataError(f"{path}: there are {names.count(name)} columns called '{name}'. Rename them.")
            if not _readable(schema.field(name).type, arrow.types, values.DEEPEST):
                raise DataError(
                    f"{path}: the column '{name}' has the type {schema.field(name).type}, which is not supported; "
                    "texts, numbers, dates, booleans and lists of them are. Convert it, or list only the columns "
                    "that you need in data.columns."
                )
        return roles


def _plain(column: Any, arrow: ModuleType) -> list[Any]:
    """The values of a column; a date is a text."""
    is_date = arrow.types.is_timestamp(column.type) or arrow.types.is_date(column.type)
    found: list[Any] = (column.cast(arrow.string()) if is_date else column).to_pylist()
    return found


def _readable(kind: Any, types: Any, deepest: int) -> bool:
    if deepest == values.DEEPEST and (types.is_timestamp(kind) or types.is_date(kind)):
        return True
    if types.is_dictionary(kind):
        return _readable(kind.value_type, types, deepest)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return deepest > 0 and _readable(kind.value_type, types, deepest - 1)
    return any(
        is_such(kind)
        for is_such in (
            types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_boolean, types.is_null
        )
    )  # fmt: skip
