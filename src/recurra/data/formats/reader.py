"""A reader turns a file into rows of named values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, TypeAlias

from recurra.data.files import PathLike
from recurra.frozen import NamedTuple
from recurra.text.written import Written

Value: TypeAlias = str | float | list[str] | list[float] | list[list[float]] | list[list[list[float]]] | None
"""What a row can hold: a text or a number, arrays of them, up to a list of strokes; None where a value is missing."""


class Row(NamedTuple):
    """One example of a file.

    >>> Row({"text": "good", "label": "positive"}, line=3).values["label"]
    'positive'
    """

    values: Mapping[str, Value]
    line: int  # of its beginning in the file, from 1; in a format without lines, the number of the row
    file: int = 0  # which of several files that are read together, from 0
    written: Written | None = None  # a sentence as it stands in its text, where the format says so


class Reader(ABC):
    """A file format. Its keyword-only constructor arguments are the options of data.format = {name = "…", …}."""

    extensions: ClassVar[tuple[str, ...]] = ()

    is_table: ClassVar[bool] = False
    """Whether a row is a line of cells, whose columns a header or data.columns names."""

    marks_texts: ClassVar[bool] = False
    """Whether a file has texts with spans that are marked in them, which the reader cuts into tokens."""

    cut_at: ClassVar[Literal["line", "blank line"] | None] = None
    """Behind which lines a file can be cut into parts that are read apart; None: it is read as a whole."""

    looked_at: ClassVar[int] = 1
    """Lines at the beginning of a file that tell how its rows are read."""

    @abstractmethod
    def read(self, path: PathLike) -> Iterator[Row]:
        """The rows in the order of the file, read as they are asked for; a DataError where it is malformed."""
