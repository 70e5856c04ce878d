import re
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data.strokes import draw
from recurra.errors import DataError

CROSS: list[Any] = [[[0, 10, 20], [3, 40, 0]], [[0, 20], [0, 30]], [[5], [5]]]


def brute_force(segments: list[tuple[float, float, float, float]], thickness: float, height: int, width: int) -> Any:
    """Ink of every pixel by its distance to every line, one by one, in float64."""
    ink = np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            for x0, y0, x1, y1 in segments:
                square = (x1 - x0) ** 2 + (y1 - y0) ** 2
                t = ((column - x0) * (x1 - x0) + (row - y0) * (y1 - y0)) / square if square else 0.0
                t = min(max(t, 0.0), 1.0)
                distance = np.hypot(column - x0 - t * (x1 - x0), row - y0 - t * (y1 - y0))
                ink[row, column] = max(ink[row, column], min(max(thickness / 2 + 0.5 - distance, 0.0), 1.0))
    return ink * 255


def test_a_level_line_has_its_ink_on_its_row_and_nowhere_else() -> None:
    picture = draw([[[0, 100], [7, 7]]], stroke=20, thickness=3, margin=4)
    expected = np.zeros((9, 29))
    expected[3:6, 4:25] = 255
    # Beyond its ends the pen is round: a pixel further it has its middle row, and half of the others.
    expected[4, [3, 25]] = 255
    expected[[3, 3, 5, 5], [3, 25, 3, 25]] = (2 - np.sqrt(2)) * 255
    np.testing.assert_allclose(picture, expected, atol=1)


@pytest.mark.parametrize("thickness", [0.5, 1.0, 2.0, 3.5, 6.0])
def test_across_a_line_there_is_as_much_ink_as_the_pen_is_thick(thickness: float) -> None:
    picture = draw([[[0, 100], [0, 0]]], stroke=50, thickness=thickness, margin=8)
    across = picture[:, 30].astype(float) / 255
    # A thin pen's ink is all in one row, where half a pixel on each side softens its edges.
    assert across.sum() == pytest.approx(thickness if thickness >= 1 else thickness / 2 + 0.5, abs=0.02)


def test_every_pixel_is_as_a_brute_force_says() -> None:
    picture = draw(CROSS, stroke=30, thickness=2.5, margin=3)
    # The median of the two strokes that are no dots, of 40 and of 30, is 30 pixels.
    scale = 30 / 35
    strokes = [[(0, 3), (10, 40), (20, 0)], [(0, 0), (20, 30)], [(5, 5), (5, 5)]]
    segments = [
        (3 + x0 * scale, 3 + y0 * scale, 3 + x1 * scale, 3 + y1 * scale)
        for stroke in strokes
        for (x0, y0), (x1, y1) in pairwise(stroke)
    ]
    np.testing.assert_allclose(picture, brute_force(segments, 2.5, *picture.shape), atol=1)


def test_x_and_y_exchanged_give_the_picture_on_its_side() -> None:
    turned = [[y, x] for x, y in CROSS]
    np.testing.assert_array_equal(draw(turned), draw(CROSS).T)


def test_points_columns_and_arrays_are_the_same_drawing() -> None:
    points = [np.array(stroke).T.tolist() for stroke in CROSS]
    np.testing.assert_array_equal(draw(points), draw(CROSS))
    np.testing.assert_array_equal(draw([np.array(stroke) for stroke in points]), draw(CROSS))
    np.testing.assert_array_equal(draw(np.array([[[0, 1], [2, 0], [3, 3]]])), draw([[[0, 2, 3], [1, 0, 3]]]))


@pytest.mark.parametrize(("factor", "shift"), [(0.01, 5.0), (100.0, -700.0), (8.0, 0.0)])
def test_the_units_and_the_origin_of_the_tablet_change_nothing(factor: float, shift: float) -> None:
    moved = [[[x * factor + shift for x in xs], [y * factor - shift for y in ys]] for xs, ys in CROSS]
    np.testing.assert_allclose(draw(moved).astype(int), draw(CROSS), atol=1)


def test_a_drawing_that_is_too_large_is_made_smaller_with_its_aspect_kept() -> None:
    bars = [[[x, x], [0, 10]] for x in range(0, 1000, 10)]
    assert draw(bars, stroke=20, max_width=2000).shape == (29, 1989)
    assert draw(bars, stroke=20, max_width=209).shape == (11, 209)
    tall = [[ys, xs] for xs, ys in bars]
    assert draw(tall, stroke=20, max_height=209).shape == (209, 11)


