"""How what a network says of coming steps becomes an answer: values, an interval, quantiles and times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.forecasts.conventions import Conventions
from recurra.forecasts.intervals import Ends, Intervals
from recurra.metrics.forecast_errors import LEVELS
from recurra.reading.covariates import check_ahead
from recurra.reading.steps import Steps
from recurra.views.prediction import Prediction

Floats = NDArray[np.float64]

SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of an answer."""

REVERSED = ("low", "high", "mean", "probabilities")
"""Parts of an answer that are in the order in which a series is read."""


def answer(conventions: Conventions, intervals: Intervals, example: Steps, output: Any) -> Prediction:
    """What the user sees of a forecast."""
    detail: dict[str, Any] = {"series": example.name} if example.name else {}
    if len(example) == 0 and not conventions.from_nothing:
        return Prediction("", "", 0.0, example.line, {**detail, "values": []})
    check_ahead(example, conventions.data, conventions.horizon)
    unit, last = conventions.unit_of(example), conventions.last_of(example)
    values = said = unit.ahead(output.values, last)
    outside = 1 - intervals.of_model
    ends: Ends | None = None
    mean = unit.ahead(output.means, last) if conventions.has_mean else None
    if output.paths is not None:
        paths = unit.ahead(output.paths, last)
        low, values, high = np.quantile(paths, (outside / 2, 0.5, 1 - outside / 2), axis=0)
        ends, mean = (low, high), paths.mean(0)
    elif output.fan is not None:
        fan = unit.fan(output.fan, last)  # (h, L, d)
        ends = _level(fan, outside / 2), _level(fan, 1 - outside / 2)
    if not conventions.gives_coins and (levels := quantiles(conventions, example, output)):
        detail["quantiles"] = {f"{level:g}": each.tolist() for level, each in levels.items()}
    if conventions.gives_coins:
        means = output.means
        if output.paths is not None:
            values, means = (values > 0.5).astype(float), paths.mean(0)
        detail["probabilities"] = means.round(6).tolist()
    elif (found := intervals.of_answer(example, said, ends, output.past)) is not None:
        detail |= {"low": found[0].tolist(), "high": found[1].tolist()}
    if mean is not None and not conventions.gives_coins:
        detail["mean"] = mean.tolist()
    if conventions.is_backward:  # the steps before the first, in the order of time
        values = values[::-1]
        detail |= {name: detail[name][::-1] for name in REVERSED if name in detail}
        if "quantiles" in detail:
            detail["quantiles"] = {level: each[::-1] for level, each in detail["quantiles"].items()}
    detail["values"] = values.tolist()
    ahead = None if conventions.is_backward else example.moments_ahead(len(values))
    if ahead is not None:
        detail["times"] = example.written(ahead)
    text = " ".join(",".join(f"{number:.6g}" for number in step) for step in values)
    return Prediction(example.name, text, output.score, example.line, detail)


def quantiles(conventions: Conventions, example: Steps, output: Any) -> dict[float, Floats]:
    """By levels, (h, d): quantiles of the steps ahead, of the model or of paths that were drawn; {}: neither."""
    unit, last = conventions.unit_of(example), conventions.last_of(example)
    if output.paths is not None:
        return dict(zip(SHOWN, np.quantile(unit.ahead(output.paths, last), SHOWN, axis=0), strict=True))
    if output.fan is None:
        return {}
    fan = unit.fan(output.fan, last)  # (h, L, d)
    return {level: _level(fan, level) for level in SHOWN}


def _level(fan: Floats, level: float) -> Floats:
    """(h, d): a quantile by those around it, (h, L, d)."""
    place = np.interp(level, LEVELS, np.arange(len(LEVELS)))
    low, part = int(place), place % 1
    high = min(low + 1, len(LEVELS) - 1)
    return (1 - part) * fan[:, low] + part * fan[:, high]
