"""What the scores of classes, of sets of classes and of numbers are made of, example by example."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.metrics.resampling import Numbers
from recurra.scoring.class_scores import Decided, flagged
from recurra.scoring.counted import Counted, Sums, counted, found_and_right, ratio, root, share

BINS = 10
"""Of the calibration error."""

MOST = 5_000_000
"""Numbers that counts per class may be: with more, scores that need them have no interval."""


def class_counts(
    items: Sequence[object], decided: Decided, labels: Sequence[str], *, positive: str | None, abstain: float
) -> Counted:
    """Of examples with one class each."""
    names = [each[0] for each in decided.gold]
    every = [*labels, *sorted({*names} - {*labels})]
    number = {label: place for place, label in enumerate(every)}
    gold = np.array([number[name] for name in names], np.int64)
    known = decided.probabilities
    found, sure = known.argmax(1), known.max(1).clip(0, 1)
    right, taught = found == gold, gold < len(labels)
    one = np.ones(len(gold))
    chosen = known[np.arange(len(gold)), np.where(taught, gold, 0)].clip(1e-300)
    place = np.minimum((np.searchsorted(np.arange(BINS + 1) / BINS, sure, side="right") - 1), BINS - 1)
    columns: dict[str, ArrayLike] = {
        "one": one,
        "right": right,
        "taught": taught,
        "taught_right": right & taught,
        "nats": np.where(taught, -np.log(chosen), 0.0),
        "too_sure": np.eye(BINS)[place] * (sure - right)[:, None],
        "answered": sure >= abstain,
        "answered_right": right & (sure >= abstain),
    }
    scores: dict[str, Callable[[Sums], Numbers]] = {
        "accuracy": ratio("right", "one"),
        "calibration_error": lambda sums: np.abs(sums["too_sure"]).sum(-1) / sums["one"],
        "nll": ratio("nats", "taught"),
    }
    if 3 * len(gold) * len(every) <= MOST:
        columns |= flags("class_", np.eye(len(every), dtype=bool)[gold], np.eye(len(every), dtype=bool)[found])
        scores |= macro("class_")
    if positive is not None:
        is_positive, said = gold == number[positive], found == number[positive]
        columns |= {
            "ill": is_positive,
            "well": ~is_positive,
            "seen": is_positive & said,
            "spared": ~is_positive & ~said,
        }
        scores |= {"sensitivity": ratio("seen", "ill"), "specificity": ratio("spared", "well")}
    if abstain:
        scores |= {"answered": ratio("answered", "one"), "answered_accuracy": ratio("answered_right", "answered")}
    if not taught.all():
        scores |= {"unseen": lambda sums: 1 - sums["taught"] / sums["one"]}
        scores |= {"seen_accuracy": ratio("taught_right", "taught")}
    return counted(items, decided.lengths, columns, scores)


def several_class_counts(
    items: Sequence[object], decided: Decided, labels: Sequence[str], *, threshold: float
) -> Counted:
    """Of examples with any number of classes."""
    every, gold, found = flagged(decided, labels, threshold=threshold)
    known = decided.probabilities
    chosen = np.where(gold[:, : len(labels)], known, 1 - known).clip(1e-300)
    columns: dict[str, ArrayLike] = {
        "one": np.ones(len(gold)),
        "exact": (gold == found).all(1),
        "wrong": (gold != found).sum(1),
        "nats": -np.log(chosen).sum(1),
        "right": (gold & found).sum(1),
        "gold": gold.sum(1),
        "said": found.sum(1),
    }
    scores: dict[str, Callable[[Sums], Numbers]] = {
        "f1": found_and_right()["f1"],
        "exact_match": ratio("exact", "one"),
        "hamming": lambda sums: sums["wrong"] / (sums["one"] * len(every)),
        "nll": ratio("nats", "one"),
    }
    if 3 * gold.size <= MOST:
        columns |= flags("class_", gold, found)
        scores["f1_macro"] = macro("class_")["f1"]
    if len(every) > len(labels):
        columns["strange"] = gold[:, len(labels) :].any(1)
        scores["unseen"] = ratio("strange", "one")
    return counted(items, decided.lengths, columns, scores)


def number_counts(
    items: Sequence[object],
    gold: NDArray[np.float64],
    found: NDArray[np.float64],
    lengths: NDArray[np.int64],
) -> Counted:
    """Of numbers, (N, k) each."""
    apart, around = gold - found, gold - gold.mean(0)  # a sum of squares is exact where the mean is near 0
    columns = {
        "one": np.ones(len(gold)),
        "numbers": np.full(len(gold), gold.shape[1]),
        "error": np.abs(apart).sum(1),
        "square": np.square(apart).sum(1),
        "squares": np.square(apart),
        "values": around,
        "value_squares": np.square(around),
    }

    def r2(sums: Sums) -> Numbers:
        spread = sums["value_squares"] - np.square(sums["values"]) / sums["one"][..., None]
        return 1 - share(sums["squares"], spread).mean(-1)

    scores = {"rmse": root("square", "numbers"), "mae": ratio("error", "numbers"), "r2": r2}
    return counted(items, lengths, columns, scores)


def flags(prefix: str, gold: NDArray[np.bool_], found: NDArray[np.bool_]) -> dict[str, ArrayLike]:
    """Columns (N, L) of what is right, what should be and what was said."""
    return {f"{prefix}right": gold & found, f"{prefix}gold": gold, f"{prefix}said": found}


def macro(prefix: str) -> dict[str, Callable[[Sums], Numbers]]:
    """Plain means over the classes that occur or were found."""

    def mean(score: Callable[[Sums], Numbers]) -> Callable[[Sums], Numbers]:
        def over_classes(sums: Sums) -> Numbers:
            occurs = sums[f"{prefix}gold"] + sums[f"{prefix}said"] > 0
            return share((score(sums) * occurs).sum(-1), occurs.sum(-1), of_nothing=0.0)

        return over_classes

    return {name: mean(score) for name, score in found_and_right(prefix).items()}
