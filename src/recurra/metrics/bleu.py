"""BLEU: how many runs of one to four tokens an answer shares with its references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.cutting import cut
from recurra.metrics.references import References, Tokens, check_references

ORDER = 4

Counts: TypeAlias = NDArray[np.int64]


def bleu(gold: References, predicted: Tokens, *, tokenize: str = "13a", lowercase: bool = False) -> float:
    """BLEU of a whole corpus, 0 to 100 (Papineni et al. 2002), equal to sacrebleu's.

        BLEU = 100 · min(1, e^(1 − r/c)) · (p_1 p_2 p_3 p_4)^¼

    p_n is the share of the answers' runs of n tokens that are in a reference, each counted no more often than in the
    reference that has it most often; c is the length of the answers, r that of the references nearest in length, the
    shorter of two equally near. The k-th p_n that would be 0 is 1 / 2^k of a run instead.

    >>> bleu([["the cat sat on the mat"], ["a dog"]], ["the cat sat on a mat", "a dog"])
    55.8394826472418
    """
    return float(bleu_of(bleu_counts(gold, predicted, tokenize=tokenize, lowercase=lowercase).sum(0)))


def bleu_counts(gold: References, predicted: Tokens, *, tokenize: str = "13a", lowercase: bool = False) -> Counts:
    """(N, 10): all that BLEU needs to know of each item; sums over items are the counts of a corpus.

    The columns are c, r, the runs of 1 … 4 tokens that are right, and all that were written.

    >>> bleu_counts([["a cat sat", "the cat"]], ["the the cat"], tokenize="none").tolist()
    [[3, 3, 2, 1, 0, 0, 3, 2, 1, 0]]
    """
    check_references(gold, predicted)
    into_tokens = cut(tokenize)

    def tokens(text: str) -> list[str]:
        return into_tokens((text.lower() if lowercase else text).rstrip())

    counts = np.zeros((len(gold), 2 + 2 * ORDER), np.int64)
    for row, (references, answer) in enumerate(zip(gold, predicted, strict=True)):
        written = tokens(answer)
        right = [tokens(reference) for reference in references]
        length = len(written)
        nearest = min((abs(len(reference) - length), len(reference)) for reference in right)[1]
        counts[row, :2] = length, nearest
        for n in range(1, min(ORDER, length) + 1):
            counts[row, 1 + n] = shared_runs(right, written, n)
            counts[row, 1 + ORDER + n] = length + 1 - n
    return counts


def bleu_of(counts: Counts | NDArray[np.float64]) -> NDArray[np.float64]:
    """BLEU of counts (..., 10) that were summed over items: (...).

    >>> bleu_of(np.array([3, 3, 2, 1, 0, 0, 3, 2, 1, 1])).round(2)
    np.float64(45.18)
    """
    length, nearest = counts[..., 0], counts[..., 1]
    right, written = counts[..., 2 : 2 + ORDER], counts[..., 2 + ORDER :]
    halved = 0.5 ** np.cumsum(right == 0, axis=-1)
    precision = np.where(right > 0, right, halved) / np.maximum(written, 1)
    brevity = np.minimum(1.0, np.exp(1 - nearest / np.maximum(length, 1)))
    score = 100 * brevity * np.exp(np.log(precision).mean(-1))
    return np.where((right > 0).any(-1) & (written > 0).all(-1), score, 0.0)


def shared_runs(references: Sequence[Tokens], written: Tokens, n: int) -> int:
    """How many runs of n tokens are in a reference, each counted no more often than where it is most often.

    >>> shared_runs([["a", "b"], ["a", "a"]], ["a", "a", "a", "b"], 1)
    3
    """
    different = {*zip(*[written[start:] for start in range(n)], strict=False)}
    if len(different) == len(written) + 1 - n:  # no run is there twice: whether a reference has it is enough
        each = chain.from_iterable(zip(*[tokens[start:] for start in range(n)], strict=False) for tokens in references)
        return len(different.intersection(each))
    in_gold = runs(references[0], n)
    for reference in references[1:]:
        in_gold |= runs(reference, n)
    return sum(min(count, in_gold[run]) for run, count in runs(written, n).items() if run in in_gold)


def runs(tokens: Tokens, n: int) -> Counter[tuple[str, ...]]:
    """How often each run of n tokens is there.

    >>> runs(["a", "b", "a", "b"], 2)[("a", "b")]
    2
    """
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))
