"""Pen strokes to a picture, with numpy alone: what was written on a tablet is read by the same encoder as a photo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

FARTHEST = 1e12
"""No coordinate is farther from 0: beyond, it is a mistake, and the differences would lose their digits."""

MOST_POINTS = 1 << 20
"""So many points may a drawing have; a page full of writing has a hundredth of it."""

PIECE = 4.0
"""Lines are cut into pieces of so many pixels at most, each with a small square of pixels around it."""

PIECES_AT_ONCE = 1 << 12
DOT = 1e-6
"""A stroke below this share of the whole drawing is a dot, and says nothing about the size of the writing."""


def draw(
    strokes: object,
    place: str = "the drawing",
    *,
    stroke: float = 28.0,
    thickness: float = 2.0,
    margin: int = 4,
    max_height: int = 256,
    max_width: int = 1024,
) -> NDArray[np.uint8]:
    """A picture (H, W) of pen strokes: 0 is paper, 255 is ink, in between are the soft edges of a line.

    A stroke is [[x, x, …], [y, y, …]] or a list of points [x, y], with y downwards, the same way for all strokes of
    a drawing. Where every stroke has two rows of two numbers, they are taken as x and y. A single point is a dot.

    The drawing is scaled until the median stroke is `stroke` pixels long on its larger side, or less where it would
    not fit into max_height x max_width otherwise. The margin is measured from the middle of the pen.

    >>> draw([[[0, 9], [5, 5]]], stroke=3, thickness=1, margin=1)
    array([[  0,   0,   0,   0,   0,   0],
           [  0, 255, 255, 255, 255,   0],
           [  0,   0,   0,   0,   0,   0]], dtype=uint8)
    """
    margin = max(margin, int(np.ceil(thickness / 2)))
    assert thickness > 0, "a pen has a thickness"
    assert stroke > 0, "a stroke has a size"
    assert min(max_height, max_width) > 2 * margin, "the margins leave room for the drawing"
    points, lengths = _points(strokes, place)
    points -= points.min(0)
    if whole := points.max():
        points /= whole
    scale = _scale(points, lengths, stroke, max_height - 1 - 2 * margin, max_width - 1 - 2 * margin)
    points *= scale
    width, height = np.rint(points.max(0)).astype(int) + 1 + 2 * margin
    starts, steps = _pieces(points + margin, lengths)
    return _inked(starts, steps, thickness / 2, int(height), int(width))


def _points(strokes: object, place: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """All points (N, 2) of the drawing as x and y, stroke after stroke, and how many each stroke has."""
    if not isinstance(strokes, list | tuple | np.ndarray):
        raise DataError(f"{place}: a drawing must be a list of strokes, but is of type {type(strokes).__name__}.")
    if len(strokes) == 0:
        raise DataError(f"{place}: there are no strokes to draw.")
    arrays = [_stroke(one, number, place) for number, one in enumerate(strokes, 1)]
    if all(len(array) == 2 for array in arrays):
        arrays = [array.T for array in arrays]
    for number, array in enumerate(arrays, 1):
        if array.shape[1] != 2:
            raise DataError(
                f"{place}: stroke {number} has {array.shape[0]} x {array.shape[1]} numbers, but must be [[x, …], "
                "[y, …]] or a list of points [x, y]. Use the same form for all strokes of a drawing."
            )
    points = np.concatenate(arrays, dtype=np.float64)
    if len(points) > MOST_POINTS:
        raise DataError(f"{place}: the drawing has {len(points):,} points, but {MOST_POINTS:,} is the most.")
    is_bad = ~(np.abs(points) <= FARTHEST).all(1)
    lengths = np.array([len(array) for array in arrays])
    if is_bad.any():
        worst = int(is_bad.argmax())
        number = int(np.searchsorted(np.cumsum(lengths), worst, side="right")) + 1
        x, y = points[worst].tolist()
        why = "farther than 1e12 from 0" if np.isfinite(points[worst]).all() else "not a finite point"
        raise DataError(f"{place}: stroke {number} has the point ({x}, {y}), which is {why}.")
    return points, lengths


def _stroke(one: object, number: int, place: str) -> NDArray[Any]:
    """A stroke as an array (rows, columns) of numbers, whichever of the two is the points."""
    if not isinstance(one, list | tuple | np.ndarray):
        raise DataError(
            f"{place}: stroke {number} must be [[x, …], [y, …]] or a list of points [x, y], but is of type "
            f"{type(one).__name__}."
        )
    try:
        array = np.asarray(one)
    except ValueError:  # rows of different lengths, or nested too deeply
        raise DataError(f"{place}: stroke {number} {_unequal(one)}.") from None
    if array.size == 0:
        raise DataError(f"{place}: stroke {number} has no points.")
    if array.dtype.kind not in "iuf":
        raise DataError(f"{place}: stroke {number} contains values that are not numbers.")
    if array.ndim != 2:
        raise DataError(
            f"{place}: stroke {number} must be [[x, …], [y, …]] or a list of points [x, y], but its lists are "
            f"{array.ndim} deep instead of 2."
        )
    return array


def _unequal(one: Sequence[Any] | NDArray[Any]) -> str:
    """What is wrong with a stroke that is no rectangle of numbers."""
    if len(one) == 2 and all(isinstance(row, list | tuple) for row in one):
        return f"has {len(one[0])} x but {len(one[1])} y"
    return "has points of different numbers of coordinates"


def _scale(points: NDArray[np.float64], lengths: NDArray[np.int64], stroke: float, height: int, width: int) -> float:
    """Pixels per unit, for a drawing whose larger side is 1."""
    firsts = np.cumsum(lengths) - lengths
    extents = np.maximum.reduceat(points, firsts) - np.minimum.reduceat(points, firsts)
    sizes = extents.max(1)
    sizes = sizes[sizes > DOT]
    # Dots alone are as far apart as a stroke is long.
    median = float(np.median(sizes)) if len(sizes) else 1.0
    across, down = points.max(0).tolist()
    return min(stroke / median, width / max(across, DOT), height / max(down, DOT))


def _pieces(points: NDArray[np.float64], lengths: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The lines of all strokes as short pieces: where each starts (N, 2) and its step to its end (N, 2)."""
    lasts = np.cumsum(lengths) - 1
    is_line = np.ones(len(points), bool)
    is_line[lasts] = lengths == 1  # a stroke of one point is a line from it to itself
    starts = points[is_line]
    ends = points[np.minimum(np.flatnonzero(is_line) + 1, len(points) - 1)]
    dots = np.flatnonzero(is_line[lasts])
    if len(dots):
        places = (np.cumsum(is_line) - 1)[lasts[dots]]
        ends[places] = starts[places]
    steps = ends - starts
    parts = np.maximum(np.ceil(np.hypot(steps[:, 0], steps[:, 1]) / PIECE), 1).astype(np.int64)
    steps /= parts[:, None]
    which = np.repeat(np.arange(len(parts)), parts)
    order = np.arange(len(which)) - (np.cumsum(parts) - parts)[which]
    return starts[which] + steps[which] * order[:, None], steps[which]


