"""METEOR: how many words an answer shares with its reference, and in how few unbroken chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.edits import Alternatives
from recurra.metrics.references import Tokens, check_references
from recurra.metrics.stemming import stem

KEPT = 100
"""So many ways to align the words up to here are kept, those of fewest chunks."""

WORK = 200_000
"""Long texts with many equal words keep fewer, so that an item takes no more steps than about this."""

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
    """The most matches of equal words, and the fewest chunks that they make.

    >>> aligned("the cat sat on the mat".split(), "on the mat sat the cat".split())
    (6, 3)
    """
    places: dict[str, list[int]] = {}
    for place, word in enumerate(gold):
        places.setdefault(word, []).append(place)
    written = Counter(predicted)
    needed = {word: min(len(spots), written[word]) for word, spots in places.items()}
    masks = {word: sum(1 << spot for spot in spots) for word, spots in places.items()}
    kept = max(1, min(KEPT, WORK // max(1, sum(len(places.get(word, ())) for word in predicted))))
    # From the reference's words that are taken, and the last of them, to the fewest chunks so far.
    ways: dict[tuple[int, int], int] = {(0, BROKEN): 0}
    for word in predicted:
        written[word] -= 1
        after: dict[tuple[int, int], int] = {}
        for (taken, last), chunks in ways.items():
            steps = [(taken | 1 << spot, spot) for spot in places.get(word, ()) if not taken >> spot & 1]
            if (taken & masks.get(word, 0)).bit_count() + written[word] >= needed.get(word, 0):
                steps.append((taken, BROKEN))  # enough of this word come later
            for way in steps:
                cost = chunks + (way[1] not in (BROKEN, last + 1))
                after[way] = min(cost, after.get(way, cost))
        ways = dict(sorted(after.items(), key=lambda entry: entry[1])[:kept])
    return sum(needed.values()), min(ways.values())


@lru_cache(maxsize=2**16)
def _stem(word: str) -> str:
    return stem(word)
