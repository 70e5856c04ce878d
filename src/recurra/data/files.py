"""Text files as numbered lines, plain or compressed, read as a stream."""

from __future__ import annotations

import codecs
import importlib
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeAlias

from recurra.data.excerpt import Excerpt
from recurra.errors import DataError
from recurra.opening import NoFile, open_file

PathLike: TypeAlias = str | os.PathLike[str]

BOM = b"\xef\xbb\xbf"
COMPRESSED = (".gz", ".zst")
CHUNK = 1 << 16
# Four bytes of zstd can stand for 128 kB, and a piece is unpacked at once: small pieces bound the memory.
ZSTD_CHUNK = 1 << 9
LONGEST_LINE = 1 << 23
"""Bytes of a line, which is an example or a part of one. A line is held several times while it becomes an example,
which took 1 to 4 GB of memory for one of 50 MB; real lines are far shorter, a novel among them."""


def extension(path: PathLike) -> str:
    """The ending that says the format, without that of the compression.

    >>> extension("a.conllu.gz"), extension("B.TSV"), extension("notes")
    ('conllu', 'tsv', '')
    """
    name = Path(path).name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return Path(name).suffix.removeprefix(".")


def parallel_files(path: PathLike) -> tuple[str, ...]:
    """The files that a path names: itself, or several with commas between them, which belong together line by line.

    >>> parallel_files("train.tsv"), parallel_files("train.en, train.de")
    (('train.tsv',), ('train.en', 'train.de'))
    """
    if isinstance(path, Excerpt):
        return path.parts or (path,)
    name = str(path)
    if "," not in name or os.path.exists(name):
        return (name,)
    return tuple(part.strip() for part in name.split(","))


def lines(path: PathLike) -> Iterator[tuple[int, str]]:
    r"""Each line of a UTF-8 file with its number, from 1, without its end; .gz and .zst are unpacked on the way.

    Only "\n" and "\r\n" end a line, so a text may hold any other character that Unicode calls a line break.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "two.txt"
    >>> _ = file.write_bytes(b"one\r\ntwo\n")
    >>> list(lines(file))
    [(1, 'one'), (2, 'two')]
    """
    if isinstance(path, Excerpt):
        yield from decoded(path, _split(path, iter([path.beginning])))
        yield from decoded(path, _split(path, iter([path.content]), path.first), path.first)
        return
    with opened(path) as file:
        yield from decoded(path, _split(path, unpacked(path, file)))


def pieces(path: PathLike) -> Iterator[str]:
    r"""The text of a UTF-8 file as it is, line ends included, in pieces; a byte-order mark is left out.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "two.txt"
    >>> _ = file.write_bytes(b"one\r\n\xc3\xa9")
    >>> "".join(pieces(file))
    'one\r\né'
    """
    with opened(path) as file:
        try:
            yield from decoded_pieces(path, unpacked(path, file))
        except Broken as error:
            raise DataError(f"{path}: {error}. Copy or download the file again.") from error
        except OSError as error:
            raise DataError(f"{path}: reading stopped ({error}).") from error


