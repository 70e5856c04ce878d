"""Parallel files: line n of one belongs to line n of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from recurra.data.files import PathLike, lines, parallel_files
from recurra.data.formats.layout import named_cells
from recurra.data.formats.reader import Reader, Row
from recurra.errors import ConfigError, DataError

USUAL = ("source", "target")


class Parallel(Reader):
    """Plain texts under one path, as in "train.en,train.de"; a row holds the lines with one number.

    columns names the files in order: source and target, unless others are given; "_" leaves one out, and a name given
    twice gathers a list. An empty line is an empty text, and it counts.
    """

    def __init__(self, *, columns: Sequence[str] | None = None) -> None:
        if columns is not None and all(name in ("", "_") for name in columns):
            raise ConfigError(
                f"columns must give at least one of the files a column name, such as source, but is {list(columns)!r}."
            )
        self.columns = columns

    def read(self, path: PathLike) -> Iterator[Row]:
        files = parallel_files(path)
        if len(files) < 2 or not all(files):
            raise DataError(
                f"'{path}' is one file, but the parallel format needs several, with a comma between them, as in "
                '"train.en,train.de".'
            )
        names = self.columns or USUAL
        if len(names) != len(files):
            raise DataError(
                f"'{path}' names {len(files)} files, but there are {len(names)} columns ({', '.join(names)}). Set "
                'data.columns to one name per file; "_" leaves one out.'
            )
        for row in zip_longest(*map(lines, files)):
            if None in row:
                raise DataError(_of_different_length(files))
            yield Row(named_cells(names, [text for _, text in row]), row[0][0])


def _of_different_length(files: Sequence[str]) -> str:
    counts = [sum(1 for _ in lines(file)) for file in files]
    short = counts.index(min(counts))
    long = counts.index(max(counts))
    first = counts[short] + 1
    rest = [text for number, text in lines(files[long]) if number >= first]
    cure = (
        "The lines left over are blank: remove them"
        if not any(text.strip() for text in rest)
        else "Find the line where they stop matching; each text must be on a single line"
    )
    return (
        f"{files[long]}:{first}: this line has no counterpart: {files[long]} has {counts[long]:,} lines, but "
        f"{files[short]} {counts[short]:,}. Parallel files must have the same number of lines. {cure}."
    )
