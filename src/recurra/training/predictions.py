"""Predictions: the answers to several inputs, in their order; a list that can become a data frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recurra.data.frames import Like, like_named, made_frame
from recurra.tasks.task import Task
from recurra.views.prediction import Prediction
from recurra.views.table import Table

MOST_SHOWN = 20
"""Rows that a notebook shows."""


class Predictions(list[Prediction]):
    """The answers to several inputs, in their order."""

    def __init__(self, answers: Iterable[Prediction], task: Task[Any, Any, Any], like: Like | None = None) -> None:
        super().__init__(answers)
        self._task, self._like = task, like

    def table(self) -> Table:
        """The answers as rows: each its input, output and score, and what else answers of this kind have."""
        return self._task.tabled(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first answers."""
        from recurra.views.page import in_notebook, table_in_html

        table = self.table()
        more = len(table.rows) - MOST_SHOWN
        said = f"<p>{more:,} more</p>" if more > 0 else ""
        return in_notebook(table_in_html(table._replace(rows=table.rows[:MOST_SHOWN])) + said)

    def to_frame(self, library: str | None = None) -> Any:
        """The answers as a data frame: of the same library as the inputs, or of "pandas", "polars" or "pyarrow".

        Each input is a row, with the same index in pandas; each step of a forecast is one.
        """
        wanted = like_named(library)
        table = self.table()
        rows = [[*row, *[None] * (len(table.columns) - len(row))] for row in table.rows]
        columns = {name: [row[number] for row in rows] for number, name in enumerate(table.columns)}
        is_other = wanted is not None and (self._like is None or self._like.library != wanted.library)
        return made_frame(columns, wanted if is_other else self._like, "to_frame")