def decoded_pieces(where: PathLike, chunks: Iterable[bytes]) -> Iterator[str]:
    """Chunks of bytes as text; `where` they come from is for what is said of a bad one."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    line = 1
    for chunk in chain(chunks, [b""]):
        waiting = decoder.getstate()[0]
        if b"\0" in chunk:
            number = line + chunk[: chunk.index(b"\0")].count(b"\n")
            raise DataError(
                f"{where}:{number}: a NUL character was found, so this looks like a binary or a UTF-16 file. "
                f"Give a text file, saved as UTF-8."
            )
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            whole = waiting + chunk
            number = line + whole[: error.start].count(b"\n")
            raise DataError(
                f"{where}:{number}: the byte 0x{whole[error.start]:02x} is not UTF-8"
                f"{_other_encoding(number, whole)}. Open the file in an editor and save it as UTF-8."
            ) from error
        line += text.count("\n")
        if text:
            yield text


def too_long(where: PathLike, number: int) -> DataError:
    return DataError(
        f"{where}:{number}: the line is longer than {LONGEST_LINE:,} bytes. Is this a text file? "
        f"Break it into lines, for example with: fold -s -w 10000."
    )


def decoded(where: PathLike, raw_lines: Iterable[bytes], first: int = 1) -> Iterator[tuple[int, str]]:
    """Lines of bytes as text, each with its number; `where` they come from is for what is said of a bad one."""
    for number, raw in enumerate(raw_lines, first):
        if number == 1:
            raw = raw.removeprefix(BOM)
        if b"\0" in raw:
            raise DataError(
                f"{where}:{number}: a NUL character was found, so this looks like a binary or a UTF-16 file. "
                f"Give a text file, saved as UTF-8."
            )
        try:
            yield number, raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{where}:{number}: byte {error.start + 1} of the line, 0x{raw[error.start]:02x}, is not UTF-8"
                f"{_other_encoding(number, raw)}. Open the file in an editor and save it as UTF-8."
            ) from error


def opened(path: PathLike) -> BinaryIO:
    """The file, open for reading bytes, or a DataError that says why it cannot be."""
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"the data file must be a path, but is {path!r}.")
    try:
        return open_file(path)
    except NoFile as error:
        raise DataError(f"'{path}' cannot be read: {error.strerror}. Give a regular file.") from error
    except FileNotFoundError as error:
        raise DataError(f"there is no file '{path}'.{_nearest(Path(path))}") from error
    except IsADirectoryError as error:
        raise DataError(f"'{path}' is a folder; name a file in it.") from error
    except PermissionError as error:
        raise DataError(f"'{path}' cannot be read: permission denied. Try chmod u+r on it.") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise DataError(f"{str(path)!r} cannot be opened ({error}).") from error


def _nearest(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" The folder '{folder}' does not exist."
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)
    import difflib

    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f" Did you mean '{folder / near[0]}'?" if near else ""


def _other_encoding(number: int, raw: bytes) -> str:
    if number == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return " (the file begins as UTF-16 does)"
    return ""


class Broken(Exception):
    """The compressed stream ends too early or makes no sense."""


def unpacked(path: PathLike, file: BinaryIO) -> Iterator[bytes]:
    """The bytes of the file in pieces."""
    ending = Path(path).suffix.lower()
    if ending == ".zst":
        return _from_zstd(path, file)
    return _from_gzip(file) if ending == ".gz" else _plain(file)


def _plain(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk


def _from_gzip(file: BinaryIO) -> Iterator[bytes]:
    import gzip

    try:
        with gzip.GzipFile(fileobj=file) as stream:
            while chunk := stream.read1(CHUNK):
                yield chunk
    except EOFError as error:
        raise Broken("the gzip stream ends too early") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise Broken(f"the gzip stream is corrupt: {str(error).lower()}") from error


def _from_zstd(path: PathLike, file: BinaryIO) -> Iterator[bytes]:
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError as error:
        raise DataError(f"'{path}' needs the zstandard package: pip install 'recurra[data]'.") from error
    part = None  # one of the frames that a file is made of
    try:
        while chunk := file.read(ZSTD_CHUNK):
            while chunk:
                part = zstandard.ZstdDecompressor().decompressobj() if part is None or part.eof else part
                unpacked = part.decompress(chunk)
                chunk = part.unused_data if part.eof else b""
                if unpacked:
                    yield unpacked
    except zstandard.ZstdError as error:
        raise Broken(f"the zstd stream is corrupt: {error}") from error
    if part is not None and not part.eof:
        raise Broken("the zstd stream ends too early")


def _split(path: PathLike, chunks: Iterator[bytes], number: int = 1) -> Iterator[bytes]:
    """The lines in the pieces, and the last one where it has no end; the first has this number."""
    unfinished: list[bytes] = []
    size, done = 0, number - 1
    try:
        for chunk in chunks:
            first, *others = chunk.split(b"\n")
            unfinished.append(first)
            size += len(first)
            if size > LONGEST_LINE:
                raise too_long(path, done + 1)
            for other in others:
                line, unfinished, size = b"".join(unfinished), [other], len(other)
                yield line
                done += 1
    except Broken as error:
        raise DataError(f"{path}: {error}, after {done:,} lines. Copy or download the file again.") from error
    except OSError as error:
        raise DataError(f"{path}: reading stopped after {done:,} lines ({error}).") from error
    last = b"".join(unfinished)
    if last and (done or last != BOM):
        yield last
