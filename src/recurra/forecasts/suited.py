"""Which values an output or a logarithm is for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recurra.config.forecasting import COUNTS, POSITIVE
from recurra.errors import DataError

FIT_FOR = dict.fromkeys(COUNTS, "counts (whole numbers from 0)") | dict.fromkeys(POSITIVE, "values above 0")
"""Outputs that not every value suits, and which do."""


def unfit(values: NDArray[np.float64], output: str | None) -> float | None:
    """The first value that an output is not for, if there is one."""
    if output not in FIT_FOR:
        return None
    values = values[~np.isnan(values)]
    is_odd = (values < 0) | (values != np.round(values)) if output in COUNTS else values <= 0
    return float(values[is_odd][0]) if is_odd.any() else None


def check_not_negative(values: NDArray[np.float64], place: str) -> None:
    """Refuse a value that has no logarithm; 0 is read as a small value (`floor_of`)."""
    if (values < 0).any():
        raise DataError(
            f"{place}: found {values[values < 0][0]:g}, but the model takes the logarithm of values (data.log), which "
            "must not be negative. Train with data.log = false."
        )
