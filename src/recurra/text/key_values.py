"""Cells of Key=Value pairs with bars between them, as FEATS of CoNLL-U: "Case=Nom|Number=Sing", "_" for none."""

from __future__ import annotations

import functools
from collections.abc import Mapping

NONE = "_"
"""A cell without pairs, and the value of a key that a cell does not have."""

EVERY = "*"
"""In place of a key: every key that occurs."""


def column_and_key(name: str) -> tuple[str, str | None]:
    """The column and the key of feats:Case; a plain name has no key.

    >>> column_and_key("feats:Case"), column_and_key("upos")
    (('feats', 'Case'), ('upos', None))
    """
    column, colon, key = name.partition(":")
    return (column, key) if colon and column and key else (name, None)


@functools.lru_cache(maxsize=1 << 14)
def pairs_of(cell: str) -> Mapping[str, str]:
    """The pairs of a cell. What has no value, as some notes of MISC, is no pair.

    >>> dict(pairs_of("Case=Nom|Number=Sing")), dict(pairs_of("_"))
    ({'Case': 'Nom', 'Number': 'Sing'}, {})
    """
    return dict(part.split("=", 1) for part in cell.split("|") if "=" in part)


def with_pairs(cell: str, values: Mapping[str, str], *, is_sorted: bool) -> str:
    """The cell with other values of some keys; "_" takes a key away. All else stays.

    Sorted as FEATS must be: by key, in whatever case. Else a new key comes last.

    >>> with_pairs("Number=Sing|Tense=Past", {"Case": "Nom", "Tense": "_"}, is_sorted=True)
    'Case=Nom|Number=Sing'
    >>> with_pairs("SpaceAfter=No", {"Ref": "3"}, is_sorted=False)
    'SpaceAfter=No|Ref=3'
    """
    parts = {} if cell == NONE else {part.split("=", 1)[0]: part for part in cell.split("|")}
    parts |= {key: f"{key}={value}" for key, value in values.items()}
    kept = [part for key, part in parts.items() if values.get(key) != NONE]
    return "|".join(sorted(kept, key=sorting_key) if is_sorted else kept) or NONE


def sorting_key(part: str) -> tuple[str, str]:
    """By which pairs are sorted: their key without regard to case, and where keys differ by it alone, as they are."""
    return part.split("=", 1)[0].lower(), part
