"""Learning curves: what a run logged is drawn where the axes say, and odd runs are drawn too."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.training.curves import learning_curves
from recurra.training.log import EventLine, Line, TrainLine, ValidLine
from recurra.views.lines import Lines
from recurra.views.scene import Label, Path
from tests.views.made import parsed, titles, words


def run(steps: int = 200, spike: int | None = None) -> list[Line]:
    lines: list[Line] = [
        TrainLine(n, n / 100, 50.0 if n == spike else 2 / math.sqrt(n), 0.001 * min(1, n / 40))
        for n in range(1, steps + 1)
    ]
    lines += [
        ValidLine(n, n / 100, {"accuracy": n / steps}, 3 / math.sqrt(n), n == steps) for n in range(50, steps + 1, 50)
    ]
    return [*lines, EventLine(steps, "stopped")]


def path(view: Lines, name: str) -> Sequence[tuple[float, float]]:
    """The points of the curve of a name."""
    [found] = [shape.points for shape in view.scene().shapes if isinstance(shape, Path) and shape.title == name]
    return found


def test_points_are_where_the_axes_say() -> None:
    view = learning_curves(run())
    texts = {shape.text: shape for shape in view.scene().shapes if isinstance(shape, Label)}
    xs = [x for x, _ in path(view, "valid")]
    assert xs == pytest.approx([texts[f"{step}"].x for step in (50, 100, 150, 200)], abs=0.2)
    rates = path(view, "learning rate")
    heights = {text: texts[text].y - 4 for text in ("0.0005", "0.0010")}
    assert rates[-1][1] == pytest.approx(heights["0.0010"], abs=0.2)
    assert rates[19][1] == pytest.approx(heights["0.0005"], abs=0.2)


def test_the_picture_names_its_parts_for_eyes_and_screen_readers() -> None:
    drawing = learning_curves(run()).svg()
    root = parsed(drawing)
    label = "Learning curves: loss (train, raw, train, valid), accuracy (accuracy, valid), learning rate"
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", label)
    parts = {"loss (log scale)", "accuracy", "learning rate", "train, raw", "train", "valid", "best", "step"}
    assert parts <= {*words(drawing)}
    assert {"accuracy, valid: 0.75 at step 150", "best: 1 at step 200"} <= {*titles(drawing)}


def test_metrics_may_be_named() -> None:
    lines = [ValidLine(n, 0, {"a": 0.1 * n, "b": 0.2 * n, "c": 9e9}) for n in (1, 2, 3)]
    assert {"b, a", "b, valid", "a, valid"} <= {*words(learning_curves(lines, metrics=["b", "a"]).svg())}


def test_what_a_task_tells_has_a_curve_of_its_own() -> None:
    told = [TrainLine(n, 0, 1.0, logged={"forced_share": 1 - n / 10} if n != 3 else {}) for n in range(10)]
    view = learning_curves(told)
    assert view.panels[-1].title == "forced share"
    assert [
        step
        for step, value in zip(view.panels[-1].curves[0].x, view.panels[-1].curves[0].y, strict=True)
        if math.isnan(value)
    ] == [3]
    pieces = [
        shape.points for shape in view.scene().shapes if isinstance(shape, Path) and shape.title == "forced share"
    ]
    heights = [y for piece in pieces for _, y in piece]
    assert (len(pieces), len(heights)) == (2, 9)
    assert heights == sorted(heights)


def test_a_hundred_thousand_points_stay_small_and_the_spike_stays() -> None:
    view = learning_curves(run(100_000, spike=61_803))
    assert len(view.svg(720)) < 150_000
    raw = path(view, "train, raw")
    spike = min(raw, key=lambda point: point[1])
    assert spike[0] == pytest.approx(58 + 0.61803 * (900 - 58 - 14), abs=0.2)
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
    text = learning_curves(lines).svg(width)
    parsed(text)
    assert not re.search(r"\b(nan|inf)\b", text)


def test_a_run_that_logged_nothing_says_so() -> None:
    assert words(learning_curves([]).svg()) == ["nothing has been logged yet"]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.floats(), st.floats()), max_size=9),
    st.lists(st.tuples(st.integers(0, 10**7), st.floats(), st.booleans()), max_size=9),
)
def test_any_run_can_be_drawn_and_every_point_is_in_the_picture(
    train: list[tuple[int, float, float]], valid: list[tuple[int, float, bool]]
) -> None:
    lines: list[Line] = [TrainLine(step, 0, loss, rate) for step, loss, rate in train]
    lines += [ValidLine(step, 0, {"f1": score}, score, best) for step, score, best in valid]
    scene = learning_curves(lines).scene(500)
    for shape in scene.shapes:
        if isinstance(shape, Path):
            assert all(-0.1 <= x <= 500 and 0 <= y <= scene.height for x, y in shape.points)
