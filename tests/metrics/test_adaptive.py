"""Corrections that follow the errors of a series, against loops and the bound that holds for any series."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.metrics.adaptive import tracked
from recurra.metrics.conformal import Calibration

Floats = NDArray[np.float64]


def by_hand(scores: Floats, origins: NDArray[np.int64], start: float, step: float, coverage: float) -> Floats:
    """One column of one step ahead `k` at a time: what is known is looked up anew at each origin."""
    found = np.zeros_like(scores)
    for k in range(scores.shape[1]):
        for i, now in enumerate(origins):
            told = [j for j in range(i) if origins[j] + k + 1 <= now and not np.isnan(scores[j, k])]
            found[i, k] = start + step * sum((scores[j, k] > found[j, k]) - (1 - coverage) for j in told)
    return found


@given(
    st.integers(0, 10_000), st.integers(1, 25), st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.5, 0.8, 0.9])
)
@settings(max_examples=40, deadline=None)
def test_a_correction_is_moved_by_all_values_that_are_known_at_its_origin(
    seed: int, count: int, horizon: int, stride: int, coverage: float
) -> None:
    draw = np.random.default_rng(seed)
    scores = draw.normal(size=(count, horizon))
    scores[draw.random(scores.shape) < 0.2] = np.nan
    origins = 5 + stride * np.arange(count)
    ones = np.ones((horizon, 1))
    found = tracked(scores[..., None], origins, 0.3 * ones, 0.1 * ones, coverage)[..., 0]
    np.testing.assert_allclose(found, by_hand(scores, origins, 0.3, 0.1, coverage), atol=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0.01, 0.5), st.sampled_from([0.5, 0.9]))
@settings(max_examples=40, deadline=None)
def test_whatever_the_series_does_the_share_outside_is_within_its_bound(
    seed: int, horizon: int, step: float, coverage: float
) -> None:
    draw = np.random.default_rng(seed)
    count = 400
    level = np.where(np.arange(count) < draw.integers(count), 1.0, draw.uniform(-1, 1))  # jumps once, anywhere
    scores = (level * np.cos(np.arange(count) * draw.uniform(0, 3)))[:, None].repeat(horizon, 1)
    ones = np.ones((horizon, 1))
    given_to = tracked(scores[..., None], np.arange(count), 0.0 * ones, step * ones, coverage)[..., 0]
    b = max(scores.max(), 0.0) - min(scores.min(), 0.0)
    for k in range(horizon):
        told = count - k - 1  # of the last ones nothing has become known
        outside = (scores[:told, k] > given_to[:told, k]).mean()
        assert abs(outside - (1 - coverage)) <= (b + (k + 2) * step) / (step * told) + 1e-12


def coverages(scale: Floats, *, rate: float) -> tuple[float, float]:
    """The coverage of static and of adapted 90 % intervals of normal errors, whose scale was 1 in calibration."""
    draw = np.random.default_rng(7)
    calibration = Calibration.of(np.abs(draw.normal(size=(2000, 1, 1))))
    scores = np.abs(draw.normal(size=len(scale)) * scale)[:, None, None]
    start = calibration.at(0.9)
    found = tracked(scores, np.arange(len(scale)), start, rate * calibration.spread, 0.9)
    return float((scores <= start).mean()), float((scores <= found).mean())


def test_where_errors_stay_as_they_were_both_hold_nine_of_ten() -> None:
    static, adapted = coverages(np.ones(4000), rate=0.05)
    # 2000 calibration scores and 4000 new ones: three standard deviations of their shares
    assert static == pytest.approx(0.9, abs=3 * np.sqrt(0.09 * (1 / 2000 + 1 / 4000)))
    assert adapted == pytest.approx(0.9, abs=0.01)


def test_where_errors_shrink_or_grow_only_adapted_intervals_hold_about_nine_of_ten() -> None:
    rate, q90, q50 = 0.05, 1.6449, 0.6745  # of |z|
    for scale in (np.full(4000, 0.5), np.linspace(1.0, 3.0, 4000)):
        static, adapted = coverages(scale, rate=rate)
        inside = float(np.mean([math.erf(q90 / s / math.sqrt(2)) for s in scale]))  # 0.999 and 0.647
        # To follow a quantile that moves by v a step, η (share outside − 0.1) must be v.
        behind = q90 * (scale[-1] - scale[0]) / len(scale) / (rate * (q90 - q50))
        assert static == pytest.approx(inside, abs=0.03)
        assert adapted == pytest.approx(0.9 - behind, abs=0.01)
