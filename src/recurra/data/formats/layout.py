"""Which cell of a table's line goes by which name: what TSV and CSV share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from recurra.data.files import PathLike, extension
from recurra.data.formats.header import LOOKED_AT, is_header
from recurra.data.formats.reader import Row, Value
from recurra.errors import ConfigError, DataError
from recurra.frozen import NamedTuple
from recurra.named import did_you_mean

IGNORED = ("", "_")


class Record(NamedTuple):
    """A line of a table, cut into cells."""

    line: int
    cells: list[str]


class Columns(NamedTuple):
    """The name of each position; "" or "_" where nobody wants the cell."""

    names: tuple[str, ...]
    has_header: bool
    source: str  # what the number of columns is known from, for the error


def checked_columns(columns: Sequence[str] | None) -> Sequence[str] | None:
    if columns is not None and all(name in IGNORED for name in columns):
        raise ConfigError(f"columns must name at least one column, but is {list(columns)!r}.")
    return columns


def table(
    path: PathLike,
    records: Iterable[Record],
    columns: Sequence[str] | None,
    header: bool | None,
    cause: tuple[str, str],
) -> Iterator[Row]:
    """The rows of a table. cause: why a line may have too few cells, and why too many."""
    stream = iter(records)
    ahead = list(islice(stream, 1 + LOOKED_AT)) if header is None else []
    layout: Columns | None = None
    is_plain = False  # each column has a name of its own
    names: tuple[str, ...] = ()
    blank = known = 0
    for record in chain(ahead, stream):
        if known > 1 and len(record.cells) == known and not blank:  # most rows are like those before
            yield Row(dict(zip(names, record.cells, strict=True)), record.line)
            continue
        width = len(layout.names if layout is not None else columns or record.cells)
        if not record.cells or (record.cells == [""] and width > 1):
            blank = blank or record.line
            continue
        if blank:
            raise DataError(
                f"{path}:{blank}: this line is blank, and more lines follow. Blank lines are allowed only at the "
                "end of the file: remove it."
            )
        if layout is None:
            has_header = _has_header(path, record, ahead, columns) if header is None else header
            layout = _columns(path, record, columns, has_header, header)
            is_plain = len(set(layout.names)) == len(layout.names) and not set(layout.names) & set(IGNORED)
            names, known = layout.names, len(layout.names) if is_plain else 0
            if layout.has_header:
                continue
        if len(record.cells) != len(layout.names):
            raise DataError(_wrong_width(path, record, layout, cause))
        values = (
            dict(zip(layout.names, record.cells, strict=True)) if is_plain else named_cells(layout.names, record.cells)
        )
        yield Row(values, record.line)


def _has_header(path: PathLike, first: Record, ahead: Sequence[Record], columns: Sequence[str] | None) -> bool:
    """Whether the first line holds names, by what stands in it and below; refused where that cannot be told."""
    below = [record for record in ahead if record.line > first.line and record.cells not in ([], [""])]
    cells = [cell.strip() for cell in first.cells]
    wanted = {name for name in columns or () if name not in IGNORED}
    if wanted & {*cells}:
        return True
    if columns is not None and len(columns) != len(cells):
        return False  # said by the number of columns
    found = is_header(cells, [record.cells for record in below])
    if found is None:
        raise DataError(
            f"{path}:{first.line}: {json.dumps(cells, ensure_ascii=False)[1:-1]} could be a header or the first row: "
            f"no other row looks like it. Say which it is: set header = true or header = false in data.format, as in "
            f"--set 'data.format={{name=\"{_name_of(path)}\",header=true}}'."
        )
    return found


def _name_of(path: PathLike) -> str:
    return extension(path) if extension(path) in ("tsv", "csv") else "tsv"


def _columns(
    path: PathLike, first: Record, columns: Sequence[str] | None, has_header: bool, said: bool | None
) -> Columns:
    """The name of each position. said: what data.format says about a header."""
    cells = [cell.strip() for cell in first.cells]
    source = f"line {first.line} has"
    if columns is None:
        if has_header:
            if all(cell in IGNORED for cell in cells):
                raise DataError(
                    f"{path}:{first.line}: the header has no column names. Write them, or set data.columns."
                )
            return Columns(tuple(cells), True, source)
        return Columns(tuple(f"column{k}" for k in range(1, len(cells) + 1)), False, source)
    wanted = [name for name in columns if name not in IGNORED]
    missing = [name for name in wanted if name not in cells]
    if has_header and len(columns) == len(cells) and (len(missing) == len(wanted) or _are_roles(columns, cells)):
        return Columns(tuple(columns), True, source)  # the header's own names give way
    if has_header:
        if missing:
            aside = "" if said else " If that line is data and not a header, set header = false."
            raise DataError(
                f"{path}:{first.line}: the header has no column '{missing[0]}'. "
                f"{did_you_mean(missing[0], [cell for cell in cells if cell])}{aside}"
            )
        return Columns(tuple(cell if cell in wanted else "" for cell in cells), True, source)
    return Columns(tuple(columns), False, f"columns ({', '.join(columns)}) names")


def _are_roles(columns: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether names stand for the header's own by their position: one is given twice, and each known one is in place.

    >>> _are_roles(["text", "text", "label"], ["title", "body", "label"])
    True
    >>> _are_roles(["text", "lable"], ["text", "label"]), _are_roles(["text", "text", "a"], ["a", "b", "c"])
    (False, False)
    """
    wanted = [name for name in columns if name not in IGNORED]
    known = [(name, cell) for name, cell in zip(columns, cells, strict=True) if name in cells]
    return len({*wanted}) < len(wanted) and all(name == cell for name, cell in known)


def named_cells(names: Sequence[str], cells: Sequence[str]) -> dict[str, Value]:
    """A name that several columns bear gets the list of their cells."""
    found: dict[str, list[str]] = {}
    for name, cell in zip(names, cells, strict=True):
        if name not in IGNORED:
            found.setdefault(name, []).append(cell)
    return {name: values if names.count(name) > 1 else values[0] for name, values in found.items()}


def _wrong_width(path: PathLike, record: Record, layout: Columns, cause: tuple[str, str]) -> str:
    count, expected = len(record.cells), len(layout.names)
    found = "one column" if count == 1 else f"{count} columns"
    return f"{path}:{record.line}: found {found}, but {layout.source} {expected}. {cause[count > expected]}"
