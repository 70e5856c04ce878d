"""Forecasts beside what came: the end of a series is hidden from a model, which is asked to go on."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError
from recurra.reading.series import Steps
from recurra.tasks.forecasting import Forecasting
from recurra.training.trained import Trained
from recurra.views.lines import Band, Curve, Lines, Panel
from recurra.views.view import rounded

BEFORE, READ, COLUMNS = 60, 1000, 3
"""Steps that are drawn before a forecast; that are read; columns that are drawn."""

PATHS = 100
"""Continuations that are drawn to tell how sure a model is."""

HEIGHT = 150.0
"""Pixels of a column."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """A series before a moment, (T, d); what was said then and what came, (h, d); where 90 % of what is likely lies."""

    title: str
    columns: Sequence[str]
    before: NDArray[np.float64]
    said: NDArray[np.float64]
    came: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None

    def view(self) -> Lines:
        """A panel for each of the first columns: the series in gray, the forecast in orange over it.

        >>> line = np.arange(6.0)[:, None]
        >>> print(Forecast("a", ["x"], line[3:4], line[4:] + 1, line[4:]).view().text())
        a
        step ahead what came forecast
        0                  3        –
        1                  4        5
        2                  5        6
        """
        panels = []
        for column, name in list(enumerate(self.columns))[:COLUMNS]:
            before, said, came = (each[:, column].tolist() for each in (self.before, self.said, self.came))
            ahead = list(range(1, len(said) + 1))
            series = Curve("what came", [*before, *came], list(range(1 - len(before), len(came) + 1)), "soft")
            forecast = Curve("forecast", said, ahead, "strong")
            bands = []
            if self.low is not None and self.high is not None:
                low, high = (each[:, column].tolist() for each in (self.low, self.high))
                bands.append(Band("90 % of what is likely", low, high, ahead))
            panels.append(Panel(name, [series, forecast], HEIGHT, bands=bands))
        return Lines(
            panels,
            "step ahead",
            together=True,
            title="Forecast and what came",
            caption=self.title,
            about="The end of the series was hidden: gray is what came, orange what was forecast, with the shade in "
            "which 90 % of what is likely lies, where the model knows how sure it is. Point at a step for its numbers.",
            numbers={
                "columns": list(self.columns),
                **{name: rounded(getattr(self, name)) for name in ("before", "said", "came")},
                "low": None if self.low is None else rounded(self.low),
                "high": None if self.high is None else rounded(self.high),
            },
        )


def forecasts_of(model: Trained, series: Sequence[Steps], *, most: int = 3) -> list[Forecast]:
    """Forecasts of the ends of at most so many series; of fewer series, also of earlier parts."""
    task = model.task
    if not isinstance(task, Forecasting) or task.gives_coins:
        raise ConfigError(f"forecasts are drawn of series of numbers, but {model.folder} is no such run.")
    horizon = task.settings.decoding.horizon
    ends = [
        (each, len(each) - back * horizon)
        for back in range(most)
        for each in series
        if len(each) - (back + 1) * horizon >= 2
    ][:most]
    asked = model.with_settings([f"decoding.paths={PATHS}"]) if task.has_density else model
    return [_forecast(asked, each, end - horizon, end) for each, end in ends]


def _forecast(model: Trained, series: Steps, now: int, end: int) -> Forecast:
    read = slice(max(0, now - READ), now)
    [answer] = model.answers([dataclasses.replace(series, values=series.values[read], known=series.known[read])])
    width = series.values.shape[1]
    names = model.task.settings.data.values or [str(number + 1) for number in range(width)]
    low, high = (np.array(answer.detail[name]) if name in answer.detail else None for name in ("low", "high"))
    return Forecast(
        f"{series.name or os.path.basename(series.place)}, steps {now + 1} to {end}",
        list(names),
        series.values[max(0, now - BEFORE) : now],
        np.array(answer.detail["values"]),
        series.values[now:end],
        low,
        high,
    )
