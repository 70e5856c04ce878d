"""Scores of classes and numbers, against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from recurra.scoring.class_scores import (
    Decided,
    by_length,
    confusion_table,
    of_numbers,
    of_one_class,
    of_several_classes,
)


def one(gold: list[str], probabilities: list[list[float]], labels: str, **options: object) -> dict[str, float]:
    decided = Decided([(name,) for name in gold], np.array(probabilities), np.arange(len(gold)))
    return of_one_class(decided, list(labels), **{"positive": None, "abstain": 0.0, **options}).values  # type: ignore[arg-type]


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
    decided = Decided([("a",), ("a", "b", "z")], probabilities, np.array([3, 9]))
    scores = of_several_classes(decided, ["a", "b", "c"], threshold=0.5)
    # found {a, c} and {b}; right {a} and {a, b, z}: 2 right of 3 found and 4 wanted
    assert scores.values["f1"] == pytest.approx(2 * 2 / (3 + 4))
    assert scores.values["f1_macro"] == pytest.approx((2 / 3 + 1 + 0 + 0) / 4)
    assert scores.values["exact_match"] == 0
    assert scores.values["hamming"] == 3 / 8
    assert scores.values["unseen"] == 0.5
    assert scores.values["auc"] == 1.0  # b alone is in one row and not in the other
    assert scores.values["nll"] == pytest.approx(-np.log([0.9, 0.8, 0.4]).sum() / 2 - np.log([0.4, 0.8, 0.9]).sum() / 2)
    assert [row[0] for row in scores.tables["classes"].rows] == ["a", "b", "c", "z"]
    strict = of_several_classes(decided, ["a", "b", "c"], threshold=0.7)
    assert strict.values["exact_match"] == 0.5


def test_numbers() -> None:
    gold, found = np.array([[1.0, 10.0], [3.0, 10.0]]), np.array([[2.0, 10.0], [3.0, 13.0]])
    scores = of_numbers(gold, found, ["a", "b"], np.array([1, 2]))
    assert scores.values["mae"] == 1.0
    assert scores.values["rmse"] == pytest.approx(np.sqrt(10 / 4))
    assert scores.tables["targets"].rows[0] == ["a", 0.5, pytest.approx(np.sqrt(0.5)), 0.5]
    assert not scores.higher_is_better
    assert of_numbers(gold[:, :1], found[:, :1], ["a"], np.array([1, 2])).values["r2"] == 0.5


def test_few_classes_are_confused_in_a_square_and_many_in_pairs() -> None:
    few = confusion_table(np.array([[3, 1], [0, 2]]), ["a", "b"])
    assert few.columns == ["right \\ found", "a", "b"]
    assert few.rows == [["a", 3, 1], ["b", 0, 2]]
    counts = np.zeros((20, 20), np.int64)
    counts[3, 4], counts[7, 1], counts[5, 5] = 2, 6, 9
    many = confusion_table(counts, [str(number) for number in range(20)])
    assert many.rows == [["7", "1", 6], ["3", "4", 2]]


def test_long_examples_have_a_bucket_of_their_own() -> None:
    table = by_length(np.array([1.0, 3.0, 5.0]), np.array([0, 2000, 5000]), "mae")
    assert table.rows == [["0-5", 1.0, 1], ["over 1000", 4.0, 2]]