def _inked(starts: NDArray[Any], steps: NDArray[Any], radius: float, height: int, width: int) -> NDArray[np.uint8]:
    """Ink by distance to the nearest piece: whole up to half a pixel within the pen's edge, none half a pixel beyond.

    t = clip(d · s / |s|², 0, 1),   distance = |d - t s|,   of each pixel d away from the start of a piece of step s.
    """
    reach = int(np.ceil(PIECE / 2 + radius + 0.5))
    # Squares around pieces at the edge lie partly outside the picture: the canvas is larger, and cut at the end.
    canvas = np.zeros((height + 2 * reach + 2, width + 2 * reach + 2), np.uint8)
    ink = canvas.reshape(-1)
    around = np.arange(-reach, reach + 1)
    for first in range(0, len(starts), PIECES_AT_ONCE):
        start, step = starts[first : first + PIECES_AT_ONCE], steps[first : first + PIECES_AT_ONCE]
        middle = np.rint(start + step / 2).astype(np.int64)
        away = (middle - start).astype(np.float32)
        s_x, s_y = step.astype(np.float32).T[:, :, None, None]
        d_x = away[:, :1, None] + around.astype(np.float32)
        d_y = away[:, 1:, None] + around.astype(np.float32)[:, None]
        square = np.maximum(s_x * s_x + s_y * s_y, np.float32(1e-12))
        t = (d_x * (s_x / square) + d_y * (s_y / square)).clip(0, 1)
        distance = np.sqrt((d_x - t * s_x) ** 2 + (d_y - t * s_y) ** 2)
        amount = np.clip(np.float32(radius + 0.5) - distance, 0, 1) * np.float32(255) + np.float32(0.5)
        corner = (middle[:, 1] + reach) * canvas.shape[1] + middle[:, 0] + reach
        places = corner[:, None, None] + (around[:, None] * canvas.shape[1] + around)
        shade = amount.astype(np.uint8).ravel()
        dark = np.flatnonzero(shade)
        np.maximum.at(ink, places.ravel()[dark], shade[dark])
    return np.ascontiguousarray(canvas[reach : reach + height, reach : reach + width])
