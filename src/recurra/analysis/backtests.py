"""Backtests: forecasts from several origins at the end of each series, beside what came and what simple rules said.

Scores of one series are means over its windows, steps and columns; those of all are means over series (but `mae`, which
is a mean over all values). h the horizon, d the values of a step, L levels.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.data.frames import like_named, made_frame
from recurra.errors import ConfigError
from recurra.metrics.forecast_errors import (
    LEVELS,
    percentage_errors,
    pinball,
    symmetric_percentage_errors,
)
from recurra.views.lines import Band, Curve, Lines, Panel
from recurra.views.page import in_notebook, table_in_html
from recurra.views.table import Table

Floats = NDArray[np.float64]

MODEL = "model"

VALUE = 6
"""The column of a table of forecasts that holds what came."""

SHOWN = 3
"""Series and columns that are drawn, at most."""

HALF = (0.25, 0.75)
"""The levels between which half of the values should lie."""

HEIGHT = 180.0
"""Pixels of a panel."""


class Rolling(NamedTuple):
    """One forecast: of one series, from one origin."""

    series: str
    window: int  # from 1, the earliest
    origin: int  # steps that were known
    moments: Sequence[str]  # (h): when the steps ahead are
    actual: Floats  # (h, d); NaN where it is not known
    said: dict[str, Floats]  # (h, d): by the model and by simple rules
    scale: Floats  # (d,): the mean error of the seasonal rule before the origin, and the root of its square
    root_scale: Floats
    fan: Floats | None = None  # (h, L, d)
    ends: tuple[Floats, Floats] | None = None  # (h, d) each: of its interval
    before: Floats = np.zeros((0, 1))  # (T, d): the steps before the origin, as far as they are drawn


@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """All forecasts of a backtest.

    >>> one = Rolling("", 1, 2, ["3"], np.array([[4.0]]), {"model": np.array([[5.0]])}, np.ones(1), np.ones(1))
    >>> Backtest([one], ["x"]).scores()["model"]["mase"]
    1.0
    """

    forecasts: Sequence[Rolling]
    columns: Sequence[str]
    coverage: float = 0.9
    refitted: bool = False

    @property
    def windows(self) -> list[int]:
        return sorted({each.window for each in self.forecasts})

    @property
    def methods(self) -> list[str]:
        return list(self.forecasts[0].said)

    def scores(self, window: int | None = None) -> dict[str, dict[str, float]]:
        """Of each method, by the names of scores: of one window, or of all."""
        chosen = [each for each in self.forecasts if window in (None, each.window)]
        by_series: dict[str, list[Rolling]] = {}
        for each in chosen:
            by_series.setdefault(each.series, []).append(each)
        found = {method: _scores(by_series.values(), method) for method in self.methods}
        found[MODEL] |= _of_distributions(chosen)
        return found

    def table(self) -> Table:
        """All windows together: the model and each simple rule."""
        scores = self.scores()
        names = list(scores[MODEL])
        rows = [[method, *(each.get(name, "") for name in names)] for method, each in scores.items()]
        return Table(["all windows", *names], rows)

    def by_window(self) -> Table:
        """The model in each window, and the mean absolute scaled error of each rule."""
        every = [self.scores(window) for window in self.windows]
        names = list(every[0][MODEL])
        rules = [method for method in self.methods if method != MODEL]
        rows = [
            [str(window), *scores[MODEL].values(), *(scores[rule]["mase"] for rule in rules)]
            for window, scores in zip(self.windows, every, strict=True)
        ]
        return Table(["window", *names, *(f"{rule} mase" for rule in rules)], rows)

    def text(self) -> str:
        """For the terminal."""
        series, windows = len({each.series for each in self.forecasts}), len(self.windows)
        horizon = len(self.forecasts[0].moments)
        how = "trained anew for each" if self.refitted else "with the weights of the run"
        counted = f"{windows} windows" if windows > 1 else "1 window"
        head = f"{series:,} series, {counted} of {horizon} steps, {how}"
        return "\n\n".join([head, self.by_window().text(), self.table().text()])

    def _repr_html_(self) -> str:
        """What a notebook shows: the scores of all windows, the forecasts beside what came, and each window."""
        windows = f"<details><summary>Windows</summary>{table_in_html(self.by_window())}</details>"
        return in_notebook(f"{table_in_html(self.table())}\n{self.view().html()}\n{windows}")

    def json(self) -> dict[str, Any]:
        """The same as numbers; what is not defined is left out."""

        def finite(scores: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
            return {
                method: {name: value for name, value in each.items() if math.isfinite(value)}
                for method, each in scores.items()
            }

        windows = [{"window": window, "scores": finite(self.scores(window))} for window in self.windows]
        return {"scores": finite(self.scores()), "windows": windows, "refitted": self.refitted}

    def rows(self) -> Iterator[list[object]]:
        """A table of all forecasts, a row for each step and column; the head first."""
        has_ends, has_fan = self.forecasts[0].ends is not None, self.forecasts[0].fan is not None
        head = ["series", "window", "origin", "time", "step", "column", "value", "forecast"]
        head += ["low", "high"] if has_ends else []
        yield [*head, *([f"q{level:g}" for level in LEVELS] if has_fan else [])]
        for each in self.forecasts:
            for step, moment in enumerate(each.moments):
                for j, column in enumerate(self.columns):
                    value = float(each.actual[step, j])
                    row: list[object] = [each.series, each.window, each.origin, moment, step + 1, column]
                    row += [None if math.isnan(value) else value, float(each.said[MODEL][step, j])]
                    row += [] if each.ends is None else [float(end[step, j]) for end in each.ends]
                    row += [] if each.fan is None else each.fan[step, :, j].tolist()
                    yield row

    def write_csv(self, path: Path) -> None:
        """Write the table of all forecasts."""
        try:
            with open(path, "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(map(_written, self.rows()))
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error

    def to_frame(self, library: str | None = None) -> Any:
        """All forecasts as a data frame of "pandas", "polars" or "pyarrow": a row for each step and column."""
        head, *rows = self.rows()
        columns = {str(name): [row[number] for row in rows] for number, name in enumerate(head)}
        return made_frame(columns, like_named(library), "to_frame")

    def __repr__(self) -> str:
        return self.text()

    def view(self) -> Lines:
        """The first series and columns: actual values in gray, forecasts in orange, each with its interval."""
        names = list(dict.fromkeys(each.series for each in self.forecasts))
        pairs = [(name, j) for name in names for j in range(len(self.columns))]
        panels = [self._panel(name, j) for name, j in pairs[:SHOWN]]
        left_out = f", the first {SHOWN} of {len(pairs)} series and columns" if len(pairs) > SHOWN else ""
        return Lines(
            panels,
            "step of the series",
            title="Backtest",
            caption=f"forecasts from {len(self.windows)} origins{left_out}",
            about="Each orange curve is a forecast that was made from the values before it alone; gray shows the "
            "actual values, and the shaded area the interval of the forecast, if it has one.",
        )

    def _panel(self, series: str, j: int) -> Panel:
        chosen = [each for each in self.forecasts if each.series == series]
        first = chosen[0]
        start = first.origin - len(first.before)
        known = dict(enumerate(first.before[:, j].tolist(), start + 1))
        for each in chosen:
            known |= dict(enumerate(each.actual[:, j].tolist(), each.origin + 1))
        places = range(start + 1, max(known) + 1)  # what lies between two windows that do not meet is a gap
        curves = [Curve("actual", [known.get(place, math.nan) for place in places], list(places), "soft")]
        bands = []
        for number, each in enumerate(chosen):
            ahead = list(range(each.origin + 1, each.origin + len(each.moments) + 1))
            curves.append(Curve("" if number else "forecast", each.said[MODEL][:, j], ahead, "strong"))
            if each.ends is not None:
                low, high = (end[:, j] for end in each.ends)
                bands.append(Band("" if number else f"{100 * self.coverage:g} % interval", low, high, ahead))
            if each.fan is not None:
                low, high = (each.fan[:, LEVELS.index(level), j] for level in HALF)
                bands.append(Band("" if number else "50 % interval", low, high, ahead))
        title = ", ".join(filter(None, [series, self.columns[j] if len(self.columns) > 1 or not series else ""]))
        return Panel(title, curves, HEIGHT, bands=bands)


def _written(row: Sequence[object]) -> list[object]:
    """A row of the table of forecasts as CSV has it: what was forecast is as exact as a network."""
    digits = [9 if number == VALUE else 7 for number in range(len(row))]
    return [f"{cell:.{n}g}" if isinstance(cell, float) else cell for cell, n in zip(row, digits, strict=True)]


def _scores(series: Any, method: str) -> dict[str, float]:
    """By the names of scores, from the forecasts of each series."""
    errors: list[Floats] = []
    means: dict[str, list[float]] = {name: [] for name in ("mase", "rmsse", "smape", "mape")}
    for forecasts in series:
        terms: dict[str, list[Floats]] = {name: [] for name in means}
        for each in forecasts:
            said, actual = each.said[method], each.actual
            apart = np.abs(said - actual)
            errors.append(apart)
            terms["mase"].append(apart / each.scale)
            terms["rmsse"].append(np.square(apart / each.root_scale))
            terms["smape"].append(symmetric_percentage_errors(actual, said))
            terms["mape"].append(percentage_errors(actual, said))
        for name, some in terms.items():
            mean = _mean(np.concatenate(some))
            means[name].append(math.sqrt(mean) if name == "rmsse" else mean)
    return {"mae": _mean(np.concatenate(errors)), **{name: _mean(np.array(each)) for name, each in means.items()}}


def _of_distributions(forecasts: Sequence[Rolling]) -> dict[str, float]:
    """CRPS, and how many values lie inside of how wide intervals, where there are such."""
    found = {}
    if forecasts[0].fan is not None:
        losses = [
            2 * pinball(each.fan.swapaxes(1, 2), each.actual, np.array(LEVELS)).mean(-1)
            for each in forecasts
            if each.fan is not None
        ]
        found["crps"] = _mean(np.array(losses))
    if forecasts[0].ends is not None:
        inside, widths = [], []
        for each in forecasts:
            assert each.ends is not None
            low, high = each.ends
            is_known = ~np.isnan(each.actual)
            inside.append(((low <= each.actual) & (each.actual <= high))[is_known])
            widths.append((high - low)[is_known])
        found |= {"coverage": _mean(np.concatenate(inside).astype(np.float64)), "width": _mean(np.concatenate(widths))}
    return found


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan
