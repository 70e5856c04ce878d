"""Baselines and errors of forecasts, against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.metrics.forecasts import came_true, last_value, origins_of, seasonal


def same(found: NDArray[np.float64], wanted: list[list[list[float]]]) -> None:
    np.testing.assert_array_equal(found.reshape(-1), np.array(wanted).reshape(-1))


@given(
    steps=st.integers(1, 12),
    size=st.integers(1, 3),
    horizon=st.integers(1, 6),
    season=st.integers(1, 5),
    stride=st.integers(1, 3),
)
def test_futures_and_baselines_are_those_of_a_plain_loop(
    steps: int, size: int, horizon: int, season: int, stride: int
) -> None:
    values = np.random.default_rng(steps).normal(size=(steps, size))
    origins = origins_of(steps, first=season, stride=stride)
    assert origins.tolist() == list(range(season, steps, stride))
    true, last, repeated = [], [], []
    for origin in origins:
        history = [step.tolist() for step in values[:origin]]
        after = [step.tolist() for step in values[origin:]]
        true.append([after[k] if k < len(after) else [math.nan] * size for k in range(horizon)])
        last.append([history[-1]] * horizon)
        grown = list(history)
        for _ in range(horizon):  # each step is that of one season before, which may be a forecast itself
            grown.append(grown[-season])
        repeated.append(grown[len(history) :])
    same(came_true(values, origins, horizon), true)
    same(last_value(values, origins, horizon), last)
    same(seasonal(values, origins, horizon, season), repeated)


def test_a_season_has_at_least_one_step() -> None:
    with pytest.raises(DataError, match="season must be at least 1 step, but is 0"):
        seasonal(np.zeros((3, 1)), np.array([1]), 1, 0)
