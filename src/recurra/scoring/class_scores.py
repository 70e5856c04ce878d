"""Scores of classes, of sets of classes and of numbers, with the tables that explain them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.classes import (
    auc,
    confusion,
    macro_auc,
    most_confused,
    multilabel_scores,
    precision_recall_f1,
    sensitivity_specificity,
)
from recurra.metrics.confidence import calibration, expected_calibration_error, recall_at_false_alarms
from recurra.metrics.labels import LabelScores
from recurra.metrics.numbers import mae, rmse
from recurra.scoring.scores import Scores
from recurra.views.table import Table

WIDEST = 12
"""So many classes are shown as a square of counts; of more, the pairs that are confused most."""

PAIRS = 20

FALSE_ALARMS = 0.05
"""So many examples of a known class may be refused where those of an unknown one are to be."""

LONGEST = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Where the buckets of the score by length end."""


class Decided(NamedTuple):
    """Right answers beside what a model gives, of N examples."""

    gold: list[tuple[str, ...]]
    probabilities: NDArray[np.float64]  # (N, L)
    lengths: NDArray[np.int64]  # (N,)


def of_one_class(decided: Decided, labels: Sequence[str], *, positive: str | None, abstain: float) -> Scores:
    """Scores where each example has one class. A class that training never saw is counted, and always wrong."""
    gold_names = [names[0] for names in decided.gold]
    unseen = sorted({*gold_names} - {*labels})
    every = [*labels, *unseen]
    number = {label: place for place, label in enumerate(every)}
    gold = np.array([number[name] for name in gold_names], np.int64)
    known = decided.probabilities
    probabilities = np.concatenate([known, np.zeros((len(known), len(unseen)))], axis=1)
    found = known.argmax(1)
    sure = known.max(1).clip(0, 1)
    right = found == gold
    per_class = precision_recall_f1(gold, found, every)
    values = {
        "accuracy": float(right.mean()),
        "f1": per_class.macro.f1,
        "precision": per_class.macro.precision,
        "recall": per_class.macro.recall,
        "auc": macro_auc(probabilities, gold),
    }
    if positive is not None:
        place = number[positive]
        values["auc"] = auc(known[:, place], gold == place)
        values["sensitivity"], values["specificity"] = sensitivity_specificity(gold, found, place)
    taught = gold < len(labels)
    values["calibration_error"] = expected_calibration_error(sure, right)
    values["nll"] = nll(known[taught], gold[taught])
    if abstain:
        answered = sure >= abstain
        values["answered"] = float(answered.mean())
        values["answered_accuracy"] = float(right[answered].mean()) if answered.any() else float("nan")
    if not taught.all():
        values["unseen"] = float((~taught).mean())
        if taught.any():
            values["seen_accuracy"] = float(right[taught].mean())
            values["unseen_recall"] = recall_at_false_alarms(sure[taught], sure[~taught], FALSE_ALARMS)
    values["count"] = float(len(gold))
    counts = confusion(gold, found, len(every))
    tables = {
        "classes": scores_table("class", per_class.per_label),
        "confusion": confusion_table(counts, every),
        "calibration": Table(
            ["probability", "accuracy", "count"],
            [[f"{row.low:.1f}-{row.high:.1f}", round(row.accuracy, 4), row.count] for row in calibration(sure, right)],
        ),
        "length": by_length(right, decided.lengths, "accuracy"),
    }
    return Scores(values, "accuracy", tables)


class Flagged(NamedTuple):
    """Which classes each example has, and which were answered: a column for each class."""

    classes: list[str]  # those of the model, then others that only the gold answers have
    gold: NDArray[np.bool_]
    found: NDArray[np.bool_]


def flagged(decided: Decided, labels: Sequence[str], *, threshold: float) -> Flagged:
    """Several classes an example as flags; one that training never saw is never answered."""
    every = [*labels, *sorted({name for names in decided.gold for name in names} - {*labels})]
    number = {label: place for place, label in enumerate(every)}
    gold = np.zeros((len(decided.gold), len(every)), bool)
    for row, names in enumerate(decided.gold):
        gold[row, [number[name] for name in names]] = True
    found = np.zeros_like(gold)
    found[:, : len(labels)] = decided.probabilities >= threshold
    return Flagged(every, gold, found)


