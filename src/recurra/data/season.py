"""After how many steps series repeat themselves, from their autocorrelation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

LONGEST = 2048
"""Steps at the end of a series that are looked at."""

LEAST = 0.25
"""Autocorrelation of a season, at least."""

CHANCE = 4.0
"""So many times its usual size by chance, 1 / √T of T changes in all, it is at least."""

ALIKE = 0.75
"""A season is the shortest lag that has such a share of the largest autocorrelation: two days repeat as one does."""


def autocorrelation(values: NDArray[np.float64], lags: int) -> NDArray[np.float64]:
    """r_k = Σ_t u_t u_{t+k} / Σ_t u_t² of the changes u_t = x_{t+1} − x_t less their mean, k = 0 … lags.

    >>> autocorrelation(np.array([0.0, 1, 0, 1, 0, 1, 0, 1, 0]), 2).round(2).tolist()
    [1.0, -0.88, 0.75]
    """
    changes = np.diff(values)
    changes = changes - changes.mean()
    power = np.abs(np.fft.rfft(changes, 2 * len(changes))) ** 2
    sums = np.fft.irfft(power)[: lags + 1]
    steps = len(changes)
    if sums[0] <= 1e-12 * steps * np.abs(values).max() ** 2:  # constant, but for what is rounded
        return np.zeros(lags + 1)
    found: NDArray[np.float64] = sums / sums[0]
    return found


def found_season(series: Iterable[NDArray[np.float64]]) -> int:
    """The season that most series, (T,), have in common; 1 if they have none.

    It is at most a third of a series: less often seen, it could be chance.

    >>> steps = np.arange(200.0)
    >>> found_season([np.sin(2 * np.pi * steps / 12) + 0.1 * steps, np.cos(2 * np.pi * steps / 12)])
    12
    >>> found_season([np.random.default_rng(1).normal(size=200).cumsum()])
    1
    """
    sums, counts, steps = np.zeros(LONGEST), np.zeros(LONGEST), 0
    for values in series:
        values = values[-LONGEST:]
        lags = (len(values) - 1) // 3
        if lags < 2 or np.ptp(values) == 0:
            continue
        sums[: lags + 1] += autocorrelation(values, lags)
        counts[: lags + 1] += 1
        steps += len(values) - 1
    # A lag that few of the series are long enough for says little about all.
    usable = int((counts >= 0.5 * counts.max(initial=0)).sum()) if counts.any() else 0
    if usable < 4:
        return 1
    mean = sums[:usable] / counts[:usable]
    inner = np.arange(2, usable - 1)
    least = max(LEAST, CHANCE / np.sqrt(steps))
    peaks = inner[(mean[inner] >= mean[inner - 1]) & (mean[inner] > mean[inner + 1]) & (mean[inner] > least)]
    if not len(peaks):
        return 1
    return int(peaks[mean[peaks] >= ALIKE * mean[peaks].max()][0])
