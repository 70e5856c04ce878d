"""Automata say what their languages and groups say, checked by counting and by regular expressions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.analysis.automata import PROBLEMS, Automaton, all_words

LONGEST = 10


def odd_ones_then_odd_zeros(text: str) -> bool:
    """Whether some run of an odd number of 1s is followed by a run of an odd number of 0s."""
    runs = [(run[0], len(run)) for run in re.findall("0+|1+", text)]
    return any(one == "1" and ones % 2 and zeros % 2 for (one, ones), (_, zeros) in itertools.pairwise(runs))


LANGUAGES: dict[str, tuple[int, Callable[[str], bool]]] = {
    "tomita1": (2, lambda text: re.fullmatch("1*", text) is not None),
    "tomita2": (3, lambda text: re.fullmatch("(10)*", text) is not None),
    "tomita3": (5, lambda text: not odd_ones_then_odd_zeros(text)),
    "tomita4": (4, lambda text: "000" not in text),
    "tomita5": (4, lambda text: text.count("0") % 2 == text.count("1") % 2 == 0),
    "tomita6": (3, lambda text: (text.count("0") - text.count("1")) % 3 == 0),
    "tomita7": (5, lambda text: re.fullmatch("0*1*0*1*", text) is not None),
    "parity": (2, lambda text: text.count("1") % 2 == 1),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_word_is_judged_as_its_definition_judges_it(name: str) -> None:
    states, belongs = LANGUAGES[name]
    automaton = PROBLEMS[name].automaton()
    assert (
        automaton.minimised().states == automaton.states == states
    )  # the published sizes, with a state for no way out
    words = all_words(2, LONGEST)
    said = automaton.read(words)
    for length in (1, 2, 3, LONGEST):
        texts = ["".join(map(str, word)) for word in words[:, :length]]
        assert said[:, length - 1].tolist() == [int(belongs(text)) for text in texts]


def test_words_of_sixty_are_sums_and_those_of_five_things_are_what_is_done_to_them() -> None:
    chance = np.random.default_rng(0)
    sums, words = PROBLEMS["z60"].automaton(), chance.integers(3, size=(20, 30))
    assert sums.read(words)[:, -1].tolist() == (np.array([20, 15, 12])[words].sum(1) % 60).tolist()
    five, words = PROBLEMS["s5"].automaton(), chance.integers(2, size=(20, 30))
    assert (five.states, five.minimised().states) == (120, 120)
    for word, end in zip(words, five.read(words)[:, -1], strict=True):
        things = [0, 1, 2, 3, 4]
        for symbol in word:  # a swap of things 0 and 1, wherever they are; or each thing becomes the next
            change = {0: 1, 1: 0} if symbol == 0 else {n: (n + 1) % 5 for n in range(5)}
            things = [change.get(thing, thing) for thing in things]
        assert five.answers[end] == "".join(map(str, things))


def some_automaton(states: int, symbols: int, seed: int) -> Automaton:
    chance = np.random.default_rng(seed)
    names = tuple(map(str, range(symbols)))
    return Automaton(
        names, ("no", "yes"), chance.integers(states, size=(states, symbols)), chance.integers(2, size=states)
    )


@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 10_000))
def test_the_smallest_automaton_says_the_same_with_as_few_states_as_can_be(
    states: int, symbols: int, seed: int
) -> None:
    automaton = some_automaton(states, symbols, seed)
    small = automaton.minimised()
    words = all_words(symbols, 5)
    assert (small.read(words) == automaton.read(words)).all()
    assert small.says_the_same(automaton)
    # As many as there are reachable states that differ in what they say after some word of up to `states` symbols.
    reached = {
        0,
        *automaton.walk(all_words(symbols, 6) if symbols > 1 else np.zeros((1, 8), np.int64)).ravel().tolist(),
    }
    after = all_words(symbols, min(states, 5))
    signatures = set()
    for state in reached:
        moved = automaton.starting(state)
        signatures.add((int(automaton.says[state]), moved.read(after).tobytes()))
    assert small.states == len(signatures)


def test_what_is_said_of_nothing_may_not_count() -> None:
    ends_in_one = Automaton(("0", "1"), ("no", "yes"), np.array([[1, 2], [1, 2], [1, 2]]), np.array([1, 0, 1]))
    assert ends_in_one.minimised().states == 3 - 1  # what it says of nothing is what it says after a 1
    twice = ends_in_one._replace(answers=("a", "b", "c"), says=np.array([2, 0, 1]))
    assert (twice.minimised().states, twice.after_a_symbol().states) == (3, 2)
    words = all_words(2, 4)
    assert (twice.after_a_symbol().read(words) == twice.read(words)).all()
    parity = PROBLEMS["parity"].automaton()
    assert parity.after_a_symbol().says_the_same(parity)


def test_automata_that_differ_after_one_word_are_told_apart() -> None:
    one = PROBLEMS["tomita4"].automaton()
    assert not one.says_the_same(PROBLEMS["tomita5"].automaton())
    assert not one.says_the_same(one._replace(says=one.says[::-1].copy()))
