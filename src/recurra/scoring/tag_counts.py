"""What the scores of tags are made of, sentence by sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.metrics.resampling import Numbers
from recurra.metrics.spans import spans
from recurra.scoring.counted import Counted, Sums, counted, found_and_right, ratio, root


class Column(NamedTuple):
    """One column of tags, of every sentence; "" in gold is unlabelled."""

    suffix: str  # of its scores' names
    gold: Sequence[Sequence[str]]
    found: Sequence[Sequence[str]]
    unknown: Sequence[Sequence[bool]] | None  # words that have no vector of their own; None: there are no words
    has_spans: bool


class Values(NamedTuple):
    """Numbers that are known and what was said of them, of every sentence."""

    gold: Sequence[NDArray[np.float64]]
    found: Sequence[NDArray[np.float64]]


def tag_counts(
    items: Sequence[object],
    lengths: Sequence[int],
    columns: Sequence[Column],
    values: Values | None,
    label_is_right: Sequence[bool] | None,
) -> Counted:
    """Of sentences with some columns of tags, numbers at each step, or a label of the whole."""
    found: dict[str, ArrayLike] = {"one": np.ones(len(items))}
    scores: dict[str, Callable[[Sums], Numbers]] = {}
    whole = np.ones(len(items), bool)
    for number, column in enumerate(columns):
        of, rows = f"{number}.", list(zip(column.gold, column.found, strict=True))
        kept = [[pair for pair in zip(*row, strict=True) if pair[0]] for row in rows]
        right = [sum(gold == said for gold, said in row) for row in kept]
        found |= {f"{of}agreed": right, f"{of}steps": [len(row) for row in kept]}
        scores[f"accuracy{column.suffix}"] = ratio(f"{of}agreed", f"{of}steps")
        whole &= np.array([count == len(row) for count, row in zip(right, kept, strict=True)], bool)
        if column.unknown is not None:
            triples = [list(zip(*row, strict=True)) for row in zip(*column[1:3], column.unknown, strict=True)]
            found[f"{of}unknown"] = [sum(bool(gold) and new for gold, _, new in row) for row in triples]
            found[f"{of}unknown_right"] = [sum(gold == said and new for gold, said, new in row) for row in triples]
            scores[f"unknown_accuracy{column.suffix}"] = ratio(f"{of}unknown_right", f"{of}unknown")
        if column.has_spans:
            pairs = [(spans([gold for gold, _ in row]), spans([said for _, said in row])) for row in kept]
            found[f"{of}right"] = [len(gold & said) for gold, said in pairs]
            found |= {f"{of}gold": [len(gold) for gold, _ in pairs], f"{of}said": [len(said) for _, said in pairs]}
            scores |= found_and_right(of, column.suffix)
    if values is not None:
        apart = [gold - said for gold, said in zip(*values, strict=True)]
        found |= {"error": [np.abs(each).sum() for each in apart], "numbers": [each.size for each in apart]}
        found["square"] = [np.square(each).sum() for each in apart]
        scores |= {"mae": ratio("error", "numbers"), "rmse": root("square", "numbers")}
    if label_is_right is not None:
        found["label"] = label_is_right
        scores["label_accuracy"] = ratio("label", "one")
        whole &= np.asarray(label_is_right, bool)
    if columns:
        found["whole"] = whole
        scores["sentence_accuracy"] = ratio("whole", "one")
    return counted(items, lengths, found, scores)
