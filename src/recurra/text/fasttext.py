"""Word vectors in fastText's binary format (.bin), also of words that are not in its dictionary.

    header         int32 magic = 793712314, int32 version (11 or 12)
    settings       int32 dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate;
                   double t
    dictionary     int32 size, words, labels; int64 tokens, int64 pruned;
                   of each entry: its UTF-8 bytes, a zero byte, int64 count, int8 type (0: word, 1: label);
                   then `pruned` pairs of int32, where it is above 0
    input matrix   int8 quantised, int64 rows, int64 columns, rows × columns float32

All numbers are little-endian. Row i < words is that of the i-th word, row words + b that of the n-grams in bucket b:

    x_w = mean of row i (where w is the i-th word) and the rows words + hash(g) mod bucket
          of all character n-grams g of "<w>" with minn ≤ n ≤ maxn, but "<" and ">" alone
    hash(g): h ← 2166136261;  for each byte of g, as a signed number s:  h ← (h xor s) · 16777619 mod 2³²

Only the rows that are needed are read: memory stays small, however large the file is.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.opening import open_file
from recurra.text.ngrams import BASIS, BITS, PRIME
from recurra.text.vectors import Vectors

MAGIC = struct.pack("<i", 793712314)
VERSIONS = (11, 12)
SUPERVISED = 3
BLOCK = 1 << 20
"""Bytes of the dictionary that are read at once."""

REMEMBERED = 1 << 14
"""Rows of the matrix that are kept, for n-grams that many words have."""

SETTINGS = struct.Struct("<12id")
COUNTS = struct.Struct("<3i2q")
ENTRY = struct.Struct("<qb")
SIZES = struct.Struct("<2q")


class Format(NamedTuple):
    """What the settings of a file say of its vectors."""

    size: int
    buckets: int
    shortest: int
    longest: int


class FastText(NamedTuple):
    """The vectors of some words, and how many of them were built from n-grams alone."""

    vectors: Vectors
    built: int


def read_fasttext(path: str | os.PathLike[str], wanted: Iterable[str]) -> FastText:
    """The vectors of these words: of those in the dictionary, and of others that have n-grams."""
    words = list(dict.fromkeys(word for word in wanted if word))
    with open_file(path) as file:
        found = _format(file, path)
        known, count, pruned = _dictionary(file, path, {word.encode("utf-8", "replace"): word for word in words})
        rows, columns, start = _matrix(file, path)
        if columns != found.size or rows < count + (found.buckets if found.longest and pruned is None else 0):
            raise DataError(
                f"{path}: the matrix has {rows:,} rows of {columns} numbers, but the header says vectors of "
                f"{found.size} for {count:,} words and {found.buckets:,} buckets. The file is damaged. Download it "
                "again."
            )

        @functools.lru_cache(REMEMBERED)
        def row(number: int) -> NDArray[np.float32]:
            file.seek(start + 4 * columns * number)
            return np.frombuffer(_exactly(file, 4 * columns, path), "<f4")

        tokens, values, built = list[str](), list[NDArray[np.float32]](), 0
        for word in words:
            numbers = [known[word]] if word in known else []
            buckets = subwords(word, found) if word != "</s>" else []
            if pruned is not None:
                buckets = [pruned[bucket] for bucket in buckets if bucket in pruned]
            numbers += [count + bucket for bucket in buckets]
            if not numbers:
                continue
            # Summed in the order and the precision of fastText, so that the numbers are the same.
            total = np.zeros(columns, np.float32)
            for number in numbers:
                total += row(number)
            total *= np.float32(1 / len(numbers))
            if not np.isfinite(total).all():
                raise DataError(f"{path}: the vector of {word!r} contains a number that is infinite or NaN.")
            tokens.append(word)
            values.append(total)
            built += word not in known
    return FastText(Vectors(tokens, np.array(values, np.float32).reshape(-1, columns)), built)


def fnv1a_signed(text: bytes) -> int:
    """The hash of an n-gram. FNV-1a has no signs, but fastText takes bytes for signed numbers, and files are made so.

    >>> fnv1a_signed(b"foobar") == 0xBF9CF968, fnv1a_signed("é".encode())
    (True, 1023043777)
    """
    found = BASIS
    for byte in text:
        found = (found ^ (byte if byte < 128 else byte - 256) & BITS) * PRIME & BITS
    return found


def subwords(word: str, of: Format) -> list[int]:
    """The buckets of a word's n-grams, in fastText's order.

    >>> len(subwords("tea", Format(size=2, buckets=10, shortest=3, longest=4)))
    5
    """
    if not of.longest or not of.buckets:
        return []
    letters = [letter.encode("utf-8", "replace") for letter in f"<{word}>"]
    return [fnv1a_signed(gram) % of.buckets for gram in _ngrams(letters, of)]


def _ngrams(letters: list[bytes], of: Format) -> Iterator[bytes]:
    for first in range(len(letters)):
        for n in range(max(1, of.shortest), of.longest + 1):
            last = first + n
            if last > len(letters):
                break
            if n == 1 and (first == 0 or last == len(letters)):
                continue
            yield b"".join(letters[first:last])


def _format(file: BinaryIO, path: str | os.PathLike[str]) -> Format:
    if file.read(len(MAGIC)) != MAGIC:
        raise DataError(f"{path} is no file of fastText's binary format: it does not begin with its magic number.")
    [version] = struct.unpack("<i", _exactly(file, 4, path))
    if version not in VERSIONS:
        raise DataError(
            f"{path}: version {version} of fastText's format is not supported; {' and '.join(map(str, VERSIONS))} are. "
            "Write the vectors in its text format (.vec)."
        )
    size, *_, kind, buckets, shortest, longest, _, _ = SETTINGS.unpack(_exactly(file, SETTINGS.size, path))
    if size < 1 or buckets < 0 or shortest < 0 or longest < 0:
        raise DataError(f"{path}: vectors of size {size}, {buckets} buckets: the file is damaged. Download it again.")
    if version == 11 and kind == SUPERVISED:
        longest = 0  # such models were trained without n-grams, whatever their settings say
    return Format(size, buckets, shortest, longest)


def _dictionary(
    file: BinaryIO, path: str | os.PathLike[str], wanted: dict[bytes, str]
) -> tuple[dict[str, int], int, dict[int, int] | None]:
    """The rows of words that are wanted, how many words there are, and the rows of buckets, where some were pruned."""
    size, words, labels, _, pruned = COUNTS.unpack(_exactly(file, COUNTS.size, path))
    if not (0 <= words <= size and size == words + labels):
        raise DataError(f"{path}: a dictionary of {size} entries, {words} of them words: the file is damaged.")
    known: dict[str, int] = {}
    buffer, place = b"", 0
    for number in range(size):
        while (end := buffer.find(b"\0", place)) < 0 or end + 1 + ENTRY.size > len(buffer):
            more = file.read(BLOCK)
            if not more:
                raise _truncated(path)
            buffer, place = buffer[place:] + more, 0
        kind = buffer[end + ENTRY.size]
        word = wanted.get(buffer[place:end])
        if word is not None and kind == 0:
            known[word] = number
        place = end + 1 + ENTRY.size
    file.seek(place - len(buffer), os.SEEK_CUR)
    if pruned < 0:
        return known, words, None
    pairs = np.frombuffer(_exactly(file, 8 * pruned, path), "<i4").reshape(-1, 2)
    return known, words, dict(zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), strict=True))


def _matrix(file: BinaryIO, path: str | os.PathLike[str]) -> tuple[int, int, int]:
    """The rows and columns of the input matrix, and where its numbers begin."""
    if _exactly(file, 1, path) != b"\0":
        raise DataError(
            f"{path} is quantised (.ftz): its vectors were compressed with loss, which is not supported. Use the .bin "
            "file that it was made from, or write the vectors in the text format (.vec)."
        )
    rows, columns = SIZES.unpack(_exactly(file, SIZES.size, path))
    start = file.tell()
    if rows < 0 or columns < 1 or os.fstat(file.fileno()).st_size - start < 4 * rows * columns:
        raise _truncated(path)
    return rows, columns, start


def _exactly(file: BinaryIO, count: int, path: str | os.PathLike[str]) -> bytes:
    content = file.read(count)
    if len(content) < count:
        raise _truncated(path)
    return content


def _truncated(path: str | os.PathLike[str]) -> DataError:
    return DataError(f"{path} ends early: the file is truncated. Download it again.")
