"""Finite automata: what a network must compute to follow a group or a regular language, and what was found in one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

WORDS = ("no", "yes")
"""What an automaton of a language says of the symbols read so far: whether they are a word of it."""


class Automaton(NamedTuple):
    """A machine that says something after each symbol.

        s_0 = 0,   s_t = δ(s_{t-1}, x_t),   y_t = λ(s_t)

    >>> parity = PROBLEMS["parity"].automaton()
    >>> parity.read(np.array([[1, 1, 0, 1]])).tolist()
    [[1, 0, 0, 1]]
    """

    symbols: tuple[str, ...]  # the names of x
    answers: tuple[str, ...]  # the names of y
    moves: NDArray[np.int64]  # (states, symbols): δ
    says: NDArray[np.int64]  # (states,): λ

    @property
    def states(self) -> int:
        return len(self.says)

    def walk(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, T): the state after each symbol of words (B, T)."""
        found = np.zeros(words.shape, np.int64)
        state = np.zeros(len(words), np.int64)
        for t in range(words.shape[1]):
            state = self.moves[state, words[:, t]]
            found[:, t] = state
        return found

    def read(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B, T): what it says after each symbol of words (B, T)."""
        answers: NDArray[np.int64] = self.says[self.walk(words)]
        return answers

    def minimised(self) -> Self:
        """The smallest automaton that says the same, its states numbered as they are first reached.

        States that answer alike are one class; classes are split by where their symbols lead until none is (Moore
        1956). Two automata of the same symbols say the same if and only if their minimised forms are equal.
        """
        order = self._reached()
        place = {state: number for number, state in enumerate(order)}
        moves = np.array([[place[int(to)] for to in self.moves[state]] for state in order], np.int64)
        classes = np.unique(self.says[order], return_inverse=True)[1]
        while True:
            behind = np.column_stack([classes, classes[moves]])
            finer = np.unique(behind, axis=0, return_inverse=True)[1].reshape(-1)
            if finer.max() == classes.max():
                break
            classes = finer
        _, first = np.unique(classes, return_index=True)
        small = self._replace(moves=classes[moves[first]], says=self.says[order][first])
        small = small.starting(int(classes[0]))
        numbered = small._reached()
        place = {state: number for number, state in enumerate(numbered)}
        found = np.array([[place[int(to)] for to in small.moves[state]] for state in numbered], np.int64)
        return small._replace(moves=found, says=small.says[numbered])

    def after_a_symbol(self) -> Self:
        """The smallest automaton that says the same after each word but the empty one, of which nothing is asked.

        A first state to which nothing leads back, and from which all symbols lead where they lead from another one,
        differs from that one in what it says before any symbol alone: they become one.
        """
        small = self.minimised()
        alike = (small.moves[1:] == small.moves[0]).all(1).nonzero()[0]
        if (small.moves == 0).any() or not len(alike):
            return small
        return small.starting(int(alike[0]) + 1).minimised()

    def says_the_same(self, other: Automaton) -> bool:
        """Whether another automaton answers alike after every word."""
        one, two = self.minimised(), other.minimised()
        return np.array_equal(one.moves, two.moves) and np.array_equal(one.says, two.says)

    def _reached(self) -> list[int]:
        """The states that can be reached, nearest first, the symbols in their order."""
        found = [0]
        for state in found:
            found += [to for to in dict.fromkeys(self.moves[state].tolist()) if to not in found]
        return found

    def starting(self, start: int) -> Self:
        """The same with another state as the first."""
        order = np.arange(self.states)
        order[[0, start]] = order[[start, 0]]
        return self._replace(moves=order[self.moves[order]], says=self.says[order])

    def json(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "symbols": list(self.symbols),
            "answers": list(self.answers),
            "moves": self.moves.tolist(),
            "says": self.says.tolist(),
        }


class StateProblem(NamedTuple):
    """An automaton to be followed, and what it is, in words."""

    about: str
    automaton: Callable[[], Automaton]
    is_language: bool = False  # whether it says yes and no: then words of the language are drawn as often as others


def language(*states: tuple[str, str]) -> Automaton:
    """The automaton of a language over 0 and 1: of each state "yes" or "no", and where 0 and 1 lead."""
    moves = np.array([[int(to) for to in after] for _, after in states], np.int64)
    return Automaton(("0", "1"), WORDS, moves, np.array([WORDS.index(says) for says, _ in states], np.int64))


def group(generators: Sequence[tuple[int, ...]], names: Sequence[str]) -> Automaton:
    """The words of a group of permutations: after each symbol, the product of all so far.

    >>> turned = group([(1, 2, 0)], ["turn"])
    >>> turned.states, turned.read(np.array([[0, 0, 0]])).tolist()
    (3, [[1, 2, 0]])
    """
    unit = tuple(range(len(generators[0])))
    elements, moves = {unit: 0}, []
    for element in (queue := [unit]):
        after = [tuple(generator[place] for place in element) for generator in generators]
        for each in after:
            if each not in elements:
                elements[each] = len(elements)
                queue.append(each)
        moves.append([elements[each] for each in after])
    size = len(elements)
    answers = tuple(
        "".join(map(str, element)) if len(unit) < 10 else str(number) for element, number in elements.items()
    )
    return Automaton(tuple(names), answers, np.array(moves, np.int64), np.arange(size))


def cycles(order: int, steps: Sequence[int]) -> Automaton:
    """Words of the integers modulo `order`: after each symbol, the sum of all so far."""
    states = np.arange(order)
    moves = np.column_stack([(states + step) % order for step in steps])
    return Automaton(tuple(f"+{step}" for step in steps), tuple(map(str, states)), moves, states)


def parity() -> Automaton:
    return Automaton(("0", "1"), ("even", "odd"), np.array([[0, 1], [1, 0]]), np.array([0, 1]))


TOMITA: tuple[tuple[str, Callable[[], Automaton]], ...] = (
    ("1*", lambda: language(("yes", "10"), ("no", "11"))),
    ("(10)*", lambda: language(("yes", "21"), ("no", "02"), ("no", "22"))),
    (
        "an odd number of 1s is never followed by an odd number of 0s",
        lambda: language(("yes", "01"), ("yes", "20"), ("no", "34"), ("yes", "21"), ("no", "44")),
    ),
    ("no 000", lambda: language(("yes", "10"), ("yes", "20"), ("yes", "30"), ("no", "33"))),
    ("an even number of 0s and of 1s", lambda: language(("yes", "12"), ("no", "03"), ("no", "30"), ("no", "21"))),
    ("as many 0s as 1s, modulo 3", lambda: language(("yes", "12"), ("no", "20"), ("no", "01"))),
    (
        "0*1*0*1*",
        lambda: language(("yes", "01"), ("yes", "21"), ("yes", "23"), ("yes", "43"), ("no", "44")),
    ),
)
"""Tomita's seven languages (1982), in words and as automata."""

PROBLEMS: dict[str, StateProblem] = {
    "parity": StateProblem("whether the 1s so far are even or odd", parity),
    "z60": StateProblem("sums modulo 60 of 20, 15 and 12", lambda: cycles(60, (20, 15, 12))),
    "s5": StateProblem(
        "products of a swap and a rotation of five things",
        lambda: group([(1, 0, 2, 3, 4), (1, 2, 3, 4, 0)], ["swap", "turn"]),
    ),
    **{
        f"tomita{number}": StateProblem(f"Tomita's language {number}: {said}", automaton, is_language=True)
        for number, (said, automaton) in enumerate(TOMITA, 1)
    },
}
"""Automata that a network can be asked to follow, by their names."""


def all_words(symbols: int, length: int) -> NDArray[np.int64]:
    """(symbols ** length, length): every word of a length."""
    return np.array(list(itertools.product(range(symbols), repeat=length)), np.int64).reshape(-1, length)
