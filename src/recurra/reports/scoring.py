"""Predictions against answers, file against file: `recurra score`."""

from __future__ import annotations

from pathlib import Path

from recurra.data.formats import Row, rows
from recurra.errors import DataError
from recurra.metrics.spans import scheme_of
from recurra.named import did_you_mean
from recurra.scoring.counted import Counted
from recurra.scoring.formulas import macro, total
from recurra.scoring.tag_scores import Column, numbered, tag_scores

KNOWN = ("tags", "upos", "label", "target", "text")
"""Columns that hold answers, in the order in which they are looked for."""


def score_files(gold: str | Path, predicted: str | Path, *, column: str | None = None) -> dict[str, float]:
    """Accuracy, and F1 of spans where the tags mark spans, of predictions in the same order as the gold answers.

    Either file may be in any format; lines of text are tags separated by blanks, as `recurra predict` prints them. A
    label is one answer, also where it has several words. An element without a gold answer does not count.
    """
    wanted, found = list(rows(gold)), list(rows(predicted))
    if len(wanted) != len(found):
        raise DataError(
            f"{gold} holds {len(wanted):,} answers, but {predicted} {len(found):,}: both files need the same number."
        )
    is_label = column_of(wanted[0], gold, column) == "label"
    right, given = [], []
    for row, other in zip(wanted, found, strict=True):
        answer = answers(row, gold, column, is_label=is_label)
        guess = answers(other, predicted, column, is_label=is_label)
        if len(answer) != len(guess):
            raise DataError(
                f"{gold}:{row.line} has {len(answer)} tags, but {predicted}:{other.line} {len(guess)}: both files "
                f"need one tag per element."
            )
        right.append(answer)
        given.append(guess)
    labels: dict[str, int] = {}
    true = numbered(right, labels)
    has_spans = scheme_of(labels) is not None
    said = numbered(given, labels)
    try:
        counted = tag_scores(
            [row.line for row in wanted],
            [len(tags) for tags in right],
            [Column(column_of(wanted[0], gold, column), list(labels), true, said, has_spans)],
        )
    except DataError as error:
        raise DataError(f"{predicted}: {error}") from error
    return values_of(counted, has_spans=has_spans)


def values_of(counted: Counted, *, has_spans: bool) -> dict[str, float]:
    """What the command shows of one column of tags."""
    sums = counted.sums()
    scores = {"accuracy": counted.value("accuracy"), "macro_f1": float(macro("0.tag_")["f1"](sums))}
    scores |= {name: counted.value(name) for name in ("f1", "precision", "recall") if has_spans}
    return scores | {"exact_match": counted.value("sentence_accuracy"), "count": int(total("0.steps")(sums))}


def column_of(row: Row, path: str | Path, column: str | None) -> str:
    """The column that holds the answers."""
    if column is not None and list(row.values) == ["text"]:
        return "text"  # what predict printed has no columns
    names = [column] if column is not None else [name for name in KNOWN if name in row.values]
    if not names or names[0] not in row.values:
        near = did_you_mean(column or "tags", row.values)
        texts = "" if column is not None else " Where the answers are texts, add --task seq2seq."
        raise DataError(
            f"{path}:{row.line}: there is no column '{column or 'tags'}'. {near} Set it with --column.{texts}"
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
