"""Intervals and differences of scores from counts, against the bootstrap of any statistic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.metrics import bleu_counts, bleu_of, bootstrap, difference, drawn, interval
from tests.metrics.sentences import corpus


def share(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(sums[..., 0] / sums[..., 1])


def flags(right: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.stack([right, np.ones_like(right)], axis=1).astype(np.int64)


def test_the_interval_is_that_of_the_plain_bootstrap() -> None:
    counts = bleu_counts(*corpus(4, 25))

    def statistic(items: Sequence[NDArray[np.int64]]) -> float:
        return float(bleu_of(np.sum(items, axis=0)))

    expected = bootstrap(statistic, list(counts), seed=5, resamples=60, level=0.9)
    assert interval(bleu_of, drawn(counts, seed=5, resamples=60), level=0.9) == pytest.approx(expected)


def test_a_difference_is_that_of_the_plain_bootstrap_of_pairs() -> None:
    chance = np.random.default_rng(1)
    good, poor = chance.random(80) < 0.8, chance.random(80) < 0.6
    found = difference(share, drawn(flags(good)), drawn(flags(poor)))
    pairs = list(zip(good.tolist(), poor.tolist(), strict=True))
    assert (found.low, found.high) == pytest.approx(bootstrap(lambda p: (sum(a - b for a, b in p)) / len(p), pairs))
    assert found.value == pytest.approx(good.mean() - poor.mean())


def test_the_share_of_samples_that_one_wins_mirrors_the_others() -> None:
    chance = np.random.default_rng(3)
    one, other = (drawn(flags(chance.random(50) < 0.5)) for _ in range(2))
    there, back = difference(share, one, other), difference(share, other, one)
    assert there.better + back.better == pytest.approx(1)
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))
    assert difference(share, one, other, higher_is_better=False).better == pytest.approx(back.better)


def test_a_system_does_not_differ_from_itself() -> None:
    same = drawn(flags(np.array([True, False, True])))
    assert difference(share, same, same) == (0, 0, 0, 0.5)


def test_of_two_systems_of_the_same_quality_either_wins_as_often() -> None:
    chance = np.random.default_rng(0)
    wins = [
        difference(share, *(drawn(flags(chance.random(60) < 0.5), resamples=100) for _ in range(2))).better > 0.95
        for _ in range(200)
    ]
    assert np.mean(wins) < 0.12


@pytest.mark.parametrize(
    ("options", "message"),
    [({"resamples": 0}, "resamples must be a whole number"), ({"resamples": True}, "resamples must be a whole number")],
)
def test_samples_that_cannot_be_drawn_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        drawn(np.ones((2, 1)), **options)
    with pytest.raises(DataError, match="an interval needs at least one item"):
        drawn(np.ones((0, 1)))


def test_a_level_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"level must lie between 0 and 1, such as 0\.95, but is 95"):
        interval(share, drawn(np.ones((2, 2))), level=95)


def test_systems_on_other_items_are_not_compared() -> None:
    with pytest.raises(DataError, match="same items, but they have 1000 of 2 with seed 0 and 1000 of 3 with seed 0"):
        difference(share, drawn(np.ones((2, 2))), drawn(np.ones((3, 2))))
    with pytest.raises(DataError, match="but they have 5 of 2 with seed 1 and 5 of 2 with seed 2"):
        difference(share, drawn(np.ones((2, 2)), seed=1, resamples=5), drawn(np.ones((2, 2)), seed=2, resamples=5))
