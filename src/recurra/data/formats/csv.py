"""CSV: cells separated by commas, in double quotes where they hold a comma, a quote or a line end."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from recurra.data.files import PathLike, lines
from recurra.data.formats.layout import Record, checked_columns, table
from recurra.data.formats.reader import Reader, Row
from recurra.errors import ConfigError, DataError

LOOKED_AT = 20
"""Lines that are looked at to see what separates cells."""

_NO_DECIMAL_COMMA = re.compile(r"(?<!\d),|,(?!\d)")


class CSV(Reader):
    """One row a record; its line is that where the record begins, for a quoted cell may span several.

    separator = None is the comma, or the semicolon or the tab where the first lines are cut by that alone. columns
    names the columns of a header that are wanted, or else all columns in order: "_" leaves one out, and a name given
    twice gathers a list. header = None finds out by itself; with header = true, names that are all new stand for the
    header's own. Line ends inside a cell are read as a single newline.
    """

    extensions = ("csv",)
    is_table = True

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
        ahead = list(islice(stream, LOOKED_AT))
        separator = self.separator or _guessed([line for _, line in ahead])
        records = _records(path, (line for _, line in chain(ahead, stream)), separator)
        cause = (
            f"Cells are separated by '{separator}'; a missing one still needs its separator.",
            "Line 1 begins with '#': remove comments from the table."
            if ahead and ahead[0][1].startswith("#")
            else f"A text that holds '{separator}' must stand in double quotes.",
        )
        yield from table(path, records, self.columns, self.header, cause)


def _guessed(first: Sequence[str]) -> str:
    r"""What separates the cells of the first lines: a semicolon or a tab where each has as many, and no comma does.

    >>> _guessed(["a,b", "c,d"]), _guessed(["day;rain", "1;2,5"]), _guessed(["a\tb, c", "d\te"]), _guessed(["1;2,5"])
    (',', ';', '\t', ';')
    """
    lines = [re.sub(r'"[^"]*"', "", line) for line in first if line.strip()]
    for separator in ";\t":
        counts = {line.count(separator) for line in lines}
        if len(counts) == 1 and counts != {0} and not _are_cut_by_commas(lines):
            return separator
    is_semicolon = bool(lines) and ";" in lines[0] and "," not in lines[0]
    return ";" if is_semicolon else ","


def _are_cut_by_commas(lines: Sequence[str]) -> bool:
    """Whether each line has as many commas, and not only those that numbers are written with."""
    counts = {line.count(",") for line in lines}
    return len(counts) == 1 and counts != {0} and not all(_NO_DECIMAL_COMMA.search(line) is None for line in lines)


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
            "closed. For such long texts use JSONL."
        )
    if "new-line character" in reason:
        return "the line contains a carriage return. Save the file with line ends \\n or \\r\\n."
    return f"this is not CSV ({reason})."
