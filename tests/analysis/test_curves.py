"""Learning curves: the numbers on the axes are right, spikes and gaps stay, and the picture is a well-formed one."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from recurra.analysis.curves import Axis, Point, curves, decades, labels, smoothed, thinned, ticks
from recurra.training.log import EventLine, Line, TrainLine, ValidLine

SVG = "{http://www.w3.org/2000/svg}"
moderate = st.floats(-1e12, 1e12, allow_nan=False)


def run(steps: int = 200, spike: int | None = None) -> list[Line]:
    lines: list[Line] = [
        TrainLine(n, n / 100, 50.0 if n == spike else 2 / math.sqrt(n), 0.001 * min(1, n / 40))
        for n in range(1, steps + 1)
    ]
    lines += [
        ValidLine(n, n / 100, {"accuracy": n / steps}, 3 / math.sqrt(n), n == steps) for n in range(50, steps + 1, 50)
    ]
    return [*lines, EventLine(steps, "stopped")]


def drawn(lines: Sequence[Line], width: int = 720, height: int = 640) -> ElementTree.Element:
    return ElementTree.fromstring(curves(lines, width=width, height=height))


def path(picture: ElementTree.Element, look: str) -> list[tuple[float, float]]:
    """The points of the longest path of a look (the shortest is the legend's)."""
    found = [p.attrib["d"] for p in picture.iter(f"{SVG}path") if p.attrib["class"] == look]
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", max(found, key=len))]


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
    texts = labels(found)
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
    assert labels(values) == expected


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


def test_points_are_where_the_axes_say() -> None:
    picture = drawn(run())
    texts = {t.text: t.attrib for t in picture.iter(f"{SVG}text")}
    xs = [x for x, _ in path(picture, "valid")]
    # Validations at steps 50, 100, 150, 200; the panel is moved right by 58, the labels are not.
    assert xs == pytest.approx([float(texts[f"{step}"]["x"]) - 58 for step in (50, 100, 150, 200)], abs=0.2)
    rates = path(picture, "rate")
    heights = {text: float(texts[text]["y"]) - 4 for text in ("0.0005", "0.0010")}
    assert rates[-1][1] == pytest.approx(heights["0.0010"], abs=0.2)
    assert rates[19][1] == pytest.approx(heights["0.0005"], abs=0.2)


def test_the_picture_names_its_parts_for_eyes_and_screen_readers() -> None:
    picture = drawn(run())
    assert picture.attrib["role"] == "img"
    title = picture.find(f"{SVG}title")
    assert title is not None
    assert title.text == picture.attrib["aria-label"] == "Learning curves: loss, accuracy, learning rate"
    words = {t.text for t in picture.iter(f"{SVG}text")}
    assert {"loss (log scale)", "accuracy", "learning rate", "train, raw", "train", "valid", "best", "step"} <= words
    assert "accuracy, valid 1 at step 200, the best" in {t.text for t in picture.iter(f"{SVG}title")}


def test_a_legend_too_long_for_one_row_takes_more() -> None:
    names = [f"metric number {n}" for n in range(4)]
    picture = ElementTree.fromstring(curves([ValidLine(1, 0, dict.fromkeys(names, 0.5))], metrics=names, width=300))
    texts = [t for t in picture.iter(f"{SVG}text") if t.text and t.text.endswith(", valid")]
    assert len({t.attrib["y"] for t in texts}) == 4
    assert all(float(t.attrib["x"]) + 58 + 6.7 * len(t.text or "") < 300 for t in texts)


def test_losses_tenfold_apart_and_more_get_a_logarithmic_axis() -> None:
    picture = drawn([TrainLine(n, 0, 10.0**-n) for n in range(5)])
    heights = {t.text: float(t.attrib["y"]) for t in picture.iter(f"{SVG}text")}
    assert "loss (log scale)" in heights
    assert heights["0.01"] - heights["0.1"] == pytest.approx(heights["0.001"] - heights["0.01"], abs=0.2)
    ys = [y for _, y in path(picture, "train")]
    assert [b - a for a, b in itertools.pairwise(ys)] == pytest.approx([ys[1] - ys[0]] * 4, abs=0.2)


def test_metrics_may_be_named() -> None:
    lines = [ValidLine(n, 0, {"a": 0.1 * n, "b": 0.2 * n, "c": 9e9}) for n in (1, 2, 3)]
    words = {t.text for t in ElementTree.fromstring(curves(lines, metrics=["b", "a"])).iter(f"{SVG}text")}
    assert {"b, a", "b, valid", "a, valid"} <= words


def test_what_a_task_tells_has_a_curve_of_its_own() -> None:
    picture = drawn([TrainLine(n, 0, 1.0, logged={"forced_share": 1 - n / 10} if n != 3 else {}) for n in range(10)])
    assert "forced share" in {t.text for t in picture.iter(f"{SVG}text")}
    heights = [y for _, y in path(picture, "other")]
    assert len(heights) == 9
    assert heights == sorted(heights)
    assert [b - a for a, b in itertools.pairwise(heights[3:])] == pytest.approx(
        [heights[-1] - heights[-2]] * 5, abs=0.2
    )


def test_a_hundred_thousand_points_stay_small_and_the_spike_stays() -> None:
    text = curves(run(100_000, spike=61_803))
    assert len(text) < 150_000
    raw = path(ElementTree.fromstring(text), "raw")
    spike = min(raw, key=lambda point: point[1])
    assert spike[0] == pytest.approx(0.61803 * (720 - 58 - 14), abs=0.2)
    assert sorted(y for _, y in raw)[1] - spike[1] > 20


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [EventLine(3, "nothing")],
        [TrainLine(7, 0, 1.0)],
        [TrainLine(0, 0, 0.0, 0.0)],
        [ValidLine(0, 0, {})],
        [ValidLine(5, 0, {"<&\">'": 0.5}, best=True)],
        [TrainLine(n, 0, 3.0, 0.1) for n in range(80)],
        [TrainLine(n, 0, math.nan) for n in range(80)],
        [TrainLine(n, 0, math.inf if n % 2 else 1.0, 1e305) for n in range(80)],
        [TrainLine(n, 0, 10.0 ** (n - 40)) for n in range(80)],
        [TrainLine(n, 0, -(10.0 ** (n - 40))) for n in range(80)],
    ],
)
@pytest.mark.parametrize("width", [240, 720])
def test_odd_runs_are_well_formed_pictures_without_nan(lines: list[Line], width: int) -> None:
    text = curves(lines, width=width)
    ElementTree.fromstring(text)
    assert not re.search(r"\b(nan|inf)\b", text)


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.floats(), st.floats()), max_size=9),
    st.lists(st.tuples(st.integers(0, 10**7), st.floats(), st.booleans()), max_size=9),
)
def test_any_run_can_be_drawn_and_every_point_is_in_the_picture(
    train: list[tuple[int, float, float]], valid: list[tuple[int, float, bool]]
) -> None:
    lines: list[Line] = [TrainLine(step, 0, loss, rate) for step, loss, rate in train]
    lines += [ValidLine(step, 0, {"f1": score}, score, best) for step, score, best in valid]
    picture = drawn(lines, width=500, height=400)
    for look in ("train", "valid", "rate", "raw"):
        if any(p.attrib["class"] == look and "L" in p.attrib["d"] for p in picture.iter(f"{SVG}path")):
            assert all(-0.1 <= x <= 500 and 0 <= y <= 400 for x, y in path(picture, look))


def test_curves_need_no_torch() -> None:
    code = "import sys, recurra.analysis.curves; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
