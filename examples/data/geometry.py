"""Makes problems for pointer networks: python examples/data/geometry.py PROBLEM FOLDER [--points 10 --train 20000 …]

    hull        the corners of the convex hull, counter-clockwise, from the corner that comes first in the input
    delaunay    the triangles of the Delaunay triangulation, three corners each, in increasing order
    tour        the shortest way through all points and back, from the first point
    sort        the numbers in increasing order

Points are drawn uniformly from the unit square, numbers from the unit interval; --points 5-50 draws how many there are.
FOLDER gets train.npz, valid.npz and test.npz with `frames`, the points, `frames_lengths`, how many each problem has,
and `target`, the solution: numbers of points from 1 with blanks between them. All solutions are exact:

    hull        monotone chain (Andrew 1979); for many problems at once, p → q is a side if no point is to its right
    delaunay    a triangle belongs to it if no other point lies in the circle through its corners
    tour        dynamic programming over sets of points (Held and Karp 1962), for 12 points at most
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = list[int]

PROBLEMS = ("hull", "delaunay", "tour", "sort")
MOST_IN_A_TOUR = 12
LARGE = 20
"""Points from which it takes longer to look at all of them together than one after the other."""
AT_ONCE = 2_000_000
"""So many comparisons are made together."""
ROUNDING = 1e-12


def side(a: Array, b: Array, c: Array) -> Array:
    """Above 0 where c lies to the left of the way from a to b; points are in the last axis."""
    found: Array = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
    return found


def begun_first(cycle: Numbers) -> Numbers:
    """The same cycle, from its least number on."""
    at = cycle.index(min(cycle))
    return cycle[at:] + cycle[:at]


def hull(points: Array) -> Numbers:
    """The corners of the convex hull of (n, 2) points, counter-clockwise, by a monotone chain.

    >>> hull(np.array([[0.5, 0.4], [1, 0], [0, 0], [0.5, 1]]))
    [1, 3, 2]
    """
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()
    if len(order) < 3:
        return begun_first(order)
    chains = []
    for way in (order, order[::-1]):  # the lower chain from left to right, the upper one back
        chain: Numbers = []
        for point in way:
            while len(chain) > 1 and side(points[chain[-2]], points[chain[-1]], points[point]) <= 0:
                chain.pop()
            chain.append(point)
        chains.append(chain[:-1])
    return begun_first(chains[0] + chains[1])


def hulls(points: Array) -> list[Numbers]:
    """The hulls of (N, n, 2) points, n ≥ 3, many at once: p → q is a side of the hull where no point is to its right.

    >>> hulls(np.array([[[0.5, 0.4], [1, 0], [0, 0], [0.5, 1]]]))
    [[1, 3, 2]]
    """
    count = points.shape[1]
    from_p, to_q, other = points[:, :, None, None], points[:, None, :, None], points[:, None, None, :]
    is_side = (side(from_p, to_q, other) >= 0).all(3) & ~np.eye(count, dtype=bool)
    following, first = is_side.argmax(2), is_side.any(2).argmax(1)
    ways, rows = [first], np.arange(len(points))
    for _ in range(count - 1):
        ways.append(following[rows, ways[-1]])
    found = np.stack(ways, axis=1).tolist()
    return [way[: [*way, way[0]].index(way[0], 1)] for way in found]


def triangulations(points: Array) -> list[Numbers]:
    """The corners of the Delaunay triangles of (N, n, 2) points, triangle after triangle, by the circle of each.

    d is inside the circle of a, b, c, which turn left, where the determinant of their coordinates as seen from d, with
    the squared distance of each beside them, is positive.

    >>> triangulations(np.array([[[0, 0], [2, 0], [0, 2], [3, 3.0]]]))
    [[0, 1, 2, 1, 2, 3]]
    """
    corners = np.array(list(itertools.combinations(range(points.shape[1]), 3)), np.int64).reshape(-1, 3)
    a, b, c = (points[:, corners[:, k]] for k in range(3))  # (N, triangles, 2)
    u, v, w = (each[:, :, None] - points[:, None] for each in (a, b, c))  # (N, triangles, n, 2)
    determinant = sum(
        (one**2).sum(3) * (two[..., 0] * three[..., 1] - two[..., 1] * three[..., 0])
        for one, two, three in ((u, v, w), (v, w, u), (w, u, v))
    )
    turn = side(a, b, c)
    inside = determinant * np.sign(turn)[:, :, None] > ROUNDING
    inside[:, np.arange(len(corners))[:, None], corners] = False  # corners lie on the circle
    is_in = ~inside.any(2) & (np.abs(turn) > ROUNDING)
    return [corners[each].ravel().tolist() for each in is_in]


def tours(points: Array) -> list[Numbers]:
    """The shortest way through all of (N, n, d) points and back, from the first, by dynamic programming over sets.

        C(S, j) = min_{i in S, i ≠ j} C(S \\ {j}, i) + |p_i − p_j|         the way from point 0 through all of S to j

    Of the two ways round, the one whose second point has the lower number.

    >>> tours(np.array([[[0, 0], [1, 1], [0, 1], [1, 0.0]]]))
    [[0, 2, 1, 3]]
    """
    rows, count = np.arange(len(points)), points.shape[1]
    if count > MOST_IN_A_TOUR:
        raise SystemExit(f"a tour is found exactly for at most {MOST_IN_A_TOUR} points, but there are {count}.")
    if count < 3:
        return [list(range(count))] * len(points)
    lengths = np.linalg.norm(points[:, :, None] - points[:, None], axis=3)
    others = count - 1  # point j + 1 is bit j of a set
    cost = np.full((1 << others, len(points), others), np.inf)
    before = np.zeros(cost.shape, np.int8)
    for members in range(1, 1 << others):
        for j in (j for j in range(others) if members >> j & 1):
            rest = members ^ (1 << j)
            if not rest:
                cost[members, :, j] = lengths[:, 0, j + 1]
                continue
            ways = cost[rest] + lengths[:, 1:, j + 1]
            before[members, :, j] = ways.argmin(1)
            cost[members, :, j] = ways.min(1)
    sets = np.full(len(points), (1 << others) - 1)
    last = (cost[-1] + lengths[:, 1:, 0]).argmin(1)
    ways = []
    for _ in range(others):
        ways.append(last + 1)
        sets, last = sets ^ (1 << last), before[sets, rows, last].astype(np.int64)
    found = np.stack(ways, axis=1).tolist()
    return [[0, *(way if way[0] < way[-1] else way[::-1])] for way in found]


def solved(problem: str, points: list[Array]) -> list[Numbers]:
    """The solution of each problem, as numbers of its points from 0: those of one size together."""
    solutions: list[Numbers] = [[] for _ in points]
    by_size: dict[int, list[int]] = {}
    for number, each in enumerate(points):
        by_size.setdefault(len(each), []).append(number)
    for size, numbers in by_size.items():
        at_once = max(1, AT_ONCE // {"delaunay": size**4, "tour": 2**size * size}.get(problem, size**3))
        for first in range(0, len(numbers), at_once):
            some = numbers[first : first + at_once]
            for number, solution in zip(some, _solved(problem, [points[each] for each in some]), strict=True):
                solutions[number] = solution
    return solutions


def _solved(problem: str, points: list[Array]) -> list[Numbers]:
    if problem == "sort":
        return [np.argsort(each[:, 0], kind="stable").tolist() for each in points]
    if problem == "hull":
        return hulls(np.stack(points)) if 3 <= len(points[0]) <= LARGE else [hull(each) for each in points]
    return (triangulations if problem == "delaunay" else tours)(np.stack(points))


def drawn(problem: str, count: int, least: int, most: int, seed: int) -> list[Array]:
    """So many problems of least to most points."""
    chance = np.random.default_rng(seed)
    sizes = chance.integers(least, most + 1, count) if least < most else np.full(count, most)
    values = chance.random((int(sizes.sum()), 1 if problem == "sort" else 2)).astype(np.float32)
    return [each.astype(np.float64) for each in np.split(values, sizes.cumsum()[:-1])]


def write(path: Path, points: list[Array], solutions: list[Numbers]) -> None:
    """One file of problems and their solutions."""
    np.savez(
        path,
        frames=np.concatenate(points).astype(np.float32),
        frames_lengths=np.array([len(each) for each in points]),
        target=np.array([" ".join(str(number + 1) for number in solution) for solution in solutions]),
    )


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", default="10", help="how many: one number, or a range such as 5-50 (10)")
    parser.add_argument("--train", type=int, default=20_000, help="problems to learn from (20000)")
    parser.add_argument("--valid", type=int, default=500)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(given)
    least, _, most = options.points.partition("-")
    options.folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(("train", "valid", "test")):
        points = drawn(
            options.problem, getattr(options, part), int(least), int(most or least), 3 * options.seed + number
        )
        write(options.folder / f"{part}.npz", points, solved(options.problem, points))


if __name__ == "__main__":
    main()
