"""Scores by length, of one run or of several side by side: whether long inputs are harder, and for whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recurra.errors import DataError
from recurra.text.visible import without_controls
from recurra.views.lines import IN_TURN, Curve, Lines, Panel
from recurra.views.table import Table

HEIGHT, ITEMS_HEIGHT = 250.0, 90.0
"""Pixels of the scores, and of the items below them."""


@dataclass(frozen=True)
class ByLength:
    """The scores of runs in the same buckets of lengths, with the items of each bucket; NaN: not known.

    >>> ByLength(["1-9", "10-19"], [40, 60], {"with": [31.5, 30.0], "without": [30.5, 21.0]}, score="bleu").runs["with"]
    [31.5, 30.0]
    """

    buckets: Sequence[str]
    items: Sequence[int]
    runs: Mapping[str, Sequence[float]]
    score: str = "score"
    axis: str = "source length"

    def __post_init__(self) -> None:
        if not self.buckets or not self.runs:
            raise DataError("scores by length need at least one bucket and one run.")
        for name, values in {"the items": self.items, **self.runs}.items():
            if len(values) != len(self.buckets):
                raise DataError(
                    f"scores by length have {len(self.buckets)} buckets, but {name} has {len(values)} values."
                )

    @classmethod
    def of(cls, tables: Mapping[str, Table], score: str) -> ByLength:
        """From each run's table "by length", as evaluation gives it, the column of one score.

        >>> table = Table(["source length", "items", "bleu"], [["1-9", 40, 31.5], ["10-19", 60, 30.0]])
        >>> ByLength.of({"attention": table}, "bleu").items
        [40, 60]
        """
        first = next(iter(tables.values()), Table([], []))
        for name, table in tables.items():
            if score not in table.columns[2:]:
                known = ", ".join(table.columns[2:])
                raise DataError(f"the scores by length of {name} have no {score}. Known: {known}.")
            if [row[:2] for row in table.rows] != [row[:2] for row in first.rows]:
                raise DataError(
                    f"{name} has different length buckets from {next(iter(tables))}: compare runs on the same data "
                    f"with the same tokenizer."
                )
        return cls(
            [str(row[0]) for row in first.rows],
            [int(row[1]) for row in first.rows],
            {name: [float(row[table.columns.index(score)]) for row in table.rows] for name, table in tables.items()},
            score=score,
        )

    def text(self) -> str:
        """A table with a row per bucket.

        >>> print(ByLength(["1-9", "10-19"], [40, 60], {"with": [0.5, 0.25], "without": [0.5, 0.125]}).text())
        length items   with without
        1-9       40 0.5000  0.5000
        10-19     60 0.2500  0.1250
        """
        rows = [
            [*row[:2], *map(float, row[2:])] for row in zip(self.buckets, self.items, *self.runs.values(), strict=True)
        ]
        return Table(["length", "items", *map(without_controls, self.runs)], rows).text()

    def view(self) -> Lines:
        """A line per run over the buckets, and below it the items of each bucket."""
        curves = []
        for number, (name, values) in enumerate(self.runs.items()):
            known = [place for place, value in enumerate(values) if math.isfinite(value)]
            look = IN_TURN[number % len(IN_TURN)]
            curves.append(Curve(name, [values[place] for place in known], known, look, dots=True))
        items = Panel("items", [Curve("items", list(map(float, self.items)))], ITEMS_HEIGHT, bars=True)
        score = without_controls(self.score)
        return Lines(
            [Panel(score, curves, HEIGHT), items], self.axis, list(self.buckets), title=f"{score} by {self.axis}"
        )
