"""Two segmentations of a text, against a search through all alignments."""

from __future__ import annotations

from itertools import chain, combinations, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recurra.metrics.conllu_alignment import Place, aligned_words, same_places

SIZE = 3
"""Characters of a stretch, at whose ends both sides have a boundary."""

APART = 4
"""Where the next stretch begins: a word of one character that both sides have stands between them."""

FORMS = st.lists(st.sampled_from(["a", "b", "ab", "A"]), min_size=2, max_size=3)
PLACES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)))


@st.composite
def stretch(draw: Any, start: int = 0) -> Any:
    """Three characters as one token of several words, or as words that stand in the text."""
    if draw(st.booleans()):
        return [Place(start, start + SIZE, form, True) for form in draw(FORMS)]
    cuts = [start, *sorted(draw(st.sets(st.sampled_from([start + 1, start + 2])))), start + SIZE]
    return [Place(one, other, "aba"[one - start : other - start]) for one, other in pairwise(cuts)]


@st.composite
def segmented(draw: Any, stretches: int = 3) -> Any:
    between = [Place(APART * number + SIZE, APART * (number + 1), "c") for number in range(stretches)]
    return [part for number in range(stretches) for part in (draw(stretch(APART * number)), [between[number]])]


def most_aligned(gold: Any, said: Any) -> Any:
    """By brute force, the largest number of words of a stretch that can be aligned in order."""
    if not any(word.is_part for word in [*gold, *said]):
        return len({word[:2] for word in gold} & {word[:2] for word in said})
    ours, theirs = ([word.form.lower() for word in side] for side in (gold, said))
    return max(
        size
        for size in range(min(len(ours), len(theirs)) + 1)
        for one in combinations(ours, size)
        for other in combinations(theirs, size)
        if one == other
    )


@given(segmented(), segmented())
def test_as_many_words_are_aligned_as_can_be(gold: Any, said: Any) -> None:
    found = aligned_words([*chain(*gold)], [*chain(*said)])
    assert found == sorted(found)
    assert len({one for one, _ in found}) == len({other for _, other in found}) == len(found)
    assert len(found) == sum(map(most_aligned, gold, said))


@given(segmented())
def test_a_text_agrees_with_itself(words: Any) -> None:
    whole = [*chain(*words)]
    assert aligned_words(whole, whole) == [(number, number) for number in range(len(whole))]


def test_a_multi_word_token_that_crosses_a_boundary_of_the_other_side() -> None:
    gold = [Place(0, 2, "ab"), Place(2, 5, "de", True), Place(2, 5, "le", True), Place(5, 6, "c")]
    said = [Place(0, 3, "abd"), Place(3, 5, "le"), Place(5, 6, "c")]
    assert aligned_words(gold, said) == [(2, 1), (3, 2)]


def test_one_word_before_a_multi_word_token_is_left_out_and_others_belong_to_its_stretch() -> None:
    gold = [Place(0, 3, "abb"), Place(3, 5, "b", True), Place(3, 5, "d", True)]
    said = [Place(0, 1, "a"), Place(1, 2, "b"), Place(2, 3, "x"), Place(3, 5, "d")]
    assert aligned_words(gold, said) == [(1, 1), (2, 3)]


@given(PLACES, PLACES)
def test_places_are_right_where_the_other_side_has_them(gold: Any, said: Any) -> None:
    assert same_places(gold, said) == [any(one == other for other in said) for one in gold]
