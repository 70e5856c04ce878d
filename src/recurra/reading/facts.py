"""What a run keeps of the tables it was trained with: their frequency, scales, names, and the end of every series.

Scale of a series of n known values with mean m, variance v and mean size a = mean |x|

    s² = (n v + κ s₀²) / (n + κ),   s₀ = a · median over the training series of √v / a        κ = 2

so that a series of a few steps, or of equal ones, has a spread too; the column's own where that is 0 as well.
With data.difference, v and m are of the changes from step to step. With data.log, all are of log max(x, floor), the
floor being half of the smallest value above 0 that the series has. Of a model that forecasts all steps of a horizon
directly, v is of the changes in a season of S steps, by which forecasts differ from the last season:

    √v = mean |x_t − x_{t−S}| + σ / 20,   σ² the variance of the values

Values of an output for numbers above 0 (log_normal) and for counts are divided by a, and not shifted; a density of
counts is told a. Runs of versions up to 0.2 have one scale for counts, the mean of all series: `by_series` is false.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingData, ForecastingSettings
from recurra.config.forecasting import COUNTS, POSITIVE
from recurra.config.frequency import IRREGULAR, Frequency
from recurra.data.calendar import read_holidays
from recurra.data.normal import Normal
from recurra.data.times import Clock
from recurra.data.unit import Unit
from recurra.errors import CheckpointError
from recurra.metrics.forecast_errors import naive_errors
from recurra.opening import read_file
from recurra.reading.ends import Ends, EndsGathered, packed
from recurra.reading.steps import Steps, usual_step
from recurra.settings import name_of

KAPPA = 2.0
"""Values that the usual spread of a series counts as much as."""

MOST_NAMES = 256
"""Names of a column that are told apart, the most frequent ones; all others are one."""

FACTS, SERIES = "tables.json", "series.npz"


@dataclasses.dataclass(frozen=True)
class Facts:
    """What training learned of its tables; that of a run of an earlier version is empty."""

    frequency: str | None = None  # the step between times, or irregular; None: rows are counted, whatever their time
    clock: Clock | None = None
    by_series: bool = False  # whether each series has a scale of its own
    usual: NDArray[np.float64] | None = None  # (d,): the usual √v / a of a series
    names: Mapping[str, int] = dataclasses.field(default_factory=dict)  # of the series that have a scale
    means: NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))  # (S, d)
    spreads: NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))  # (S, d)
    covariates: Mapping[str, Normal] = dataclasses.field(default_factory=dict)  # by role: future, past, static
    words: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)  # of each column, the frequent first
    holidays: Sequence[int] = ()  # days since 1970
    step: float = 1.0  # what times are usually apart: seconds, or numbers
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ends: Mapping[str, Steps] = dataclasses.field(default_factory=dict)  # the last steps of each series
    floors: NDArray[np.float64] | None = None  # (S, d), with data.log
    errors: NDArray[np.float64] | None = None  # (S, 2, d): mean |x_t − x_{t−m}| and its square, NaN where unknown
    source: str | None = None  # the file that the ends are from; None: the training data

    def unit(self, steps: Steps, column: Normal, manner: Manner) -> Unit:
        """How one series is scaled: as in training where it was there, else by its steps before the first origin."""
        if not self.by_series:
            return Unit(column, manner.difference)
        if (number := self.names.get(steps.name)) is not None:
            floor = None if self.floors is None else self.floors[number]
            return Unit(Normal(self.means[number], self.spreads[number]), manner.difference, floor)
        seen = steps if steps.origin is None else steps.cut(0, max(1, steps.origin))
        return own_unit(seen, column, self.usual, manner)

    def errors_of(self, steps: Steps) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The mean |x_t − x_{t−m}| and its square of the training series that a series goes on with, m the season."""
        number = self.names.get(steps.name) if steps.preceding and self.source is None else None
        if number is None or self.errors is None:
            return None
        size, square = self.errors[number]
        return size, square

    def with_unit(self, name: str, unit: Unit) -> Facts:
        """Facts that know one series alone, which is scaled by this unit."""
        return dataclasses.replace(
            self,
            names={name: 0},
            means=unit.scale.mean[None],
            spreads=unit.scale.spread[None],
            floors=None if unit.floor is None else unit.floor[None],
            errors=None,
            ends={},
        )

    def save(self, folder: Path) -> None:
        """Write what `load` reads; a run without facts has no such files."""
        if not self.counts:
            return
        known: dict[str, Any] = {
            "frequency": self.frequency,
            "clock": None if self.clock is None else self.clock.to_json(),
            "by_series": self.by_series,
            "usual": None if self.usual is None else self.usual.tolist(),
            "covariates": {role: scale.to_json() for role, scale in self.covariates.items()},
            "words": {column: list(words) for column, words in self.words.items()},
            "holidays": list(self.holidays),
            "step": self.step,
            "counts": dict(self.counts),
        }
        (folder / FACTS).write_text(json.dumps(known), "utf-8")
        arrays: dict[str, Any] = {"names": np.array([*self.names], np.str_), "means": self.means}
        arrays |= {"spreads": self.spreads, **packed(self.ends)}
        arrays |= {name: array for name in ("floors", "errors") if (array := getattr(self, name)) is not None}
        np.savez(folder / SERIES, **arrays)

    @classmethod
    def load(cls, folder: Path) -> Facts:
        """The facts of a run."""
        if not (folder / FACTS).exists():  # of an earlier version, or of frames
            return cls()
        try:
            known = json.loads(read_file(folder / FACTS))
            with np.load(folder / SERIES, allow_pickle=False) as arrays:
                stored = {name: arrays[name] for name in arrays.files}
            scales = {role: _normal(scale) for role, scale in known["covariates"].items()}
            clock = None if known["clock"] is None else Clock(**known["clock"])
            return cls(
                known["frequency"],
                clock,
                bool(known["by_series"]),
                None if known["usual"] is None else np.array(known["usual"], float),
                {name: number for number, name in enumerate(stored["names"].tolist())},
                stored["means"],
                stored["spreads"],
                scales,
                known["words"],
                known["holidays"],
                float(known["step"]),
                known["counts"],
                Ends(stored, clock, frequency_of(known["frequency"])),
                stored.get("floors"),
                stored.get("errors"),
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CheckpointError(
                f"{folder / FACTS} cannot be read ({error}): the run folder is incomplete."
            ) from error


def frequency_of(text: str | None) -> Frequency | None:
    return None if text in (None, IRREGULAR) else Frequency.of(str(text))


def _normal(scale: Mapping[str, Any]) -> Normal:
    return Normal(np.array(scale["mean"], float), np.array(scale["spread"], float))


class Manner(NamedTuple):
    """What of the values of a series is scaled, and by what."""

    difference: bool = False
    log: bool = False
    season: int | None = None  # by whose changes values are scaled; None: by their variance
    positive: bool = False  # whether values are divided by their mean size, and not shifted

    @classmethod
    def of(cls, settings: ForecastingSettings) -> Manner:
        """As the settings of a run say."""
        data = settings.data
        output = None if settings.model.output is None else name_of(settings.model.output)
        season = data.season if settings.model.is_at_once else None
        return cls(data.difference, bool(data.log), season, output in (*POSITIVE, *COUNTS))


def floor_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d,): half of the smallest value above 0 of each column of (T, d), 1 where there is none.

    >>> floor_of(np.array([[0.0, 0.0], [4.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    least = np.min(np.where(values > 0, values, np.inf), axis=0, initial=np.inf)
    return np.where(np.isinf(least), 1.0, least / 2)


class _Moments:
    """n, mean, variance and size of the known values of a series, each (d,)."""

    def __init__(self, steps: Steps, manner: Manner) -> None:
        values = np.where(steps.measured, steps.values, np.nan)
        self.floor = floor_of(values) if manner.log else None
        values = values if self.floor is None else np.log(np.maximum(values, self.floor))
        moved = np.diff(values, axis=0) if manner.difference else values
        known = ~np.isnan(moved)
        self.count = known.sum(0)
        least = np.maximum(self.count, 1)
        self.mean = np.where(known, moved, 0.0).sum(0) / least
        self.variance = (np.where(known, moved - self.mean, 0.0) ** 2).sum(0) / least
        if manner.season is not None:
            changes = np.abs(values[manner.season :] - values[: -manner.season])
            self.count = (~np.isnan(changes)).sum(0)
            sizes = np.where(np.isnan(changes), 0.0, changes).sum(0) / np.maximum(self.count, 1)
            self.variance = (sizes + np.sqrt(self.variance) / 20) ** 2
        self.positive = manner.positive
        there = ~np.isnan(values)
        self.is_seen = there.any(0)
        self.size = np.where(there, np.abs(values), 0.0).sum(0) / np.maximum(there.sum(0), 1)
        if manner.log:  # changes of a logarithm are shares of the value, whatever its size
            self.size = np.ones_like(self.size)


def own_unit(steps: Steps, column: Normal, usual: NDArray[np.float64] | None, manner: Manner) -> Unit:
    """How a series is scaled by its own values."""
    own = _Moments(steps, manner)
    return Unit(_shrunk(own, column, usual), manner.difference, own.floor)


def _shrunk(own: _Moments, column: Normal, usual: NDArray[np.float64] | None) -> Normal:
    if own.positive:
        return Normal(np.zeros_like(own.size), np.where(own.size > 0, own.size, column.spread))
    if own.floor is not None:
        column = Normal(np.zeros_like(column.mean), np.ones_like(column.spread))
    expected = own.size * (0.0 if usual is None else usual)
    expected = np.where(expected > 0, expected, column.spread)
    spread = np.sqrt((own.count * own.variance + KAPPA * expected**2) / (own.count + KAPPA))
    return Normal(np.where(own.is_seen, own.mean, column.mean), np.where(spread > 0, spread, column.spread))


class FactsCounted:
    """Gathers facts from one series after the other."""

    def __init__(self, data: ForecastingData, manner: Manner) -> None:
        self.data = data
        self.manner = manner
        self.frequency: Frequency | None = None
        self.clock: Clock | None = None
        self.has_times = False
        self.moments: dict[str, _Moments] = {}
        self.errors: dict[str, NDArray[np.float64]] = {}
        self.scales = {role: Normal.counted() for role in ("future", "past", "static")}
        self.words: dict[str, Counter[str]] = {name: Counter() for name in data.words}
        self.steps: list[float] = []
        self.counts = Counter[str](series=0, steps=0, gaps=0, gappy=0, missing=0, short=0)
        self.ends = EndsGathered()

    def add(self, steps: Steps) -> None:
        """Count one series of the training data in."""
        data = self.data
        self.counts["series"] += 1
        self.counts["steps"] += len(steps)
        self.counts["gaps"] += steps.gaps
        self.counts["gappy"] += steps.gaps > 0
        self.counts["missing"] += int((~steps.measured).sum()) - steps.gaps * steps.values.shape[1]
        moments = steps.times if steps.times is not None else steps.numbers
        if moments is not None and len(moments):
            self.has_times = True
            self.clock = self.clock or steps.clock
            self.frequency = self.frequency or steps.frequency
            numbers: Any = moments.astype("M8[us]").astype(np.float64) / 1e6 if steps.times is not None else moments
            if (step := usual_step(numbers)) is not None:
                self.steps.append(step)
        self.moments[steps.name] = _Moments(steps, self.manner)
        values, whole = np.where(steps.measured, steps.values, np.nan), np.array([len(steps)])
        self.errors[steps.name] = np.stack(
            [naive_errors(values, whole, data.season or 1, power=power)[0] for power in (1, 2)]
        )
        for role in ("future", "past"):
            if (array := getattr(steps, role)) is not None:
                self.scales[role].add(array, steps.place)
            if (names := getattr(steps, f"{role}_names")) is not None:
                for column, cells in zip(data.words_by_role[role], names.T, strict=True):
                    self.words[column].update(cells.tolist())
        if steps.static_numbers is not None and len(steps.static_numbers):
            self.scales["static"].add(steps.static_numbers[None], steps.place)
        for column, word in zip(data.static_words, steps.static_names, strict=True):
            self.words[column][word] += 1
        if data.shares is None:  # else the whole series has another end
            self.end(steps)

    def end(self, steps: Steps) -> None:
        """Keep the end of a series, for files that go on with it."""
        data = self.data
        moments = steps.times if steps.times is not None else steps.numbers
        if moments is not None and len(steps):
            self.ends.add(steps.cut(max(0, len(steps) - (data.window or len(steps))), len(steps)).copied())

    def finished(self, column: Normal, *, is_binary: bool) -> Facts:
        """All that was learned; `column` is the scale over all series."""
        data = self.data
        by_series = data.scaling == "series" if data.scaling is not None else self.counts["series"] > 1
        by_series = (by_series or self.manner.log or self.manner.season is not None) and not is_binary
        usual, means, spreads, floors = None, np.zeros((0, 0)), np.zeros((0, 0)), None
        if by_series:
            usual = self._usual()
            scales = [_shrunk(own, column, usual) for own in self.moments.values()]
            means, spreads = np.stack([scale.mean for scale in scales]), np.stack([scale.spread for scale in scales])
            if self.manner.log:
                floors = np.stack([own.floor for own in self.moments.values() if own.floor is not None])
        covariates = {role: counted.finished() for role, counted in self.scales.items() if counted.count is not None}
        words = {
            name: [word for word, _ in counts.most_common() if word][:MOST_NAMES] for name, counts in self.words.items()
        }
        frequency = str(self.frequency) if self.frequency is not None else IRREGULAR if self.has_times else None
        return Facts(
            frequency,
            self.clock,
            by_series,
            usual,
            {name: number for number, name in enumerate(self.moments)} if by_series else {},
            means,
            spreads,
            covariates,
            words,
            read_holidays(data.holidays) if data.holidays is not None else (),
            float(np.median(self.steps)) if self.steps else 1.0,
            self.counts,
            self.ends.finished(self.clock, self.frequency),
            floors,
            np.stack([self.errors[name] for name in self.moments]) if by_series else None,
        )

    def _usual(self) -> NDArray[np.float64]:
        """(d,): the median of √v / a over all series with more than one value."""
        owns = [own for own in self.moments.values() if (own.count > 1).any()]
        if not owns:
            return np.zeros(len(next(iter(self.moments.values())).mean))
        size = np.stack([own.size for own in owns])
        shares = np.sqrt(np.stack([own.variance for own in owns])) / np.where(size > 0, size, np.nan)
        is_empty = np.isnan(shares).all(0)
        return np.where(is_empty, 0.0, np.nanmedian(np.where(is_empty, 0.0, shares), axis=0))


def facts_in_words(data: ForecastingData, facts: Facts) -> str:
    """What was found in the training tables, to follow what their columns are taken for."""
    if not facts.counts:
        return ""
    counts, said = facts.counts, list[str]()
    frequency = frequency_of(facts.frequency)
    if frequency is not None:
        origin = "a step is" if data.frequency is not None else "a step is, by its times,"
        said.append(f"{origin} {frequency.in_words()}")
    elif facts.frequency == IRREGULAR and data.frequency is None:
        aside = "" if data.elapsed else "; data.elapsed = true reads the time between them"
        said.append(f"times are irregular, so rows are counted{aside}")
    if gaps := counts["gaps"]:
        where = f" in {counts['gappy']:,} series" if counts["series"] > 1 else ""
        said.append(f"{_counted(gaps, 'step')} without a row{where} {'is' if gaps == 1 else 'are'} read as missing")
    if missing := counts["missing"]:
        are = "is" if missing == 1 else "are"
        said.append(f"{_counted(missing, 'missing value')} {are} filled with the one before")
    for role, about in (("future", "known ahead"), ("past", "known up to now"), ("static", "of a whole series")):
        if columns := getattr(data, role):
            said.append(f"{about}: {', '.join(columns)}")
    if words := [f"{name} ({len(facts.words[name]):,})" for name in data.words]:
        said.append(f"categories: {', '.join(words)}")
    if facts.by_series and counts["series"] > 1:
        said.append(f"each of {counts['series']:,} series is scaled by itself")
    return "".join(f"; {each}" for each in said)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
