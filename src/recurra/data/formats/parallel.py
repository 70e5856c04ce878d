"""Parallel files: line n of one belongs to line n of the others, or segment n."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from recurra.data.excerpt import whole
from recurra.data.files import PathLike, extension, lines, parallel_files
from recurra.data.formats.layout import named_cells
from recurra.data.formats.reader import Reader, Row
from recurra.data.formats.segments import Segments, segments
from recurra.data.formats.tagged import Tagged, is_tagged
from recurra.errors import ConfigError, DataError

USUAL = ("source", "target")


class Parallel(Reader):
    """Plain texts under one path, as in "train.en,train.de"; a row holds the lines with one number.

    columns names the files in order: source and target, unless others are given; "_" leaves one out, and a name given
    twice gathers a list. An empty line is an empty text, and it counts. Files of WMT and IWSLT (.sgm, .sgml, .xml) are
    read by their segments, and those called …tags… without the lines that tell of a talk.
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
        for row in zip_longest(*map(_texts, files)):
            if None in row:
                raise DataError(_of_different_length([*map(whole, files)]))
            _check_same_segment(files, row)
            yield Row(named_cells(names, [each.text for each in row]), row[0].line)


def are_plain(files: Sequence[str]) -> bool:
    """Whether each line of each file is a text of its own."""
    return not any(is_tagged(file) or extension(file) in Segments.extensions for file in files)


class _Part(NamedTuple):
    """The text of a row in one of the files."""

    text: str
    line: int
    segment: tuple[str, str] | None = None  # its document and number, where the file has these


def _texts(file: str) -> Iterator[_Part]:
    if extension(file) in Segments.extensions:
        return _segments(file)
    if is_tagged(file):
        return (_Part(str(row.values["text"]), row.line) for row in Tagged().read(file))
    return (_Part(text, number) for number, text in lines(file))


def _segments(file: str) -> Iterator[_Part]:
    for each in segments(file):
        if each.side:
            raise DataError(
                f"{file}:{each.line}: this segment stands in <{each.side[:3]}>: the file holds source and reference "
                f"itself. Give it alone, without another file and a comma."
            )
        yield _Part(each.text, each.line, (each.document, each.id))


def _check_same_segment(files: Sequence[str], row: Sequence[_Part]) -> None:
    """Refuse segments of different documents or numbers beside each other."""
    known = [(file, part, part.segment) for file, part in zip(files, row, strict=True) if part.segment is not None]
    for file, part, segment in known[1:]:
        other_file, other, wanted = known[0]
        if segment != wanted:
            document, id = segment
            raise DataError(
                f"{file}:{part.line}: segment {id!r} of document {document!r} would stand beside segment {wanted[1]!r} "
                f"of document {wanted[0]!r} ({other_file}:{other.line}). Both files must have the same segments in the "
                "same order: are they of the same test set?"
            )


def _of_different_length(files: Sequence[str]) -> str:
    parts = [[*_texts(file)] for file in files]
    counts = [len(each) for each in parts]
    short = counts.index(min(counts))
    long = counts.index(max(counts))
    left = parts[long][counts[short] :]
    first, rest = left[0].line, [each.text for each in left]
    cure = (
        "The lines left over are blank: remove them"
        if not any(text.strip() for text in rest)
        else "Find the line where they stop matching; each text must be on a single line"
    )
    return (
        f"{files[long]}:{first}: this line has no counterpart: {files[long]} has {counts[long]:,} lines, but "
        f"{files[short]} {counts[short]:,}. Parallel files must have the same number of lines. {cure}."
    )
