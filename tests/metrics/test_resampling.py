"""Intervals and differences of scores, against a bootstrap by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.metrics import Sampled, difference, draws, interval


def sampled(right: NDArray[np.bool_], **how: Any) -> Sampled:
    """The share of items that are right, on all items and on samples of them."""
    shares = [times @ right / len(right) for times in draws(len(right), **how)]
    return Sampled(right.mean(), np.array(shares), len(right), how.get("seed", 0))


def test_samples_are_drawn_with_replacement_from_all_items() -> None:
    chance = np.random.default_rng(5)
    by_hand = [chance.integers(7, size=7) for _ in range(20)]
    for times, sample in zip(draws(7, seed=5, resamples=20), by_hand, strict=True):
        assert times.tolist() == [int((sample == item).sum()) for item in range(7)]


def test_the_interval_holds_the_middle_of_the_samples() -> None:
    right = np.random.default_rng(1).random(40) < 0.7
    chance = np.random.default_rng(2)
    by_hand = sorted(float(right[chance.integers(40, size=40)].mean()) for _ in range(101))
    found = interval(sampled(right, seed=2, resamples=101), level=0.9)
    assert found == pytest.approx((by_hand[5], by_hand[95]))


def test_a_difference_is_that_of_pairs_on_the_same_samples() -> None:
    chance = np.random.default_rng(1)
    good, poor = chance.random(80) < 0.8, chance.random(80) < 0.6
    found = difference(sampled(good), sampled(poor))
    again = np.random.default_rng(0)
    apart = [
        (good[chosen].mean() - poor[chosen].mean()) for chosen in (again.integers(80, size=80) for _ in range(1000))
    ]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(apart, [0.025, 0.975])))
    assert found.value == pytest.approx(good.mean() - poor.mean())


def test_the_share_of_samples_that_one_wins_mirrors_the_others() -> None:
    chance = np.random.default_rng(3)
    one, other = (sampled(chance.random(50) < 0.5) for _ in range(2))
    there, back = difference(one, other), difference(other, one)
    assert there.better + back.better == pytest.approx(1)
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))
    assert difference(one, other, higher_is_better=False).better == pytest.approx(back.better)


def test_a_system_does_not_differ_from_itself() -> None:
    same = sampled(np.array([True, False, True]))
    assert difference(same, same) == (0, 0, 0, 0.5)


def test_of_two_systems_of_the_same_quality_either_wins_as_often() -> None:
    chance = np.random.default_rng(0)
    wins = [
        difference(*(sampled(chance.random(60) < 0.5, resamples=100) for _ in range(2))).better > 0.95
        for _ in range(200)
    ]
    assert np.mean(wins) < 0.12


@pytest.mark.parametrize("resamples", [0, True])
def test_samples_that_cannot_be_drawn_are_refused(resamples: int) -> None:
    with pytest.raises(ConfigError, match="resamples must be a whole number"):
        draws(2, resamples=resamples)
    with pytest.raises(DataError, match="an interval needs at least one item"):
        draws(0)


def test_a_level_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"level must be between 0 and 1, such as 0\.95, but is 95"):
        interval(sampled(np.ones(2, bool)), level=95)


def test_systems_on_other_items_are_not_compared() -> None:
    with pytest.raises(DataError, match="same items, but they have 1000 of 2 with seed 0 and 1000 of 3 with seed 0"):
        difference(sampled(np.ones(2, bool)), sampled(np.ones(3, bool)))
    with pytest.raises(DataError, match="but they have 5 of 2 with seed 1 and 5 of 2 with seed 2"):
        difference(*(sampled(np.ones(2, bool), seed=seed, resamples=5) for seed in (1, 2)))
