"""TSV: cells separated by tabs, without any quoting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recurra.data.files import PathLike, lines
from recurra.data.formats.header import LOOKED_AT
from recurra.data.formats.layout import Record, checked_columns, table
from recurra.data.formats.reader import Reader, Row

CAUSE = (
    "Cells are separated by one tab; spaces do not separate, and a missing cell still needs its tab.",
    "Every tab separates two cells: replace tabs inside a text by spaces.",
)


class TSV(Reader):
    """One row a line. Quotes are characters like any other.

    columns names the columns of a header that are wanted, or else all columns in order: "_" leaves one out, and a name
    given twice gathers a list. header = None finds out by itself; with header = true, names that are all new stand for
    the header's own. In a file of one column an empty line is an empty value; otherwise blank lines may stand only at
    the end.
    """

    extensions = ("tsv",)
    is_table = True
    cut_at = "line"
    looked_at = 1 + LOOKED_AT

    def __init__(self, *, columns: Sequence[str] | None = None, header: bool | None = None) -> None:
        self.columns = checked_columns(columns)
        self.header = header

    def read(self, path: PathLike) -> Iterator[Row]:
        records = (Record(number, line.split("\t")) for number, line in lines(path))
        return table(path, records, self.columns, self.header, CAUSE)
