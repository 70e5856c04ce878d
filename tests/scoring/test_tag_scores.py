"""Counts of tags, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics import spans
from recurra.scoring.scores import Scores
from recurra.scoring.tag_scores import Column, Labels, Values, numbered, tag_scores

Sentences = list[list[tuple[str, str]]]
"""Of each step, the gold tag and the one that was found."""

TAGS = ["O", "B-x", "I-x", "E-x", "S-y", "B-y", "I-y"]
step = st.tuples(st.sampled_from(["", *TAGS]), st.sampled_from(TAGS))
sentences = st.lists(st.lists(step, max_size=6), min_size=1, max_size=6).filter(
    lambda rows: any(gold for row in rows for gold, _ in row)
)


def scored(rows: Sentences, *, has_spans: bool = False) -> Scores:
    labels: dict[str, int] = {}
    gold, found = (numbered(([pair[side] for pair in row] for row in rows), labels) for side in (0, 1))
    column = Column("tags", list(labels), gold, found, has_spans)
    return tag_scores(range(len(rows)), [len(row) for row in rows], [column]).scores()


def f1(right: int, gold: int, said: int) -> tuple[float, float, float]:
    return right / max(said, 1), right / max(gold, 1), 2 * right / max(gold + said, 1)


@given(sentences)
def test_accuracies_and_scores_of_tags_are_those_of_labelled_steps(rows: Sentences) -> None:
    scores = scored(rows)
    kept = [[pair for pair in row if pair[0]] for row in rows]
    pairs = [pair for row in kept for pair in row]
    assert scores.values["accuracy"] == pytest.approx(sum(gold == said for gold, said in pairs) / len(pairs))
    whole = [all(gold == said for gold, said in row) for row in kept]
    assert scores.values["sentence_accuracy"] == pytest.approx(sum(whole) / len(rows))
    assert scores.values["count"] == sum(map(len, rows))
    table = {}
    for tag in {tag for pair in pairs for tag in pair}:
        gold, said = (sum(pair[side] == tag for pair in pairs) for side in (0, 1))
        table[tag] = [*f1(pairs.count((tag, tag)), gold, said), gold]
    found = scores.tables["tags: tags"].rows
    assert [row[0] for row in found] == sorted(table, key=lambda tag: (-table[tag][-1], tag))
    np.testing.assert_allclose([row[1:] for row in found], [table[row[0]] for row in found], atol=5e-5)


@given(sentences)
def test_scores_of_spans_count_those_that_both_sides_share(rows: Sentences) -> None:
    scores = scored(rows, has_spans=True)
    kept = [[pair for pair in row if pair[0]] for row in rows]
    gold, said = (
        {(n, *span) for n, row in enumerate(kept) for span in spans([pair[side] for pair in row])} for side in (0, 1)
    )
    expected = f1(len(gold & said), len(gold), len(said))
    assert [scores.values[name] for name in ("precision", "recall", "f1")] == pytest.approx(expected)
    assert scores.first == "f1"
    types = {kind for *_, kind in gold | said}
    found = {row[0]: row[1:] for row in scores.tables["tags: spans"].rows}
    assert found.keys() == types
    for kind in types:
        one, other = ({span for span in side if span[-1] == kind} for side in (gold, said))
        assert found[kind] == pytest.approx([*f1(len(one & other), len(one), len(other)), len(one)], abs=5e-5)


def test_spans_do_not_reach_over_the_end_of_a_sentence() -> None:
    values = scored([[("B-x", "B-x")], [("I-x", "I-x"), ("I-x", "B-x")]], has_spans=True).values
    assert (values["precision"], values["recall"]) == (1 / 3, 1 / 2)


def test_no_spans_at_all_score_zero() -> None:
    scores = scored([[("O", "O")]], has_spans=True)
    assert [scores.values[name] for name in ("f1", "precision", "recall")] == [0, 0, 0]
    assert scores.tables["tags: spans"].rows == []


def test_words_without_a_vector_are_scored_apart() -> None:
    column = Column("tags", ["A", "B"], np.array([0, 1, -1, 1]), np.array([0, 0, 0, 1]), has_spans=False)
    found = tag_scores("pq", [2, 2], [column._replace(unknown=np.array([False, True, True, True]))])
    assert found.value("unknown_accuracy") == 1 / 2
    assert np.isnan(tag_scores("pq", [2, 2], [column._replace(unknown=np.zeros(4, bool))]).value("unknown_accuracy"))


def test_a_label_of_the_whole_decides_with_all_columns_whether_a_sentence_is_right() -> None:
    first = Column("tags", ["A", "B"], np.array([0, 1, 1]), np.array([0, 1, 1]), has_spans=False)
    second = Column("more", ["A", "B"], np.array([0, 1, 1]), np.array([0, 0, 1]), has_spans=False)
    found = tag_scores("pqr", [1, 1, 1], [first, second], labels=Labels(["x", "x", ""], ["x", "x", "y"])).scores()
    assert found.values == pytest.approx(
        {"accuracy": 1, "accuracy.more": 2 / 3, "label_accuracy": 2 / 3, "sentence_accuracy": 1 / 3, "count": 3}
    )
    assert found.first == "sentence_accuracy"
    assert found.tables["label"].rows == [["x", 1.0, 1.0, 1.0, 2], ["", 0.0, 0.0, 0.0, 1], ["y", 0.0, 0.0, 0.0, 0]]


def test_numbers_have_errors_in_their_own_unit() -> None:
    values = Values(
        [np.array([1.0, 2.0]), np.zeros(0), np.array([3.0])], [np.zeros(2), np.zeros(0), np.array([-3e200])]
    )
    found = tag_scores("pqr", [2, 1, 1], [], values).scores()
    assert found.values["mae"] == pytest.approx(1e200)
    assert found.values["rmse"] == pytest.approx(3e200 / np.sqrt(3))
    assert (found.first, found.higher_is_better) == ("rmse", False)


def test_a_column_without_any_gold_answer_is_refused() -> None:
    with pytest.raises(DataError, match="there is nothing to score: no element has a gold answer in 'tags'"):
        scored([[("", "O")], []])
    with pytest.raises(DataError, match="there is nothing to score: no step has a gold value"):
        tag_scores("p", [1], [], Values([np.zeros(0)], [np.zeros(0)]))
