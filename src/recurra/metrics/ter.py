"""TER: the edits, moves of whole phrases among them, that make an answer its reference."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError
from recurra.metrics.references import References, Tokens, check_references

LONGEST = 200
"""Words: in longer texts, moves may take minutes to find."""


def ter_is_within_reach(gold: References, predicted: Tokens) -> bool:
    """Whether sacrebleu is here, which finds the moves, and no text is too long for that to end soon.

    >>> ter_is_within_reach([["a cat"]], ["cat " * 201])
    False
    """
    try:
        import sacrebleu.metrics.ter  # noqa: F401
    except ImportError:
        return False
    texts = itertools.chain(predicted, *gold)
    return all(len(text) < 2 * LONGEST or len(text.split()) <= LONGEST for text in texts)


def ter(gold: References, predicted: Tokens) -> float:
    """Translation edit rate of a whole corpus in percent (Snover et al. 2006), by sacrebleu: 0 is best.

        TER = 100 · Σ edits to the nearest reference / Σ mean length of the references

    An edit adds, drops or changes a word, or moves a phrase. Capitals do not count.

    >>> round(ter([["the cat sat on the mat"]], ["on the mat the cat sat"]), 2)
    16.67
    """
    return float(ter_of(ter_counts(gold, predicted).sum(0)))


def ter_counts(gold: References, predicted: Tokens) -> NDArray[np.float64]:
    """(N, 2): the edits of each item, and the mean length of its references.

    >>> ter_counts([["a big cat", "cat"]], ["a cat"]).tolist()
    [[1.0, 2.0]]
    """
    check_references(gold, predicted)
    try:
        from sacrebleu.metrics.ter import TER
    except ImportError:
        raise ConfigError("ter needs sacrebleu: pip install 'recurra[metrics]'.") from None
    metric = TER()
    each = [metric.sentence_score(text, list(texts)) for texts, text in zip(gold, predicted, strict=True)]
    return np.array([[score.num_edits, score.ref_length] for score in each], np.float64)


def ter_of(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """TER of counts (..., 2) that were summed over items: (...). Without any reference, what is written is all wrong.

    >>> ter_of(np.array([[1, 4], [2, 0], [0, 0]])).tolist()
    [25.0, 100.0, 0.0]
    """
    edits, length = counts[..., 0], counts[..., 1]
    return 100 * np.where(length > 0, edits / np.where(length > 0, length, 1), edits > 0)
