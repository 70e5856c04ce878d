"""Backtests: forecasts from several origins at the end of each series, beside what came and what simple rules said.

Scores of one series are means over its windows, steps and columns; those of all are means over series (but `mae`, which
is a mean over all values). h the horizon, d the values of a step, L levels.
"""

from __future__ import annotations

import csv
import functools
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

SCORED = ("window", "step", "series")
"""Of what a data frame may have scores."""

LISTED = 20
"""Series of which scores are printed; of more, the worst."""

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
    was_seen: bool = False  # in the training data or what was held out of it, at least in part

    def of_step(self, step: int) -> Rolling:
        """The forecast of one step ahead alone, from 1."""
        one = slice(step - 1, step)
        return self._replace(
            moments=self.moments[one],
            actual=self.actual[one],
            said={method: said[one] for method, said in self.said.items()},
            fan=None if self.fan is None else self.fan[one],
            ends=None if self.ends is None else (self.ends[0][one], self.ends[1][one]),
        )


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
        return self._scores_of([each for each in self.forecasts if window in (None, each.window)])

    def scores_of_step(self, step: int) -> dict[str, dict[str, float]]:
        """The same of one step ahead, from 1, in all windows."""
        return self._scores_of([each.of_step(step) for each in self.forecasts])

    def scores_of_series(self, series: str) -> dict[str, dict[str, float]]:
        """The same of one series, in all windows."""
        return self._scores_of(self._by_series[series])

    def _scores_of(self, chosen: Sequence[Rolling]) -> dict[str, dict[str, float]]:
        found = {method: _scores(_grouped(chosen).values(), method) for method in self.methods}
        found[MODEL] |= _of_distributions(chosen)
        return found

    @functools.cached_property
    def _by_series(self) -> dict[str, list[Rolling]]:
        return _grouped(self.forecasts)

    @property
    def steps(self) -> range:
        """The steps ahead, from 1."""
        return range(1, len(self.forecasts[0].moments) + 1)

    @property
    def series(self) -> list[str]:
        return list(self._by_series)

    def table(self) -> Table:
        """All windows together: the model and each simple rule."""
        scores = self.scores()
        names = list(scores[MODEL])
        rows = [[method, *(each.get(name, "") for name in names)] for method, each in scores.items()]
        return Table(["all windows", *names], rows)

    def by_window(self) -> Table:
        """The model in each window, and the mean absolute scaled error of each rule."""
        return self._table("window", {str(window): self.scores(window) for window in self.windows})

    def by_step(self) -> Table:
        """The same of each step ahead, in all windows together."""
        return self._table("step", {str(step): self.scores_of_step(step) for step in self.steps})

    def by_series(self, most: int | None = None) -> Table:
        """The same of each series, in all windows together; of more than `most`, those with the largest mase."""
        scores = {name: self.scores_of_series(name) for name in self.series}
        if most is not None and len(scores) > most:
            sizes = {name: each[MODEL]["mase"] for name, each in scores.items()}
            worst = sorted(sizes, key=lambda name: -sizes[name] if math.isfinite(sizes[name]) else math.inf)
            scores = {name: scores[name] for name in worst[:most]}
        return self._table("series", scores)

    def _table(self, head: str, every: dict[str, dict[str, dict[str, float]]]) -> Table:
        names = list(next(iter(every.values()))[MODEL])
        rules = [method for method in self.methods if method != MODEL]
        rows = [
            [label, *scores[MODEL].values(), *(scores[rule]["mase"] for rule in rules)]
            for label, scores in every.items()
        ]
        return Table([head, *names, *(f"{rule} mase" for rule in rules)], rows)

    def text(self) -> str:
        """For the terminal."""
        series, windows, horizon = len(self.series), len(self.windows), len(self.steps)
        how = "trained anew for each" if self.refitted else "with the weights of the run"
        counted = f"{windows} windows" if windows > 1 else "1 window"
        head = f"{series:,} series, {counted} of {horizon} steps, {how}"
        if seen := self.seen:
            count = len(self.forecasts)
            which = f"all {count:,}" if seen == count else f"{seen:,} of {count:,}"
            head += (
                f"\nthe run's training file has steps of {which} forecasts: new ones may be forecast less well; "
                "--refit trains anew for each window"
            )
        return "\n\n".join([head, *(table.text() for _, table in self._parts()), self.table().text()])

    @property
    def seen(self) -> int:
        """Forecasts of steps that are not new to the run."""
        return 0 if self.refitted else sum(each.was_seen for each in self.forecasts)

    def _parts(self) -> list[tuple[str, Table]]:
        """By window, by step and, of several, by series, under their titles."""
        found = [("Windows", self.by_window()), ("Steps ahead", self.by_step())]
        if (count := len(self.series)) > 1:
            title = "Series" if count <= LISTED else f"The {LISTED} worst of {count:,} series"
            found.append((title, self.by_series(LISTED)))
        return found

    def _repr_html_(self) -> str:
        """What a notebook shows: the scores of all windows, the forecasts beside what came, and each window."""
        parts = [
            f"<details><summary>{title}</summary>{table_in_html(table)}</details>" for title, table in self._parts()
        ]
        return in_notebook("\n".join([table_in_html(self.table()), self.view().html(), *parts]))

    def json(self) -> dict[str, Any]:
        """The same as numbers; what is not defined is left out."""

        def finite(scores: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
            return {
                method: {name: value for name, value in each.items() if math.isfinite(value)}
                for method, each in scores.items()
            }

        windows = [{"window": window, "scores": finite(self.scores(window))} for window in self.windows]
        steps = [{"step": step, "scores": finite(self.scores_of_step(step))} for step in self.steps]
        series = [{"series": name, "scores": finite(self.scores_of_series(name))} for name in self.series]
        parts = {"windows": windows, "steps": steps, "series": series}
        return {"scores": finite(self.scores()), **parts, "refitted": self.refitted, "seen": self.seen}

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

    def to_frame(self, library: str | None = None, *, by: str | None = None) -> Any:
        """A data frame of "pandas", "polars" or "pyarrow": all forecasts, a row for each step and column.

        With `by` it has the scores instead: of each "window", "step" ahead or "series".
        """
        if by is None:
            head, *rows = self.rows()
        elif by in SCORED:
            table = {"window": self.by_window, "step": self.by_step, "series": self.by_series}[by]()
            head, rows = list(table.columns), [[_number(by, row[0]), *row[1:]] for row in table.rows]
        else:
            raise ConfigError(
                f"to_frame(by='{by}') is not known: by is {', '.join(SCORED)}, or nothing: all forecasts."
            )
        columns = {str(name): [row[number] for row in rows] for number, name in enumerate(head)}
        return made_frame(columns, like_named(library), "to_frame")

    def __repr__(self) -> str:
        return self.text()

    def view(self) -> Lines:
        """The first series and columns: actual values in gray, forecasts in orange, each with its interval."""
        names = list(dict.fromkeys(each.series for each in self.forecasts))
        pairs = [(name, j) for name in names for j in range(len(self.columns))]
        ends = {name: max(e.origin + len(e.moments) for e in self._by_series[name]) for name, _ in pairs[:SHOWN]}
        is_aligned = len(set(ends.values())) > 1  # else the longest series would leave the others little room
        panels = [self._panel(name, j, ends[name] if is_aligned else 0) for name, j in pairs[:SHOWN]]
        left_out = f", the first {SHOWN} of {len(pairs)} series and columns" if len(pairs) > SHOWN else ""
        return Lines(
            panels,
            "step, counted from the last one of each series" if is_aligned else "step of the series",
            title="Backtest",
            caption=f"forecasts from {len(self.windows)} origins{left_out}",
            about="Each orange curve is a forecast that was made from the values before it alone; gray shows the "
            "actual values, and the shaded area the interval of the forecast, if it has one.",
        )

    def _panel(self, series: str, j: int, zero: int) -> Panel:
        """The forecasts of one column of a series; its steps are counted from the step `zero`."""
        chosen = self._by_series[series]
        first = chosen[0]
        start = first.origin - len(first.before) - zero
        known = dict(enumerate(first.before[:, j].tolist(), start + 1))
        for each in chosen:
            known |= dict(enumerate(each.actual[:, j].tolist(), each.origin - zero + 1))
        places = range(start + 1, max(known) + 1)  # what lies between two windows that do not meet is a gap
        curves = [Curve("actual", [known.get(place, math.nan) for place in places], list(places), "soft")]
        bands = []
        for number, each in enumerate(chosen):
            begin = each.origin - zero
            ahead = list(range(begin + 1, begin + len(each.moments) + 1))
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


def _grouped(forecasts: Sequence[Rolling]) -> dict[str, list[Rolling]]:
    found: dict[str, list[Rolling]] = {}
    for each in forecasts:
        found.setdefault(each.series, []).append(each)
    return found


def _number(by: str, label: object) -> object:
    """What stands in the first column of a data frame."""
    return label if by == "series" else int(str(label))


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
