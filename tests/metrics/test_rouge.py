"""ROUGE, by hand and by brute force."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.errors import ConfigError, DataError
from recurra.metrics import rouge_l, rouge_n
from recurra.metrics.rouge import common

tokens = st.lists(st.sampled_from("abc"), max_size=7)


def subsequences(sequence: list[str]) -> set[tuple[str, ...]]:
    return {chosen for size in range(len(sequence) + 1) for chosen in combinations(sequence, size)}


@given(tokens, tokens)
def test_the_longest_common_subsequence_is_the_longest_that_both_have(one: list[str], other: list[str]) -> None:
    assert common(one, other) == max(map(len, subsequences(one) & subsequences(other)))


def test_lins_examples_of_rouge_l() -> None:
    # Lin 2004, section 3.1: F of S2 is 3/4, of S3 2/4, of S4 2/4, as both sides have four words.
    gold = [[["police", "killed", "the", "gunman"]]]
    found = [rouge_l(gold, [text.split()]) for text in ("police kill the gunman", "the gunman kill police")]
    assert found == [3 / 4, 2 / 4]
    assert rouge_l(gold, [["the", "gunman", "police", "killed"]]) == 2 / 4


def test_lins_examples_of_rouge_2_cannot_tell_two_sentences_apart() -> None:
    # ibid.: "police kill the gunman" and "the gunman kill police" share one bigram of three with the reference.
    gold = [[["police", "killed", "the", "gunman"]]]
    assert rouge_n(gold, [["police", "kill", "the", "gunman"]], n=2) == pytest.approx(1 / 3)
    assert rouge_n(gold, [["the", "gunman", "kill", "police"]], n=2) == pytest.approx(1 / 3)


def test_runs_are_clipped_and_sides_weigh_the_same() -> None:
    # Shared: one a, one b. Precision 2/4, recall 2/3.
    assert rouge_n([[["a", "b", "c"]]], [["a", "a", "b", "a"]], n=1) == pytest.approx(2 * (1 / 2) * (2 / 3) / (7 / 6))


def test_the_score_is_the_mean_of_items_with_their_best_references() -> None:
    gold = [[["a", "b"], ["c", "d"]], [["a"]]]
    predicted = [["c", "d"], ["b"]]
    assert rouge_l(gold, predicted) == rouge_n(gold, predicted, n=1) == 1 / 2


def test_nothing_where_nothing_should_be_is_right() -> None:
    assert rouge_l([[[]]], [[]]) == 1
    assert rouge_l([[["a"]]], [[]]) == rouge_l([[[]]], [["a"]]) == 0


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(ConfigError, match="n of at least 1, but n = 0"):
        rouge_n([[["a"]]], [["a"]], n=0)
    with pytest.raises(DataError, match="a score needs at least one item"):
        rouge_l([], [])
    with pytest.raises(DataError, match="item 1 has no reference"):
        rouge_n([[]], [["a"]], n=1)
