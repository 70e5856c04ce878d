"""Curves over an axis: the numbers beside it are right, spikes and gaps stay."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.views.axis import Axis, decades, number_labels, ticks
from recurra.views.lines import LOOKS, Band, Curve, Lines, Mark, Panel, Point, smoothed, thinned
from recurra.views.scene import Box, Circle, Label, Path, Scene
from tests.views.made import titles, words

moderate = st.floats(-1e12, 1e12, allow_nan=False)


@given(moderate, moderate, st.integers(5, 12))
@example(0.0, 1.0, 5)
def test_ticks_are_round_evenly_spaced_within_the_range_and_enough(a: float, b: float, at_most: int) -> None:
    low, high = min(a, b), max(a, b)
    assume(high - low > 1e-9 * max(abs(low), abs(high)) and high - low > 1e-200)
    found = ticks(low, high, at_most)
    assert 2 <= len(found) <= at_most
    assert all(low <= tick <= high for tick in found)
    size = Fraction(repr(found[1])) - Fraction(repr(found[0]))
    if size.numerator < 10**6 and size.denominator < 10**12:  # beyond, doubles have no digits left to compare
        digits = f"{size.numerator * 10**30 // size.denominator}".rstrip("0")
        assert digits in ("1", "2", "5")
        assert all(Fraction(repr(tick)) % size == 0 for tick in found)
        assert found[0] - float(size) < low or found[0] == low
        assert found[-1] + float(size) > high


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.2, 0.8, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]),
        (-3.0, 7.0, [-2.0, 0.0, 2.0, 4.0, 6.0]),
        (1.0, 100_000.0, [20000.0, 40000.0, 60000.0, 80000.0, 100000.0]),
        (1e-5, 3e-5, [1e-5, 1.5e-5, 2e-5, 2.5e-5, 3e-5]),
    ],
)
def test_the_usual_ranges_have_the_ticks_one_expects(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high, 7) == expected


@given(st.floats(1e-100, 1e100), st.floats(1, 12), st.integers(5, 9))
def test_powers_of_ten_lie_within_the_range(low: float, orders: float, at_most: int) -> None:
    found = decades(low, low * 10**orders, at_most)
    assert 2 <= len(found) <= max(at_most, 6)
    assert all(low <= tick <= low * 10**orders for tick in found)
    assert all(re.fullmatch(r"[125]e[+-]\d+", f"{tick:.12e}".replace(".000000000000", "")) for tick in found)


@given(moderate, moderate, st.integers(5, 12))
def test_a_label_says_its_tick(a: float, b: float, at_most: int) -> None:
    low, high = min(a, b), max(a, b)
    assume(high - low > 1e-9 * max(abs(low), abs(high)) and high - low > 1e-200)
    found = ticks(low, high, at_most)
    texts = number_labels(found)
    assert len(set(texts)) == len(found)
    for tick, text in zip(found, texts, strict=True):
        assert float(text.replace("k", "e3").replace("M", "e6")) == pytest.approx(tick, rel=1e-11)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.90, 0.95, 1.0], ["0.90", "0.95", "1.00"]),
        ([0, 20_000, 100_000], ["0", "20k", "100k"]),
        ([0, 2_500_000], ["0", "2.5M"]),
        ([0, 0.0005, 0.001], ["0", "0.0005", "0.0010"]),
        ([1e-5, 5e-5], ["1e-5", "5e-5"]),
        ([-2, 0, 2], ["-2", "0", "2"]),
    ],
)
def test_labels_are_short_and_alike(values: list[float], expected: list[str]) -> None:
    assert number_labels(values) == expected


@given(st.lists(st.floats(-1e250, 1e250, allow_subnormal=False) | st.just(math.nan), max_size=300))
def test_smoothing_stays_among_the_values_and_keeps_gaps(values: list[float]) -> None:
    result = smoothed([Point(x, y) for x, y in enumerate(values)])
    finite = [y for y in values if not math.isnan(y)]
    for y, point in zip(values, result, strict=True):
        assert math.isnan(point.y) == math.isnan(y)
        if not math.isnan(y):
            slack = 1e-9 * max(map(abs, finite))
            assert min(finite) - slack <= point.y <= max(finite) + slack


def test_smoothing_does_not_lag_and_leaves_few_points_alone() -> None:
    ramp = [Point(x, float(x)) for x in range(1000)]
    assert [point.y for point in smoothed(ramp)[200:800]] == pytest.approx(range(200, 800), abs=0.01)
    assert smoothed(ramp[:50]) == ramp[:50]


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(-50, 50) | st.just(math.nan)), max_size=400))
def test_thinning_keeps_every_columns_extremes(points: list[tuple[int, float]]) -> None:
    axis = Axis(0, 501, pixels=40)
    whole = [Point(x, y) for x, y in sorted(points, key=lambda point: point[0])]
    kept = [point for piece in thinned(whole, axis) for point in piece]
    for column in range(40):
        before = [p.y for p in whole if int(axis.place(p.x)) == column and not math.isnan(p.y)]
        after = [p.y for p in kept if int(axis.place(p.x)) == column]
        assert len(after) <= 4
        if before:
            assert (min(after), max(after), after[0], after[-1]) == (min(before), max(before), before[0], before[-1])


def test_a_gap_breaks_the_line() -> None:
    axis = Axis(0, 10, pixels=100)
    points = [Point(x, math.nan if x == 5 else 1.0) for x in range(10)]
    assert [[p.x for p in piece] for piece in thinned(points, axis)] == [[0, 1, 2, 3, 4], [6, 7, 8, 9]]


def curve(scene: Scene, name: str) -> list[tuple[float, float]]:
    """The points of the path of a name."""
    [found] = [shape.points for shape in scene.shapes if isinstance(shape, Path) and shape.title == name]
    return list(found)


def test_points_are_where_the_axes_say() -> None:
    scene = Lines([Panel("f1", [Curve("a", [0.0, 50.0, 100.0], [0, 100, 200])])]).scene()
    places = {shape.text: (shape.x, shape.y - 4) for shape in scene.shapes if isinstance(shape, Label)}
    found = curve(scene, "a")
    assert [x for x, _ in found] == pytest.approx([places[step][0] for step in ("0", "100", "200")])
    texts = [(shape.text, shape.y - 4) for shape in scene.shapes if isinstance(shape, Label) and shape.anchor == "end"]
    heights = dict(texts)
    assert found[1][1] == pytest.approx((heights["0"] + heights["100"]) / 2)


@pytest.mark.parametrize("values", [[435.0, 435.0], [0.0, 97.0], [1.0, 2.5], [0.13, 0.16]])
@pytest.mark.parametrize("height", [80.0, 110.0, 220.0])
def test_numbers_beside_an_axis_have_room(values: list[float], height: float) -> None:
    scene = Lines([Panel("predictions", [Curve("", values, [1, 2])], height)]).scene()
    at = sorted(shape.y for shape in scene.shapes if isinstance(shape, Label) and shape.anchor == "end")
    assert len(at) >= 1
    assert all(below - above >= 12 for above, below in itertools.pairwise(at))


def test_steps_may_have_names_and_bars_have_numbers() -> None:
    view = Lines(
        [Panel("bleu", [Curve("a", [3.0, 1.0], dots=True)]), Panel("items", [Curve("n", [180, 1190])], bars=True)],
        "length",
        ["1-9", "10-19"],
    )
    assert titles(view.svg()) == [
        *("a", "a: 3 at length 1-9", "a: 1 at length 10-19"),
        *("n: 180 at length 1-9", "n: 1190 at length 10-19"),
    ]
    assert {"1-9", "10-19", "180", "1,190", "bleu", "items", "length"} <= {*words(view.svg())}
    bars = [shape.height for shape in view.scene().shapes if isinstance(shape, Box)]
    assert bars[0] / bars[1] == pytest.approx(180 / 1190)


def test_a_step_that_is_pointed_at_says_the_numbers_of_all_curves() -> None:
    panel = Panel("level", [Curve("said", [5.0, 6.0], [1, 2]), Curve("came", [3.0, 4.0, math.nan], [0, 1, 2])])
    found = [each for each in titles(Lines([panel], "step ahead", together=True).svg()) if ":" in each]
    assert found == [
        "level, step ahead 0: came 3",
        "level, step ahead 1: said 5, came 4",
        "level, step ahead 2: said 6",
    ]


def test_a_band_lies_between_its_ends_and_a_mark_stands_out() -> None:
    panel = Panel(
        "p", [Curve("a", [1.0, 2.0])], bands=[Band("likely", [0.5, 1.5], [1.5, 2.5])], marks=[Mark("best", 1, 2.0)]
    )
    scene = Lines([panel]).scene()
    [band] = [shape for shape in scene.shapes if isinstance(shape, Path) and shape.filled]
    line = curve(scene, "a")
    assert all(
        high < y < low for (_, high), (_, y), (_, low) in zip(band.points[:2], line, band.points[:1:-1], strict=True)
    )
    said = [shape.title for shape in scene.shapes if isinstance(shape, Circle) and shape.title]
    assert said == ["best: 2 at step 1"]
    assert {"a", "likely", "best"} <= {shape.text for shape in scene.shapes if isinstance(shape, Label)}


def test_a_mark_beyond_the_curves_is_within_the_picture() -> None:
    panel = Panel("p", [Curve("a", [1.0, 0.05], [0, 1])], log=True, marks=[Mark("best", 5, -3.0)])
    scene = Lines([panel]).scene()
    [mark] = [shape for shape in scene.shapes if isinstance(shape, Circle) and shape.title]
    assert 0 < mark.x < scene.width
    assert 0 < mark.y < scene.height


def test_curves_differ_without_colours_too() -> None:
    strokes = [LOOKS[look].dashes for look in ("one", "two", "three", "four", "five")]
    assert len({*strokes}) == 5


def test_a_legend_too_long_for_one_row_takes_more() -> None:
    curves = [Curve(f"metric number {n}", [0.5]) for n in range(4)]
    one, many = (Lines([Panel("p", curves[:count])]).scene(300) for count in (1, 4))
    texts = [shape for shape in many.shapes if isinstance(shape, Label) and shape.text.startswith("metric")]
    assert len({shape.y for shape in texts}) == 4
    assert many.height > one.height, "a long legend does not press the curves together"


def test_values_tenfold_apart_and_more_get_a_logarithmic_axis_where_that_is_asked_for() -> None:
    values = [10.0**-n for n in range(5)]
    for log in (True, False):
        ys = [y for _, y in curve(Lines([Panel("loss", [Curve("a", values)], log=log)]).scene(), "a")]
        gaps = [b - a for a, b in itertools.pairwise(ys)]
        assert (max(gaps) - min(gaps) < 0.2) == log


def test_the_table_has_every_step_or_some_of_very_many() -> None:
    view = Lines([Panel("p", [Curve("a", list(range(5000)))])])
    rows = view.tables()["As numbers"].rows
    assert (len(rows), rows[0], rows[-1]) == (200, ["0", "0"], ["4,999", "4999"])
    assert len(view.text().splitlines()) == 25


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="'a' has 2 values at 1 places"):
        Lines([Panel("p", [Curve("a", [1, 2], [0])])])
    with pytest.raises(DataError, match="'a' has 2 values, but there are 3 steps"):
        Lines([Panel("p", [Curve("a", [1, 2])])], "x", ["a", "b", "c"])
    with pytest.raises(DataError, match="the lower and the upper end of the band 'b' have different numbers of values"):
        Lines([Panel("p", [], bands=[Band("b", [1, 2], [3])])])


def test_a_page_has_a_wide_form_and_one_for_phones_that_shrink_with_it() -> None:
    page = Lines([Panel("f1", [Curve("a", [0.5, 0.25])])]).page()
    forms = re.findall(r'<div class="(wide|narrow)"><svg[^>]* width="(\d+)"', page)
    assert forms == [("wide", "864"), ("narrow", "360")]
    assert '<figure class="fits">' in page
    assert ".fits .scene{max-width:100%}" in page


def test_a_curve_that_is_not_drawn_is_not_in_the_legend() -> None:
    nothing = [math.nan, math.nan]
    picture = Lines([Panel("f1", [Curve("drawn", [0.5, 0.25]), Curve("absent", nothing)])], "epoch").svg()
    assert ">drawn<" in picture
    assert ">absent<" not in picture


def test_a_band_or_a_mark_that_is_not_drawn_is_not_in_the_legend() -> None:
    nothing = [math.nan, math.nan]
    bands = [Band("area", [0, 1], [1, 2]), Band("no area", nothing, nothing), Band("one step", [0, math.nan], [1, 2])]
    marks = [Mark("best", 0, 1.0), Mark("never", 1, math.nan)]
    picture = Lines([Panel("f1", [Curve("c", [0.5, 0.25])], bands=bands, marks=marks)], "epoch").svg()
    assert [name for name in ("area", "no area", "one step", "best", "never") if f">{name}<" in picture] == [
        "area",
        "best",
    ]


def test_curves_and_bands_take_arrays() -> None:
    ys, xs = np.array([1.0, 2.0]), np.array([1, 2])
    of_arrays, of_lists = (
        Lines([Panel("p", [Curve("c", y, x)], bands=[Band("b", y, y, x)])])
        for y, x in ((ys, xs), (ys.tolist(), xs.tolist()))
    )
    assert of_arrays.svg() == of_lists.svg()
    assert (of_arrays.text(), of_arrays.json()) == (of_lists.text(), of_lists.json())
    assert Curve("c", ys, xs) == Curve("c", [1.0, 2.0], [1, 2])
    with pytest.raises(DataError, match=r"'c' must be one-dimensional, but has shape \(1, 2\)"):
        Curve("c", ys[None])


def test_a_curve_without_points_has_no_steps_to_point_at() -> None:
    view = Lines([Panel("a", [Curve("c", [])])], together=True)
    assert titles(view.svg()) == []


@pytest.mark.parametrize("x", [5, -1, 0.5])
def test_a_place_that_has_no_name_is_refused_where_steps_have_names(x: float) -> None:
    curve, band, mark = Curve("here", [1.0], [x]), Band("here", [1.0], [2.0], [x]), Mark("here", x, 1.0)
    for panel in (Panel("p", [curve]), Panel("p", [], bands=[band]), Panel("p", [], marks=[mark])):
        with pytest.raises(DataError, match=rf"'here' has a value at step {x}, but x_labels names 1 steps"):
            Lines([panel], x_labels=["p"])


def test_bars_stand_on_zero_and_negative_ones_hang_from_it() -> None:
    scene = Lines([Panel("gain", [Curve("n", [2.0, -1.0, 1.0, 0.0])], bars=True)], x_labels=[*"abcd"]).scene()
    up, down, half, none = (shape for shape in scene.shapes if isinstance(shape, Box))
    assert up.y + up.height == pytest.approx(half.y + half.height) == pytest.approx(down.y) == pytest.approx(none.y)
    assert (half.height, down.height, none.height) == pytest.approx((up.height / 2, up.height / 2, 0))
    places = {shape.text: shape.y for shape in scene.shapes if isinstance(shape, Label)}
    assert places["2"] < up.y < down.y + down.height < places["−1"] < places["a"] - 8, "the number is below its bar"


def test_bars_of_nothing_have_no_height() -> None:
    boxes = [s for s in Lines([Panel("n", [Curve("n", [0.0, 0.0])], bars=True)]).scene().shapes if isinstance(s, Box)]
    assert [box.height for box in boxes] == [0, 0]


def test_numbers_too_far_apart_to_reckon_with_are_gaps_and_zeros_on_every_axis() -> None:
    values = [1e-190, 1.0, 100.0, 1e190]
    for log in (True, False):
        found = curve(Lines([Panel("p", [Curve("c", values)], log=log)]).scene(), "c")
        assert found == curve(Lines([Panel("p", [Curve("c", [0.0, 1.0, 100.0, math.nan])], log=log)]).scene(), "c")
        assert len(found) == 3
