"""Predictions against answers, file against file: `recurra score`."""

from __future__ import annotations

from pathlib import Path

from recurra.data.formats import Row, rows
from recurra.errors import DataError
from recurra.metrics.labels import accuracy, macro_f1
from recurra.metrics.spans import scheme_of, span_scores
from recurra.named import did_you_mean

KNOWN = ("tags", "upos", "label", "target", "text")
"""Columns that hold answers, in the order in which they are looked for."""


def score_files(gold: str | Path, predicted: str | Path, *, column: str | None = None) -> dict[str, float]:
    """Accuracy, and F1 of spans where the tags mark spans, of predictions in the same order as the gold answers.

    Either file may be in any format; lines of text are tags separated by blanks, as `recurra predict` prints them.
    """
    wanted, found = list(rows(gold)), list(rows(predicted))
    if len(wanted) != len(found):
        raise DataError(f"{gold} holds {len(wanted):,} answers, but {predicted} {len(found):,}: there is one for each.")
    right = [answers(row, gold, column) for row in wanted]
    given = [answers(row, predicted, column) for row in found]
    for number, (one, other) in enumerate(zip(right, given, strict=True)):
        if len(one) != len(other):
            raise DataError(
                f"{gold}:{wanted[number].line} has {len(one)} tags, but {predicted}:{found[number].line} {len(other)}."
            )
    scores = {"accuracy": accuracy(right, given), "macro_f1": macro_f1(right, given)}
    if scheme_of(tag for tags in right for tag in tags) is not None:
        spans = span_scores(right, given)
        scores |= {"f1": spans.f1, "precision": spans.precision, "recall": spans.recall}
    whole = sum(one == other for one, other in zip(right, given, strict=True))
    scores["exact_match"] = whole / len(right)
    return scores | {"count": sum(map(len, right))}


def answers(row: Row, path: str | Path, column: str | None) -> list[str]:
    """The answers of a row as a list of words."""
    names = [column] if column is not None else [name for name in KNOWN if name in row.values]
    if column is not None and column not in row.values and list(row.values) == ["text"]:
        names = ["text"]  # what predict printed has no columns
    if not names or names[0] not in row.values:
        near = did_you_mean(column or "tags", row.values)
        raise DataError(f"{path}:{row.line}: there is no column '{column or 'tags'}'. {near} Name it by --column.")
    value = row.values[names[0]]
    if isinstance(value, str):
        return value.split("\t")[0].split()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [str(item) for item in value]
    raise DataError(f"{path}:{row.line}: '{names[0]}' must hold words, but is {value!r:.60}.")
