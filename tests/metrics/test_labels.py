"""Scores of single labels, against counting by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics import LabelScores, accuracy, confusion, macro_f1, micro_f1, per_label

sentences = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=6), min_size=1, max_size=4
).filter(any)


def sides(pairs: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[gold for gold, _ in row] for row in pairs], [[said for _, said in row] for row in pairs]


@given(sentences)
def test_the_confusion_counts_every_step_once(pairs: list[list[tuple[str, str]]]) -> None:
    flat = [pair for row in pairs for pair in row]
    labels, counts = confusion(*sides(pairs))
    assert counts.dtype == np.int64
    assert set(labels) == {label for pair in flat for label in pair}
    assert all(counts[i, j] == flat.count((a, b)) for i, a in enumerate(labels) for j, b in enumerate(labels))
    in_gold = counts.sum(1).tolist()
    assert in_gold == sorted(in_gold, reverse=True)


@given(sentences)
def test_scores_follow_from_the_confusion(pairs: list[list[tuple[str, str]]]) -> None:
    labels, counts = confusion(*sides(pairs))
    scores = per_label(*sides(pairs))
    assert [score.label for score in scores] == labels
    for number, score in enumerate(scores):
        right, in_gold, said = counts[number, number], counts[number].sum(), counts[:, number].sum()
        assert (score.count, score.predicted) == (in_gold, said)
        assert score.precision == (right / said if said else 0)
        assert score.recall == (right / in_gold if in_gold else 0)
        both = score.precision + score.recall
        assert score.f1 == pytest.approx(2 * score.precision * score.recall / both if both else 0)
    assert accuracy(*sides(pairs)) == pytest.approx(counts.trace() / counts.sum())
    assert macro_f1(*sides(pairs)) == pytest.approx(np.mean([score.f1 for score in scores]))
    assert micro_f1(*sides(pairs)) == pytest.approx(accuracy(*sides(pairs)))


def test_micro_f1_may_leave_a_label_out() -> None:
    gold = [["O", "O", "X", "Y"], ["X"]]
    said = [["O", "X", "X", "O"], ["Y"]]
    assert micro_f1(gold, said, without={"O"}) == 2 * 1 / (3 + 3)
    assert micro_f1(gold, said, without=["O", "X", "Y"]) == 0


def test_equally_frequent_labels_come_by_name() -> None:
    assert [score.label for score in per_label([["b", "a", "c", "c"]], [["e", "d", "c", "c"]])] == list("cabde")


def test_a_label_that_was_never_predicted_has_precision_zero() -> None:
    assert per_label([["a"]], [["b"]]) == [LabelScores("a", 0.0, 0.0, 0.0, 1, 0), LabelScores("b", 0.0, 0.0, 0.0, 0, 1)]


@pytest.mark.parametrize("metric", [accuracy, per_label, confusion, macro_f1, micro_f1])
@pytest.mark.parametrize(
    ("gold", "said", "message"),
    [
        ([["a"]], [["a"], ["b"]], "gold has 1 sentences but predicted has 2: each sentence needs both. Sentence 2 is"),
        ([["a"], ["b"]], [["a"], []], "sentence 2 has 1 gold labels but 0 predicted: each step needs one of both."),
        (["a"], [["a"]], "sentence 1 of gold is the string 'a', not a list of labels."),
        ([["a"]], ["a"], "sentence 1 of predicted is the string 'a'"),
    ],
)
def test_sides_that_do_not_match_are_refused(metric: Callable[..., object], gold: Any, said: Any, message: str) -> None:
    with pytest.raises(DataError) as refusal:
        metric(gold, said)
    assert message in str(refusal.value)


def test_an_accuracy_of_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="accuracy needs at least one label"):
        accuracy([[]], [[]])
    with pytest.raises(DataError, match="macro F1 needs at least one label"):
        macro_f1([], [])
