"""Edit distance, and the error rates that rest on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.references import Tokens, check_references

Alternatives: TypeAlias = Sequence[Sequence[Tokens]]
"""The right answers of each item, in tokens."""


class Edit(NamedTuple):
    """One symbol that is not right: `gold` is what should be there, `predicted` what is; "" where nothing is.

    >>> edits("kitten", "sitting")
    [Edit(gold='k', predicted='s'), Edit(gold='e', predicted='i'), Edit(gold='', predicted='g')]
    """

    gold: str
    predicted: str


def edit_distance(gold: Tokens, predicted: Tokens) -> int:
    """The Levenshtein distance: the fewest insertions, deletions and substitutions (Levenshtein 1966).

    >>> edit_distance("kitten", "sitting"), edit_distance(["AH", "B"], ["B"])
    (3, 1)
    """
    if len(gold) == len(predicted) and all(one == other for one, other in zip(gold, predicted, strict=True)):
        return 0
    return _columns(gold, predicted)[0] if gold and predicted else len(gold) + len(predicted)


def edits(gold: Tokens, predicted: Tokens) -> list[Edit]:
    """The edits of one shortest way from gold to predicted, in order, without the symbols that are right.

    >>> edits(["a", "b", "c"], ["a", "c"])
    [Edit(gold='b', predicted='')]
    """
    _, falls, rises = _columns(gold, predicted, keep=True)
    found: list[Edit] = []
    i, j = len(gold), len(predicted)
    while i and j:
        last = 1 << (i - 1)
        if rises[j] & last:  # D[i-1, j] is less by one
            i -= 1
            found.append(Edit(gold[i], ""))
        elif falls[j - 1] & last:  # D[i, j-1] is less than D[i-1, j-1]: by adding alone
            j -= 1
            found.append(Edit("", predicted[j]))
        else:
            i, j = i - 1, j - 1
            if gold[i] != predicted[j]:
                found.append(Edit(gold[i], predicted[j]))
    found.extend(Edit(gold[k], "") for k in reversed(range(i)))
    found.extend(Edit("", predicted[k]) for k in reversed(range(j)))
    return found[::-1]


def nearest(references: Sequence[Tokens], predicted: Tokens) -> tuple[int, Tokens]:
    """The edit distance to the nearest reference, and that reference; of those equally near, the shortest.

    As the length that errors are divided by is that of the nearest, ties never flatter a rate, nor does the order of
    the references matter to it.

    >>> nearest(["cat", "cats"], "cars")
    (1, 'cats')
    """
    distances = [(edit_distance(reference, predicted), len(reference), n) for n, reference in enumerate(references)]
    distance, _, place = min(distances)
    return distance, references[place]


def edit_counts(gold: Alternatives, predicted: Sequence[Tokens]) -> NDArray[np.int64]:
    """(N, 3): whether each item is right, its distance to the nearest reference, and how long that is.

    >>> edit_counts([["cat", "cats"], ["dog"]], ["cat", "do"]).tolist()
    [[1, 0, 3], [0, 1, 3]]
    """
    check_references(gold, predicted)
    counts = np.zeros((len(gold), 3), np.int64)
    for row, (references, answer) in enumerate(zip(gold, predicted, strict=True)):
        distance, reference = nearest(references, answer)
        counts[row] = distance == 0, distance, len(reference)
    return counts


def symbol_error_rate(gold: Alternatives, predicted: Sequence[Tokens]) -> float:
    """The edit distance to the nearest references over their length, both summed over items.

    It passes 1 where answers are much too long. Where all references are empty, what is written is divided by 1.

    >>> symbol_error_rate([["cat"], ["dogs", "dog"]], ["cat", "dig"])
    0.16666666666666666
    """
    _, changed, length = edit_counts(gold, predicted).sum(0).tolist()
    return float(changed / max(length, 1))


def _columns(gold: Tokens, predicted: Tokens, *, keep: bool = False) -> tuple[int, list[int], list[int]]:
    """The distance; and in which rows of each column of the table D the value falls and rises from the row above.

    A column of differences is a number with a bit for each symbol of gold, so that a step of predicted costs some
    operations on whole columns (Myers 1999, in Hyyrö's form of 2003).
    """
    places: dict[str, int] = {}
    for place, symbol in enumerate(gold):
        places[symbol] = places.get(symbol, 0) | 1 << place
    every = (1 << len(gold)) - 1
    bottom = 1 << len(gold) >> 1
    rise, fall, distance = every, 0, len(gold)
    falls, rises = [fall], [rise]
    for symbol in predicted:
        same = places.get(symbol, 0)
        diagonal = (((same & rise) + rise) ^ rise) | same | fall  # where D[i, j] = D[i-1, j-1]
        right_rise = fall | ~(diagonal | rise)
        right_fall = rise & diagonal
        distance += bool(right_rise & bottom) - bool(right_fall & bottom)
        right_rise = right_rise << 1 | 1  # the first row of D counts up
        right_fall <<= 1
        rise = (right_fall | ~(diagonal | right_rise)) & every
        fall = right_rise & diagonal & every
        if keep:
            falls.append(fall)
            rises.append(rise)
    return distance, falls, rises
