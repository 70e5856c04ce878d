"""How sure a score is: the interval it falls in when the test set is drawn again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from recurra.errors import ConfigError, DataError

Item = TypeVar("Item")


def bootstrap(
    statistic: Callable[[Sequence[Item]], float],
    items: Sequence[Item],
    *,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
) -> tuple[float, float]:
    """The percentile interval of a statistic over samples drawn from the items with replacement (Efron 1979).

    An item is what is drawn as a whole: a sentence, not a token, for the tokens of a sentence go together. Where
    the statistic is slow, let the items be counts: an accuracy needs only (right, steps) of each sentence.

    >>> sentences = [(9, 10), (4, 5), (20, 20), (3, 8)] * 25
    >>> low, high = bootstrap(lambda drawn: sum(r for r, _ in drawn) / sum(n for _, n in drawn), sentences)
    >>> low < 36 / 43 < high
    True
    """
    if len(items) == 0:
        raise DataError("an interval needs at least one item, but there are none.")
    if not isinstance(resamples, int) or isinstance(resamples, bool) or resamples < 1:
        raise ConfigError(f"resamples must be a whole number of at least 1, but is {resamples!r}.")
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1, such as 0.95, but is {level!r}.")
    chance = np.random.default_rng(seed)
    scores = np.array(
        [statistic([items[i] for i in chance.integers(len(items), size=len(items))]) for _ in range(resamples)],
        dtype=np.float64,
    )
    if np.isnan(scores).any():
        raise DataError("the statistic is not a number on some samples, so it has no interval.")
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
