"""Counts of answers that are elements of their sources: sequences of numbers, polygons, triangles and tours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import ConfigError
from recurra.metrics.edits import edit_counts
from recurra.metrics.geometry import area, is_same_polygon, is_same_tour, is_simple, is_tour, tour_length, triangles
from recurra.metrics.lengths import buckets
from recurra.named import choose
from recurra.scoring.counted import ITEMS, Counted
from recurra.scoring.formulas import Formula, perplexity, ratio
from recurra.views.table import Table

COMMON = ("exact_match", "symbol_error_rate", "perplexity", "nll")

OF_SHAPE: Mapping[str, tuple[str, ...]] = {
    "sequence": (),
    "hull": ("area_coverage", "simple"),
    "triangles": ("triangle_coverage",),
    "tour": ("length_ratio", "valid"),
}
"""What is scored of each shape beside the common scores."""

SOME, LONGEST = 8, 60
"""So many answers are shown, each with at most so many characters."""


class PointAnswers(NamedTuple):
    """What scores are made of, item by item; elements are counted from 0."""

    items: Sequence[object]
    golds: Sequence[Sequence[int]]
    answers: Sequence[Sequence[int]]
    points: Sequence[NDArray[np.float32]] | None  # (n, d) of each item; None where elements are no points
    counts: Sequence[int]  # how many elements each source has
    likelihood: Sequence[tuple[float, int]] | None = None  # log p of the right answer, and its elements with the end


def names_of(shape: str) -> tuple[str, ...]:
    """Scores that training may stop on, in the order in which they are shown."""
    return ("exact_match", *OF_SHAPE[shape], *COMMON[1:])


def point_scores(given: PointAnswers, *, shape: str, first: str, quick: bool = False) -> Counted:
    """Answers that are elements; with quick, only what training looks at.

    exact_match         hull: the right polygon, wherever it begins; triangles: the right set of them; tour: the
                        right one, wherever it begins and whichever way it goes
    area_coverage       mean of (area of the answer) / (area of the right one), 0 where it is no simple polygon
    triangle_coverage   the share of right triangles that were found, over all items
    length_ratio        lengths of the answers / lengths of the right ones, over the items with a valid tour
    """
    choose(names_of(shape), first, "evaluation.first")
    if first in ("perplexity", "nll") and given.likelihood is None:
        raise ConfigError(f"evaluation.first = '{first}' needs log-probabilities, but these predictions have none.")
    pairs = list(zip(given.golds, given.answers, strict=True))
    golds, answers = ([in_words(each).split() for each in side] for side in (given.golds, given.answers))
    symbols = edit_counts([[gold] for gold in golds], answers)
    right = np.array([is_right(shape, gold, said) for gold, said in pairs], np.int64)
    columns: dict[str, ArrayLike] = {"right": right, "symbol_edits": symbols[:, 1], "symbols": symbols[:, 2]}
    scores: dict[str, Formula] = {
        "exact_match": ratio("right", ITEMS),
        "symbol_error_rate": lambda sums: sums["symbol_edits"] / np.maximum(sums["symbols"], 1),
    }
    if given.likelihood is not None:
        nats = np.array(given.likelihood, np.float64).reshape(-1, 2)
        columns |= {"nats": -nats[:, 0], "tokens": nats[:, 1]}
        scores |= {"perplexity": perplexity("nats", "tokens"), "nll": ratio("nats", "tokens")}
    if shape == "triangles":
        found = [(triangles(gold), triangles(said)) for gold, said in pairs]
        columns["found"] = [len(wanted & said) for wanted, said in found]
        columns["triangles"] = [len(wanted) for wanted, _ in found]
        scores["triangle_coverage"] = ratio("found", "triangles")
    elif shape != "sequence":
        assert given.points is not None, "polygons and tours have points"
        of_points = list(zip(given.points, given.golds, given.answers, strict=True))
        if shape == "hull":
            simple = np.array([is_simple(points, said) for points, _, said in of_points])
            covered = [_covered(*each) if is_one else 0.0 for each, is_one in zip(of_points, simple, strict=True)]
            columns |= {"simple": simple.astype(np.int64), "covered": covered}
            scores |= {"area_coverage": ratio("covered", ITEMS), "simple": ratio("simple", ITEMS)}
        else:
            valid = np.array([is_tour(said, len(points)) for points, _, said in of_points])
            lengths = np.array([[tour_length(p, said), tour_length(p, gold)] for p, gold, said in of_points])
            lengths = lengths.reshape(-1, 2) * valid[:, None]
            columns |= {"valid": valid.astype(np.int64), "length": lengths[:, 0], "least": lengths[:, 1]}
            scores |= {"length_ratio": ratio("length", "least"), "valid": ratio("valid", ITEMS)}
    return Counted.of(
        given.items,
        columns,
        {name: scores[name] for name in names_of(shape) if name in scores},
        first=first,
        lengths=list(given.counts),
        loss=scores.get("nll"),
        lower_is_better=("length_ratio",),
        tables={}
        if quick
        else {
            "by number of elements": lambda counted: by_count(counted, OF_SHAPE[shape]),
            "some answers": lambda _: some_answers(given, right),
        },
    )


def by_count(counted: Counted, names: Sequence[str]) -> Table:
    """Scores per bucket of numbers of elements."""
    assert counted.lengths is not None, "given by point_scores"
    shown = ["exact_match", *names]
    rows = [
        [bucket.label, len(bucket.items), *(round(counted.value(name, bucket.items), 4) for name in shown)]
        for bucket in buckets(counted.lengths)
    ]
    return Table(["elements", "items", *shown], rows)


def some_answers(given: PointAnswers, right: NDArray[np.int64]) -> Table:
    """Answers at equal distances in the data, beside what is right; = where they are the same."""
    count, rows = len(given.golds), []
    for row in dict.fromkeys(np.linspace(0, count - 1, min(SOME, count)).astype(int).tolist()):
        gold = "=" if right[row] else in_words(given.golds[row])
        rows.append([f"{given.counts[row]} elements", in_words(given.answers[row])[:LONGEST], gold[:LONGEST]])
    return Table(["source", "written", "right"], rows)


def in_words(elements: Sequence[int]) -> str:
    """Elements as they are written, counted from 1.

    >>> in_words([2, 0])
    '3 1'
    """
    return " ".join(str(number + 1) for number in elements)


def is_right(shape: str, gold: Sequence[int], said: Sequence[int]) -> bool:
    """Whether an answer is the right one, as its shape counts it."""
    if shape == "hull":
        return is_same_polygon(gold, said)
    if shape == "triangles":
        return triangles(gold) == triangles(said) and len(gold) == len(said)
    return is_same_tour(gold, said) if shape == "tour" else list(gold) == list(said)


def _covered(points: NDArray[np.float32], gold: Sequence[int], said: Sequence[int]) -> float:
    whole = area(points, gold)
    return area(points, said) / whole if whole > 0 else float(is_same_polygon(gold, said))
