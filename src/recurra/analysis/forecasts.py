"""Forecasts beside what came: the end of a series is hidden from a model, which is asked to go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recurra.views.lines import Band, Curve, Lines, Panel
from recurra.views.view import rounded
from recurra.views.viewer import FORECAST

BEFORE, READ, COLUMNS = 60, 1000, 3
"""Steps that are drawn before a forecast; that are read; columns that are drawn."""

PATHS = 100
"""Continuations that are drawn to tell how sure a model is."""

HEIGHT = 150.0
"""Pixels of a column."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """A series before a moment, (T, d); what was said then and what came, (h, d); where most of what is likely lies."""

    title: str
    columns: Sequence[str]
    before: NDArray[np.float64]
    said: NDArray[np.float64]
    came: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    axis: str = "step ahead"
    coverage: float = 0.9

    def view(self) -> Lines:
        """A panel for each of the first columns: the series in gray, the forecast in orange over it.

        >>> line = np.arange(6.0)[:, None]
        >>> print(Forecast("a", ["x"], line[3:4], line[4:] + 1, line[4:]).view().text())
        a
        step ahead actual forecast
        0               3        –
        1               4        5
        2               5        6
        """
        panels = []
        for column, name in list(enumerate(self.columns))[:COLUMNS]:
            before, said, came = (each[:, column].tolist() for each in (self.before, self.said, self.came))
            ahead = list(range(1, len(said) + 1))
            series = Curve("actual", [*before, *came], list(range(1 - len(before), len(came) + 1)), "soft")
            forecast = Curve("forecast", said, ahead, "strong")
            bands = []
            if self.low is not None and self.high is not None:
                low, high = (each[:, column].tolist() for each in (self.low, self.high))
                bands.append(Band(f"{100 * self.coverage:g} % interval", low, high, ahead))
            panels.append(Panel(name, [series, forecast], HEIGHT, bands=bands))
        left_out = f", the first {COLUMNS} of {len(self.columns)} columns" if len(self.columns) > COLUMNS else ""
        return Lines(
            panels,
            self.axis,
            together=True,
            title=FORECAST,
            caption=self.title + left_out,
            about=f"The {'beginning' if self.axis == 'step back' else 'end'} of the series was hidden from the model: "
            "gray shows the actual values, orange the forecast, and the shaded area its "
            f"{100 * self.coverage:g} % interval, if the model predicts one. Point at a step for its numbers.",
            numbers={
                "columns": list(self.columns),
                **{name: rounded(getattr(self, name)) for name in ("before", "said", "came")},
                "low": None if self.low is None else rounded(self.low),
                "high": None if self.high is None else rounded(self.high),
            },
        )
