"""Scores by length: every bucket of every run is drawn where its number says, beside how many items it has."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.analysis.lengths import ByLength
from recurra.errors import DataError
from recurra.views.scene import Box, Circle, Label
from recurra.views.table import Table

RUNS = {"attention": [41.0, 40.0, 37.5], "no <attention>": [38.0, math.nan, 20.5]}
BY = ByLength(["1-9", "10-19", "20-38"], [180, 1190, 140], RUNS, score="bleu")


def dots(by: ByLength) -> list[Circle]:
    return [shape for shape in by.view().scene().shapes if isinstance(shape, Circle)]


def test_higher_scores_lie_higher_and_buckets_go_from_left_to_right() -> None:
    found = dots(BY)
    assert [dot.title for dot in found] == [
        "attention: 41 at source length 1-9",
        "attention: 40 at source length 10-19",
        "attention: 37.5 at source length 20-38",
        "no <attention>: 38 at source length 1-9",
        "no <attention>: 20.5 at source length 20-38",
    ]
    assert [dot.x for dot in found] == [*sorted(dot.x for dot in found[:3]), found[0].x, found[2].x]
    heights = [dot.y for dot in found]
    scores = [41.0, 40.0, 37.5, 38.0, 20.5]
    per_point = (heights[4] - heights[0]) / (scores[0] - scores[4])
    assert [heights[0] + (scores[0] - score) * per_point for score in scores] == pytest.approx(heights)


def test_the_items_of_a_bucket_are_a_bar_and_a_number() -> None:
    shapes = BY.view().scene().shapes
    bars = [shape.height for shape in shapes if isinstance(shape, Box)]
    assert [bar / bars[1] for bar in bars] == pytest.approx([180 / 1190, 1, 140 / 1190])
    words = {shape.text for shape in shapes if isinstance(shape, Label)}
    assert {"180", "1,190", "140", "1-9", "10-19", "20-38", "bleu", "attention", "no <attention>"} <= words


@given(
    st.lists(
        st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(math.nan)), min_size=3, max_size=3), min_size=1, max_size=9
    ),
    st.text(max_size=40),
)
def test_any_scores_and_names_make_a_picture_with_every_known_score(values: list[list[float]], name: str) -> None:
    runs = {f"{name}{n}": scores for n, scores in enumerate(values)}
    by = ByLength(["a", name, "c"], [0, 0, 5], runs, score=name)
    scene = by.view().scene()
    found = dots(by)
    assert len(found) == sum(not math.isnan(score) for scores in values for score in scores)
    assert all(0 <= dot.x <= scene.width and 0 <= dot.y <= scene.height for dot in found)


def test_a_table_has_a_row_per_bucket() -> None:
    assert ByLength(["1-9", "10-19"], [40, 60], {"with": [1, 0.25], "without": [0.5, math.nan]}).text() == (
        "length items   with without\n"  #
        "1-9       40 1.0000  0.5000\n"
        "10-19     60 0.2500     nan"
    )


def test_tables_of_runs_become_one_picture() -> None:
    one = Table(["source length", "items", "bleu", "chrf"], [["1-9", 40, 31.5, 50.0], ["10-19", 60, 30.0, 49.0]])
    other = Table(["source length", "items", "chrf"], [["1-9", 40, 48.0], ["10-19", 60, 40.0]])
    assert ByLength.of({"one": one, "other": other}, "chrf").runs == {"one": [50.0, 49.0], "other": [48.0, 40.0]}
    with pytest.raises(DataError, match=r"of other have no bleu\. Known: chrf\."):
        ByLength.of({"one": one, "other": other}, "bleu")
    with pytest.raises(DataError, match="later has different length buckets from one"):
        ByLength.of({"one": one, "later": Table(one.columns, one.rows[:1])}, "bleu")


def test_numbers_that_do_not_fit_the_buckets_are_refused() -> None:
    with pytest.raises(DataError, match="have 2 buckets, but the items has 1 values"):
        ByLength(["a", "b"], [1], {"run": [1.0, 2.0]})
    with pytest.raises(DataError, match="have 2 buckets, but run has 3 values"):
        ByLength(["a", "b"], [1, 2], {"run": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match="at least one bucket and one run"):
        ByLength.of({}, "bleu")
