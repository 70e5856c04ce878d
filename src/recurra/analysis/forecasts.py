"""Forecasts beside what came: the end of a series is hidden from a model, which is asked to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recurra.views.lines import Band, Curve, Lines, Panel
from recurra.views.view import rounded
from recurra.views.viewer import FORECAST

BEFORE, READ, COLUMNS = 60, 1000, 3
"""Steps that are drawn before a forecast; that are read; columns that are drawn."""

PATHS = 100
"""Continuations that are drawn to tell how sure a model is."""

INNER = {0.8: (0.1, 0.9), 0.5: (0.25, 0.75)}
"""Shares of the values that lie between two quantiles, which are drawn inside of the interval; the widest first."""

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
    inner: Mapping[float, tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=dict)  # by coverage

    @property
    def intervals(self) -> dict[float, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """The ends of the intervals by their coverage, the widest first."""
        if self.low is None or self.high is None:
            return {}
        within = {share: ends for share, ends in self.inner.items() if share < self.coverage}
        return {self.coverage: (self.low, self.high), **within}

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
            bands = [
                Band(f"{100 * share:g} % interval", low[:, column], high[:, column], ahead)
                for share, (low, high) in self.intervals.items()
            ]
            panels.append(Panel(name, [series, forecast], HEIGHT, bands=bands))
        left_out = f", the first {COLUMNS} of {len(self.columns)} columns" if len(self.columns) > COLUMNS else ""
        return Lines(
            panels,
            self.axis,
            together=True,
            title=FORECAST,
            caption=self.title + left_out,
            about=f"The {'beginning' if self.axis == 'step back' else 'end'} of the series was hidden from the model: "
            f"gray shows the actual values, orange the forecast, {self._shaded()}. Point at a step for its numbers.",
            numbers={
                "columns": list(self.columns),
                **{name: rounded(getattr(self, name)) for name in ("before", "said", "came")},
                "low": None if self.low is None else rounded(self.low),
                "high": None if self.high is None else rounded(self.high),
                "intervals": [
                    {"coverage": share, "low": rounded(low), "high": rounded(high)}
                    for share, (low, high) in self.intervals.items()
                ],
            },
        )

    def _shaded(self) -> str:
        shares = [f"{100 * share:g}" for share in self.intervals]
        if len(shares) < 2:
            return f"and the shaded area its {100 * self.coverage:g} % interval, if the model predicts one"
        shown = f"{', '.join(shares[:-1])} and {shares[-1]}"
        return f"and the shaded areas its {shown} % intervals, of which the narrowest has the strongest colour"
