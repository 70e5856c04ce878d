"""Scores of classes and numbers, against counts made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from recurra.metrics import auc
from recurra.scoring.class_scores import Decided, confusion_table, of_numbers, of_one_class, of_several_classes
from recurra.scoring.scores import Scores

LABELS = "abcd"


def whole(gold: Sequence[str], probabilities: ArrayLike, labels: str, **options: Any) -> Scores:
    decided = Decided([(name,) for name in gold], np.array(probabilities), np.arange(len(gold)))
    how = {"positive": None, "abstain": 0.0, **options}
    return of_one_class(range(len(gold)), decided, list(labels), **how).scores()


def one(gold: list[str], probabilities: list[list[float]], labels: str, **options: object) -> dict[str, float]:
    return whole(gold, probabilities, labels, **options).values


def several(gold: Sequence[Sequence[str]], probabilities: ArrayLike, labels: str, threshold: float) -> Scores:
    decided = Decided([tuple(names) for names in gold], np.array(probabilities), np.arange(len(gold)))
    return of_several_classes(range(len(gold)), decided, list(labels), threshold=threshold).scores()


def f1(right: int, gold: int, found: int) -> float:
    return 2 * right / (gold + found) if gold + found else 0.0


chances = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), min_size=4, max_size=4)


@given(st.lists(st.tuples(st.sampled_from("abcdz"), chances), min_size=1, max_size=20))
def test_scores_of_one_class_are_those_of_loops_over_items(items: list[tuple[str, list[float]]]) -> None:
    scores = whole([name for name, _ in items], [row for _, row in items], LABELS, positive=None)
    pairs = [(name, LABELS[int(np.argmax(row))], max(row)) for name, row in items]
    occurring = sorted({name for gold, found, _ in pairs for name in (gold, found)})
    per_class = {}
    for name in occurring:
        right = sum(gold == found == name for gold, found, _ in pairs)
        gold, found = (sum(pair[side] == name for pair in pairs) for side in (0, 1))
        per_class[name] = [right / max(found, 1), right / max(gold, 1), f1(right, gold, found)]
    assert scores.values["accuracy"] == pytest.approx(sum(gold == found for gold, found, _ in pairs) / len(pairs))
    for place, name in enumerate(("precision", "recall", "f1")):
        assert scores.values[name] == pytest.approx(np.mean([row[place] for row in per_class.values()]))
    rows = {row[0]: row[1:4] for row in scores.tables["classes"].rows}
    assert all(rows[name] == pytest.approx(row, abs=5e-5) for name, row in per_class.items())
    padded = {label: [row[LABELS.index(label)] if label in LABELS else 0.0 for _, row in items] for label in occurring}
    areas = [auc(padded[label], [gold == label for gold, _, _ in pairs]) for label in sorted({p[0] for p in pairs})]
    known = [area for area in areas if not np.isnan(area)]
    assert scores.values["auc"] == pytest.approx(np.mean(known) if known else np.nan, nan_ok=True)
    square = {row[0]: dict(zip([*LABELS, "z"], row[1:], strict=False)) for row in scores.tables["confusion"].rows}
    assert all(square[gold][found] == sum(p[:2] == (gold, found) for p in pairs) for gold, found, _ in pairs)


@given(st.lists(st.tuples(st.integers(51, 100), st.booleans()), min_size=1, max_size=30))
def test_calibration_is_that_of_bins_of_a_tenth(items: list[tuple[int, bool]]) -> None:
    percent = [[sure / 100, 1 - sure / 100] for sure, _ in items]
    scores = whole(["a" if right else "b" for _, right in items], percent, "ab")
    bins: dict[int, list[tuple[int, bool]]] = {}
    for sure, right in items:
        bins.setdefault(min(sure // 10, 9), []).append((sure, right))
    gaps = [abs(sum(sure / 100 - right for sure, right in found)) for found in bins.values()]
    assert scores.values["calibration_error"] == pytest.approx(sum(gaps) / len(items), abs=1e-12)
    assert scores.tables["calibration"].rows == [
        [f"0.{k}-{(k + 1) / 10:.1f}", round(sum(right for _, right in bins[k]) / len(bins[k]), 4), len(bins[k])]
        for k in sorted(bins)
    ]


@given(st.lists(st.tuples(st.lists(st.booleans(), min_size=4, max_size=4), chances), min_size=1, max_size=12))
def test_scores_of_several_classes_are_those_of_loops_over_decisions(
    items: list[tuple[list[bool], list[float]]],
) -> None:
    gold = [[name for name, flag in zip(LABELS, flags, strict=True) if flag] for flags, _ in items]
    values = several(gold, [row for _, row in items], LABELS, 0.3).values
    decisions = [[(flag, p >= 0.3) for flag, p in zip(*item, strict=True)] for item in items]
    flat = [pair for row in decisions for pair in row]

    def of(pairs: list[tuple[bool, bool]]) -> float:
        return f1(pairs.count((True, True)), sum(g for g, _ in pairs), sum(f for _, f in pairs))

    columns = [[row[k] for row in decisions] for k in range(4)]
    occurring = [column for column in columns if any(g or f for g, f in column)]
    assert values["f1"] == pytest.approx(of(flat))
    assert values["f1_macro"] == pytest.approx(np.mean([of(column) for column in occurring]) if occurring else 0)
    assert values["exact_match"] == pytest.approx(np.mean([all(g == f for g, f in row) for row in decisions]))
    assert values["hamming"] == pytest.approx(np.mean([g != f for g, f in flat]))


def test_one_class_of_two() -> None:
    probabilities = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]]
    values = one(["a", "b", "b", "a"], probabilities, "ab", positive="b")
    assert values["accuracy"] == 0.5
    assert values["sensitivity"] == values["specificity"] == 0.5
    assert values["auc"] == 0.75  # of the four pairs of a b and an a, only 0.4 < 0.7 is the wrong way round
    assert values["precision"] == values["recall"] == values["f1"] == 0.5
    assert values["nll"] == pytest.approx(-np.log([0.9, 0.8, 0.4, 0.3]).mean())
    assert values["calibration_error"] == pytest.approx((0.1 + 0.2 + 0.6 + 0.7) / 4)
    assert values["count"] == 4
    assert "answered" not in values
    assert "unseen" not in values


def test_those_that_are_answered_are_scored_apart() -> None:
    values = one(["a", "b", "b"], [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], "ab", abstain=0.7)
    assert values["accuracy"] == values["answered"] == pytest.approx(2 / 3)
    assert values["answered_accuracy"] == 1.0
    nobody = one(["a", "b"], [[0.6, 0.4], [0.6, 0.4]], "ab", abstain=0.7)
    assert nobody["answered"] == 0
    assert np.isnan(nobody["answered_accuracy"])


def test_a_class_never_seen_is_wrong_and_has_no_likelihood() -> None:
    values = one(["a", "z"], [[0.5, 0.5], [0.5, 0.5]], "ab")
    assert values["accuracy"] == values["unseen"] == 0.5
    assert values["nll"] == pytest.approx(np.log(2))
    assert values["seen_accuracy"] == 1.0
    assert values["unseen_recall"] == 0.0
    told = one(["a", "b", "z", "z"], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.1, 0.9]], "ab")
    assert told["unseen_recall"] == 0.5  # 0.6 is below all that is known, 0.9 is not
    only = one(["z", "z"], [[0.9, 0.1], [0.5, 0.5]], "ab")
    assert only["accuracy"] == 0
    assert np.isnan(only["nll"])


def test_several_classes() -> None:
    probabilities = np.array([[0.9, 0.2, 0.6], [0.4, 0.8, 0.1]])
    gold = [("a",), ("a", "b", "z")]
    scores = several(gold, probabilities, "abc", 0.5)
    # found {a, c} and {b}; right {a} and {a, b, z}: 2 right of 3 found and 4 wanted
    assert scores.values["f1"] == pytest.approx(2 * 2 / (3 + 4))
    assert scores.values["f1_macro"] == pytest.approx((2 / 3 + 1 + 0 + 0) / 4)
    assert scores.values["exact_match"] == 0
    assert scores.values["hamming"] == 3 / 8
    assert scores.values["unseen"] == 0.5
    assert scores.values["auc"] == 1.0  # b alone is in one row and not in the other
    assert scores.values["nll"] == pytest.approx(-np.log([0.9, 0.8, 0.4]).sum() / 2 - np.log([0.4, 0.8, 0.9]).sum() / 2)
    assert [row[0] for row in scores.tables["classes"].rows] == ["a", "b", "c", "z"]
    strict = several(gold, probabilities, "abc", 0.7)
    assert strict.values["exact_match"] == 0.5


def numbers(gold: NDArray[np.float64], found: NDArray[np.float64], names: str) -> Scores:
    return of_numbers(range(len(gold)), gold, found, list(names), np.arange(len(gold))).scores()


def test_numbers() -> None:
    gold, found = np.array([[1.0, 10.0], [3.0, 10.0]]), np.array([[2.0, 10.0], [3.0, 13.0]])
    scores = numbers(gold, found, "ab")
    assert scores.values["mae"] == 1.0
    assert scores.values["rmse"] == pytest.approx(np.sqrt(10 / 4))
    assert scores.tables["targets"].rows[0] == pytest.approx(["a", 0.5, np.sqrt(0.5), 0.5])
    assert np.isnan(scores.tables["targets"].rows[1][3])  # all gold numbers are alike
    assert not scores.higher_is_better
    assert numbers(gold[:, :1], found[:, :1], "a").values["r2"] == 0.5


def test_gold_numbers_that_are_alike_have_no_r2_whatever_their_mean_is_rounded_to() -> None:
    gold = np.full((3, 1), 0.1)
    assert gold.mean() != 0.1
    assert np.isnan(numbers(gold, gold + 1, "a").values["r2"])


def test_large_errors_do_not_overflow() -> None:
    values = numbers(np.array([[1e200], [0.0]]), np.array([[-2e200], [0.0]]), "a").values
    assert values["rmse"] == pytest.approx(3e200 / np.sqrt(2))
    assert numbers(np.zeros((2, 1)), np.zeros((2, 1)), "a").values["rmse"] == 0


def test_few_classes_are_confused_in_a_square_and_many_in_pairs() -> None:
    few = confusion_table(np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1]), ["a", "b"])
    assert few.columns == ["right \\ found", "a", "b"]
    assert few.rows == [["a", 3, 1], ["b", 0, 2]]
    gold, found = np.repeat([[3, 7, 5, 2], [4, 1, 5, 9]], [2, 6, 9, 2], axis=1)
    many = confusion_table(gold, found, [str(number) for number in range(20)])
    assert many.rows == [["7", "1", 6], ["2", "9", 2], ["3", "4", 2]]


def test_long_examples_have_a_bucket_of_their_own() -> None:
    gold = np.array([[1.0], [3.0], [5.0]])
    scores = of_numbers("abc", gold, np.zeros((3, 1)), ["n"], np.array([0, 2000, 5000])).scores()
    assert scores.tables["length"].rows == [["0-5", 1.0, 1], ["over 1000", 4.0, 2]]
    assert scores.tables["length"].columns == ["steps", "mae", "count"]
