"""Spans that are marked in a text, as one or several columns of BIO tags: what brat and JSONL with spans share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

from recurra.data.files import PathLike
from recurra.data.formats.reader import Value
from recurra.errors import ConfigError
from recurra.text.tokens_of_text import tokens_of_text
from recurra.text.written import Token, Written


class Marked(NamedTuple):
    """The code points [start, end) of a text, and what they are."""

    start: int
    end: int
    label: str


class Tagged(NamedTuple):
    """A text as tokens with tags, and how many spans did not fit into its columns."""

    values: dict[str, Value]
    written: Written
    dropped: int


def checked_layers(layers: int) -> int:
    """How many columns of tags there are."""
    if layers < 1:
        raise ConfigError(f"layers must be at least 1, but is {layers}.")
    return layers


def tagged(
    text: str, spans: Sequence[Marked], *, layers: int, tokens: Sequence[tuple[int, int]] | None = None
) -> Tagged | None:
    """A text as tokens and `layers` columns of tags: tags, tags2, …; None where it has no tokens.

    The outermost spans are in the first column, those that overlap them in the next, and so on. Without tokens, they
    are found by rule and cut where spans begin and end; with them, a span takes every token that it touches.

    >>> found = tagged("University of Paris", [Marked(14, 19, "place"), Marked(0, 19, "school")], layers=1)
    >>> found.values["tags"], found.dropped
    (['B-school', 'I-school', 'I-school'], 1)
    >>> tagged("in Paris", [Marked(3, 8, "place")], layers=2).values["tags2"]
    ['O', 'O']
    """
    places = tokens_of_text(text, [bound for span in spans for bound in span[:2]]) if tokens is None else list(tokens)
    if not places:
        return None
    columns = [["O"] * len(places) for _ in range(layers)]
    dropped = 0
    for start, end, label in sorted(set(spans), key=lambda span: (span.start, -span.end, span.label)):
        inside = [number for number, place in enumerate(places) if place[0] < end and place[1] > start]
        free = (column for column in columns if inside and all(column[number] == "O" for number in inside))
        column = next(free, None)
        if column is None:
            dropped += 1
            continue
        for number in inside:
            column[number] = f"{'B' if number == inside[0] else 'I'}-{label}"
    first = places[0][0]
    written = Written(text[first : places[-1][1]], tuple(Token(a - first, b - first) for a, b in places), start=first)
    values: dict[str, Value] = {"tokens": [text[a:b] for a, b in places]}
    values |= {"tags" if number == 1 else f"tags{number}": column for number, column in enumerate(columns, 1)}
    return Tagged(values, written, dropped)


def tell_dropped(path: PathLike, dropped: int, layers: int) -> None:
    """Say how many spans of a file have no place in its columns."""
    if dropped:
        spans = "1 nested or overlapping span was" if dropped == 1 else f"{dropped:,} nested or overlapping spans were"
        columns = "one column of tags" if layers == 1 else f"{layers} columns of tags"
        warnings.warn(
            f"recurra: {path}: {spans} dropped: {columns} can hold the outermost alone. layers = {layers + 1} in "
            f"data.format adds a column.",
            stacklevel=2,
        )
