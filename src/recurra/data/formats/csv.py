"""CSV: cells separated by commas, in double quotes where they hold a comma, a quote or a line end."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from recurra.data.files import PathLike, lines
from recurra.data.formats.layout import Record, checked_columns, table
from recurra.data.formats.reader import Reader, Row
from recurra.errors import ConfigError, DataError


class CSV(Reader):
    """One row a record; its line is that where the record begins, for a quoted cell may span several.

    separator = None is the comma, or the semicolon where the first line has only that. columns names the columns of a
    header that are wanted, or else all columns in order: "_" leaves one out, and a name given twice gathers a list.
    header = None finds out by itself; with header = true, names that are all new stand for the header's own. Line ends
    inside a cell are read as a single newline.
    """

    extensions = ("csv",)

    def __init__(
        self, *, columns: Sequence[str] | None = None, header: bool | None = None, separator: str | None = None
    ) -> None:
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise ConfigError(f"separator must be a single character such as ',' or ';', but is {separator!r}.")
        self.columns = checked_columns(columns)
        self.header = header
        self.separator = separator

    def read(self, path: PathLike) -> Iterator[Row]:
        stream = lines(path)
        ahead = list(islice(stream, 1))
        separator = self.separator or _guessed("".join(line for _, line in ahead))
        records = _records(path, (line for _, line in chain(ahead, stream)), separator)
        cause = (
            f"Cells are separated by '{separator}'; a missing one still needs its separator.",
            f"A text that holds '{separator}' must stand in double quotes.",
        )
        yield from table(path, records, self.columns, self.header, cause)


def _guessed(line: str) -> str:
    return ";" if ";" in line and "," not in line else ","


def _records(path: PathLike, stream: Iterator[str], separator: str) -> Iterator[Record]:
    # The line end is given back, for inside quotes it belongs to the cell.
    records = csv.reader((f"{line}\n" for line in stream), delimiter=separator, strict=True)
    while True:
        begun = records.line_num + 1
        try:
            cells = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}:{begun}: {_in_words(str(error))}") from error
        yield Record(begun, cells)


def _in_words(reason: str) -> str:
    if "unexpected end of data" in reason:
        return 'a double quote is opened on this line and never closed. Inside a quoted cell a quote is written "".'
    if "expected after" in reason:
        return 'text follows a closing double quote. Inside a quoted cell a quote is written twice: "".'
    if "field larger than" in reason:
        return (
            f"a cell holds more than {csv.field_size_limit():,} characters, so a double quote was probably never "
            f"closed. Such long texts are better kept as JSONL."
        )
    if "new-line character" in reason:
        return "a carriage return stands inside the line. Save the file with line ends of \\n or \\r\\n."
    return f"this is not CSV ({reason})."
