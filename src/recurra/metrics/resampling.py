"""How sure a score is: the items drawn again, many times, and where the score lies on such samples (Efron 1979)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError

Numbers: TypeAlias = NDArray[np.float64]


class Sampled(NamedTuple):
    """A score on all of N items, and on R samples of N of them.

    >>> Sampled(0.5, np.array([0.4, 0.6]), items=10, seed=0).samples.mean()
    np.float64(0.5)
    """

    value: float
    samples: Numbers  # (R,)
    items: int
    seed: int


class Difference(NamedTuple):
    """How far the first of two systems lies above the second, on the same items.

    >>> Difference(value=1.5, low=0.3, high=2.6, better=0.99).low > 0
    True
    """

    value: float
    low: float
    high: float
    better: float  # the share of samples where the first is the better one, equals counting half


def draws(items: int, *, seed: int = 0, resamples: int = 1000) -> Iterator[NDArray[np.int64]]:
    """How often each item is in a sample of as many, drawn with replacement, (N,): one sample after the other.

    The same seed draws the same samples.

    >>> [int(times.sum()) for times in draws(3, resamples=2)]
    [3, 3]
    """
    if not items:
        raise DataError("an interval needs at least one item, but there are none.")
    if not isinstance(resamples, int) or isinstance(resamples, bool) or resamples < 1:
        raise ConfigError(f"resamples must be a whole number of at least 1, but is {resamples!r}.")
    chance = np.random.default_rng(seed)
    return (np.bincount(chance.integers(items, size=items), minlength=items) for _ in range(resamples))


def interval(sampled: Sampled, *, level: float = 0.95) -> tuple[float, float]:
    """The range that holds the middle `level` of a score over the samples.

    >>> interval(Sampled(2.0, np.arange(5.0), items=9, seed=0), level=0.5)
    (1.0, 3.0)
    """
    return _middle(sampled.samples, level)


def difference(first: Sampled, second: Sampled, *, higher_is_better: bool = True, level: float = 0.95) -> Difference:
    """The paired bootstrap (Koehn 2004): both systems are scored on the same samples of their items.

    Where the interval lies above 0 as a whole, the first system's score is higher beyond what the choice of items
    explains.

    >>> good, poor = Sampled(0.9, np.array([0.8, 1.0]), 2, 0), Sampled(0.4, np.array([0.3, 0.5]), 2, 0)
    >>> difference(good, poor)
    Difference(value=0.5, low=0.5, high=0.5, better=1.0)
    """
    if (first.items, first.seed, first.samples.shape) != (second.items, second.seed, second.samples.shape):
        sizes = [f"{len(one.samples)} of {one.items} with seed {one.seed}" for one in (first, second)]
        raise DataError(
            "two systems can be compared only on the same samples of the same items, but they have "
            f"{' and '.join(sizes)}."
        )
    apart = first.samples - second.samples
    signs = np.sign(apart) if higher_is_better else -np.sign(apart)
    return Difference(first.value - second.value, *_middle(apart, level), float((1 + signs).mean() / 2))


def _middle(scores: Numbers, level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ConfigError(f"level must be between 0 and 1, such as 0.95, but is {level!r}.")
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
