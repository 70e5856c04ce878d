"""A part of a file that can be read by itself: what a process reads where several share a file out."""

from __future__ import annotations

import os
from typing import Self, TypeVar

PathLike = TypeVar("PathLike", bound="str | os.PathLike[str]")


class Excerpt(str):
    """Some lines of a file, or row groups of a Parquet file. It is a path like any other for all who name it.

    What reads it sees the beginning of the file too, by which a reader tells how the file is made; its rows are
    dropped by `recurra.data.formats.rows`.

    >>> part = Excerpt("a.tsv", content=b"tea\\tX\\n", first=9, beginning=b"text\\tlabel\\n", skipped=1)
    >>> part, part.first, part.skipped
    ('a.tsv', 9, 1)
    """

    content: bytes
    first: int
    beginning: bytes
    skipped: int
    parts: tuple[Excerpt, ...]
    groups: tuple[int, ...]

    def __new__(
        cls,
        path: str,
        *,
        content: bytes = b"",
        first: int = 1,
        beginning: bytes = b"",
        skipped: int = 0,
        parts: tuple[Excerpt, ...] = (),
        groups: tuple[int, ...] = (),
    ) -> Self:
        found = super().__new__(cls, path)
        found.content = content  # whole lines
        found.first = first  # the number of its first line, or of its first row
        found.beginning, found.skipped = beginning, skipped  # lines of the beginning, and the last of their numbers
        found.parts = parts  # of parallel files, one of each
        found.groups = groups  # the numbers of the row groups
        return found

    @property
    def whole(self) -> str:
        """The path of the file."""
        return str.__str__(self)


def whole(path: PathLike) -> PathLike | str:
    """The path of the file that an excerpt is of; any other path as it is."""
    return path.whole if isinstance(path, Excerpt) else path
