"""Errors of forecasts against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.metrics.forecast_errors import (
    crps_of_paths,
    is_near_zero,
    naive_errors,
    percentage_errors,
    pinball,
    symmetric_percentage_errors,
)
from recurra.metrics.forecasts import drift
from recurra.metrics.theta import theta


@given(st.integers(1, 14), st.integers(0, 4), st.integers(1, 2), st.sampled_from([None, 1, 3]), st.integers(0, 100))
def test_scales_are_those_of_a_plain_loop_over_each_history(
    steps: int, season: int, power: int, recent: int | None, seed: int
) -> None:
    values = np.random.default_rng(seed).normal(size=(steps, 2))
    origins = np.arange(1, steps + 1)
    found = naive_errors(values, origins, season, power=power, recent=recent)
    lag = max(1, season)
    for origin in origins:
        for column in range(2):
            errors = [abs(values[t, column] - values[t - lag, column]) ** power for t in range(lag, origin)]
            errors = errors if recent is None else errors[-recent:]
            wanted = np.mean(errors) if errors else math.nan
            assert found[origin - 1, column] == pytest.approx(wanted, nan_ok=True)


def test_what_repeats_itself_exactly_has_no_scale() -> None:
    values = np.tile([0.1, 0.2, 0.3], 5)[:, None]
    values[:, 0] += np.tile([0, 1e-16], 8)[:15]
    assert np.isnan(naive_errors(values, np.array([9, 15]), 3)).all()
    assert not np.isnan(naive_errors(values, np.array([9]), 1)).any()


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 50))
def test_drift_is_a_line_from_the_first_step_through_the_last(steps: int, horizon: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(steps, 2))
    found = drift(values, np.arange(1, steps + 1), horizon)
    for origin in range(1, steps + 1):
        slope = (values[origin - 1] - values[0]) / (origin - 1) if origin > 1 else np.zeros(2)
        for k in range(horizon):
            np.testing.assert_allclose(found[origin - 1, k], values[origin - 1] + (k + 1) * slope)


NUMBER = st.floats(-10, 10).map(lambda number: round(number, 4))


@settings(max_examples=50)
@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=6))
def test_percentages_are_those_of_a_plain_loop(pairs: list[tuple[float, float]]) -> None:
    gold, said = (np.array([pair[k] for pair in pairs])[None, :, None] for k in range(2))
    found, symmetric = percentage_errors(gold, said)[0, :, 0], symmetric_percentage_errors(gold, said)[0, :, 0]
    mean = np.mean([abs(y) for y, _ in pairs])
    for k, (y, f) in enumerate(pairs):
        is_near = abs(y) <= 1e-6 * mean
        assert bool(is_near_zero(gold)[0, k, 0]) == is_near
        assert found[k] == pytest.approx(math.nan if is_near else 100 * abs(y - f) / abs(y), nan_ok=True)
        both = abs(y) + abs(f)
        assert symmetric[k] == pytest.approx(200 * abs(y - f) / both if both else 0.0)


def test_unknown_values_have_no_percentage() -> None:
    gold = np.full((1, 2, 1), np.nan)
    assert np.isnan(percentage_errors(gold, np.ones((1, 2, 1)))).all()
    assert np.isnan(symmetric_percentage_errors(gold, np.ones((1, 2, 1)))).all()


@settings(max_examples=30)
@given(st.integers(2, 12), st.integers(0, 100))
def test_the_crps_of_paths_is_that_of_all_pairs(count: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    paths, gold = draw.normal(size=(count, 3)), draw.normal(size=3)
    found = crps_of_paths(paths, gold)
    for k in range(3):
        near = np.mean([abs(x - gold[k]) for x in paths[:, k]])
        pairs = [abs(paths[i, k] - paths[j, k]) for i in range(count) for j in range(count) if i != j]
        assert found[k] == pytest.approx(near - 0.5 * np.mean(pairs))


def test_many_paths_and_many_quantiles_give_the_crps_of_a_normal_distribution() -> None:
    draw = np.random.default_rng(0)
    gold = np.array([-1.0, 0.0, 2.5])
    phi, cdf = np.exp(-(gold**2) / 2) / math.sqrt(2 * math.pi), 0.5 * (1 + np.vectorize(math.erf)(gold / math.sqrt(2)))
    wanted = gold * (2 * cdf - 1) + 2 * phi - 1 / math.sqrt(math.pi)
    paths = draw.normal(size=(40_000, 3))
    np.testing.assert_allclose(crps_of_paths(paths, gold), wanted, atol=0.02)
    levels = (np.arange(400) + 0.5) / 400
    quantiles = np.quantile(paths[:, 0], levels)
    np.testing.assert_allclose(2 * pinball(np.tile(quantiles, (3, 1)), gold, levels).mean(-1), wanted, atol=0.02)


def test_a_series_that_begins_with_missing_values_is_as_if_it_began_later() -> None:
    values = np.random.default_rng(0).normal(size=(12, 2)) + 5
    late = np.concatenate([np.full((3, 2), np.nan), values])
    origins = np.arange(4, 12)
    for season in (1, 4):
        for recent in (None, 2):
            wanted = naive_errors(values, origins, season, recent=recent)
            np.testing.assert_allclose(naive_errors(late, origins + 3, season, recent=recent), wanted)
    np.testing.assert_allclose(drift(late, origins + 3, 4), drift(values, origins, 4))
    np.testing.assert_allclose(theta(late, origins + 3, 4, 2), theta(values, origins, 4, 2))
    assert np.isnan(naive_errors(np.full((5, 1), np.nan), np.array([3]))).all()
    assert np.isnan(theta(np.full((5, 1), np.nan), np.array([3]), 2)).all()
