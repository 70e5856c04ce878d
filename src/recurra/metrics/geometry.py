"""Answers that are points of a plane: polygons, triangulations and tours, as numbers of the points from 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Points: TypeAlias = NDArray[np.floating]
"""(n, 2), of tours (n, d)."""


def area(points: Points, polygon: Sequence[int]) -> float:
    """The area of a simple polygon: ½ |Σ_i (x_i y_{i+1} − x_{i+1} y_i)|.

    >>> area(np.array([[0, 0], [2, 0], [2, 1], [0, 1]]), [0, 1, 2, 3])
    2.0
    """
    x, y = _at(points, polygon).T
    return float(abs((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) / 2) if len(x) else 0.0


def is_simple(points: Points, polygon: Sequence[int]) -> bool:
    """Whether a polygon has three corners and more, each once, and no two sides that cross.

    >>> square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    >>> is_simple(square, [0, 1, 2, 3]), is_simple(square, [0, 2, 1, 3]), is_simple(square, [0, 1])
    (True, False, False)
    """
    count = len(polygon)
    if count < 3 or len({*polygon}) < count:
        return False
    corners = _at(points, polygon)
    following = np.roll(corners, -1, axis=0)
    for one in range(count):
        for other in range(one + 2, count - (one == 0)):  # neighbours share a corner
            if _cross(corners[one], following[one], corners[other], following[other]):
                return False
    return True


def is_same_polygon(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two polygons have the same corners in the same order, wherever they begin.

    >>> is_same_polygon([3, 1, 2], [1, 2, 3]), is_same_polygon([3, 2, 1], [1, 2, 3])
    (True, False)
    """
    return _rotated(one) == _rotated(other)


def triangles(corners: Sequence[int]) -> set[tuple[int, ...]]:
    """The different triangles of a sequence of their corners, three by three; what is left at its end is none.

    >>> sorted(triangles([2, 0, 1, 1, 2, 0, 3, 2, 1, 4]))
    [(0, 1, 2), (1, 2, 3)]
    """
    found = {tuple(sorted(corners[at : at + 3])) for at in range(0, len(corners) - 2, 3)}
    return {each for each in found if len({*each}) == 3}


def is_tour(tour: Sequence[int], points: int) -> bool:
    """Whether so many points are all visited, each once."""
    return sorted(tour) == list(range(points))


def tour_length(points: Points, tour: Sequence[int]) -> float:
    """The way through these points and back to the first.

    >>> tour_length(np.array([[0, 0], [3, 0], [3, 4]]), [0, 1, 2])
    12.0
    """
    visited = _at(points, tour)
    return float(np.linalg.norm(visited - np.roll(visited, -1, axis=0), axis=1).sum())


def is_same_tour(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two tours are one, wherever they begin and whichever way they go."""
    return _rotated(one) in (_rotated(other), _rotated(other[::-1]))


def _at(points: Points, numbers: Sequence[int]) -> NDArray[np.float64]:
    return np.asarray(points, np.float64)[np.asarray(numbers, np.int64)]


def _rotated(cycle: Sequence[int]) -> list[int]:
    """The same cycle, begun at its least number."""
    if not cycle:
        return []
    first = list(cycle).index(min(cycle))
    return [*cycle[first:], *cycle[:first]]


def _side(a: Points, b: Points, c: Points) -> float:
    """Above 0 where c lies to the left of the way from a to b, below 0 to its right."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _cross(a: Points, b: Points, c: Points, d: Points) -> bool:
    """Whether the way from a to b and that from c to d cross."""
    return _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0
