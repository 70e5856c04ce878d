"""The Theta method (Assimakopoulos & Nikolopoulos 2000), as the M3 and M4 competitions used it.

For a history y_1 … y_T:

    a + b t       the line with the least squared error                                          theta line 0
    z_t           = 2 y_t − (a + b t)                                                            theta line 2
    ℓ_t           = ℓ_{t−1} + α (z_t − ℓ_{t−1}),   α and ℓ_0 with the least Σ_t (z_t − ℓ_{t−1})²
    ŷ_{T+k}       = ½ (a + b (T + k)) + ½ ℓ_T

A history that is seasonal is divided by its seasonal indices before, and the forecast multiplied by them. It is
seasonal if it has at least three seasons, of m steps each, and its autocorrelation r_m passes

    |r_m| > 1.645 √((1 + 2 Σ_{i<m} r_i²) / T)

The indices are those of the classical decomposition: means, phase by phase, of y over its centred moving average,
divided by their own mean. Where values are not all above 0, differences take the place of quotients; where none is
below 0, a forecast that is, is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recurra.metrics.forecasts import Futures, Origins, Values

Floats = NDArray[np.float64]

CRITICAL = 1.645
"""The 95 % point of the standard normal distribution."""

LEAST, MOST = 1e-4, 0.9999
"""Between which α is looked for."""

CANDIDATES, ZOOMS = 21, 4
"""Values of α that are tried at once, and how often again around the best."""

AT_ONCE = 4_000_000
"""Numbers of histories that are smoothed together."""


def theta(values: Values, origins: Origins, horizon: int, season: int = 1) -> Futures:
    """The steps after each origin, each column by itself.

    >>> line = np.arange(1.0, 13.0)[:, None]
    >>> theta(line, np.array([12]), 2).round(6)[:, :, 0].tolist()
    [[12.49995, 12.99995]]
    """
    histories = [column[:origin] for origin in origins for column in values.T]
    found = theta_of(histories, horizon, season)
    return found.reshape(len(origins), values.shape[1], horizon).swapaxes(1, 2)


def theta_of(histories: Sequence[Floats], horizon: int, season: int = 1) -> Floats:
    """(N, h): how each of N histories goes on; NaN for one of which nothing is known."""
    histories = [_known(history) for history in histories]
    found = np.zeros((len(histories), horizon))
    longest = max(map(len, histories), default=1)
    together = max(1, AT_ONCE // longest)
    for start in range(0, len(histories), together):
        some = histories[start : start + together]
        adjusted = [_adjusted(history, horizon, season) for history in some]
        smooth = _theta([each for each, _ in adjusted], horizon)
        for row, (history, (_, seasons)) in enumerate(zip(some, adjusted, strict=True)):
            ahead = smooth[row]
            if seasons is not None:
                ahead = ahead * seasons if (history > 0).all() else ahead + seasons
            found[start + row] = np.maximum(ahead, 0) if (history >= 0).all() else ahead
    return found


def _known(history: Floats) -> Floats:
    """A history from its first known value on; a missing one later is that of the step before."""
    is_known = ~np.isnan(history)
    if is_known.all():
        return history
    first = int(is_known.argmax())
    places = np.maximum.accumulate(np.where(is_known, np.arange(len(history)), 0))
    return history[places][first:] if is_known.any() else history[:1]


def is_seasonal(history: Floats, season: int) -> bool:
    """Whether the autocorrelation at the season is significant.

    >>> is_seasonal(np.tile([1.0, 2.0, 4.0, 2.0], 6), 4), is_seasonal(np.arange(24.0), 7)
    (True, False)
    """
    if season < 2 or len(history) < 3 * season:
        return False
    apart = history - history.mean()
    total = apart @ apart
    if total == 0:
        return False
    r = np.array([apart[lag:] @ apart[:-lag] for lag in range(1, season + 1)]) / total
    limit = CRITICAL * np.sqrt((1 + 2 * np.square(r[:-1]).sum()) / len(history))
    return bool(abs(r[-1]) > limit)


def seasonal_indices(history: Floats, season: int) -> Floats:
    """(m,): the index of each phase, that of the first step first; a factor, or, of values not above 0, a difference.

    >>> seasonal_indices(np.tile([1.0, 3.0], 5), 2).tolist()
    [0.5, 1.5]
    """
    weights = np.ones(season)
    if season % 2 == 0:  # a window of m + 1 steps, whose ends are half in it
        weights = np.concatenate([[0.5], np.ones(season - 1), [0.5]])
    trend = np.convolve(history, weights / season, "valid")
    first = len(weights) // 2
    inside = history[first : first + len(trend)]
    is_positive = bool((history > 0).all())
    apart = inside / trend if is_positive else inside - trend
    phases = (np.arange(len(apart)) + first) % season
    means = np.bincount(phases, weights=apart, minlength=season) / np.bincount(phases, minlength=season)
    found = means / means.mean() if is_positive else means - means.mean()
    return np.asarray(found, np.float64)


def _adjusted(history: Floats, horizon: int, season: int) -> tuple[Floats, Floats | None]:
    """A history without its season, and the season of the steps ahead, if it has one."""
    if not is_seasonal(history, season):
        return history, None
    indices = seasonal_indices(history, season)
    here = indices[np.arange(len(history)) % season]
    ahead = indices[(len(history) + np.arange(horizon)) % season]
    return (history / here if (history > 0).all() else history - here), ahead


def _theta(histories: Sequence[Floats], horizon: int) -> Floats:
    """(N, h): forecasts of histories without seasons."""
    lines = [_line(history) for history in histories]
    z = [2 * y - (a + b * np.arange(1, len(y) + 1)) for y, (a, b) in zip(histories, lines, strict=True)]
    levels = smoothed(z)
    a, b = np.array(lines).T[:, :, None]
    ends = np.array([len(y) for y in histories])[:, None] + np.arange(1, horizon + 1)
    return np.asarray(0.5 * (a + b * ends) + 0.5 * levels[:, None], np.float64)


def _line(history: Floats) -> tuple[float, float]:
    """a and b of a + b t, t = 1, 2, …, with the least squared error."""
    t = np.arange(1, len(history) + 1)
    apart = t - t.mean()
    b = float(apart @ history / (apart @ apart)) if len(history) > 1 else 0.0
    return float(history.mean() - b * t.mean()), b


def smoothed(histories: Sequence[Floats]) -> Floats:
    """(N,): the last level of simple exponential smoothing, with the α and the first level that fit each best.

    The level is linear in ℓ_0, so for each α the best ℓ_0 is a quotient of sums:

        e_t = e⁰_t − g_t ℓ_0,    g_t = (1 − α)^(t−1),    ℓ_0 = Σ e⁰_t g_t / Σ g_t²

    >>> smoothed([np.array([5.0, 5.0, 5.0])]).round(9).tolist()
    [5.0]
    """
    count, longest = len(histories), max(map(len, histories), default=0)
    lengths = np.array([len(history) for history in histories])
    padded = np.zeros((count, longest))
    for row, history in enumerate(histories):
        padded[row, : len(history)] = history
    low, high = np.full(count, LEAST), np.full(count, MOST)
    levels = np.zeros(count)
    for _ in range(ZOOMS):
        alpha = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, CANDIDATES)
        squares, last = _smoothed_with(alpha, padded, lengths)
        best = squares.argmin(1)
        levels = np.take_along_axis(last, best[:, None], 1)[:, 0]
        step, at = (high - low) / (CANDIDATES - 1), np.take_along_axis(alpha, best[:, None], 1)[:, 0]
        low, high = np.maximum(at - step, LEAST), np.minimum(at + step, MOST)
    return levels


def _smoothed_with(alpha: Floats, padded: Floats, lengths: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """(N, A) each: the sum of squared errors with each α and its best first level, and the last level."""
    level, g = np.zeros_like(alpha), np.ones_like(alpha)
    squares, products, weights = np.zeros_like(alpha), np.zeros_like(alpha), np.zeros_like(alpha)
    for t in range(padded.shape[1]):
        is_there = (t < lengths)[:, None]
        error = np.where(is_there, padded[:, t, None] - level, 0.0)
        weight = np.where(is_there, g, 0.0)
        squares += error * error
        products += error * weight
        weights += weight * weight
        level = level + alpha * error
        g = np.where(is_there, g * (1 - alpha), g)
    first = products / weights
    return squares - products * first, level + g * first
