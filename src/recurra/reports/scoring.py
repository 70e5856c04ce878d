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

    Either file may be in any format; lines of text are tags separated by blanks, as `recurra predict` prints them. A
    label is one answer, also where it has several words. An element without a gold answer does not count.
    """
    wanted, found = list(rows(gold)), list(rows(predicted))
    if len(wanted) != len(found):
        raise DataError(f"{gold} holds {len(wanted):,} answers, but {predicted} {len(found):,}: there is one for each.")
    is_label = column_of(wanted[0], gold, column) == "label"
    right, given = [], []
    for row, other in zip(wanted, found, strict=True):
        answer = answers(row, gold, column, is_label=is_label)
        guess = answers(other, predicted, column, is_label=is_label)
        if len(answer) != len(guess):
            raise DataError(
                f"{gold}:{row.line} has {len(answer)} tags, but {predicted}:{other.line} {len(guess)}: "
                f"there is one for each element."
            )
        kept = [pair for pair in zip(answer, guess, strict=True) if pair[0]]
        right.append([pair[0] for pair in kept])
        given.append([pair[1] for pair in kept])
    scores = {"accuracy": accuracy(right, given), "macro_f1": macro_f1(right, given)}
    if scheme_of(tag for tags in right for tag in tags) is not None:
        try:
            spans = span_scores(right, given)
        except DataError as error:
            raise DataError(f"{predicted}: {error}") from error
        scores |= {"f1": spans.f1, "precision": spans.precision, "recall": spans.recall}
    exact = sum(one == other for one, other in zip(right, given, strict=True))
    return scores | {"exact_match": exact / len(right), "count": sum(map(len, right))}


def column_of(row: Row, path: str | Path, column: str | None) -> str:
    """The column that holds the answers."""
    if column is not None and list(row.values) == ["text"]:
        return "text"  # what predict printed has no columns
    names = [column] if column is not None else [name for name in KNOWN if name in row.values]
    if not names or names[0] not in row.values:
        near = did_you_mean(column or "tags", row.values)
        texts = "" if column is not None else " Where the answers are texts, add --task seq2seq."
        raise DataError(
            f"{path}:{row.line}: there is no column '{column or 'tags'}'. {near} Name it by --column.{texts}"
        )
    return names[0]


def answers(row: Row, path: str | Path, column: str | None, *, is_label: bool = False) -> list[str]:
    """The answers of a row as a list of words, "" where there is none."""
    name = column_of(row, path, column)
    value = row.values[name]
    if isinstance(value, str):
        return [value.strip()] if is_label else value.split("\t")[0].split()
    if isinstance(value, list) and all(isinstance(item, str) or item is None for item in value):
        return [str(item or "") for item in value]
    raise DataError(f"{path}:{row.line}: '{name}' must hold words, but is {value!r:.60}.")
