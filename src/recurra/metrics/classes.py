"""How well items are sorted into classes that are numbers 0 … L-1: scores per class, confusion, AUC, several labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError
from recurra.metrics.labels import LabelScores, label_scores

Counts: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class ClassScores:
    """Precision, recall and F1 of each class, and of all of them together in two manners.

    >>> precision_recall_f1([0, 0, 1], [0, 1, 1], ["cat", "dog"]).per_label[0].recall
    0.5
    """

    per_label: list[LabelScores]
    """One for each label, in the order of the labels."""
    macro: LabelScores
    """The plain mean over the labels that occur in gold or were found: rare ones weigh as much as common."""
    micro: LabelScores
    """Of the counts summed over all labels; where each item has exactly one, all three are the accuracy."""


@dataclass(frozen=True)
class Mistake:
    """How often items of one class were taken for another.

    >>> Mistake(gold="cat", found="dog", count=3).count
    3
    """

    gold: str
    found: str
    count: int


@dataclass(frozen=True)
class MultilabelScores:
    """How well sets of labels agree.

    >>> multilabel_scores([[True, False]], [[True, True]]).hamming
    0.5
    """

    micro_f1: float
    macro_f1: float
    exact_match: float
    """The share of items whose set of labels is entirely right."""
    hamming: float
    """The share of all decisions, one for each item and label, that are wrong."""


def precision_recall_f1(gold: ArrayLike, found: ArrayLike, labels: Sequence[str]) -> ClassScores:
    """Precision, recall and F1 of each label, from the numbers of the right and of the found labels, both (N,).

        precision = right / found      recall = right / gold      f1 = 2 right / (gold + found)

    >>> scores = precision_recall_f1([0, 0, 1], [0, 1, 1], ["cat", "dog"])
    >>> [(row.label, row.precision, row.recall) for row in scores.per_label]
    [('cat', 1.0, 0.5), ('dog', 0.5, 1.0)]
    >>> scores.macro.precision, scores.micro.f1
    (0.75, 0.6666666666666666)
    """
    counts = confusion(gold, found, len(labels))
    return _scores(labels, counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0))


def confusion(gold: ArrayLike, found: ArrayLike, size: int) -> Counts:
    """(L, L): how often each class (row) was taken for each class (column).

    >>> confusion([0, 0, 1], [0, 1, 1], 3).tolist()
    [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    """
    true, said = _classes(gold, size, "gold"), _classes(found, size, "found")
    _check_as_many(len(true), len(said))
    return np.bincount(true * size + said, minlength=size * size).astype(np.int64).reshape(size, size)


def most_confused(confusion: Counts, labels: Sequence[str], n: int = 10) -> list[Mistake]:
    """The n most frequent mistakes of a confusion (L, L), equals in the order of the labels; fewer where there are.

    >>> most_confused(np.array([[9, 2], [5, 9]]), ["cat", "dog"], 1)
    [Mistake(gold='dog', found='cat', count=5)]
    """
    if confusion.shape != (len(labels), len(labels)):
        raise DataError(f"a confusion of {len(labels)} labels is square, but its shape is {confusion.shape}.")
    wrong = confusion.copy()
    np.fill_diagonal(wrong, 0)
    worst = np.argsort(-wrong, axis=None, kind="stable")[: max(n, 0)]
    places = zip(*np.unravel_index(worst, wrong.shape), strict=True)
    return [Mistake(labels[i], labels[j], int(wrong[i, j])) for i, j in places if wrong[i, j]]


def sensitivity_specificity(gold: ArrayLike, found: ArrayLike, positive: object) -> tuple[float, float]:
    """The share of positive items that were found to be so, and the share of the others that were not.

        sensitivity = P(found = positive | gold = positive)      specificity = P(found ≠ positive | gold ≠ positive)

    Gold and found are (N,), names or numbers. NaN where there is no item to have a share of.

    >>> sensitivity_specificity(["ill", "ill", "well", "well"], ["ill", "well", "well", "well"], "ill")
    (0.5, 1.0)
    """
    true, said = _column(gold, "gold") == positive, _column(found, "found") == positive
    _check_as_many(len(true), len(said))
    return _share(said[true]), _share(~said[~true])


def auc(scores: ArrayLike, positive: ArrayLike) -> float:
    """The area under the ROC curve: how often a positive item scores higher than one that is not, ties counting half.

        AUC = (1 / PN) Σ_p Σ_n ([s_p > s_n] + ½ [s_p = s_n])      P positive items, N others

    Both are (N,); NaN where there are no positive items or no others.

    >>> auc([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
    0.875
    """
    values, flags = _numbers(scores, "scores"), _flags(positive, 1, "positive")
    _check_as_many(len(values), len(flags), "scores", "positive")
    _, place = np.unique(values, return_inverse=True)
    hits = np.bincount(place, weights=flags)
    misses = np.bincount(place, weights=~flags)
    if not hits.sum() or not misses.sum():
        return float("nan")
    below = np.cumsum(misses) - misses
    return float((hits * (below + misses / 2)).sum() / (hits.sum() * misses.sum()))


def macro_auc(probabilities: ArrayLike, gold: ArrayLike) -> float:
    """The mean AUC of the classes, each against the rest: (N, L) scores and (N,) right classes.

    Classes that no item has, or all have, are left out; NaN where that leaves none.

    >>> macro_auc([[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.5, 0.2, 0.3]], [0, 1, 1])
    1.0
    """
    scores = _table(probabilities, np.float64, "probabilities")
    true = _classes(gold, scores.shape[1], "gold")
    _check_as_many(len(scores), len(true), "probabilities", "gold")
    areas = np.array([auc(scores[:, label], true == label) for label in np.unique(true)])
    areas = areas[~np.isnan(areas)]
    return float(areas.mean()) if areas.size else float("nan")


def multilabel_scores(gold: ArrayLike, found: ArrayLike) -> MultilabelScores:
    """How well the found sets of labels agree with the right ones: both (N, L), true where the item has the label.

    Micro F1 is that of the counts summed over all labels, macro F1 the mean over labels that occur or were found; both
    are 0 where no label does.

    >>> multilabel_scores([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    MultilabelScores(micro_f1=0.8, macro_f1=0.8333333333333333, exact_match=0.5, hamming=0.25)
    """
    true, said = _flags(gold, 2, "gold"), _flags(found, 2, "found")
    if true.shape != said.shape:
        raise DataError(f"gold has the shape {true.shape} but found {said.shape}: each decision needs both.")
    scores = _scores([""] * true.shape[1], (true & said).sum(axis=0), true.sum(axis=0), said.sum(axis=0))
    return MultilabelScores(
        micro_f1=scores.micro.f1,
        macro_f1=scores.macro.f1,
        exact_match=float((true == said).all(axis=1).mean()),
        hamming=float((true != said).mean()) if true.size else 0.0,
    )


def _scores(labels: Sequence[str], right: Counts, in_gold: Counts, said: Counts) -> ClassScores:
    rows = [
        label_scores(label, right=int(right[k]), count=int(in_gold[k]), predicted=int(said[k]))
        for k, label in enumerate(labels)
    ]
    occurring = [row for row in rows if row.count or row.predicted]
    micro = label_scores("micro", right=int(right.sum()), count=int(in_gold.sum()), predicted=int(said.sum()))

    def mean(values: list[float]) -> float:
        return sum(values) / len(values) if values else 0.0

    macro = LabelScores(
        label="macro",
        precision=mean([row.precision for row in occurring]),
        recall=mean([row.recall for row in occurring]),
        f1=mean([row.f1 for row in occurring]),
        count=micro.count,
        predicted=micro.predicted,
    )
    return ClassScores(rows, macro, micro)


def _share(flags: Flags) -> float:
    return float(flags.mean()) if flags.size else float("nan")


def _column(values: ArrayLike, what: str) -> NDArray[np.generic]:
    column = np.asarray(values)
    if column.ndim != 1:
        raise DataError(f"{what} must be a single column, one for each item, but has the shape {column.shape}.")
    if not column.size:
        raise DataError(f"{what} is empty: a score needs at least one item.")
    return column


def _classes(values: ArrayLike, size: int, what: str) -> Counts:
    column = _column(values, what)
    if not np.issubdtype(column.dtype, np.integer):
        raise DataError(f"{what} must be the numbers of classes, but holds {column.dtype} values such as {column[0]}.")
    numbers = column.astype(np.int64)
    outside = np.flatnonzero((numbers < 0) | (numbers >= size))
    if outside.size:
        number = numbers[outside[0]]
        raise DataError(f"{what} holds {number} at item {outside[0] + 1}, but classes are 0 to {size - 1}.")
    return numbers


def _numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    column = np.asarray(_column(values, what), dtype=np.float64)
    unknown = np.flatnonzero(np.isnan(column))
    if unknown.size:
        raise DataError(f"{what} holds NaN at item {unknown[0] + 1}, which cannot be put in order.")
    return column


def _flags(values: ArrayLike, dimensions: int, what: str) -> Flags:
    raw = np.asarray(_column(values, what) if dimensions == 1 else _table(values, None, what))
    if raw.dtype != np.bool_ and not np.isin(raw, (0, 1)).all():
        raise DataError(f"{what} must be true or false for each item, but holds other values.")
    return raw.astype(np.bool_)


def _table(values: ArrayLike, kind: type[np.float64] | None, what: str) -> NDArray[np.generic]:
    table = np.asarray(values, dtype=kind)
    if table.ndim != 2 or not len(table):
        raise DataError(f"{what} must be a table with a row for each item, but has the shape {table.shape}.")
    return table


def _check_as_many(first: int, second: int, one: str = "gold", other: str = "found") -> None:
    if first != second:
        raise DataError(f"{one} has {first} items but {other} has {second}: each item needs both.")
