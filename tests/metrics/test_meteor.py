"""METEOR, by the examples of the paper and by brute force; stems, by the examples of Porter's paper."""

from __future__ import annotations

import time
from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics import meteor, stem
from recurra.metrics.meteor import aligned

words = st.lists(st.sampled_from("abc"), max_size=6)

PORTER = """
caresses:caress ponies:poni ties:ti caress:caress cats:cat feed:feed agreed:agre plastered:plaster bled:bled
motoring:motor sing:sing conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall
hissing:hiss fizzed:fizz failing:fail filing:file happy:happi sky:sky relational:relat conditional:condit
rational:ration valenci:valenc hesitanci:hesit digitizer:digit conformabli:conform radicalli:radic
differentli:differ vileli:vile analogousli:analog vietnamization:vietnam predication:predic operator:oper
feudalism:feudal decisiveness:decis hopefulness:hope callousness:callous formaliti:formal sensitiviti:sensit
sensibiliti:sensibl triplicate:triplic formative:form formalize:formal electriciti:electr electrical:electr
hopeful:hope goodness:good revival:reviv allowance:allow inference:infer airliner:airlin gyroscopic:gyroscop
adjustable:adjust defensible:defens irritant:irrit replacement:replac adjustment:adjust dependent:depend
adoption:adopt homologou:homolog communism:commun activate:activ angulariti:angular homologous:homolog
effective:effect bowdlerize:bowdler probate:probat rate:rate cease:ceas controll:control roll:roll
generalizations:gener oscillators:oscil connect:connect connected:connect connecting:connect connection:connect
connections:connect
"""


@pytest.mark.parametrize("pair", PORTER.split())
def test_stems_are_those_of_porters_paper(pair: str) -> None:
    word, expected = pair.split(":")
    assert stem(word) == expected


@pytest.mark.parametrize("word", ["is", "a", "größe", "don't", "3rd", "", "東京"])
def test_what_is_no_english_word_stays(word: str) -> None:
    assert stem(word) == word


@given(st.text("abeilosgndtyz", max_size=10))
def test_any_letters_have_a_stem_that_is_no_longer_than_they_are(word: str) -> None:
    assert len(stem(word)) <= len(word) + 1
    assert bool(stem(word)) == bool(word)


def by_brute_force(gold: list[str], predicted: list[str]) -> tuple[int, int]:
    """All ways to give each word a place in the reference, or none."""
    best = (0, 0)
    for places in product(*[[None, *(n for n, other in enumerate(gold) if other == word)] for word in predicted]):
        taken = [place for place in places if place is not None]
        if len({*taken}) < len(taken):
            continue
        chunks = sum(
            place is not None and (last is None or place != last + 1) for last, place in pairwise([None, *places])
        )
        best = max(best, (len(taken), -chunks))
    return best[0], -best[1]


@settings(max_examples=60, deadline=None)
@given(words, words)
def test_matches_are_the_most_and_chunks_the_fewest_there_can_be(gold: list[str], predicted: list[str]) -> None:
    assert aligned(gold, predicted) == by_brute_force(gold, predicted)


def test_all_orders_of_four_words_have_the_chunks_that_can_be_counted() -> None:
    for order in permutations("abcd"):
        breaks = sum("abcd".find(one + other) < 0 for one, other in pairwise(order))
        assert aligned("abcd", order) == (4, 1 + breaks)


def test_the_papers_example_of_chunks() -> None:
    # Banerjee and Lavie 2005, section 2.2: "the president spoke to the audience" makes two chunks.
    gold, answer = "the president spoke to the audience", "the president then spoke to the audience"
    precision, recall = 6 / 7, 6 / 6
    expected = 10 * precision * recall / (recall + 9 * precision) * (1 - 0.5 * (2 / 6) ** 3)
    assert meteor([[gold.split()]], [answer.split()]) == pytest.approx(expected)


def test_words_of_one_stem_match_and_capitals_do_not_matter() -> None:
    gold, answer = [[["Cats", "are", "running"]]], [["cat", "are", "runs"]]
    assert meteor(gold, answer) == pytest.approx(1 - 0.5 / 27)
    assert meteor(gold, answer, stemmed=False) == pytest.approx((1 / 3) * 0.5)


def test_counts_are_summed_over_items_and_the_best_reference_counts() -> None:
    gold = [[["x"], ["a", "b"]], [["c", "d", "e", "f"]]]
    predicted = [["a", "b"], ["c", "d"]]
    precision, recall = 4 / 4, 4 / 6
    expected = 10 * precision * recall / (recall + 9 * precision) * (1 - 0.5 * (2 / 4) ** 3)
    assert meteor(gold, predicted) == pytest.approx(expected)


def test_nothing_in_common_is_nothing() -> None:
    assert meteor([[["a"]], [[]]], [["b"], []]) == 0


def test_long_texts_with_many_equal_words_take_their_time_but_not_forever() -> None:
    start = time.process_time()
    matches, chunks = aligned(["a", "b", "c"] * 300, ["b", "a"] * 300)
    assert matches == 600
    assert 1 <= chunks <= 600
    assert time.process_time() - start < 4


def test_items_without_partners_are_refused() -> None:
    with pytest.raises(DataError, match="gold has 1 items but predicted has 0"):
        meteor([[["a"]]], [])
