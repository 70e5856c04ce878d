"""METEOR: how many words an answer shares with its reference, and in how few unbroken chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.edits import Alternatives
from recurra.metrics.references import Tokens, check_references
from recurra.metrics.stemming import stem

KEPT = 30
"""So many ways to align the words up to here are kept, those of fewest chunks."""

WORK = 200_000
"""So many steps are taken for an item at most: of long texts with many equal words fewer ways are kept."""

BROKEN = -2
"""In place of the last matched position: no word can follow on."""


def meteor(gold: Alternatives, predicted: Sequence[Tokens], *, stemmed: bool = True) -> float:
    """METEOR of a whole corpus, 0 to 1, by exact words and English stems (Banerjee and Lavie 2005), not by synonyms.

        P = matches / length of the answer      R = matches / length of the reference
        METEOR = 10 P R / (R + 9 P) · (1 − ½ (chunks / matches)³)

    As many words as can be are matched, each once, words of one stem like the same words; of such alignments the one
    with the fewest chunks counts, a chunk being words that follow on each other in both. Matches, lengths and chunks
    are summed over items; of several references the one with the best score counts. Capitals do not matter.

    >>> gold = ["the", "president", "spoke", "to", "the", "audience"]
    >>> round(meteor([[gold]], [["the", "president", "then", "speaks", "to", "the", "audiences"]]), 4)
    0.7934
    """
    return float(meteor_of(meteor_counts(gold, predicted, stemmed=stemmed).sum(0)))


def meteor_counts(gold: Alternatives, predicted: Sequence[Tokens], *, stemmed: bool = True) -> NDArray[np.int64]:
    """(N, 4): matches, chunks, and the lengths of the answer and of its best reference.

    >>> meteor_counts([[["a", "big", "cat"]]], [["a", "cat"]]).tolist()
    [[2, 2, 2, 3]]
    """
    check_references(gold, predicted)
    as_matched = _stem if stemmed else str.lower
    counts = np.zeros((len(gold), 4), np.int64)
    for row, (references, answer) in enumerate(zip(gold, predicted, strict=True)):
        written = [as_matched(token) for token in answer]
        # Of references equally good the shortest counts, in any order.
        shortest = sorted(([as_matched(token) for token in reference] for reference in references), key=len)
        found = np.array([(*aligned(right, written), len(written), len(right)) for right in shortest])
        counts[row] = found[0] if len(found) == 1 else found[meteor_of(found).argmax()]
    return counts


def meteor_of(counts: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """METEOR of counts (..., 4) that were summed over items: (...).

    >>> meteor_of(np.array([[6, 1, 6, 6], [0, 0, 3, 3]])).round(4).tolist()
    [0.9977, 0.0]
    """
    matches, chunks, written, right = np.moveaxis(counts, -1, 0)
    precision, recall = matches / np.maximum(written, 1), matches / np.maximum(right, 1)
    some = matches > 0
    mean = 10 * precision * recall / np.where(some, recall + 9 * precision, 1)
    return np.asarray(mean * (1 - 0.5 * (chunks / np.maximum(matches, 1)) ** 3), np.float64)


def aligned(gold: Tokens, predicted: Tokens) -> tuple[int, int]:
    """The most matches of equal words, and the fewest chunks that they make, as far as a beam finds them.

    Short texts are aligned exactly; where many words stand in many places, a way with fewer chunks may be missed.

    >>> aligned("the cat sat on the mat".split(), "on the mat sat the cat".split())
    (6, 3)
    """
    places: dict[str, int] = {}  # of each word, a bit for each place
    for place, word in enumerate(gold):
        places[word] = places.get(word, 0) | 1 << place
    written = Counter(predicted)
    needed = {word: min(spots.bit_count(), written[word]) for word, spots in places.items()}
    kept, near = _widths([places[word].bit_count() for word in predicted if word in places])
    # From the reference's words that are taken, and the last of them, to the fewest chunks so far.
    ways: dict[tuple[int, int], int] = {(0, BROKEN): 0}
    for word, following in zip_longest(predicted, predicted[1:]):
        written[word] -= 1
        spots = places.get(word, 0)
        after: dict[tuple[int, int], int] = {}
        for (taken, last), chunks in ways.items():
            steps = [(taken | 1 << spot, spot) for spot in _free(spots & ~taken, last + 1, near)]
            if (taken & spots).bit_count() + written[word] >= needed.get(word, 0):
                steps.append((taken, BROKEN))  # enough of this word come later
            for way in steps:
                cost = chunks + (way[1] not in (BROKEN, last + 1))
                after[way] = min(cost, after.get(way, cost))
        ways = after if len(after) <= kept else _best(after, kept, places.get(following or "", 0))
    return sum(needed.values()), min(ways.values())


def _widths(choices: Sequence[int]) -> tuple[int, int]:
    """How many ways are kept, and how many places of a word are looked at in each."""
    kept = max(1, min(KEPT, WORK // max(1, sum(choices))))
    return kept, max(1, WORK // (kept * max(1, len(choices))))


def _free(spots: int, follows: int, near: int) -> Iterator[int]:
    """The first places among the spots, and the one that follows on, if it is among them."""
    if follows >= 0 and spots >> follows & 1:
        yield follows
    for _ in range(near):
        if not spots:
            return
        lowest = spots & -spots
        yield lowest.bit_length() - 1
        spots ^= lowest


def _best(ways: dict[tuple[int, int], int], kept: int, following: int) -> dict[tuple[int, int], int]:
    """The ways of fewest chunks, one more counted where the next word, whose places are given, cannot follow on."""

    def chunks(entry: tuple[tuple[int, int], int]) -> int:
        (taken, last), cost = entry
        follows_on = last != BROKEN and (following & ~taken) >> (last + 1) & 1
        return cost + bool(following and not follows_on)

    return dict(sorted(ways.items(), key=chunks)[:kept])


@lru_cache(maxsize=2**16)
def _stem(word: str) -> str:
    return stem(word)
