"""Plain text: each line is a row."""

from __future__ import annotations

from collections.abc import Iterator

from recurra.data.files import PathLike, lines
from recurra.data.formats.reader import Reader, Row


class Text(Reader):
    """One text a line; an empty line is an empty text."""

    extensions = ("txt", "text")
    cut_at = "line"

    def read(self, path: PathLike) -> Iterator[Row]:
        for number, line in lines(path):
            yield Row({"text": line}, number)
