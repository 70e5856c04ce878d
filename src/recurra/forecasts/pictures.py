"""Views of a forecast: beside what came, and of what it looked at."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from recurra.config.forecasting import ForecastingDecoding
from recurra.errors import ConfigError, DataError
from recurra.forecasts.answers import quantiles
from recurra.forecasts.conventions import Conventions
from recurra.forecasts.intervals import USUAL, Intervals
from recurra.reading.covariates import check_ahead
from recurra.reading.steps import Steps
from recurra.settings import name_of
from recurra.views.prediction import Prediction
from recurra.views.view import View
from recurra.views.viewer import FORESEEN, Asked

if TYPE_CHECKING:
    from recurra.analysis.forecasts import Forecast
    from recurra.analysis.gates import Gates

NO_FILE = "input"
"""Where a series is from that is asked about without a file."""


class Forecasts(Protocol):
    """What a picture needs of a task."""

    @property
    def conventions(self) -> Conventions: ...
    @property
    def intervals(self) -> Intervals: ...
    def decoding_by(self, decoding: ForecastingDecoding) -> Self: ...
    def output_asked(self, asked: Asked) -> Any: ...
    def answer(self, example: Steps, output: Any) -> Prediction: ...


def forecast(task: Forecasts, asked: Asked) -> Forecast:
    """A forecast of the end of a series, which is hidden from the model, beside what came. (torch)"""
    from recurra.analysis import forecasts
    from recurra.models.together import Together

    conventions, intervals = task.conventions, task.intervals
    series, horizon = asked.example, conventions.horizon
    now = len(series) - horizon
    if now < 2:
        raise DataError(
            f"the series is too short: it has {len(series)} steps, of which the last {horizon} (the horizon) "
            "are hidden to compare the forecast with them, and at least 2 must be left as input. Give a "
            "longer series, or set a smaller --set decoding.horizon=…."
        )
    has_paths = intervals.has_paths
    coverage = intervals.coverage if intervals.calibrations or has_paths else None
    paths = forecasts.PATHS if has_paths and not conventions.is_direct else 0
    decoding = dataclasses.replace(conventions.settings.decoding, paths=paths, coverage=coverage)
    task = task.decoding_by(decoding)
    if isinstance(asked.model, Together):
        tasks = [each.decoding_by(decoding) for each in asked.model.tasks]
        asked = asked._replace(model=Together(tasks, list(asked.model.members)))
    known = series.cut(max(0, now - forecasts.READ), now)
    output = task.output_asked(asked._replace(example=known))
    answer, levels = task.answer(known, output), quantiles(conventions, known, output)
    names = conventions.settings.data.predicted or [str(number + 1) for number in range(series.values.shape[1])]
    low, high = (np.array(answer.detail[name]) if name in answer.detail else None for name in ("low", "high"))
    file = "" if series.place.startswith(f"{NO_FILE}:") else os.path.basename(series.place)
    steps = f"steps {horizon} to 1" if conventions.is_backward else f"steps {now + 1} to {len(series)}"
    if (moments := series.moments) is not None:  # of a series that goes on, steps are counted before its first row
        steps = " to ".join(series.written(moments[[now, -1]]))
    said = np.array(answer.detail["values"])
    if conventions.is_backward:  # it was read that way, and is drawn so
        said, low, high = said[::-1], *(None if each is None else each[::-1] for each in (low, high))
    inner = {share: (levels[a], levels[b]) for share, (a, b) in forecasts.INNER.items() if levels}
    return forecasts.Forecast(
        ", ".join(filter(None, [series.name or file, steps])),
        list(names),
        series.values[max(0, now - forecasts.BEFORE) : now],
        said,
        series.values[now:],
        low,
        high,
        "step back" if conventions.is_backward else "step ahead",
        USUAL if coverage is None else coverage,
        inner,
    )


def decoder_gates(conventions: Conventions, asked: Asked) -> Gates:
    """Gates and states of the decoder at each step after the end of a series that it forecast. (torch)"""
    from recurra.analysis.gates import gates_of_decoder
    from recurra.models.series_batch import batched
    from recurra.padding import fitted

    if asked.direction == "backward":
        raise ConfigError("--direction backward: a decoder reads forward only.")
    series, network = _to_look_at(conventions, asked), asked.model
    row = conventions.encode(series)
    return gates_of_decoder(
        network,
        _named_ahead(series, network.direct.horizon),
        lambda model: model.looked(fitted(batched([row]), model)),
        layer=asked.layer,
        part="direct",
        heading=FORESEEN,
    )


def _to_look_at(conventions: Conventions, asked: Asked) -> Steps:
    """The series that is asked about, if there is something in it to look at."""
    series: Steps = asked.example
    if not len(series):
        raise DataError("the series has no steps that a forecast could look at. Give some.")
    check_ahead(series, conventions.data, conventions.horizon)
    return series


def _named_ahead(series: Steps, steps: int) -> list[str]:
    """What the steps after the end of a series are called: their times, or their numbers."""
    moments = series.moments_ahead(steps)
    if moments is None:
        return [str(len(series) + number) for number in range(1, steps + 1)]
    return list(series.written(moments))


def looked(conventions: Conventions, asked: Asked) -> View:
    """How much each step of the forecast after the end of a series looked at each step of it. (torch)"""
    from recurra.analysis.looking_back import looking_back
    from recurra.models.series_batch import batched
    from recurra.padding import fitted

    horizon, model = conventions.horizon, conventions.settings.model
    series = _to_look_at(conventions, asked)
    network: Any = asked.model
    [weights] = network.looked(fitted(batched([conventions.encode(series)]), network))
    steps = min(horizon, len(weights))
    ahead = _named_ahead(series, steps)
    shown = "" if steps == horizon else f", the first {steps} steps of the forecast (model.horizon)"
    caption = f"{series.name or 'series'}: attention ({name_of(model.attention)}){shown}"
    return looking_back(weights[:steps], conventions.moments(series)[-weights.shape[1] :], ahead, caption)
