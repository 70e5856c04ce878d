"""How well single labels agree: accuracy, precision, recall and F1 per label, confusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.metrics.parallel import Labelled, steps


@dataclass(frozen=True)
class LabelScores:
    """How well one label was found.

        precision = right / predicted      recall = right / count      f1 = 2 right / (count + predicted)

    where nothing is there to divide by, 0.

    >>> label_scores("NOUN", right=3, count=4, predicted=6)
    LabelScores(label='NOUN', precision=0.5, recall=0.75, f1=0.6, count=4, predicted=6)
    """

    label: str
    precision: float
    recall: float
    f1: float
    count: int
    """How often gold has it."""
    predicted: int
    """How often it was predicted."""


def label_scores(label: str, *, right: int, count: int, predicted: int) -> LabelScores:
    """The scores that follow from three counts.

    >>> label_scores("X", right=0, count=0, predicted=0).f1
    0.0
    """
    return LabelScores(
        label=label,
        precision=right / predicted if predicted else 0.0,
        recall=right / count if count else 0.0,
        f1=2 * right / (count + predicted) if count + predicted else 0.0,
        count=count,
        predicted=predicted,
    )


def accuracy(gold: Labelled, predicted: Labelled) -> float:
    """The share of steps whose label is right.

    >>> accuracy([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]])
    0.6666666666666666
    """
    agreed = [right == said for right, said in steps(gold, predicted)]
    if not agreed:
        raise DataError("accuracy needs at least one label, but gold and predicted are empty.")
    return sum(agreed) / len(agreed)


def per_label(gold: Labelled, predicted: Labelled) -> list[LabelScores]:
    """The scores of every label that occurs in gold or predicted, the most frequent in gold first.

    >>> for scores in per_label([["N", "N", "V"]], [["N", "V", "V"]]):
    ...     print(scores.label, scores.precision, scores.recall, scores.count)
    N 1.0 0.5 2
    V 0.5 1.0 1
    """
    pairs = Counter(steps(gold, predicted))
    in_gold, in_predicted = _sides(pairs)
    return [
        label_scores(label, right=pairs[label, label], count=in_gold[label], predicted=in_predicted[label])
        for label in most_frequent_first(in_gold, in_predicted)
    ]


def macro_f1(gold: Labelled, predicted: Labelled) -> float:
    """The plain mean of the F1 of every label that occurs in gold or predicted: rare labels weigh as much as common.

    >>> macro_f1([["N", "N", "V"]], [["N", "V", "V"]])
    0.6666666666666666
    """
    scores = per_label(gold, predicted)
    if not scores:
        raise DataError("macro F1 needs at least one label, but gold and predicted are empty.")
    return sum(score.f1 for score in scores) / len(scores)


def micro_f1(gold: Labelled, predicted: Labelled, *, without: Collection[str] = ()) -> float:
    """F1 of the counts summed over all labels but those in `without`. With all labels it is the accuracy.

    >>> micro_f1([["O", "O", "X"]], [["O", "X", "X"]], without=["O"])
    0.6666666666666666
    """
    pairs = Counter(steps(gold, predicted))
    in_gold, in_predicted = _sides(pairs)
    counted = {*in_gold, *in_predicted}.difference(without)
    return label_scores(
        "",
        right=sum(pairs[label, label] for label in counted),
        count=sum(in_gold[label] for label in counted),
        predicted=sum(in_predicted[label] for label in counted),
    ).f1


def confusion(gold: Labelled, predicted: Labelled) -> tuple[list[str], NDArray[np.int64]]:
    """The labels, most frequent in gold first, and how often each (row) was predicted as each (column).

    >>> labels, counts = confusion([["N", "N", "V"]], [["N", "V", "V"]])
    >>> labels, counts.tolist()
    (['N', 'V'], [[1, 1], [0, 1]])
    """
    pairs = Counter(steps(gold, predicted))
    labels = most_frequent_first(*_sides(pairs))
    place = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (right, said), count in pairs.items():
        counts[place[right], place[said]] = count
    return labels, counts


def most_frequent_first(in_gold: Counter[str], in_predicted: Iterable[str]) -> list[str]:
    """All labels of both sides by their count in gold; equals by name.

    >>> most_frequent_first(Counter("abb"), "dc")
    ['b', 'a', 'c', 'd']
    """
    return sorted({*in_gold, *in_predicted}, key=lambda label: (-in_gold[label], label))


def _sides(pairs: Counter[tuple[str, str]]) -> tuple[Counter[str], Counter[str]]:
    in_gold: Counter[str] = Counter()
    in_predicted: Counter[str] = Counter()
    for (right, said), count in pairs.items():
        in_gold[right] += count
        in_predicted[said] += count
    return in_gold, in_predicted
