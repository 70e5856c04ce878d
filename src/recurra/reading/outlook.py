"""What the training series are like, for settings that leave it open: their season, and whether to take logarithms.

Logarithms are taken where they make the changes of a season more even, by the likelihood of Laplace's distribution
(Box & Cox 1964, with λ 0 or 1): summed over series of n changes each,

    n log mean |x_t − x_{t−m}|  >  n log mean |log x_t − log x_{t−m}| + Σ log x_t
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recurra.config import ForecastingSettings
from recurra.config.forcing import Forcing
from recurra.config.forecasting import COUNTS, POSITIVE
from recurra.config.frequency import Frequency
from recurra.data.season import found_season
from recurra.reading.facts import floor_of
from recurra.reading.series import WINDOW, sequences
from recurra.settings import name_of

SERIES = 500
"""Series that are looked at."""

SEASONS = {"1mo": 12, "1q": 4, "1w": 52, "1d": 7, "1b": 5, "1h": 24, "30min": 48, "15min": 96, "10min": 144, "2h": 12}
"""Steps of the usual season, by the step between times: a year, a week, a day."""

SEASONS_READ = 7
"""Seasons that an autoregression reads: the days of a week, and some years."""

FEWEST = 2
"""Seasons that most series have, at least, where the step between times alone tells the season."""


def with_outlook(settings: ForecastingSettings) -> ForecastingSettings:
    """Settings of a table with what they leave open, found in the training data."""
    data, model = settings.data, settings.model
    if data.frames is not None:
        return _recursive(settings)
    looked = list(itertools.islice(sequences(data.files("train"), data), SERIES))
    values = [np.where(steps.known, steps.values, np.nan) for steps in looked]
    is_binary = all(np.isin(each[~np.isnan(each)], (0, 1)).all() for each in values)
    columns = [column for steps in looked for column in steps.values.T if not np.isnan(column).any()]
    frequency = next((steps.frequency for steps in looked if steps.frequency is not None), None)
    season = data.season or _season(columns, frequency)
    settings = dataclasses.replace(settings, data=dataclasses.replace(data, season=season))
    if model.ahead == "recursive" or (model.ahead is None and (is_binary or not can_be_direct(settings))):
        return _recursive(settings)
    horizon = model.horizon or settings.decoding.horizon
    lags = max(season, model.lags or max(SEASONS_READ * season, 2 * horizon if season == 1 else 0))
    is_fit = model.output is not None and name_of(model.output) in (*COUNTS, *POSITIVE)  # which are not shifted
    log = is_better_as_log(values, season) and not is_fit if data.log is None else data.log
    data = dataclasses.replace(settings.data, log=log, window=data.window or lags)
    model = dataclasses.replace(model, ahead=model.ahead or "direct", horizon=horizon, lags=lags)
    training = settings.training.limited(at_once=True, validated=data.valid is not None)
    return dataclasses.replace(settings, data=data, model=model, training=training)


def _recursive(settings: ForecastingSettings) -> ForecastingSettings:
    data = settings.data
    window = WINDOW if data.window is None and data.frames is None else data.window
    data = dataclasses.replace(data, log=bool(data.log), window=window)
    model = dataclasses.replace(settings.model, ahead="recursive")
    training = settings.training.limited(at_once=False, validated=data.valid is not None)
    return dataclasses.replace(settings, data=data, model=model, training=training)


def can_be_direct(settings: ForecastingSettings) -> bool:
    """Whether nothing that was asked for is of steps that are fed back."""
    output = None if settings.model.output is None else name_of(settings.model.output)
    return (
        settings.task != "language_model"
        and not settings.data.difference
        and settings.model.direction == "forward"
        and output not in (*COUNTS, *POSITIVE, "bernoulli")
        and Forcing.of(settings.training.forcing) == Forcing()
        and not settings.decoding.paths
        and not settings.evaluation.paths
    )


def _season(columns: Sequence[NDArray[np.float64]], frequency: Frequency | None) -> int:
    known = SEASONS.get(str(frequency), 0) if frequency is not None else 0
    if known and columns and np.median([len(column) for column in columns]) >= FEWEST * known:
        return known
    return found_season(columns)


def is_better_as_log(series: Sequence[NDArray[np.float64]], season: int) -> bool:
    """Whether the changes of a season are more even of logarithms, of series (T, d) in which NaN is not known.

    >>> growing = np.exp(0.1 * np.random.default_rng(1).normal(size=(200, 1)).cumsum(0))
    >>> is_better_as_log([growing], 1), is_better_as_log([np.log(growing) + 5], 1), is_better_as_log([-growing], 1)
    (True, False, False)
    """
    gain = 0.0
    for values in series:
        if (values < 0).any():
            return False
        floor = floor_of(values)
        logs = np.log(np.maximum(values, floor))
        plain, moved = (np.abs(each[season:] - each[:-season]) for each in (values, logs))
        for column in range(values.shape[1]):
            is_known = ~np.isnan(plain[:, column])
            if is_known.sum() < 2 or not plain[is_known, column].any():
                continue
            of_plain, of_logs = (np.log(each[is_known, column].mean()) for each in (plain, moved))
            gain += is_known.sum() * (of_plain - of_logs) - logs[season:, column][is_known].sum()
    return bool(gain > 0)
