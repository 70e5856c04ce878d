"""Word vectors that others trained, in the text formats of word2vec and GloVe."""

from __future__ import annotations

import os
from array import array
from collections.abc import Container, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.text.vocabulary import Vocabulary


class Vectors(NamedTuple):
    """Tokens and their vectors, a row each."""

    tokens: list[str]
    values: NDArray[np.float32]  # (n, d)


class Coverage(NamedTuple):
    """How many tokens of a vocabulary have a vector; its specials are not counted."""

    exact: int  # under their own spelling
    lowered: int  # only under their spelling in lower case
    total: int

    @property
    def found(self) -> int:
        return self.exact + self.lowered


def read_vectors(
    lines: Iterable[tuple[int, str]], path: str | os.PathLike[str], *, wanted: Container[str] | None = None
) -> Vectors:
    """The vectors in a file, given as its lines with their numbers; `path` is for messages alone.

    A line is a token and its d numbers. A first line of two whole numbers, "count d", makes it the word2vec format;
    otherwise the first line says what d is. A token may hold blanks: its numbers are the last d fields. Of two lines
    for one token the first counts. With `wanted`, the numbers of other tokens are not even looked at.

    >>> vectors = read_vectors([(1, "2 3"), (2, "tea 1 0 0.5"), (3, ". . . 0 1 0")], "tiny.vec")
    >>> vectors.tokens
    ['tea', '. . .']
    >>> vectors.values.tolist()
    [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]
    """
    count, width, rows = _opening(((number, fields) for number, line in lines if (fields := _fields(line))), path)
    seen: dict[str, int] = {}  # token -> the line it stands on
    numbers = array("f")
    read = last = 0
    for number, fields in rows:
        read, last = read + 1, number
        token = _token(fields, width, f"{path}:{number}")
        if token in seen or (wanted is not None and token not in wanted):
            continue
        seen[token] = number
        try:
            numbers.extend([float(field) for field in fields[-width:]])
        except ValueError as error:
            raise DataError(f"{path}:{number}: a line must have a token and {width} numbers, but {error}.") from error
    if count is not None and read < count:
        raise DataError(
            f"{path}:{last or 1}: the file ends after {read} vectors, but its first line says {count}. The file "
            "may be truncated. Download it again."
        )
    values = np.frombuffer(numbers, dtype=np.float32).reshape(len(seen), width)
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        token, number = list(seen.items())[int(finite.argmin())]
        raise DataError(f"{path}:{number}: the vector of {token!r} contains a number that is infinite or NaN.")
    return Vectors(list(seen), values)


def covered(vocabulary: Vocabulary, vectors: Vectors) -> Coverage:
    """How much of a vocabulary has vectors, exactly or by lower case.

    >>> vectors = Vectors(["tea", "Ann"], np.zeros((2, 3), np.float32))
    >>> covered(Vocabulary(["Tea", "Ann", "cup"]), vectors)
    Coverage(exact=1, lowered=1, total=3)
    """
    known = set(vectors.tokens)
    tokens = vocabulary.tokens[len(vocabulary.specials) :]
    exact = sum(token in known for token in tokens)
    either = sum(token in known or token.lower() in known for token in tokens)
    return Coverage(exact=exact, lowered=either - exact, total=len(tokens))


Rows = Iterator[tuple[int, list[str]]]


def _opening(rows: Rows, path: str | os.PathLike[str]) -> tuple[int | None, int, Rows]:
    """The promised count, the width, and the rows that hold vectors."""
    number, first = next(rows, (0, []))
    if not first:
        raise DataError(f"{path} is empty: a file of word vectors has a token and its numbers on each line.")
    if len(first) == 2 and all(field.isascii() and field.isdigit() for field in first):
        if int(first[1]) == 0:
            raise DataError(f"{path}:{number}: the first line says that vectors have size 0.")
        return int(first[0]), int(first[1]), rows
    width = 0
    while width < len(first) - 1 and _is_number(first[-1 - width]):
        width += 1
    if width == 0:
        raise DataError(
            f"{path}:{number}: each line must have a token and its numbers, but this line ends in {first[-1][:40]!r}."
        )
    return None, width, chain([(number, first)], rows)


def _fields(line: str) -> list[str]:
    # Blanks and tabs alone divide: a token may hold any other white space, such as a no-break space.
    return [field for field in line.rstrip("\r\n").replace("\t", " ").split(" ") if field]


def _token(fields: list[str], width: int, place: str) -> str:
    head = fields[:-width]
    # A blank inside a token is rare, and a number after it rarer than a number too many.
    if not head or (len(head) > 1 and _is_number(head[-1])):
        raise DataError(
            f"{place}: found {len(fields)} fields, but each line must have {width + 1}: a token and {width} numbers, "
            "as the first lines have."
        )
    return " ".join(head)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
