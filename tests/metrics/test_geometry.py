"""Polygons, triangulations and tours against slow definitions, and the solvers of examples/data/geometry.py."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.metrics.geometry import area, is_same_polygon, is_same_tour, is_simple, is_tour, tour_length, triangles
from recurra.scoring.point_scores import PointAnswers, point_scores

FILE = Path(__file__).parents[2] / "examples" / "data" / "geometry.py"
found = importlib.util.spec_from_file_location("geometry", FILE)
assert found is not None
assert found.loader is not None
geometry: Any = importlib.util.module_from_spec(found)
found.loader.exec_module(geometry)


def drawn(seed: int, count: int) -> Any:
    return np.random.default_rng(seed).random((count, 2))


def inside(point: Any, polygon: Any) -> bool:
    """Whether a ray to the right crosses the polygon's sides an odd number of times."""
    crossed = 0
    for (ax, ay), (bx, by) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if (ay > point[1]) != (by > point[1]) and point[0] < ax + (point[1] - ay) / (by - ay) * (bx - ax):
            crossed += 1
    return crossed % 2 == 1


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(3, 8))
def test_a_hull_holds_all_points_and_is_the_same_by_both_solvers(seed: int, count: int) -> None:
    points = drawn(seed, count)
    [by_sides], corners = geometry.hulls(points[None]), geometry.hull(points)
    assert by_sides == corners
    assert corners[0] == min(corners)
    assert is_simple(points, corners)
    for number in {*range(count)} - {*corners}:
        assert inside(points[number], points[corners])
    largest = max(
        area(points, order)
        for size in range(3, count + 1)
        for chosen in itertools.combinations(range(count), size)
        for order in [[n for n in corners if n in chosen]]
        if len(order) == size
    )
    assert area(points, corners) == pytest.approx(largest)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(3, 7))
def test_no_circle_of_a_delaunay_triangle_holds_a_point_and_they_cover_the_hull(seed: int, count: int) -> None:
    points = drawn(seed, count)
    [corners] = geometry.triangulations(points[None])
    found = triangles(corners)
    for a, b, c in found:
        # The centre is where both bisectors meet.
        sides = 2 * np.array([points[b] - points[a], points[c] - points[a]])
        squares = (points[[b, c]] ** 2).sum(1) - (points[a] ** 2).sum()
        centre = np.linalg.solve(sides, squares)
        radius = np.linalg.norm(points[a] - centre)
        assert all(np.linalg.norm(points[n] - centre) > radius * (1 - 1e-6) for n in range(count))
    whole = area(points, geometry.hull(points))
    assert sum(area(points, triangle) for triangle in found) == pytest.approx(whole)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_a_tour_is_the_shortest_of_all(seed: int, count: int) -> None:
    points = drawn(seed, count)
    [tour] = geometry.tours(points[None])
    assert is_tour(tour, count)
    ways = itertools.permutations(range(1, count))
    assert tour_length(points, tour) == pytest.approx(min(tour_length(points, [0, *way]) for way in ways))


@given(st.permutations(range(5)), st.permutations(range(5)))
def test_cycles_are_the_same_where_a_turn_makes_them_so(one: list[int], other: list[int]) -> None:
    turns = [one[at:] + one[:at] for at in range(5)]
    assert is_same_polygon(one, other) == (other in turns)
    assert is_same_tour(one, other) == (other in turns or other[::-1] in turns)


def test_scores_of_hulls_by_hand() -> None:
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    answers = [[1, 2, 3, 0], [0, 1, 2], [0, 2, 1, 3], [0, 1]]
    given = PointAnswers([*range(4)], [[0, 1, 2, 3]] * 4, answers, [square] * 4, [4] * 4)
    counted = point_scores(given, shape="hull", first="exact_match")
    assert counted.value("exact_match") == 0.25
    assert counted.value("area_coverage") == pytest.approx((1 + 0.5 + 0 + 0) / 4)
    assert counted.value("simple") == 0.5
    assert [row[2] for row in counted.scores().tables["some answers"].rows] == ["=", *["1 2 3 4"] * 3]


def test_scores_of_triangles_and_tours_by_hand() -> None:
    answers = [[1, 2, 0], [0, 1, 2, 1, 2, 3]]
    found = PointAnswers([0, 1], [[0, 1, 2, 1, 2, 3]] * 2, answers, None, [4, 4])
    counted = point_scores(found, shape="triangles", first="exact_match")
    assert counted.value("triangle_coverage") == 0.75
    assert counted.value("exact_match") == 0.5
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    answers = [[0, 3, 2, 1], [0, 2, 1, 3], [0, 1, 2, 2]]
    tours = PointAnswers([0, 1, 2], [[0, 1, 2, 3]] * 3, answers, [square] * 3, [4] * 3)
    counted = point_scores(tours, shape="tour", first="length_ratio")
    assert counted.value("length_ratio") == pytest.approx((4 + 2 + 2 * 2**0.5) / 8)
    assert counted.value("valid") == pytest.approx(2 / 3)
    assert not counted.scores().higher_is_better


def test_the_generator_writes_what_it_says(tmp_path: Path) -> None:
    geometry.main(["sort", str(tmp_path), "--points", "2-4", "--train", "20", "--valid", "2", "--test", "2"])
    with np.load(tmp_path / "train.npz") as data:
        numbers = np.split(data["frames"][:, 0], data["frames_lengths"].cumsum()[:-1])
        for each, target in zip(numbers, data["target"], strict=True):
            order = [int(number) - 1 for number in target.split()]
            assert each[order].tolist() == sorted(each.tolist())
        assert {*data["frames_lengths"].tolist()} == {2, 3, 4}
