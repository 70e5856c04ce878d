"""Counts of classes, of sets of classes and of numbers, and the scores and tables that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.metrics.auc import area_under_curve
from recurra.metrics.confidence import recall_at_false_alarms
from recurra.metrics.resampling import Numbers
from recurra.scoring.counted import ITEMS, Counted, OfItems, Tally
from recurra.scoring.formulas import Formula, Sums, found_and_right, macro, ratio, root, share
from recurra.scoring.kinds import kinds_table
from recurra.views.table import Table

BINS = 10
"""Of the calibration error."""

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


def of_one_class(
    items: Sequence[object], decided: Decided, labels: Sequence[str], *, positive: str | None, abstain: float
) -> Counted:
    """Where each example has one class. A class that training never saw is counted, and always wrong.

    calibration_error = Σ_k |Σ_(i in bin k) (p_i − [i is right])| / N,   p_i of the class that was found
    """
    names = [each[0] for each in decided.gold]
    every = [*labels, *sorted({*names} - {*labels})]
    number = {label: place for place, label in enumerate(every)}
    gold = np.array([number[name] for name in names], np.int64)
    known, rows = decided.probabilities, np.arange(len(gold))
    found = known.argmax(1)
    sure = known[rows, found].clip(0, 1)
    right, taught = found == gold, gold < len(labels)
    chosen = known[rows, np.where(taught, gold, 0)].clip(1e-300)
    place = np.minimum(np.searchsorted(np.arange(BINS + 1) / BINS, sure, side="right") - 1, BINS - 1)
    columns: dict[str, ArrayLike | Tally] = {
        "right": right,
        "taught": taught,
        "taught_right": right & taught,
        "nats": np.where(taught, -np.log(chosen), 0.0),
        "class_right": Tally(gold[right], len(every), np.flatnonzero(right)),
        "class_gold": Tally(gold, len(every)),
        "class_said": Tally(found, len(every)),
        "bin": Tally(place, BINS),
        "bin_right": Tally(place[right], BINS, np.flatnonzero(right)),
        "bin_too_sure": Tally(place, BINS, None, sure - right),
    }
    scores: dict[str, Formula | OfItems] = {"accuracy": ratio("right", ITEMS), **macro("class_")}
    if positive is None:
        padded = np.pad(known, ((0, 0), (0, len(every) - len(labels))))
        scores["auc"] = mean_area(padded, gold[:, None] == np.arange(len(every)))
    else:
        is_positive, said = gold == number[positive], found == number[positive]
        columns |= {"ill": is_positive, "well": ~is_positive}
        columns |= {"seen": is_positive & said, "spared": ~is_positive & ~said}
        scores["auc"] = mean_area(known[:, [number[positive]]], is_positive[:, None])
        scores |= {"sensitivity": ratio("seen", "ill"), "specificity": ratio("spared", "well")}
    scores["calibration_error"] = lambda sums: np.abs(sums["bin_too_sure"]).sum(-1) / sums[ITEMS]
    scores["nll"] = ratio("nats", "taught")
    if abstain:
        columns |= {"answered": sure >= abstain, "answered_right": right & (sure >= abstain)}
        scores |= {"answered": ratio("answered", ITEMS), "answered_accuracy": ratio("answered_right", "answered")}
    if not taught.all():
        scores["unseen"] = lambda sums: 1 - sums["taught"] / sums[ITEMS]
        if taught.any():
            scores["seen_accuracy"] = ratio("taught_right", "taught")
            scores["unseen_recall"] = refused(sure, taught)
    return Counted.of(
        items,
        columns,
        scores,
        first="accuracy",
        lengths=decided.lengths,
        tables={
            "classes": lambda counted: kinds_table(counted, "class_", "class", every, in_order=True),
            "confusion": lambda _: confusion_table(gold, found, every),
            "calibration": calibration_table,
            "length": by_length("accuracy"),
        },
    )


def of_several_classes(
    items: Sequence[object], decided: Decided, labels: Sequence[str], *, threshold: float
) -> Counted:
    """Where each example has any number of classes; one that training never saw is always missed."""
    every = [*labels, *sorted({name for names in decided.gold for name in names} - {*labels})]
    number = {label: place for place, label in enumerate(every)}
    gold = np.zeros((len(decided.gold), len(every)), bool)
    for row, names in enumerate(decided.gold):
        gold[row, [number[name] for name in names]] = True
    known, found = decided.probabilities, np.zeros_like(gold)
    found[:, : len(labels)] = known >= threshold
    chosen = np.where(gold[:, : len(labels)], known, 1 - known).clip(1e-300)
    columns: dict[str, ArrayLike | Tally] = {
        "exact": (gold == found).all(1),
        "wrong": (gold != found).sum(1),
        "nats": -np.log(chosen).sum(1),
        "right": (gold & found).sum(1),
        "gold": gold.sum(1),
        "said": found.sum(1),
        "class_right": flags(gold & found),
        "class_gold": flags(gold),
        "class_said": flags(found),
    }
    scores: dict[str, Formula | OfItems] = {
        "f1": found_and_right()["f1"],
        "f1_macro": macro("class_")["f1"],
        "exact_match": ratio("exact", ITEMS),
        "hamming": lambda sums: sums["wrong"] / (sums[ITEMS] * len(every)),
        "auc": mean_area(known, gold[:, : len(labels)]),
        "nll": ratio("nats", ITEMS),
    }
    if len(every) > len(labels):
        columns["strange"] = gold[:, len(labels) :].any(1)
        scores["unseen"] = ratio("strange", ITEMS)
    return Counted.of(
        items,
        columns,
        scores,
        first="f1",
        lengths=decided.lengths,
        tables={
            "classes": lambda counted: kinds_table(counted, "class_", "class", every, in_order=True),
            "length": by_length("exact_match"),
        },
    )


def of_numbers(
    items: Sequence[object],
    gold: NDArray[np.float64],
    found: NDArray[np.float64],
    names: Sequence[str],
    lengths: NDArray[np.int64],
) -> Counted:
    """Numbers, (N, k) each, in their own units.

    r2 = 1 − Σ (y − ŷ)² / Σ (y − ȳ)², the mean over the k numbers; NaN where all y are alike.
    """
    apart = gold - found
    # Around its mean, Σ (y − ȳ)² of some items is exact as Σ y² − (Σ y)² / N; y that are alike have no rounded rest.
    around = np.where(np.ptp(gold, axis=0) > 0, gold - gold.mean(0), 0.0)
    scale = scale_of(apart)
    scales = np.array([scale_of(column) for column in np.concatenate([apart, around]).T])
    columns = {
        "numbers": np.full(len(gold), gold.shape[1]),
        "error": np.abs(apart).sum(1),
        "errors": np.abs(apart),
        "square": np.square(apart / scale).sum(1),
        "squares": np.square(apart / scales),
        "values": around / scales,
        "value_squares": np.square(around / scales),
    }

    def explained(sums: Sums) -> Numbers:
        """R² of each of the k numbers, (..., k)."""
        spread = sums["value_squares"] - np.square(sums["values"]) / sums[ITEMS][..., None]
        return 1 - share(sums["squares"], spread)

    def targets_table(counted: Counted) -> Table:
        sums = counted.sums()
        means = [sums["errors"] / sums[ITEMS], scales * np.sqrt(sums["squares"] / sums[ITEMS]), explained(sums)]
        rows = [[name, *row] for name, row in zip(names, np.stack(means, axis=1).tolist(), strict=True)]
        return Table(["target", "mae", "rmse", "r2"], rows)

    scores: dict[str, Formula] = {
        "rmse": root("square", "numbers", scale=scale),
        "mae": ratio("error", "numbers"),
        "r2": lambda sums: explained(sums).mean(-1),
    }
    tables = {"targets": targets_table, "length": by_length("mae")}
    return Counted.of(items, columns, scores, first="rmse", lengths=lengths, tables=tables)


def scale_of(errors: NDArray[np.float64]) -> float:
    """The largest error: divided by it, no square overflows.

    >>> scale_of(np.array([1e200, -3e200])), scale_of(np.zeros(2))
    (3e+200, 1.0)
    """
    largest = float(np.nanmax(np.abs(errors), initial=0.0))
    return largest if 0 < largest < np.inf else 1.0


def flags(columns: NDArray[np.bool_]) -> Tally:
    """(N, L) flags, counted per column."""
    items, kinds = np.nonzero(columns)
    return Tally(kinds, columns.shape[1], items)


def mean_area(probabilities: NDArray[np.float64], positive: NDArray[np.bool_]) -> OfItems:
    """The mean area under the curve of the classes, (N, L) each, that some items have and others have not."""
    scores, flags = np.ascontiguousarray(probabilities.T), np.ascontiguousarray(positive.T)
    areas = [area_under_curve(scores[k], flags[k]) for k in np.flatnonzero(flags.any(1))]

    def of(times: NDArray[np.int64]) -> float:
        found = np.array([area(times) for area in areas])
        return float(np.nanmean(found)) if not np.isnan(found).all() else float("nan")

    return OfItems(of, positive.shape[0] * len(areas))


def refused(sure: NDArray[np.float64], taught: NDArray[np.bool_]) -> OfItems:
    """The share of items of unknown classes that a threshold refuses which few of the others fall under."""

    def of(times: NDArray[np.int64]) -> float:
        inside, outside = (np.repeat(sure[which], times[which]) for which in (taught, ~taught))
        return recall_at_false_alarms(inside, outside, FALSE_ALARMS) if len(inside) and len(outside) else float("nan")

    return OfItems(of, len(sure))


def calibration_table(counted: Counted) -> Table:
    """The accuracy of the examples of each bin of probabilities."""
    sums = counted.sums()
    edges = np.arange(BINS + 1) / BINS
    rows = [
        [
            f"{edges[k]:.1f}-{edges[k + 1]:.1f}",
            round(float(sums["bin_right"][k] / sums["bin"][k]), 4),
            int(sums["bin"][k]),
        ]
        for k in np.flatnonzero(sums["bin"])
    ]
    return Table(["probability", "accuracy", "count"], rows)


def confusion_table(gold: NDArray[np.int64], found: NDArray[np.int64], labels: Sequence[str]) -> Table:
    """Few classes as a square, a row for each right class; of many the pairs that are confused most.

    >>> confusion_table(np.array([0, 0, 1]), np.array([0, 1, 1]), ["cat", "dog"]).rows
    [['cat', 1, 1], ['dog', 0, 1]]
    """
    size = len(labels)
    if size <= WIDEST:
        square = np.bincount(gold * size + found, minlength=size * size).reshape(size, size)
        return Table(
            ["right \\ found", *labels], [[label, *row] for label, row in zip(labels, square.tolist(), strict=True)]
        )
    wrong = gold != found
    pairs, counts = np.unique(gold[wrong] * size + found[wrong], return_counts=True)
    worst = np.argsort(-counts, kind="stable")[:PAIRS]
    rows = [[labels[pairs[k] // size], labels[pairs[k] % size], int(counts[k])] for k in worst]
    return Table(["right", "found", "count"], rows)


def by_length(name: str) -> Callable[[Counted], Table]:
    """A score per bucket of lengths."""

    def made(counted: Counted) -> Table:
        assert counted.lengths is not None, "given by each of the three"
        bucket = np.searchsorted(LONGEST, counted.lengths)
        ranges = [f"{low + 1 if low else 0}-{high}" for low, high in zip((0, *LONGEST), LONGEST, strict=False)]
        ranges.append(f"over {LONGEST[-1]}")
        parts = [(place, np.flatnonzero(bucket == place)) for place in np.unique(bucket)]
        rows = [[ranges[place], round(counted.value(name, part), 4), len(part)] for place, part in parts]
        return Table(["steps", name, "count"], rows)

    return made
