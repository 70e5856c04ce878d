"""Edit distance and error rates, against rapidfuzz and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from recurra.errors import DataError
from recurra.metrics import Edit, edit_counts, edit_distance, edits, symbol_error_rate
from recurra.metrics.edits import nearest

symbols = st.lists(st.sampled_from(["a", "b", "c", "ch", "ɑ̃"]), max_size=12)


@given(symbols, symbols)
def test_the_distance_is_that_of_rapidfuzz(one: list[str], other: list[str]) -> None:
    assert edit_distance(one, other) == Levenshtein.distance(one, other)


def test_the_distance_of_long_sequences_is_that_of_rapidfuzz() -> None:
    chance = np.random.default_rng(2)
    one, other = ([str(symbol) for symbol in chance.integers(9, size=size)] for size in (900, 700))
    assert edit_distance(one, other) == Levenshtein.distance(one, other)


@given(symbols, symbols)
def test_edits_are_as_few_as_the_distance_and_lead_from_one_to_the_other(one: list[str], other: list[str]) -> None:
    found = edits(one, other)
    assert len(found) == edit_distance(one, other)
    assert reaches(one, other, found)


def reaches(gold: list[str], predicted: list[str], steps: list[Edit]) -> bool:
    """Whether the steps, with symbols that are the same between them, make one sequence the other."""
    if not steps:
        return gold == predicted
    (right, written), rest = steps[0], steps[1:]
    start = 0
    while True:
        ahead, there = gold[start:], predicted[start:]
        fits = (not right or ahead[:1] == [right]) and (not written or there[:1] == [written])
        if fits and reaches(ahead[bool(right) :], there[bool(written) :], rest):
            return True
        if not ahead or ahead[:1] != there[:1]:
            return False
        start += 1


def test_the_distance_knows_whole_symbols() -> None:
    assert edit_distance(["ch", "a"], ["c", "h", "a"]) == 2
    assert edit_distance([], ["a", "b"]) == edit_distance(["a", "b"], []) == 2
    assert edit_distance([], []) == 0


def test_an_item_is_right_if_it_is_any_of_its_references() -> None:
    gold = [[["t", "u"], ["t", "o"]], [["k", "a"]], [["p"]]]
    predicted = [["t", "o"], ["k", "i"], ["p"]]
    assert edit_counts(gold, predicted)[:, 0].tolist() == [1, 0, 1]
    assert symbol_error_rate(gold, predicted) == pytest.approx(1 / 5)


@given(st.lists(st.tuples(st.lists(symbols, min_size=1, max_size=3), symbols), min_size=1, max_size=6))
def test_rates_are_those_of_the_nearest_references(items: list[tuple[list[list[str]], list[str]]]) -> None:
    gold, predicted = [references for references, _ in items], [answer for _, answer in items]
    best = [min((Levenshtein.distance(one, answer), len(one)) for one in references) for references, answer in items]
    length = sum(length for _, length in best)
    assert symbol_error_rate(gold, predicted) == sum(distance for distance, _ in best) / max(length, 1)
    assert edit_counts(gold, predicted)[:, 0].tolist() == [distance == 0 for distance, _ in best]


def test_of_references_equally_near_the_shortest_counts_in_any_order() -> None:
    assert nearest([["a", "b", "c"], ["a"]], ["a", "b"]) == nearest([["a"], ["a", "b", "c"]], ["a", "b"]) == (1, ["a"])


def test_much_too_long_answers_pass_one() -> None:
    assert symbol_error_rate([[["a"]]], [["a", "b", "c", "d"]]) == 3
    assert symbol_error_rate([[[]]], [["a", "b"]]) == 2
    assert symbol_error_rate([[[]]], [[]]) == 0


def test_items_without_partners_are_refused() -> None:
    with pytest.raises(DataError, match="gold has 1 items but predicted has 0"):
        edit_counts([["a"]], [])
    with pytest.raises(DataError, match="item 1 has no reference"):
        edit_counts([[]], [["a"]])
