"""Forecasts as CSV: a row for each series, step ahead and column, with the ends of its interval and its quantiles."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from recurra.views.prediction import Prediction

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
        parts = _parts(answer.detail)
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        values = answer.detail["values"]
        if values and not has_head:
            table.writerow(["series", "time", "step", "column", *parts])
            has_head = True
        for number in range(len(values)):
            step = number - len(values) if backward else number + 1
            time = answer.detail["times"][number] if "times" in answer.detail else step
            for j, column in enumerate(columns):
                said = [format(part[number][j], NUMBER) for part in parts.values()]
                table.writerow([answer.detail.get("series", ""), time, step, column, *said])
        yield text.getvalue()


def _parts(detail: dict[str, Any]) -> dict[str, Any]:
    """What an answer says of each step and column, under the names of the head."""
    found = {"forecast": detail["values"]}
    found |= {name: detail[name] for name in ("low", "high") if name in detail}
    if "probabilities" in detail:
        found["probability"] = detail["probabilities"]
    return found | {f"q{level}": part for level, part in detail.get("quantiles", {}).items()}