def of_several_classes(decided: Decided, labels: Sequence[str], *, threshold: float) -> Scores:
    """Scores where each example has any number of classes; one that training never saw is always missed."""
    every, gold, found = flagged(decided, labels, threshold=threshold)
    known = decided.probabilities
    scores = multilabel_scores(gold, found)
    areas = np.array([auc(known[:, place], gold[:, place]) for place in range(len(labels))])
    chosen = np.where(gold[:, : len(labels)], known, 1 - known).clip(1e-300)
    exact = (gold == found).all(1)
    values = {
        "f1": scores.micro_f1,
        "f1_macro": scores.macro_f1,
        "exact_match": scores.exact_match,
        "hamming": scores.hamming,
        "auc": float(np.nanmean(areas)) if not np.isnan(areas).all() else float("nan"),
        "nll": float(-np.log(chosen).sum(1).mean()),
    }
    if len(every) > len(labels):
        values["unseen"] = float(gold[:, len(labels) :].any(1).mean())
    values["count"] = float(len(gold))
    rows = [
        [label, *(round(share, 4) for share in precision_and_so_on(gold[:, place], found[:, place])), int(count)]
        for place, (label, count) in enumerate(zip(every, gold.sum(0), strict=True))
    ]
    tables = {
        "classes": Table(["class", "precision", "recall", "f1", "count"], rows),
        "length": by_length(exact, decided.lengths, "exact_match"),
    }
    return Scores(values, "f1", tables)


def of_numbers(
    gold: NDArray[np.float64], found: NDArray[np.float64], names: Sequence[str], lengths: NDArray[np.int64]
) -> Scores:
    """Scores of numbers, (N, k) each, in their own units."""
    rows = [
        [name, mae([gold[:, k]], [found[:, k]]), rmse([gold[:, k]], [found[:, k]]), r2(gold[:, k], found[:, k])]
        for k, name in enumerate(names)
    ]
    shares = [float(row[3]) for row in rows]  # type: ignore[arg-type]
    values = {"rmse": rmse([gold], [found]), "mae": mae([gold], [found]), "r2": float(np.mean(shares))}
    values["count"] = float(len(gold))
    tables = {
        "targets": Table(["target", "mae", "rmse", "r2"], rows),
        "length": by_length(np.abs(gold - found).mean(1), lengths, "mae"),
    }
    return Scores(values, "rmse", tables, higher_is_better=False)


def nll(probabilities: NDArray[np.float64], gold: NDArray[np.int64]) -> float:
    """−log p of the right class, the mean over examples; NaN where there are none."""
    if not len(gold):
        return float("nan")
    return float(-np.log(probabilities[np.arange(len(gold)), gold].clip(1e-300)).mean())


def r2(gold: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    """The share of the variance that is explained, 1 − Σ (y − ŷ)² / Σ (y − ȳ)²; NaN where all are alike.

    >>> r2(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    0.5
    """
    spread = float(np.square(gold - gold.mean()).sum())
    return 1 - float(np.square(gold - found).sum()) / spread if spread else float("nan")


def precision_and_so_on(gold: NDArray[np.bool_], found: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Precision, recall and F1 of one class; 0 where there is nothing to divide by."""
    right, count, said = int((gold & found).sum()), int(gold.sum()), int(found.sum())
    return right / max(said, 1), right / max(count, 1), 2 * right / max(count + said, 1)


def scores_table(what: str, scores: Iterable[LabelScores]) -> Table:
    """A row for each label; `what` they are."""
    rows = [[s.label, round(s.precision, 4), round(s.recall, 4), round(s.f1, 4), s.count] for s in scores]
    return Table([what, "precision", "recall", "f1", "count"], rows)


def confusion_table(counts: NDArray[np.int64], labels: Sequence[str]) -> Table:
    """Few classes as a square, a row for each right class; of many the pairs that are confused most."""
    if len(labels) <= WIDEST:
        rows = [[label, *map(int, row)] for label, row in zip(labels, counts, strict=True)]
        return Table(["right \\ found", *labels], rows)
    worst = most_confused(counts, labels, PAIRS)
    return Table(["right", "found", "count"], [[pair.gold, pair.found, pair.count] for pair in worst])


def by_length(values: NDArray[np.bool_] | NDArray[np.float64], lengths: NDArray[np.int64], name: str) -> Table:
    """The mean of a value per bucket of lengths.

    >>> by_length(np.array([True, False, True]), np.array([3, 4, 7]), "accuracy").rows
    [['0-5', 0.5, 2], ['6-10', 1.0, 1]]
    """
    bucket = np.searchsorted(LONGEST, lengths)
    ranges = [f"{low + 1 if low else 0}-{high}" for low, high in zip((0, *LONGEST), LONGEST, strict=False)]
    ranges.append(f"over {LONGEST[-1]}")
    rows = [
        [ranges[place], round(float(values[bucket == place].mean()), 4), int((bucket == place).sum())]
        for place in np.unique(bucket)
    ]
    return Table(["steps", name, "count"], rows)
