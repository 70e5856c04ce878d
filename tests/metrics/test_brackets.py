"""Brackets of trees against trees that are no sequences yet, and pairs of brackets that are crossed out by hand."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.metrics.brackets import bracket_counts, is_balanced, spans
from recurra.scoring.pair_scores import PairAnswers, pair_scores

trees: Any = st.recursive(
    st.just("x"),
    lambda inner: st.tuples(st.sampled_from("AB"), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=6,
)


def linear(tree: Any) -> list[str]:
    if isinstance(tree, str):
        return [tree]
    label, parts = tree
    return [f"({label}", *(token for part in parts for token in linear(part)), f"){label}"]


def held(tree: Any, start: int = 0) -> tuple[list[tuple[str, int, int]], int]:
    """The brackets of a tree whose first leaf has this number, and the number after its last leaf."""
    if isinstance(tree, str):
        return [], start + 1
    label, parts = tree
    found, end = [], start
    for part in parts:
        inner, end = held(part, end)
        found += inner
    return [*found, (f"({label}", start, end)], end


@settings(max_examples=50)
@given(trees, trees)
def test_brackets_of_sequences_are_those_of_the_trees(one: Any, other: Any) -> None:
    gold, said = held(one)[0], held(other)[0]
    assert sorted(spans(linear(one)).elements()) == sorted(gold)
    assert is_balanced(linear(one))
    left, right = list(said), 0
    for bracket in gold:  # each bracket of the answer can be right once
        if bracket in left:
            left.remove(bracket)
            right += 1
    [counts] = bracket_counts([[linear(one)]], [linear(other)]).tolist()
    assert counts == [right, len(gold), len(said)]


@given(st.lists(st.sampled_from(["(A", "(B", ")A", ")B", "x"]), max_size=7))
def test_a_sequence_is_balanced_where_pairs_can_be_crossed_out_until_nothing_is_left(tokens: list[str]) -> None:
    text = "".join(token for token in tokens if token != "x")
    while (shorter := text.replace("(A)A", "").replace("(B)B", "")) != text:
        text = shorter
    assert is_balanced(tokens) == (text == "")


def test_f1_is_of_all_brackets_and_of_the_nearest_reference() -> None:
    tokens = [text.split() for text in ("(A (B x )B y )A", "(A x (B y )B )A", "(A x y")]
    texts = [" ".join(each) for each in tokens]
    given = PairAnswers(texts[:1] * 3, ["1", "2", "3"], texts, tokens[:1] * 3, tokens, [2] * 3, trees=True)
    counted = pair_scores(given, first="bracket_f1", quick=True)
    assert counted.value("bracket_f1") == 2 * (2 + 1 + 1) / (6 + 5)
    assert counted.value("bracket_recall") == 4 / 6
    assert counted.value("balanced") == 2 / 3
    assert bracket_counts([[tokens[0], tokens[1]]], [tokens[1]]).tolist() == [[2, 2, 2]]
