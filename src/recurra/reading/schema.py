"""What one input of a model looks like, whatever it arrives by: a line, JSON, a form on a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from recurra.data.normal import Normal
from recurra.frozen import NamedTuple

Kind = Literal["text", "frames", "series", "vector", "places", "picture", "strokes"]

ABOUT: dict[Kind, str] = {
    "text": "a text",
    "frames": "a list of steps, each a list of numbers",
    "series": "a list of steps, each a number or a list of numbers, or an object with values, times, future, past and "
    "static",
    "vector": "a list of numbers",
    "places": "features of places, S × F or H × W × F numbers",
    "picture": "a PNG or JPEG picture as a data URL, data:image/png;base64,…, or its pixels as lists of numbers",
    "strokes": "a list of pen strokes, each [[x, …], [y, …]] with y downwards",
}

RGB = ("red", "green", "blue")


class Schema(NamedTuple):
    """The kind of input that a model takes; for several columns, their names."""

    kind: Kind
    columns: Sequence[str] = ()
    ranges: Sequence[tuple[float, float]] = ()  # of a vector: where most of each column lies
    colour: int | None = None  # of a vector that is red, green and blue: their most, 255 or 1
    series: str = ""  # of a series: the column of a table that tells several apart


def vector_schema(columns: Sequence[str], scale: Normal) -> Schema:
    """What a vector is, by the names of its columns and by how large its numbers were in training.

    >>> vector_schema(["vector"], Normal(np.array([135.0, 122, 112]), np.array([66.0, 60, 65])))[1:]
    (['red', 'green', 'blue'], [(0, 255), (0, 255), (0, 255)], 255, '')
    >>> vector_schema(["weight", "height"], Normal(np.array([70.0, 1.75]), np.array([10.0, 0.05])))[1:]
    (['weight', 'height'], [(40.0, 100.0), (1.6, 1.9)], None, '')
    """
    mean, spread = scale.mean, scale.spread
    width = len(mean)
    names = list(columns)
    if len(names) != width:  # a column may hold a list
        names = [f"{'+'.join(names)} {number}" for number in range(1, width + 1)]
    colour = _colour(names, len(columns) == width, scale)
    if colour is not None:
        return Schema("vector", list(RGB), [(0, colour)] * 3, colour)
    ends = np.stack([mean - 3 * spread, mean + 3 * spread], 1)
    return Schema("vector", names, [(float(f"{low:.3g}"), float(f"{high:.3g}")) for low, high in ends])


def _colour(names: Sequence[str], are_named: bool, scale: Normal) -> int | None:
    """The most of red, green and blue: where columns are called so, or three without names are spread like bytes."""
    if len(names) != 3:
        return None
    if are_named:
        is_called = all(name.strip().lower() in (full, full[0]) for name, full in zip(names, RGB, strict=True))
        return (1 if (scale.mean + scale.spread).max() <= 1.5 else 255) if is_called else None
    middle, spread = scale.mean / 255, scale.spread / 255
    return 255 if ((middle > 0.15) & (middle < 0.85) & (spread > 0.1) & (spread < 0.5)).all() else None
