"""Counts of tags, sentence by sentence, and the scores and tables that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError
from recurra.metrics.spans import spans_of
from recurra.scoring.class_scores import scale_of
from recurra.scoring.counted import ITEMS, Counted, OfItems, Tally
from recurra.scoring.formulas import Formula, found_and_right, ratio, root, total
from recurra.scoring.kinds import kinds_table
from recurra.views.table import Table

UNLABELLED = -1
"""In place of the number of a tag."""


class Column(NamedTuple):
    """One column of tags, all sentences one after the other."""

    name: str
    labels: Sequence[str]
    gold: NDArray[np.int64]  # (T,) numbers of labels, or UNLABELLED
    found: NDArray[np.int64]  # (T,)
    has_spans: bool
    unknown: NDArray[np.bool_] | None = None  # (T,): words that have no vector of their own; None: there are no words
    is_open: bool = False  # any text may be a label: as lemmas, they are too many for a table
    is_part: bool = False  # a key of a cell that has scores as a whole: it has a table alone


class Values(NamedTuple):
    """Numbers that are known, and what was said of them, of each sentence."""

    gold: Sequence[NDArray[np.float64]]
    found: Sequence[NDArray[np.float64]]


class Labels(NamedTuple):
    """A label of each sentence as a whole."""

    gold: Sequence[str]
    found: Sequence[str]


def numbered(sentences: Iterable[Sequence[str]], labels: dict[str, int]) -> NDArray[np.int64]:
    """The numbers of all tags, one sentence after the other; labels that are not known yet are added, "" is UNLABELLED.

    >>> numbered([["N", "V"], ["", "X"]], labels := {"V": 0, "N": 1}), list(labels)
    (array([ 1,  0, -1,  2]), ['V', 'N', 'X'])
    """
    tags = list(chain.from_iterable(sentences))
    for tag in dict.fromkeys(tags):
        if tag and tag not in labels:
            labels[tag] = len(labels)
    return np.fromiter((labels.get(tag, UNLABELLED) for tag in tags), np.int64, len(tags))


def tag_scores(
    items: Sequence[object],
    lengths: Sequence[int] | NDArray[np.int64],
    columns: Sequence[Column],
    values: Values | None = None,
    labels: Labels | None = None,
) -> Counted:
    """Sentences with some columns of tags, numbers at each step, or a label of the whole."""
    lengths = np.asarray(lengths, np.int64)
    counts: dict[str, ArrayLike | Tally] = {"elements": lengths}
    scores: dict[str, Formula | OfItems] = {}
    tables: dict[str, Callable[[Counted], Table]] = {}
    sentence = np.repeat(np.arange(len(items)), lengths)
    whole = np.ones(len(items), bool)
    for number, column in enumerate(columns):
        # Scores of the first column have plain names.
        found = _of_column(column, sentence, len(items), f"{number}.", "" if number == 0 else f".{column.name}")
        counts, scores, tables = counts | found.counts, scores | found.scores, tables | found.tables
        whole &= found.is_right
    if values is not None:
        apart = [gold - said for gold, said in zip(*values, strict=True)]
        if not any(each.size for each in apart):
            raise DataError("there is nothing to score: no step has a gold value.")
        scale = scale_of(np.array([np.nanmax(np.abs(each), initial=0.0) for each in apart]))
        counts |= {"error": [np.abs(each).sum() for each in apart], "numbers": [each.size for each in apart]}
        counts["square"] = [np.square(each / scale).sum() for each in apart]
        scores |= {"mae": ratio("error", "numbers"), "rmse": root("square", "numbers", scale=scale)}
    if labels is not None:
        names: dict[str, int] = {"": 0}  # a sentence without a label is never right
        gold, said = (numbered([side], names) for side in labels)
        right = gold == said
        counts |= {"label": right} | _tallies("label_", gold, said, len(names), np.arange(len(items)))
        scores["label_accuracy"] = ratio("label", ITEMS)
        tables["label"] = lambda counted: kinds_table(counted, "label_", "label", list(names))
        whole &= right
    if columns:
        counts["whole"] = whole
        scores["sentence_accuracy"] = ratio("whole", ITEMS)
    return Counted.of(
        items,
        counts,
        scores,
        first=_first(columns, values, labels),
        lengths=lengths,
        sizes={"count": total("elements")},
        tables=tables,
    )


def _first(columns: Sequence[Column], values: Values | None, labels: Labels | None) -> str:
    """The score that training stops on."""
    if labels is not None and columns:
        return "sentence_accuracy"
    if values is not None:
        return "rmse"
    return "label_accuracy" if not columns else "f1" if columns[0].has_spans else "accuracy"


class _OfColumn(NamedTuple):
    counts: dict[str, ArrayLike | Tally]
    scores: dict[str, Formula | OfItems]
    tables: dict[str, Callable[[Counted], Table]]
    is_right: NDArray[np.bool_]  # (N,): sentences without a mistake


def _of_column(column: Column, sentence: NDArray[np.int64], items: int, prefix: str, suffix: str) -> _OfColumn:
    kept = column.gold != UNLABELLED
    if not kept.any():
        raise DataError(f"there is nothing to score: no element has a gold answer in '{column.name}'.")
    sentence, gold, said = sentence[kept], column.gold[kept], column.found[kept]
    right = gold == said

    def per_item(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(sentence[flags], minlength=items)

    counts: dict[str, ArrayLike | Tally] = {
        f"{prefix}agreed": per_item(right),
        f"{prefix}steps": np.bincount(sentence, minlength=items),
        **({} if column.is_open else _tallies(f"{prefix}tag_", gold, said, len(column.labels), sentence)),
    }
    scores: dict[str, Formula | OfItems] = {}
    tables: dict[str, Callable[[Counted], Table]] = {}
    if not column.is_part:
        scores[f"accuracy{suffix}"] = ratio(f"{prefix}agreed", f"{prefix}steps")
    if column.unknown is not None and not column.is_part:
        unknown = column.unknown[kept]
        counts |= {f"{prefix}unknown": per_item(unknown), f"{prefix}unknown_right": per_item(unknown & right)}
        scores[f"unknown_accuracy{suffix}"] = ratio(f"{prefix}unknown_right", f"{prefix}unknown")
    if column.has_spans:
        true, found = (spans_of(tags, sentence, column.labels) for tags in (gold, said))
        both, types = true.same_as(found), true.types
        for name, starts, kinds in (
            ("right", true.starts[both], true.kinds[both]),
            ("gold", true.starts, true.kinds),
            ("said", found.starts, found.kinds),
        ):
            places = sentence[starts]
            counts[f"{prefix}{name}"] = np.bincount(places, minlength=items)
            counts[f"{prefix}type_{name}"] = Tally(kinds, len(types), places)
        scores |= found_and_right(prefix, suffix)
        tables[f"{column.name}: spans"] = lambda counted: kinds_table(counted, f"{prefix}type_", "type", types)
    if not column.is_open:
        tables[f"{column.name}: tags"] = lambda counted: kinds_table(counted, f"{prefix}tag_", "tag", column.labels)
    return _OfColumn(counts, scores, tables, np.bincount(sentence[~right], minlength=items) == 0)


def _tallies(
    prefix: str, gold: NDArray[np.int64], said: NDArray[np.int64], size: int, items: NDArray[np.int64]
) -> dict[str, Tally]:
    """How often each label is right, how often gold has it, and how often it was said."""
    right = gold == said
    return {
        f"{prefix}right": Tally(gold[right], size, items[right]),
        f"{prefix}gold": Tally(gold, size, items),
        f"{prefix}said": Tally(said, size, items),
    }
