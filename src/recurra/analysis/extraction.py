"""The automaton inside a network that reads symbols: its states, clustered, are those of the automaton."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from recurra.analysis.automata import Automaton
from recurra.analysis.problems import Answering
from recurra.analysis.tracking import Tracking, one_hot
from recurra.padding import Padded
from recurra.stacks.recurrent import States

CLUSTERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""How many clusters are tried, one after the other."""

AHEAD = 3
"""Symbols that are read from a state to tell it from others by its answers."""

WORDS, TIMES = 400, 4
"""So many words are read to find the clusters, and as many others, so many times as long, to count disagreements."""

ROUNDS = 30
"""Of moving the middles of clusters."""


class Extracted(NamedTuple):
    """An automaton out of a network."""

    automaton: Automaton  # minimised
    clusters: int  # of states, before it was made smaller
    disagreement: float  # the share of answers, to words that were not used to find it, that are not the network's
    is_right: bool  # whether it says the same as the automaton that the network was to follow


def extracted(network: Answering, problem: Tracking, *, seed: int = 0) -> Extracted:
    """The first automaton of clusters that answers as the network does, or the one that does so most often.

    A network reads words twice as long as those of training, and its states are clustered: first those that answer
    alike, now and after up to three more symbols; then by their distance (k-means) with more and more clusters. A
    symbol leads from a cluster to the one where most of the states in it are led, and a cluster says what the network
    mostly says there. Then the automaton is minimised (as Omlin and Giles 1996 did, whose clusters were a grid).
    """
    generator = torch.Generator().manual_seed(seed + 7)
    shown = problem.words(np.full(WORDS, 2 * problem.longest), generator)
    tested = problem.words(np.full(WORDS, TIMES * problem.longest), generator)
    states, answers = trail(network, shown)
    wanted = network.answers(Padded.full(one_hot(tested, problem.input_size))).numpy()
    best: Extracted | None = None
    for owners in clusterings(network, states, seed):
        count = int(owners.max()) + 1
        automaton = between(problem.automaton, owners.reshape(len(shown), -1), shown, answers, count)
        differs = float((automaton.read(tested) != wanted).mean())
        if best is None or differs < best.disagreement:
            small = automaton.after_a_symbol()
            is_right = small.says_the_same(problem.automaton.after_a_symbol())
            best = Extracted(small, count, differs, is_right)
        if best.disagreement == 0:
            break
    assert best is not None, "one cluster is always tried"
    return best


def clusterings(network: Answering, states: tuple[Tensor, ...], seed: int) -> Iterator[NDArray[np.int64]]:
    """(N,): ways to make clusters of states, the number of its cluster for each; the likeliest first."""
    behaviour = np.zeros((len(states[0]), 0), np.int64)
    layer = [states]
    for _ in range(AHEAD + 1):
        now = np.column_stack([answers_at(network, each) for each in layer])
        behaviour = np.column_stack([behaviour, now])
        found, owners = np.unique(behaviour, axis=0, return_inverse=True)
        if len(found) > CLUSTERS[-1]:
            break
        yield owners.reshape(-1)
        layer = [after for each in layer for after in onward(network, each)]
    points = torch.cat(states, dim=1).cpu().double().numpy()
    known = np.unique(points.round(6), axis=0)
    for count in CLUSTERS:
        if count > len(known):
            return
        yield clustered(points, known, count, seed)


@torch.no_grad()
def trail(network: Answering, words: NDArray[np.int64]) -> tuple[tuple[Tensor, ...], NDArray[np.int64]]:
    """States before and after each symbol of words (B, T), each field (B · (1 + T), n); and answers (B, T)."""
    x = one_hot(words, network.rnn.input_size).to(network.device)
    outputs, every = network.rnn(Padded.full(x), every=True)
    pairs = zip(_fields(network.rnn.start(len(x), x)), _fields(every), strict=True)
    whole = tuple(torch.cat([start.unsqueeze(1), steps], dim=1).flatten(0, 1) for start, steps in pairs)
    return whole, network.head(outputs.values).argmax(2).cpu().numpy()


def _fields(states: States) -> list[Tensor]:
    """The fields of the states of all layers, one after the other."""
    return [field for layer in states for field in layer[0]]


@torch.no_grad()
def onward(network: Answering, states: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
    """The states after one more symbol, for each symbol."""
    start, fields = network.rnn.start(0), iter(states)
    given = tuple((type(layer[0])(*(next(fields) for _ in layer[0])),) for layer in start)
    symbols = torch.eye(network.rnn.input_size, device=network.device)
    return [
        tuple(_fields(network.rnn.step(symbol.expand(len(states[0]), -1), given)[1])) for symbol in symbols.unbind()
    ]


@torch.no_grad()
def answers_at(network: Answering, states: tuple[Tensor, ...]) -> NDArray[np.int64]:
    """(N,): the answers of a network in some states."""
    below = sum(len(layer[0]) for layer in network.rnn.start(0)[:-1])
    answers: NDArray[np.int64] = network.head(states[below]).argmax(1).cpu().numpy()
    return answers


def between(
    wanted: Automaton, owners: NDArray[np.int64], words: NDArray[np.int64], answers: NDArray[np.int64], count: int
) -> Automaton:
    """The automaton of clusters (B, 1 + T), of which the start is the first state; a symbol never seen stays there."""
    symbols = len(wanted.symbols)
    led = np.zeros((count, symbols, count))
    np.add.at(led, (owners[:, :-1].ravel(), words.ravel(), owners[:, 1:].ravel()), 1)
    said = np.zeros((count, len(wanted.answers)))
    np.add.at(said, (owners[:, 1:].ravel(), answers.ravel()), 1)
    stays = np.arange(count)[:, None].repeat(symbols, 1)
    moves = np.where(led.sum(2) > 0, led.argmax(2), stays)
    first = int(owners[0, 0])
    found = wanted._replace(moves=moves.astype(np.int64), says=said.argmax(1).astype(np.int64))
    return found.starting(first)


def clustered(points: NDArray[np.float64], known: NDArray[np.float64], count: int, seed: int) -> NDArray[np.int64]:
    """(N,): to which of `count` clusters each point belongs, by k-means. The middles start far from each other."""
    chance = np.random.default_rng(seed)
    some = known[chance.permutation(len(known))[:4000]]
    middles = [some[0]]
    nearest = ((some - middles[0]) ** 2).sum(1)
    while len(middles) < count:
        middles.append(some[int(nearest.argmax())])
        nearest = np.minimum(nearest, ((some - middles[-1]) ** 2).sum(1))
    found = np.array(middles)
    for _ in range(ROUNDS):
        owner = closest(some, found)
        sums = np.zeros_like(found)
        np.add.at(sums, owner, some)
        sizes = np.bincount(owner, minlength=count)[:, None]
        moved = np.where(sizes > 0, sums / np.maximum(sizes, 1), found)
        if np.allclose(moved, found):
            break
        found = moved
    return closest(points, found)


def closest(points: NDArray[np.float64], middles: NDArray[np.float64]) -> NDArray[np.int64]:
    """(N,): the number of the nearest middle."""
    squares = (middles**2).sum(1)
    found = [(squares - 2 * part @ middles.T).argmin(1) for part in np.array_split(points, max(1, len(points) // 4096))]
    return np.concatenate(found).astype(np.int64)
