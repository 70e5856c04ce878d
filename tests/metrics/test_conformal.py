"""Conformal intervals hold as often as they say: exactly, by simulation on exchangeable data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recurra.errors import DataError
from recurra.metrics.conformal import (
    COVERAGES,
    Calibration,
    conformal_quantile,
    conformal_scores,
    drawn_from,
    evenly,
    mixed_quantiles,
)


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


NINE = COVERAGES.index(0.9)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=30),
    st.lists(st.floats(-5, 5), min_size=1, max_size=30),
    st.sampled_from([0.5, 1.0, 4.0, 30.0, math.inf]),
)
def test_what_the_model_expects_counts_as_one_block(seen: list[float], said: list[float], blocks: float) -> None:
    found = mixed_quantiles(np.array([*seen, math.nan]), np.array(said), blocks)
    weight = 1 - 1 / (blocks + 1)

    def reached(q: float) -> float:
        of_seen, of_said = (sum(x <= q for x in each) for each in (seen, said))
        return weight * of_seen / (len(seen) + 1) + (1 - weight) * of_said / len(said)

    for number, coverage in enumerate(COVERAGES):
        enough = [q for q in sorted([*seen, *said]) if reached(q) >= coverage - 1e-9]
        assert found[number] == (enough[0] if enough else math.inf)
    if math.isinf(blocks):
        assert found.tolist() == [conformal_quantile(np.array(seen), coverage) for coverage in COVERAGES]


def of_normal(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@pytest.mark.parametrize("blocks", [1.0, 2.0, 10.0])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_with_many_values_coverage_is_the_closed_form_of_the_mixture(blocks: float, scale: float) -> None:
    """Values of N(0, scale²), a model that says N(0, 1): w F(q) + F'(q) / (B + 1) = c, and F ≥ c − (1 − c) / B."""
    shares = evenly(0, 20_000)
    levels = np.linspace(0.0005, 0.9995, 1000)
    normal = np.sort(np.random.default_rng(0).normal(size=400_000))
    quantile = np.interp(shares, (np.arange(len(normal)) + 0.5) / len(normal), normal)
    fan = np.quantile(normal, levels)[None, None, :, None].repeat(len(shares), 0)
    end, one = 1.6449, np.ones((1, 1, 1))
    came, drawn = scale * quantile[:, None, None], drawn_from(fan, levels, shares)
    scores, expected = (conformal_scores(-end * one, end * one, values, one) for values in (came, drawn))
    found = Calibration.of(scores, expected, blocks).at(0.9).item()
    low, high = -end, 20.0
    for _ in range(60):
        q = (low + high) / 2
        of_values, of_model = (2 * of_normal((end + q) / each) - 1 for each in (scale, 1.0))
        low, high = (low, q) if (blocks * of_values + of_model) / (blocks + 1) >= 0.9 else (q, high)
    assert found == pytest.approx(high, abs=0.03)
    coverage = 2 * of_normal((end + found) / scale) - 1
    assert coverage >= 0.9 - 0.1 / blocks - 0.01
    if scale == 1.0:
        assert coverage == pytest.approx(0.9, abs=0.005)


def test_where_blocks_differ_and_the_model_is_right_on_the_whole_coverage_varies_less() -> None:
    """Each block is calmer or livelier than the others; calibrated on one, and asked for the next."""
    draw, times, count = np.random.default_rng(3), 300, 200
    spread = np.exp(0.3 * draw.normal(size=(times, 2)))
    values = draw.normal(size=(times, 2, count)) * spread[..., None]
    expected = np.quantile(draw.normal(size=200_000) * np.exp(0.3 * draw.normal(size=200_000)), evenly(0, 500))
    end = float(np.quantile(np.abs(expected), 0.9))
    held = np.empty((times, 2))
    for row in range(times):
        first, next_one = (np.abs(values[row, part]) - end for part in (0, 1))
        for way, q in enumerate(
            (conformal_quantile(first, 0.9), mixed_quantiles(first, np.abs(expected) - end, 1)[NINE])
        ):
            held[row, way] = (next_one <= q).mean()
    apart, mixed_apart = np.abs(held - 0.9).mean(0)
    assert mixed_apart < 0.9 * apart
    assert np.abs(held[:, 1].mean() - 0.9) < np.abs(held[:, 0].mean() - 0.9) + 0.005


def test_shares_that_follow_each_other_are_spread_evenly_and_draw_the_distribution() -> None:
    for first in (0, 17, 1000):
        for count in (20, 300):
            found = np.sort(evenly(first, count))
            assert np.abs(found - (np.arange(count) + 0.5) / count).max() < 3 / count
    levels = np.arange(1, 20) / 20
    fan = -np.log(1 - levels)[None, None, :, None].repeat(2000, 0)  # of the exponential distribution
    drawn = drawn_from(fan, levels, evenly(0, 2000))[:, 0, 0]
    assert np.mean(drawn <= math.log(4)) == pytest.approx(0.75, abs=0.002)
    beyond = fan[0, 0, -1, 0] + math.log(2) * math.log(0.05 / 0.02)  # log 2: between the last two levels
    assert np.mean(drawn <= beyond) == pytest.approx(0.98, abs=0.002)
