"""TER: the edits, moves of whole phrases among them, that make an answer its reference."""

from __future__ import annotations

import itertools

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
    check_references(gold, predicted)
    try:
        from sacrebleu.metrics.ter import TER
    except ImportError:
        raise ConfigError("ter needs sacrebleu: pip install 'recurra[metrics]'.") from None
    most = max(map(len, gold))
    streams = [[texts[place] if place < len(texts) else None for texts in gold] for place in range(most)]
    return float(TER().corpus_score(list(predicted), streams).score)  # type: ignore[arg-type]  # None: no more of them
