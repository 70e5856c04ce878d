"""The interval of a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from recurra.errors import ConfigError, DataError
from recurra.metrics import bootstrap


def mean(items: Sequence[float]) -> float:
    return sum(items) / len(items)


def test_the_interval_of_a_mean_is_that_of_its_normal_distribution() -> None:
    items = np.random.default_rng(1).normal(size=400).tolist()
    low, high = bootstrap(mean, items, resamples=2000)
    spread = 1.96 * float(np.std(items)) / math.sqrt(len(items))
    assert low == pytest.approx(mean(items) - spread, abs=0.012)
    assert high == pytest.approx(mean(items) + spread, abs=0.012)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    chance = np.random.default_rng(0)
    intervals = [bootstrap(mean, chance.random(40).tolist(), resamples=200, level=0.8) for _ in range(200)]
    assert 0.7 < mean([low <= 0.5 <= high for low, high in intervals]) < 0.88


def test_the_same_seed_gives_the_same_interval() -> None:
    items = [float(number) for number in range(20)]
    assert bootstrap(mean, items, seed=3) == bootstrap(mean, items, seed=3)
    assert bootstrap(mean, items, seed=3) != bootstrap(mean, items, seed=4)


def test_items_that_are_all_alike_have_no_spread() -> None:
    assert bootstrap(mean, np.full(5, 2.0).tolist(), resamples=10) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resamples": 0}, "resamples must be a whole number of at least 1, but is 0"),
        ({"resamples": 2.5}, "resamples must be a whole number of at least 1, but is 2.5"),
        ({"level": 95}, "level must lie between 0 and 1, such as 0.95, but is 95"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bootstrap(mean, [1.0], **options)


def test_data_without_an_interval_is_refused() -> None:
    with pytest.raises(DataError, match="an interval needs at least one item"):
        bootstrap(mean, [])
    with pytest.raises(DataError, match="the statistic is not a number on some samples"):
        bootstrap(lambda _: math.nan, [1.0], resamples=2)
