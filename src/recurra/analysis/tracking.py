"""State tracking: to say after each symbol which state an automaton is in, at lengths far beyond those of training."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import functional

from recurra.analysis.automata import PROBLEMS, Automaton
from recurra.analysis.problems import Answering
from recurra.padding import Padded

SILENT = -100
"""The target of a step that is padding."""

TRIES = 20
"""To find a symbol whose change makes a word none of its language."""

MULTIPLES = (1, 2, 4, 8, 16)
"""Of the longest word of training: the lengths at which a network is tested."""


class Tracking(NamedTuple):
    """Words of 1 to `longest` symbols, one-hot, and what an automaton says after each symbol.

    Words of a group are drawn evenly. Of a language, half of them are words of it, all of these being equally likely,
    and the others are such words with one symbol changed, so that they are none any more where that can be.

    >>> x, y = Tracking("parity", 4).draw(2, Generator().manual_seed(1))
    >>> x.values.shape, y.shape
    (torch.Size([2, 4, 2]), torch.Size([2, 4]))
    """

    name: str
    longest: int

    @property
    def automaton(self) -> Automaton:
        """The automaton that is to be followed."""
        return automaton_named(self.name)

    @property
    def input_size(self) -> int:
        return len(self.automaton.symbols)

    @property
    def output_size(self) -> int:
        return len(self.automaton.answers)

    def draw(self, rows: int, generator: Generator) -> tuple[Padded, Tensor]:
        lengths = torch.randint(1, self.longest + 1, (rows,), generator=generator)
        lengths[0] = self.longest
        words = self.words(lengths.numpy(), generator)
        said = torch.from_numpy(self.automaton.read(words))
        is_padding = torch.arange(self.longest) >= lengths.unsqueeze(1)
        return Padded(one_hot(words, self.input_size), lengths), said.masked_fill(is_padding, SILENT)

    def words(self, lengths: NDArray[np.int64], generator: Generator) -> NDArray[np.int64]:
        """(B, T): words of these lengths; what stands behind a word's end says nothing."""
        rows, longest = len(lengths), int(lengths.max())
        chance = np.random.default_rng(int(torch.randint(2**31, (1,), generator=generator)))
        if not PROBLEMS[self.name].is_language:
            return chance.integers(self.input_size, size=(rows, longest))
        words = accepted(self.automaton, lengths, chance)
        some = chance.random(rows) < 0.5
        words[some] = spoiled(self.automaton, words[some], lengths[some], chance)
        return words

    def right(self, network: Answering, length: int, *, rows: int = 2000, seed: int = 0) -> float:
        """The share of new words of a length after which a network's last answer is right."""
        words = self.words(np.full(rows, length), Generator().manual_seed(seed))
        wanted = self.automaton.read(words)[:, -1]
        parts = np.array_split(np.arange(rows), max(1, rows * length // 500_000))
        answers = [network.answers(Padded.full(one_hot(words[part], self.input_size)))[:, -1] for part in parts]
        return float((torch.cat(answers).numpy() == wanted).mean())

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(outputs.flatten(0, 1), target.flatten(), ignore_index=SILENT)

    @property
    def without_memory(self) -> float:
        """The loss of the best answer that knows the present symbol alone, counted on words that were drawn."""
        return without_memory(self.name, self.longest)


@cache
def automaton_named(name: str) -> Automaton:
    return PROBLEMS[name].automaton()


@cache
def without_memory(name: str, longest: int) -> float:
    x, y = Tracking(name, longest).draw(2000, Generator().manual_seed(0))
    real = y != SILENT
    pairs, counts = np.unique(torch.stack([x.values.argmax(2)[real], y[real]]).numpy(), axis=1, return_counts=True)
    given = np.bincount(pairs[0], counts)[pairs[0]]
    found = float(-(counts * np.log(counts / given)).sum() / counts.sum())
    return min(found, math.log(len(automaton_named(name).answers)))


def one_hot(words: NDArray[np.int64], symbols: int) -> Tensor:
    """(B, T, symbols) of words (B, T)."""
    return functional.one_hot(torch.from_numpy(words), symbols).float()


def accepted(automaton: Automaton, lengths: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
    """(B, T): words of these lengths after which the automaton says yes, all equally likely; any where there is none.

        ways_0(s) = 1 where λ(s) is yes, else 0,   ways_k(s) = Σ_x ways_{k-1}(δ(s, x))

    From s with k symbols to come, x is drawn with a probability in proportion to ways_{k-1}(δ(s, x)).
    """
    longest = int(lengths.max())
    ways = np.zeros((longest + 1, automaton.states))
    ways[0] = automaton.says
    for k in range(1, longest + 1):
        ways[k] = ways[k - 1][automaton.moves].sum(1)
        ways[k] /= max(ways[k].max(), 1e-300)  # only their proportions count, and the numbers themselves grow large
    words = np.zeros((len(lengths), longest), np.int64)
    state = np.zeros(len(lengths), np.int64)
    for t in range(longest):
        left = np.maximum(lengths - t - 1, 0)
        weights = ways[left[:, None], automaton.moves[state]]
        weights = np.where(weights.sum(1, keepdims=True) > 0, weights, 1.0)
        shares = (weights / weights.sum(1, keepdims=True)).cumsum(1)
        words[:, t] = np.minimum((chance.random((len(lengths), 1)) >= shares).sum(1), weights.shape[1] - 1)
        state = automaton.moves[state, words[:, t]]
    return words


def spoiled(
    automaton: Automaton, words: NDArray[np.int64], lengths: NDArray[np.int64], chance: np.random.Generator
) -> NDArray[np.int64]:
    """Words with one symbol changed, so that the automaton says no at their end; any change where that is not found."""
    found, rows = words.copy(), np.arange(len(words))
    is_left = np.ones(len(words), bool)
    for _ in range(TRIES):
        at = (chance.random(len(words)) * lengths).astype(np.int64)
        changed = words.copy()
        changed[rows, at] = (changed[rows, at] + 1) % len(automaton.symbols)
        found[is_left] = changed[is_left]
        is_left &= automaton.read(changed)[rows, lengths - 1] != 0
        if not is_left.any():
            break
    return found
