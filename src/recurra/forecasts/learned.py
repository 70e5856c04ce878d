"""What forecasting learns from its training data before a network does: scales, frequency, names, ends of series."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recurra.config import ForecastingSettings
from recurra.data.normal import Normal
from recurra.errors import DataError
from recurra.forecasts.conventions import in_order_of
from recurra.forecasts.suited import FIT_FOR, check_not_negative, unfit
from recurra.reading.facts import Facts, FactsCounted, Manner
from recurra.reading.series import SHORTEST, Steps, sequences
from recurra.settings import SettingError, name_of


class Learned(NamedTuple):
    """All that is known after one look at the training data."""

    scale: Normal
    is_binary: bool  # whether all values are 0 or 1
    facts: Facts | None  # None: of frames


def learned(settings: ForecastingSettings) -> Learned:
    """Look at all training data once."""
    data = settings.data
    facts = FactsCounted(data, Manner.of(settings))
    counted = Normal.counted()
    is_binary = not data.difference
    is_empty, longest = True, 0
    least, most = np.array(np.inf), np.array(-np.inf)  # of each column
    output = None if settings.model.output is None else name_of(settings.model.output)
    for steps in sequences(data.files("train"), data):
        steps = in_order_of(settings, steps)
        is_empty, longest = False, max(longest, len(steps))
        _check(steps, output, log=bool(data.log))
        if data.frames is None:
            facts.add(steps)
        values = np.where(steps.known, steps.values, np.nan)
        is_binary = is_binary and bool(np.isin(steps.values[steps.known], (0, 1)).all())
        counted.add(np.diff(values, axis=0) if data.difference else values, steps.place)
        if len(values):
            least = np.fmin(least, np.fmin.reduce(values))
            most = np.fmax(most, np.fmax.reduce(values))
    if is_empty:
        raise DataError(f"{', '.join(data.files('train'))} contains no sequences to train on.")
    scale = counted.finished()
    if data.values and not is_binary and longest >= SHORTEST:
        for column, low, high in zip(data.predicted, least, most, strict=True):
            if low == high:
                raise DataError(
                    f"the column '{column}' of {', '.join(data.files('train'))} is constant ({low:g}), so there "
                    f"is nothing to predict. Leave it out of data.values."
                )
    if output in FIT_FOR:  # what is not shifted stays above 0
        scale = Normal(np.zeros_like(scale.mean), np.where(scale.mean > 0, scale.mean, 1.0))
    if is_binary:  # notes stay 0 and 1, however rare
        scale = Normal(np.zeros_like(scale.mean), np.ones_like(scale.spread))
    if data.frames is not None:
        return Learned(scale, is_binary, None)
    if data.shares is not None:  # a file goes on with all that is there, held out or not
        for steps in sequences([data.train] if isinstance(data.train, str) else data.train, data):
            facts.end(steps)
    return Learned(scale, is_binary, facts.finished(scale, is_binary=is_binary))


def _check(steps: Steps, output: str | None, *, log: bool) -> None:
    if (odd := unfit(steps.values[steps.known], output)) is not None:
        raise SettingError(
            f"model.output = '{output}' is for {FIT_FOR[str(output)]}, but {steps.place} contains {odd:g}. Use "
            f"'gaussian', 'student_t' or 'quantiles'.",
            ("model", "output"),
        )
    if log:
        check_not_negative(steps.values, steps.place)
