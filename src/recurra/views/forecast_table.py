"""Forecasts as CSV: a row for each series, step ahead and column, with mean, the ends of its interval and quantiles."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from recurra.views.prediction import Prediction
from recurra.views.table import Table

HEAD = ("series", "time", "step", "column")

NUMBER = ".9g"
"""More places than a network has."""


def forecast_csv(answers: Iterable[Prediction], columns: Sequence[str], *, backward: bool = False) -> Iterator[str]:
    """The rows of each answer; the head stands before the first that has any.

    Steps are counted from 1, the first one ahead; those before a series that was read backward are negative.

    >>> answer = Prediction("a", "", 0.0, 1, {"series": "a", "values": [[1.0], [2.5]], "times": ["May", "June"]})
    >>> print("".join(forecast_csv([answer], ["x"])), end="")
    series,time,step,column,forecast
    a,May,1,x,1
    a,June,2,x,2.5
    """
    has_head = False
    for answer in answers:
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        if answer.detail["values"] and not has_head:
            table.writerow([*HEAD, *_parts(answer.detail)])
            has_head = True
        for row in _rows(answer, columns, backward=backward):
            table.writerow([*row[: len(HEAD)], *(format(number, NUMBER) for number in row[len(HEAD) :])])
        yield text.getvalue()


def forecast_table(answers: Iterable[Prediction], columns: Sequence[str], *, backward: bool = False) -> Table:
    """The same rows as values.

    >>> answer = Prediction("a", "", 0.0, 1, {"series": "a", "values": [[1.0], [2.5]], "times": ["May", "June"]})
    >>> forecast_table([answer], ["x"]).rows[0]
    ['a', 'May', 1, 'x', 1.0]
    """
    known = [answer for answer in answers if answer.detail["values"]]
    head = [*HEAD, *_parts(known[0].detail)] if known else [*HEAD, "forecast"]
    return Table(head, [row for answer in known for row in _rows(answer, columns, backward=backward)])


def _rows(answer: Prediction, columns: Sequence[str], *, backward: bool) -> Iterator[list[Any]]:
    values, parts = answer.detail["values"], _parts(answer.detail)
    for number in range(len(values)):
        step = number - len(values) if backward else number + 1
        time = answer.detail["times"][number] if "times" in answer.detail else step
        for j, column in enumerate(columns):
            said = [part[number][j] for part in parts.values()]
            yield [answer.detail.get("series", ""), time, step, column, *said]


def _parts(detail: dict[str, Any]) -> dict[str, Any]:
    """What an answer says of each step and column, under the names of the head."""
    found = {"forecast": detail["values"]}
    found |= {name: detail[name] for name in ("mean", "low", "high") if name in detail}
    if "probabilities" in detail:
        found["probability"] = detail["probabilities"]
    return found | {f"q{level}": part for level, part in detail.get("quantiles", {}).items()}
