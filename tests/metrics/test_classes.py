"""Scores of numbered classes, against loops over pairs and items."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics import labels as by_name
from recurra.metrics.classes import (
    Mistake,
    auc,
    confusion,
    macro_auc,
    most_confused,
    multilabel_scores,
    precision_recall_f1,
    sensitivity_specificity,
)

SIZE = 4
NAMES = ["a", "b", "c", "d"]
pairs = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), min_size=1, max_size=30)
# Few distinct scores, so that ties are many.
scored = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=20)


def sides(items: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [gold for gold, _ in items], [found for _, found in items]


@given(pairs)
def test_the_confusion_counts_every_item_once(items: list[tuple[int, int]]) -> None:
    counts = confusion(*sides(items), SIZE)
    assert counts.dtype == np.int64
    assert counts.shape == (SIZE, SIZE)
    assert all(counts[i, j] == items.count((i, j)) for i in range(SIZE) for j in range(SIZE))


@given(pairs)
def test_scores_agree_with_those_of_labels_by_name(items: list[tuple[int, int]]) -> None:
    gold, found = sides(items)
    scores = precision_recall_f1(gold, found, NAMES)
    named = [[NAMES[label] for label in side] for side in (gold, found)]
    assert [row.label for row in scores.per_label] == NAMES
    expected = {row.label: row for row in by_name.per_label([named[0]], [named[1]])}
    assert {row.label: row for row in scores.per_label if row.count or row.predicted} == expected
    assert scores.macro.f1 == pytest.approx(by_name.macro_f1([named[0]], [named[1]]))
    assert scores.macro.precision == pytest.approx(np.mean([row.precision for row in expected.values()]))
    assert scores.macro.recall == pytest.approx(np.mean([row.recall for row in expected.values()]))
    right = by_name.accuracy([named[0]], [named[1]])
    assert (scores.micro.precision, scores.micro.recall, scores.micro.f1) == (right, right, right)


@given(pairs, st.integers(0, 20))
def test_the_mistakes_are_the_largest_counts_beside_the_diagonal(items: list[tuple[int, int]], n: int) -> None:
    mistakes = most_confused(confusion(*sides(items), SIZE), NAMES, n)
    counts = {(i, j): items.count((i, j)) for i, j in items if i != j}
    in_order = sorted(counts, key=lambda pair: (-counts[pair], pair))
    assert mistakes == [Mistake(NAMES[i], NAMES[j], counts[i, j]) for i, j in in_order[:n]]


def test_looking_for_mistakes_leaves_the_confusion_as_it_is() -> None:
    counts = np.array([[3, 1], [0, 2]])
    most_confused(counts, ["a", "b"])
    assert counts.tolist() == [[3, 1], [0, 2]]


@given(scored)
def test_the_area_is_the_share_of_pairs_in_the_right_order(items: list[tuple[float, bool]]) -> None:
    hits, misses = [s for s, yes in items if yes], [s for s, yes in items if not yes]
    area = auc([score for score, _ in items], [yes for _, yes in items])
    if hits and misses:
        won = [1.0 if hit > miss else 0.5 if hit == miss else 0.0 for hit in hits for miss in misses]
        assert area == pytest.approx(sum(won) / len(won), abs=1e-12)
    else:
        assert math.isnan(area)


@given(scored)
def test_turning_the_scores_round_turns_the_area_round(items: list[tuple[float, bool]]) -> None:
    scores, flags = np.array([score for score, _ in items]), [yes for _, yes in items]
    assert auc(-scores, flags) == pytest.approx(1 - auc(scores, flags), nan_ok=True)
    assert auc(np.exp(3 * scores), flags) == pytest.approx(auc(scores, flags), nan_ok=True)


@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=12), st.integers(0, 1000))
def test_the_macro_area_is_the_mean_over_classes_that_occur(gold: list[int], seed: int) -> None:
    probabilities = np.random.default_rng(seed).integers(0, 4, (len(gold), SIZE)) / 3
    areas = [auc(probabilities[:, label], [g == label for g in gold]) for label in sorted(set(gold))]
    known = [area for area in areas if not math.isnan(area)]
    expected = sum(known) / len(known) if known else math.nan
    assert macro_auc(probabilities, gold) == pytest.approx(expected, nan_ok=True)


@given(pairs)
def test_sensitivity_and_specificity_are_shares_of_the_two_sides(items: list[tuple[int, int]]) -> None:
    ill = [found == 1 for gold, found in items if gold == 1]
    well = [found != 1 for gold, found in items if gold != 1]
    expected = tuple(sum(side) / len(side) if side else math.nan for side in (ill, well))
    assert sensitivity_specificity(*sides(items), 1) == pytest.approx(expected, nan_ok=True)
    gold, found = ([NAMES[label] for label in side] for side in sides(items))
    assert sensitivity_specificity(gold, found, "b") == pytest.approx(expected, nan_ok=True)


@given(st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=3, max_size=3), min_size=1, max_size=8))
def test_sets_of_labels_agree_as_counted_by_hand(items: list[list[tuple[bool, bool]]]) -> None:
    scores = multilabel_scores([[g for g, _ in row] for row in items], [[f for _, f in row] for row in items])

    def f1(decisions: list[tuple[bool, bool]]) -> float:
        right, wrong = decisions.count((True, True)), sum(g != f for g, f in decisions)
        return 2 * right / (2 * right + wrong) if right + wrong else 0.0

    flat = [decision for row in items for decision in row]
    columns = [[row[k] for row in items] for k in range(3)]
    occurring = [column for column in columns if any(g or f for g, f in column)]
    assert scores.micro_f1 == pytest.approx(f1(flat))
    assert scores.macro_f1 == pytest.approx(sum(map(f1, occurring)) / len(occurring) if occurring else 0.0)
    assert scores.exact_match == pytest.approx(sum(all(g == f for g, f in row) for row in items) / len(items))
    assert scores.hamming == pytest.approx(sum(g != f for g, f in flat) / len(flat))


@pytest.mark.parametrize(
    ("metric", "arguments", "message"),
    [
        (confusion, ([0], [0, 1], 2), "gold has 1 items but found has 2: each item needs both."),
        (confusion, ([0, 3], [0, 1], 3), "gold holds 3 at item 2, but classes are 0 to 2."),
        (confusion, ([0, 1], [-1, 1], 3), "found holds -1 at item 1, but classes are 0 to 2."),
        (confusion, (["a"], ["b"], 2), "gold must be the numbers of classes, but holds <U1 values such as a."),
        (confusion, ([], [], 2), "gold is empty: a score needs at least one item."),
        (precision_recall_f1, ([[0]], [0], ["a"]), "gold must be a single column, one for each item, but has the shap"),
        (most_confused, (np.zeros((2, 3)), ["a", "b"]), "a confusion of 2 labels is square, but its shape is (2, 3)."),
        (auc, ([0.1, math.nan], [True, False]), "scores holds NaN at item 2, which cannot be put in order."),
        (auc, ([0.1], [True, False]), "scores has 1 items but positive has 2"),
        (auc, ([0.1, 0.2], [2, 1]), "positive must be true or false for each item, but holds other values."),
        (macro_auc, ([0.1], [0]), "probabilities must be a table with a row for each item, but has the shape (1,)."),
        (macro_auc, ([[0.1]], [0, 0]), "probabilities has 1 items but gold has 2"),
        (sensitivity_specificity, ([1], [1, 0], 1), "gold has 1 items but found has 2"),
        (multilabel_scores, ([[1]], [[1, 0]]), "gold has the shape (1, 1) but found (1, 2): each decision needs both."),
    ],
)
def test_what_cannot_be_scored_is_refused(metric: Callable[..., object], arguments: Any, message: str) -> None:
    with pytest.raises(DataError) as refusal:
        metric(*arguments)
    assert message in str(refusal.value)
