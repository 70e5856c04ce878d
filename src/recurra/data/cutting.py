"""Files in pieces that are read apart from each other: the rows of all pieces together are those of the file."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from recurra.data.excerpt import Excerpt
from recurra.data.files import LONGEST_LINE, Broken, opened, parallel_files, too_long, unpacked
from recurra.data.formats import Parquet, reader
from recurra.data.formats.parallel import are_plain
from recurra.errors import DataError

PIECE = 1 << 22
"""Bytes of a piece, about."""


def cut(path: str | Path, format: str | Mapping[str, object] | None = None) -> Iterator[str]:
    """The pieces of a file in their order, each an `Excerpt`; the path itself where the file is small or is not cut.

    Where a file is cut depends on the file alone.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "three.txt"
    >>> _ = file.write_text("one\\ntwo\\nthree\\n")
    >>> [piece == str(file) for piece in cut(file)]
    [True]
    """
    name = str(path)
    files = parallel_files(name)
    kind = reader(name, format)
    if len(files) > 1:
        if are_plain(files) and not _are_small(files):
            return _in_step(name, files)
    elif not os.path.isfile(name) or _are_small(files):
        pass
    elif isinstance(kind, Parquet):
        return _groups(name)
    elif kind.cut_at is not None:
        return _lines(name, kind.cut_at == "blank line", kind.looked_at)
    return iter((name,))


def is_bounded(path: str) -> bool:
    """Whether what is read of a path is about a piece, or less."""
    return isinstance(path, Excerpt) or (path == (whole := parallel_files(path))[0] and _are_small(whole))


def _are_small(files: tuple[str, ...]) -> bool:
    try:
        return max(map(os.path.getsize, files)) <= PIECE
    except OSError:  # said when it is read
        return True


def _chunks(path: str) -> Iterator[bytes]:
    """The bytes of a file, unpacked; what is wrong with it is said as by whoever reads its lines."""
    with opened(path) as file:
        try:
            yield from unpacked(path, file)
        except Broken as error:
            raise DataError(f"{path}: {error}. Copy or download the file again.") from error
        except OSError as error:
            raise DataError(f"{path}: reading stopped ({error}).") from error


def _lines(path: str, between_blank_lines: bool, looked_at: int) -> Iterator[Excerpt]:
    """Pieces of whole lines."""
    ends = _end_of_block if between_blank_lines else _end_of_line
    waiting: list[bytes] = []
    size, first = 0, 1
    beginning, skipped = b"", 0
    for chunk in _chunks(path):
        waiting.append(chunk)
        size += len(chunk)
        if size < PIECE:
            continue
        whole = b"".join(waiting)
        if size - whole.rfind(b"\n") > LONGEST_LINE:
            raise too_long(path, first + whole.count(b"\n"))
        end = ends(whole)
        waiting, size = [whole[end:]], len(whole) - end
        if not end:
            continue
        content = whole[:end]
        yield Excerpt(path, content=content, first=first, beginning=beginning, skipped=skipped)
        if first == 1:
            beginning = _beginning(content, looked_at, between_blank_lines)
            skipped = beginning.count(b"\n")
        first += content.count(b"\n")
    if size or first == 1:
        yield Excerpt(path, content=b"".join(waiting), first=first, beginning=beginning, skipped=skipped)


def _end_of_line(content: bytes) -> int:
    """Where to cut: behind the last line that is not blank; a blank one may stand at the end of a file alone."""
    end = content.rfind(b"\n")
    while end > 0:
        before = content.rfind(b"\n", 0, end)
        if content[before + 1 : end].strip():
            return end + 1
        end = before
    return 0


def _end_of_block(content: bytes) -> int:
    """Where to cut: behind the last blank line."""
    found = max(content.rfind(b"\n\n") + 2, content.rfind(b"\n\r\n") + 3)
    return found if found > 3 else 0


def _beginning(content: bytes, lines: int, between_blank_lines: bool) -> bytes:
    """The first lines of a file, so many at least."""
    end = -1
    for _ in range(lines):
        end = content.find(b"\n", end + 1)
        if end < 0:
            return content
    if between_blank_lines:
        places = [place for mark in (b"\n\n", b"\n\r\n") if (place := content.find(mark, end)) >= 0]
        end = content.find(b"\n", min(places) + 1) if places else len(content) - 1
    return content[: end + 1]


def _in_step(path: str, files: tuple[str, ...]) -> Iterator[Excerpt]:
    """Pieces of parallel files: of each the same lines."""
    sources = [_chunks(file) for file in files]
    waiting = [b"" for _ in files]
    are_open = [True for _ in files]
    first = 1

    def fill(number: int, wanted: int) -> None:
        parts = [waiting[number]]
        size = len(parts[0])
        while are_open[number] and size < wanted:
            chunk = next(sources[number], None)
            are_open[number] = chunk is not None
            parts.append(chunk or b"")
            size += len(parts[-1])
        waiting[number] = b"".join(parts)

    while True:
        for number in range(len(files)):
            fill(number, PIECE)
        if not any(are_open):
            break
        lines = min(content.count(b"\n") for content in waiting)
        if not lines:  # a very long line, or the end of one of the files
            if not all(are_open):
                break
            for number, content in enumerate(waiting):
                if len(content) > LONGEST_LINE:
                    raise too_long(files[number], first)
                fill(number, len(content) + PIECE)
            if not all(content.count(b"\n") for content in waiting):
                continue
            lines = min(content.count(b"\n") for content in waiting)
        parts = []
        for number, (file, content) in enumerate(zip(files, waiting, strict=True)):
            end = int(np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))[lines - 1]) + 1
            parts.append(Excerpt(file, content=content[:end], first=first))
            waiting[number] = content[end:]
        yield Excerpt(path, first=first, skipped=first - 1, parts=tuple(parts))
        first += lines
    if any(waiting) or any(are_open) or first == 1:
        rest = tuple(
            Excerpt(file, content=b"".join([content, *source]), first=first)
            for file, content, source in zip(files, waiting, sources, strict=True)
        )
        yield Excerpt(path, first=first, skipped=first - 1, parts=rest)


def _groups(path: str) -> Iterator[str]:
    """Pieces of a Parquet file: row groups that follow on each other."""
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:  # said when it is read
        yield path
        return
    try:
        with opened(path) as file:
            table = parquet.ParquetFile(file).metadata
            found = [table.row_group(number) for number in range(table.num_row_groups)]
            groups = [(group.total_byte_size, group.num_rows) for group in found]
    except DataError:
        raise
    except Exception:  # a broken file may fail in any way, and is told of when it is read
        yield path
        return
    if len(groups) < 2:
        yield path
        return
    first, size, rows = 1, 0, 0
    some: list[int] = []
    for number, (bytes_, count) in enumerate(groups):
        some.append(number)
        size, rows = size + bytes_, rows + count
        if size >= PIECE or number + 1 == len(groups):
            yield Excerpt(path, first=first, groups=tuple(some))
            first, size, rows, some = first + rows, 0, 0, []
