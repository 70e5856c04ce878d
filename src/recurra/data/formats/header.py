"""Whether the first line of a table is a header: the one rule that every task and every command reads tables by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

LOOKED_AT = 200
"""Lines below the first that are looked at."""

ALONE = frozenset(
    {"text", "label", "labels", "category", "tokens", "tags", "lemma", "features", "source", "target", "context"}
    | {"values", "vector", "frames", "image", "time", "id", "language", "score", "sentence", "review"}
)
"""Names by which the first line of a single column is a header."""

FEWEST = 5
"""Rows that a column needs before its values can be said to recur."""

MOST_WORDS = 8
"""A name of a column has no more; a longer text above numbers may be a row in which a number is not known."""

_NAME = r"[^\W\d][^\t\n.!?]{0,40}|"


def is_header(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool | None:
    """Whether a first line holds names; None where it cannot be told.

    Names are usual ones ('sentence', 'intent', 'date'), or stand above numbers, dates or pictures, or are unlike what
    stands below them. A first line with a number or a date in it is no header.

    >>> is_header(["sentence", "intent"], [["turn it on", "light"]]), is_header(["day", "°C"], [["1", "2.5"]])
    (True, True)
    >>> is_header(["turn it on", "light"], [["turn it off", "light"]]), is_header(["cat", "K AE T"], [["a", "AH"]])
    (False, False)
    """
    from recurra.data.roles import KNOWN, MISSING, is_called, kind_of, two_texts

    cells = [cell.strip() for cell in first]
    named = [cell for cell in cells if cell.lower() not in MISSING]
    if not named or any(kind_of(cell) in ("number", "date", "picture") for cell in named):
        return False
    if len(cells) == 1:
        return cells[0].lower() in ALONE or _stands_above_values(cells[0], [row[0] for row in below if row])
    columns = [[row[k].strip() for row in below if k < len(row)] for k in range(len(cells))]
    if any(_stands_above_values(cell, column) for cell, column in zip(cells, columns, strict=True)):
        return True if max(len(cell.split()) for cell in cells) <= MOST_WORDS else None
    if not all(re.fullmatch(_NAME, cell) and len(cell.split()) <= 4 for cell in cells):
        return False
    if two_texts(cells) is not None and not any(map(_recurs, cells, columns)):
        return True  # such as sentence1 and sentence2, whatever stands beside them
    usual = [not cell or (len(cell.split()) <= 2 and is_called(cell, KNOWN)) for cell in cells]
    if all(usual):
        return not any(_recurs(cell, column) for cell, column in zip(cells, columns, strict=True))
    unlike = [_is_unlike(cell, column) for cell, column in zip(cells, columns, strict=True)]
    if any(_recurs(cell, column) for cell, column in zip(cells, columns, strict=True) if cell):
        return False
    if any(usual) and all(is_usual or is_unlike for is_usual, is_unlike in zip(usual, unlike, strict=True)):
        return True
    return None if all(unlike) and len(below) >= FEWEST else False


def _stands_above_values(cell: str, column: Sequence[str]) -> bool:
    """Whether a cell is a text, while all below it are numbers, dates or pictures."""
    from recurra.data.roles import kind_of

    kinds = {kind_of(value) for value in column} - {"missing"}
    return bool(cell) and kind_of(cell) == "text" and len(kinds) == 1 and "text" not in kinds


def _recurs(cell: str, column: Sequence[str]) -> bool:
    return bool(cell) and cell in column


def _is_unlike(cell: str, column: Sequence[str]) -> bool:
    """Whether a cell is one word above texts of several, or the only one of its kind above values that all recur."""
    if not cell or not column:
        return not cell
    if len(cell.split()) == 1 and sum(len(value.split()) for value in column) >= 2 * len(column):
        return True
    counts = Counter(column)
    return len(column) >= FEWEST and min(counts.values()) > 1 and cell not in counts and len(cell.split()) == 1