def test_a_lone_point_is_a_dot_in_the_middle() -> None:
    picture = draw([[[3], [4]]], thickness=3, margin=2)
    assert picture.shape == (5, 5)
    assert picture[2, 2] == 255
    np.testing.assert_array_equal(picture, picture[::-1, ::-1])
    np.testing.assert_array_equal(draw([[[3, 3], [4, 4]]], thickness=3, margin=2), picture)


def test_dots_do_not_make_the_writing_large() -> None:
    line = [[0, 50], [0, 0]]
    dots = [[[x], [9]] for x in range(5)]
    assert draw([line, *dots], stroke=25).shape[1] == draw([line], stroke=25).shape[1]
    assert draw(dots, stroke=20).shape == (9, 29)


def test_a_thick_pen_is_never_cut_at_the_edge() -> None:
    picture = draw([[[0, 1], [0, 0]]], stroke=20, thickness=10, margin=0)
    assert picture.shape == (11, 31)
    assert picture[0].max() > 0
    assert picture[:, 0].max() > 0


@pytest.mark.parametrize(
    ("strokes", "message"),
    [
        (None, "a.jsonl:3: a drawing must be a list of strokes, but is of type NoneType."),
        ("ink", "a.jsonl:3: a drawing must be a list of strokes, but is of type str."),
        ([], "a.jsonl:3: there are no strokes to draw."),
        ([5], "stroke 1 must be [[x, …], [y, …]] or a list of points [x, y], but is of type int."),
        ([[[1, 2], [1, 2, 3]]], "a.jsonl:3: stroke 1 has 2 x but 3 y."),
        ([[[1, 2], [1, 2], [3]]], "stroke 1 has points of different numbers of coordinates."),
        ([CROSS[0], [[], []]], "a.jsonl:3: stroke 2 has no points."),
        ([[]], "stroke 1 has no points."),
        ([[["1"], ["2"]]], "stroke 1 contains values that are not numbers."),
        ([[[None], [2]]], "stroke 1 contains values that are not numbers."),
        ([[[10**400], [2]]], "stroke 1 contains values that are not numbers."),
        ([[1, 2, 3]], "stroke 1 must be [[x, …], [y, …]] or a list of points [x, y], but its lists are 1 deep instead"),
        ([[[1, 2, 3], [1, 2, 3], [1, 2, 3]]], "stroke 1 has 3 x 3 numbers, but must be [[x, …], [y, …]] or a list"),
        ([[[0, 1, 2], [0, 1, 2]], [[5, 6]]], "stroke 1 has 2 x 3 numbers, but must be [[x, …], [y, …]] or a list"),
        ([CROSS[0], [[0, np.nan], [0, 1]]], "stroke 2 has the point (nan, 1.0), which is not a finite point."),
        ([[[0, 1], [-np.inf, 1]]], "stroke 1 has the point (0.0, -inf), which is not a finite point."),
        ([[[0, 1e13], [0, 1]]], "stroke 1 has the point (10000000000000.0, 1.0), which is farther than 1e12 from 0."),
        ([np.zeros((1_100_000, 2))], "the drawing has 1,100,000 points, but 1,048,576 is the most."),
    ],
)
def test_what_cannot_be_drawn_is_said_with_its_place(strokes: object, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        draw(strokes, "a.jsonl:3")


numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e12, 1e12), st.floats(-1e-300, 1e-300))


@given(
    strokes=st.lists(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), min_size=1, max_size=6),
    thickness=st.floats(0.1, 9),
    margin=st.integers(0, 6),
    stroke=st.floats(0.5, 90),
)
def test_any_finite_drawing_fits_and_leaves_ink(
    strokes: list[list[tuple[float, float]]], thickness: float, margin: int, stroke: float
) -> None:
    picture = draw(strokes, thickness=thickness, margin=margin, stroke=stroke, max_height=50, max_width=80)
    assert picture.dtype == np.uint8
    assert 0 < picture.shape[0] <= 50
    assert 0 < picture.shape[1] <= 80
    assert picture.max() > 0


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=2)),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@given(anything)
def test_anything_else_is_drawn_or_refused(strokes: object) -> None:
    with suppress(DataError):
        assert draw(strokes, max_height=40, max_width=40).size <= 1600
