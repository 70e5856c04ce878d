"""Conformal intervals hold as often as they say: exactly, by simulation on exchangeable data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics.conformal import Calibration, conformal_quantile, conformal_scores


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.sampled_from([0.1, 0.5, 0.8, 0.9, 0.95]))
def test_the_quantile_is_the_right_order_statistic(numbers: list[float], coverage: float) -> None:
    found = conformal_quantile(np.array([*numbers, math.nan]), coverage)
    count = len(numbers)
    # The least score such that at least a share c of n + 1 scores, an unknown one among them, are not above it.
    enough = [x for x in sorted(numbers) if sum(y <= x for y in numbers) >= coverage * (count + 1) - 1e-9]
    assert found == (enough[0] if enough else math.inf)


@settings(max_examples=4, deadline=None)
@given(count=st.sampled_from([9, 19, 50]), seed=st.integers(0, 5))
def test_coverage_lies_within_its_exact_bounds_whatever_the_distribution(count: int, seed: int) -> None:
    draw, times, coverage = np.random.default_rng(seed), 4000, 0.9
    centre = draw.normal(size=(times, count + 1))
    y = centre + draw.standard_t(2.5, size=(times, count + 1)) * draw.gamma(1.0, size=(times, count + 1))
    low, high = centre - 0.3, centre + 0.1  # of a model that is far too sure
    scores = conformal_scores(low, high, y, np.ones(1))
    held = 0
    for row in range(times):
        widened = conformal_quantile(scores[row, :-1], coverage)
        held += bool(low[row, -1] - widened <= y[row, -1] <= high[row, -1] + widened)
    exact = math.ceil(round((count + 1) * coverage, 9)) / (count + 1)  # between c and c + 1/(n + 1)
    assert coverage <= exact <= coverage + 1 / (count + 1)
    assert held / times == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / times))


def test_intervals_that_are_too_wide_become_narrower() -> None:
    y = np.random.default_rng(0).normal(size=(500, 1, 1))
    scores = conformal_scores(np.full_like(y, -9.0), np.full_like(y, 9.0), y, np.ones(1))
    assert 9 + Calibration.of(scores).at(0.9).item() == pytest.approx(1.64, abs=0.2)


def test_steps_and_columns_have_quantiles_of_their_own() -> None:
    scores = np.random.default_rng(0).normal(size=(60, 2, 3)) * [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]
    scores[:20, 1, 0] = math.nan
    found = Calibration.of(scores)
    assert found.counts.tolist() == [[60, 60, 60], [40, 60, 60]]
    for step in range(2):
        for column in range(3):
            wanted = conformal_quantile(scores[:, step, column], 0.8)
            assert found.at(0.8)[step, column] == found.at(0.795)[step, column] == wanted
    again = Calibration.from_json(found.to_json())
    np.testing.assert_array_equal(again.quantiles, found.quantiles)


def test_too_few_forecasts_are_refused_with_how_many_are_needed() -> None:
    few = Calibration.of(np.zeros((8, 1, 1)))
    with pytest.raises(
        DataError,
        match=r"coverage = 0\.9 needs at least 9 forecasts of each step on the validation data, but there were 8",
    ):
        few.at(0.9)
    assert few.at(0.8).item() == 0
    assert Calibration.of(np.zeros((9, 1, 1))).at(0.9).item() == 0


def test_a_damaged_calibration_is_not_read() -> None:
    good = Calibration.of(np.zeros((3, 2, 1))).to_json()
    with pytest.raises(ValueError, match="do not fit their counts"):
        Calibration.from_json({**good, "counts": [[1]]})
