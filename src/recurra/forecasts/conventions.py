"""What all parts of a forecasting run share: its settings, and how a series is ordered, scaled, encoded and named."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingSettings
from recurra.config.forecasting import COUNTS, POINTS, WITHOUT_LOG_P
from recurra.config.frequency import IRREGULAR
from recurra.data.normal import Normal
from recurra.data.store import Encoded
from recurra.data.unit import Unit
from recurra.errors import DataError
from recurra.forecasts.suited import FIT_FOR, check_not_negative, unfit
from recurra.reading.covariates import Widths, encoded, widths
from recurra.reading.facts import Facts, Manner
from recurra.reading.gaps import cell_reads_gaps
from recurra.reading.series import Steps, compared
from recurra.settings import Part, SettingError, name_of


class Conventions:
    """How the series of one run are read and given back. It never changes."""

    def __init__(self, settings: ForecastingSettings, scale: Normal, *, is_binary: bool, facts: Facts) -> None:
        self.settings = settings
        self.scale = scale  # of the values, or of their changes, over all series
        self.facts = facts
        self.is_binary = is_binary
        self.data = settings.data  # with the frequency of the training data; a run of an earlier version counts rows
        if settings.data.frames is None:
            frequency = (facts.frequency or settings.data.frequency) if facts.counts else IRREGULAR
            self.data = dataclasses.replace(settings.data, frequency=frequency)
        self.is_direct = settings.model.is_at_once
        usual = "bernoulli" if is_binary else "quantiles" if self.is_direct else "gaussian"
        self.output: Part = settings.model.output or usual
        self.gives_coins = name_of(self.output) == "bernoulli"
        self.has_quantiles = name_of(self.output) not in POINTS
        self.has_density = name_of(self.output) not in WITHOUT_LOG_P
        self._check()

    def _check(self) -> None:
        if self.gives_coins and not self.is_binary:
            raise SettingError(
                "model.output = 'bernoulli' is for values that are 0 or 1, but the training data has other "
                "values. Use 'gaussian' or 'squared_error'.",
                ("model", "output"),
            )
        paths = self.settings.decoding.paths
        if paths and not self.has_quantiles:
            raise SettingError(
                f"decoding.paths = {paths} needs a distribution to sample from, which model.output "
                f"= 'squared_error' does not predict. Use 'gaussian', or decoding.paths = 0.",
                ("decoding", "paths"),
            )

    @functools.cached_property
    def reads_gaps(self) -> bool:
        """Whether the network is given which values were observed, and the time between steps."""
        return reads_gaps_in(self.settings)

    @property
    def has_mean(self) -> bool:
        """Whether the mean of a density is that of the values: it is not of quantiles alone, nor of logarithms."""
        return self.has_density and self.settings.data.log is not True

    @property
    def tells_unit(self) -> bool:
        """Whether the density is told how each series is scaled: of counts, if each is by itself."""
        return self.facts.by_series and name_of(self.output) in COUNTS

    @property
    def from_nothing(self) -> bool:
        """Whether the first step is predicted too: frames have a beginning, a series is cut out of time."""
        return self.settings.data.frames is not None

    @property
    def is_backward(self) -> bool:
        """Whether a sequence is read from its end; the steps of an example are in the order in which they are read."""
        backward: bool = self.settings.model.direction == "backward"
        return backward

    @property
    def is_positive(self) -> bool:
        """Whether no value lies below 0."""
        return name_of(self.output) in FIT_FOR or bool(self.settings.data.log)

    @property
    def size(self) -> int:
        """The values of a step."""
        return len(self.scale.mean)

    @property
    def horizon(self) -> int:
        """Steps that are forecast."""
        return self.settings.decoding.horizon

    @property
    def widths(self) -> Widths:
        """How many numbers are read beside the values."""
        return widths(self.data, self.facts)

    @property
    def columns(self) -> list[str]:
        """The names of the values of a step."""
        names = self.data.values or []
        is_wide = self.data.layout == "wide"  # each column is a series of its own
        return list(names) if names and not is_wide else [str(number + 1) for number in range(self.size)]

    def unit_of(self, example: Steps) -> Unit:
        """How the values of one series are scaled."""
        return self.facts.unit(example, self.scale, Manner.of(self.settings))

    def last_of(self, example: Steps) -> NDArray[np.float64]:
        """(d,): the last known step; zeros before the first."""
        return example.values[-1] if len(example) else np.zeros(self.size)

    def steps(self, example: Steps) -> list[str]:
        """Steps by their numbers; zeros are read before the first where that is predicted too."""
        last = len(example.values)
        numbers = range(last, 0, -1) if self.is_backward else range(1, last + 1)
        return [*(["0"] if self.from_nothing else []), *map(str, numbers)]

    def moments(self, example: Steps) -> list[str]:
        """When each step is: its time, or its number from 1."""
        times = example.times if example.times is not None else example.numbers
        return self.steps(example) if times is None else example.written(times)

    def encode(self, example: Steps) -> Encoded:
        """A series as arrays."""
        values, known = example.values, example.known
        if len(values) == 0:
            values, known = np.zeros((0, self.size)), np.zeros((0, self.size), bool)
        self._check_values(values, example.place)
        unit = self.unit_of(example)
        found = {
            # What was never known is the mean.
            "values": np.nan_to_num(unit.scaled(values)).astype(np.float32),
            "known": compared(known, difference=self.settings.data.difference),
            "place": np.array([example.file, example.line], np.int64),
            **encoded(example, self.data, self.facts, self.horizon),
        }
        if self.tells_unit:
            found["unit"] = unit.scale.spread
        return found | {"gaps": self._gaps(example, known)} if self.reads_gaps else found

    def _check_values(self, values: NDArray[np.float64], place: str) -> None:
        if values.shape[1] != self.size:
            raise DataError(f"{place}: found {values.shape[1]} values per step, but the model expects {self.size}.")
        if self.gives_coins and not np.isin(values[~np.isnan(values)], (0, 1)).all():
            odd = values[~np.isin(values, (0, 1)) & ~np.isnan(values)][0]
            raise DataError(f"{place}: found {odd:g}, but the model accepts only the values 0 and 1.")
        if (unfitting := unfit(values, name_of(self.output))) is not None:
            fit = FIT_FOR[name_of(self.output)]
            raise DataError(
                f"{place}: found {unfitting:g}, but the model accepts only {fit} (model.output = "
                f"'{name_of(self.output)}')."
            )
        if self.settings.data.log:
            check_not_negative(values, place)

    def _gaps(self, example: Steps, known: NDArray[np.bool_]) -> NDArray[np.float32]:
        """(T, d + 1): of each step which values were observed, and the time since the step before, 0 at the first."""
        observed = compared(example.measured if len(known) else known, difference=self.settings.data.difference)
        elapsed = np.ones(len(observed))
        moments = None if example.frequency is not None else _numbered(example)
        if moments is not None:  # else the steps are equal
            elapsed[1:] = np.abs(np.diff(moments)) / self.facts.step
        elapsed[:1] = 0.0
        return np.column_stack([observed, elapsed]).astype(np.float32)


def reads_gaps_in(settings: ForecastingSettings) -> bool:
    """Whether the cell of these settings reads gaps."""
    return settings.model.encoder == "rnn" and cell_reads_gaps(settings.model.cell)


def in_order_of(settings: ForecastingSettings, steps: Steps) -> Steps:
    """A sequence in the order in which it is read, or from there back in that of time."""
    return steps.reversed() if settings.model.direction == "backward" else steps


def _numbered(steps: Steps) -> NDArray[np.float64] | None:
    """(T,): the times of steps as numbers; None where they are only counted."""
    if steps.times is None:
        return steps.numbers
    return (steps.times - steps.times[:1]) / np.timedelta64(1, "s")
