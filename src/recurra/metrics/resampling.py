"""How sure a score of summed counts is: the items drawn again, many times, at the price of some additions.

`bootstrap` takes any statistic; where a score needs only counts that add up over items, as BLEU and error rates do,
a thousand samples cost a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError

Numbers: TypeAlias = NDArray[np.float64]
Statistic: TypeAlias = Callable[[Numbers], Numbers]
"""From counts (..., K) that were summed over items to a score (...)."""


class Drawn(NamedTuple):
    """Counts of N items, summed over all of them and over R samples of N of them.

    >>> drawn(np.array([[1, 2], [1, 2], [1, 2]]), resamples=2).samples.tolist()
    [[3.0, 6.0], [3.0, 6.0]]
    """

    whole: Numbers  # (K,)
    samples: Numbers  # (R, K)
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


def drawn(counts: NDArray[np.int64] | Numbers, *, seed: int = 0, resamples: int = 1000) -> Drawn:
    """Counts (N, K) summed over samples of N items each, drawn with replacement.

    The same seed draws the same items, from the counts of any system.

    >>> drawn(np.array([[1, 0], [0, 1]]), resamples=3).samples.sum(axis=1).tolist()
    [2.0, 2.0, 2.0]
    """
    items = len(counts)
    if not items:
        raise DataError("an interval needs at least one item, but there are none.")
    if not isinstance(resamples, int) or isinstance(resamples, bool) or resamples < 1:
        raise ConfigError(f"resamples must be a whole number of at least 1, but is {resamples!r}.")
    chance = np.random.default_rng(seed)
    exact = counts.astype(np.float64)
    samples = np.empty((resamples, counts.shape[1]))
    for row in samples:
        row[:] = np.bincount(chance.integers(items, size=items), minlength=items) @ exact
    return Drawn(exact.sum(0), samples, items, seed)


def interval(statistic: Statistic, drawn: Drawn, *, level: float = 0.95) -> tuple[float, float]:
    """The range that holds the middle `level` of a score over the samples.

    >>> right = drawn(np.array([[1, 1], [0, 1], [1, 1], [1, 1]]))
    >>> interval(lambda sums: sums[..., 0] / sums[..., 1], right)
    (0.25, 1.0)
    """
    return _middle(statistic(drawn.samples), level)


def difference(
    statistic: Statistic, first: Drawn, second: Drawn, *, higher_is_better: bool = True, level: float = 0.95
) -> Difference:
    """The paired bootstrap (Koehn 2004): both systems are scored on the same samples of their items.

    Where the interval lies above 0 as a whole, the first system's score is higher beyond what the choice of items
    explains.

    >>> good, poor = drawn(np.array([[1, 1], [1, 1], [0, 1]])), drawn(np.array([[1, 1], [0, 1], [0, 1]]))
    >>> difference(lambda sums: sums[..., 0] / sums[..., 1], good, poor).value
    0.3333333333333333
    """
    if (first.items, first.seed, first.samples.shape) != (second.items, second.seed, second.samples.shape):
        sizes = [f"{len(one.samples)} of {one.items} with seed {one.seed}" for one in (first, second)]
        raise DataError(
            f"two systems are compared on the same samples of the same items, but they have {' and '.join(sizes)}."
        )
    apart = statistic(first.samples) - statistic(second.samples)
    signs = np.sign(apart) if higher_is_better else -np.sign(apart)
    whole = float(statistic(first.whole) - statistic(second.whole))
    return Difference(whole, *_middle(apart, level), float((1 + signs).mean() / 2))


def _middle(scores: Numbers, level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1, such as 0.95, but is {level!r}.")
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
