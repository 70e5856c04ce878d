"""ROUGE: how much of a reference an answer covers, by runs of tokens or by the longest common subsequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError
from recurra.metrics.bleu import runs
from recurra.metrics.edits import Alternatives
from recurra.metrics.references import Tokens, check_references


def rouge_n(gold: Alternatives, predicted: Sequence[Tokens], *, n: int) -> float:
    """ROUGE-N (Lin 2004): the F1 of the runs of n tokens, the mean over items, 0 to 1.

        P = shared / runs of the answer      R = shared / runs of the reference      F1 = 2 P R / (P + R)

    Of several references the one with the best F1 counts. Tokens are compared as they are: make them lower case, and
    leave punctuation out, before. Where both sides have no run at all, the item counts 1.

    >>> rouge_n([[["police", "killed", "the", "gunman"]]], [["police", "kill", "the", "gunman"]], n=2)
    0.3333333333333333
    """
    if n < 1:
        raise ConfigError(f"ROUGE-N needs n of at least 1, but n = {n}.")
    check_references(gold, predicted)
    total = 0.0
    for references, answer in zip(gold, predicted, strict=True):
        written = runs(answer, n)
        total += max(_f1_of_runs(runs(reference, n), written) for reference in references)
    return total / len(gold)


def rouge_l(gold: Alternatives, predicted: Sequence[Tokens]) -> float:
    """ROUGE-L (Lin 2004): the F1 of the longest common subsequence, the mean over items, 0 to 1.

        P = LCS / length of the answer      R = LCS / length of the reference      F1 = 2 P R / (P + R)

    An item is one sequence, also where it has several sentences. References and tokens as for `rouge_n`.

    >>> rouge_l([[["police", "killed", "the", "gunman"]]], [["police", "kill", "the", "gunman"]])
    0.75
    """
    return float(rouge_l_each(gold, predicted).mean())


def rouge_l_each(gold: Alternatives, predicted: Sequence[Tokens]) -> NDArray[np.float64]:
    """(N,): ROUGE-L of each item, of which the corpus has the mean.

    >>> rouge_l_each([["ab"], ["cd", "c"]], ["ab", "c"]).tolist()
    [1.0, 1.0]
    """
    check_references(gold, predicted)
    return np.array(
        [
            max(_f1(common(reference, answer), len(reference), len(answer)) for reference in references)
            for references, answer in zip(gold, predicted, strict=True)
        ]
    )


def common(one: Tokens, other: Tokens) -> int:
    """The length of the longest subsequence of both.

    >>> common("police", "pole")
    4
    """
    places: dict[str, int] = {}
    for place, token in enumerate(one):
        places[token] = places.get(token, 0) | 1 << place
    # A bit for each token of one: 0 where the table of lengths rises from the row above (Hyyrö 2004).
    flat = every = (1 << len(one)) - 1
    for token in other:
        met = flat & places.get(token, 0)
        flat = ((flat + met) | (flat - met)) & every
    return len(one) - flat.bit_count()


def _f1_of_runs(right: Counter[tuple[str, ...]], written: Counter[tuple[str, ...]]) -> float:
    return _f1((right & written).total(), right.total(), written.total())


def _f1(both: int, right: int, written: int) -> float:
    return 2 * both / (right + written) if right + written else 1.0
