"""The Theta method against a plain implementation, and against the figures of the M4 competition."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.metrics.theta import is_seasonal, seasonal_indices, smoothed, theta, theta_of

Floats = NDArray[np.float64]


def squares_with(history: Floats, alpha: float, first: float) -> tuple[float, float]:
    level, total = first, 0.0
    for value in history:
        total += (value - level) ** 2
        level += alpha * (value - level)
    return total, level


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.integers(3, 25))
def test_smoothing_fits_better_than_any_other_choice_on_a_fine_grid(seed: int, steps: int) -> None:
    draw = np.random.default_rng(seed)
    histories = [draw.normal(size=steps).cumsum() + 5, draw.normal(size=steps + 4) + 2]
    for history, level in zip(histories, smoothed(histories), strict=True):
        cases = [
            squares_with(history, alpha, first)
            for alpha in np.linspace(1e-4, 0.9999, 25)
            for first in np.linspace(history.min() - 1, history.max() + 1, 25)
        ]
        least = min(total for total, _ in cases)
        mine = min(
            squares_with(history, alpha, first)[0]
            for alpha in np.linspace(1e-4, 0.9999, 500)
            for first in [best_first(history, alpha)]
            if abs(squares_with(history, alpha, first)[1] - level) < 3e-2
        )
        assert mine <= least + 1e-3 * max(1.0, least)


def best_first(history: Floats, alpha: float) -> float:
    """By two evaluations: the sum of squares is a parabola in the first level."""
    at = {first: squares_with(history, alpha, first)[0] for first in (-1.0, 0.0, 1.0)}
    bend, slope = (at[1.0] + at[-1.0]) / 2 - at[0.0], (at[1.0] - at[-1.0]) / 2
    return float(-slope / (2 * bend))


def plain(history: Floats, horizon: int, season: int) -> Floats:
    """The method by its equations, one history at a time; of these the season is known to be significant."""
    steps = len(history)
    index = np.ones(season)
    if season > 1:
        half = season // 2
        found: list[list[float]] = [[] for _ in range(season)]
        for t in range(half, steps - half):
            window = history[t - half : t + half + 1].copy()
            if season % 2 == 0:
                window[[0, -1]] *= 0.5
            found[t % season].append(float(history[t] / (window.sum() / season)))
        index = np.array([np.mean(each) for each in found])
        index = index / index.mean()
    y = np.array([history[t] / index[t % season] for t in range(steps)])
    b, a = np.polyfit(np.arange(1, steps + 1), y, 1)
    level = smoothed([2 * y - (a + b * np.arange(1, steps + 1))])[0]
    return np.array(
        [(0.5 * (a + b * (steps + k)) + 0.5 * level) * index[(steps + k - 1) % season] for k in range(1, horizon + 1)]
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1, 4, 5, 12]), st.integers(4, 6))
def test_forecasts_are_those_of_the_equations(seed: int, season: int, seasons: int) -> None:
    draw = np.random.default_rng(seed)
    t = np.arange(season * seasons + int(draw.integers(season)))
    if season == 1:
        t = np.arange(15)
    history = (20 + 0.3 * t) * (1 + 0.5 * np.sin(2 * np.pi * t / season)) + draw.normal(size=len(t)) * 0.1
    assert is_seasonal(history, season) == (season > 1)
    found = theta(np.stack([history, 2 * history], axis=1), np.array([len(history) - 1, len(history)]), 7, season)
    assert found.shape == (2, 7, 2)
    np.testing.assert_allclose(found[1, :, 0], plain(history, 7, season), rtol=1e-6)
    np.testing.assert_allclose(found[1, :, 1], 2 * plain(history, 7, season), rtol=1e-4)
    np.testing.assert_allclose(found[0, :, 0], plain(history[:-1], 7, season), rtol=1e-6)


def test_a_season_of_values_around_zero_is_added_and_counts_stay_counts() -> None:
    wave = np.sin(2 * np.pi * np.arange(40) / 8)
    np.testing.assert_allclose(theta_of([wave], 8, 8)[0], wave[:8], atol=0.02)
    np.testing.assert_allclose(seasonal_indices(wave, 8), wave[:8], atol=1e-12)
    falling = np.maximum(0.0, 10.0 - np.arange(12))
    assert (theta_of([falling], 12)[0] >= 0).all()
    assert (theta_of([falling - 20], 12)[0] < 0).all()


def test_short_and_constant_histories_have_no_season() -> None:
    assert not is_seasonal(np.array([1.0, 2.0] * 2), 2)
    assert not is_seasonal(np.ones(40), 4)
    np.testing.assert_allclose(theta_of([np.array([3.0]), np.full(9, 4.0)], 2, 4), [[3.0, 3.0], [4.0, 4.0]])


@pytest.mark.slow
def test_baselines_have_the_published_figures_of_m4_and_tourism() -> None:
    script = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "forecast_baselines.py"))
    if not script["data_folder"]().exists():
        pytest.skip("needs RECURRA_DATA")
    for name in script["SETS"]:
        found = script["scores"](name)
        for (data, method), scores in script["PUBLISHED"].items():
            is_other_theta = data == "tourism_monthly" and method == "theta"  # R's thetaf has another first level
            for score, wanted in scores.items() if data == name else ():
                assert found[method][score] == pytest.approx(wanted, rel=0.03 if is_other_theta else 1e-3), (
                    data,
                    score,
                )
