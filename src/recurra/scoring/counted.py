"""Scores made of counts that add up over items: what intervals, comparisons and scores of a part of the data need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.metrics.resampling import Numbers, Statistic
from recurra.scoring.scores import Scores

Sums: TypeAlias = Mapping[str, Numbers]
"""Counts by name, summed over items: (...) or, for one of each of L classes, (..., L)."""

LOWER_IS_BETTER = frozenset(
    {
        "bits_per_character",
        "calibration_error",
        "hamming",
        "mae",
        "mae_to_last_value",
        "mae_to_seasonal",
        "nll",
        "nll_after_first",
        "perplexity",
        "rmse",
        "scaled_mae",
        "symbol_error_rate",
        "ter",
        "word_error_rate",
    }
)
"""Scores of which less is better; a column's name may follow after a dot."""


class Counted(NamedTuple):
    """Of each of N items, counts whose sums are all that scores need to know.

    An item is what is drawn as a whole where data are drawn again: a sentence and not a token.
    """

    items: tuple[object, ...]  # what tells one from another: two models are compared on the same ones
    lengths: NDArray[np.int64]  # (N,)
    counts: Numbers  # (N, K)
    statistics: Mapping[str, Statistic]  # each score by its name, from sums (..., K) of counts to scores (...)
    first: str = ""  # the score that training stops on

    @classmethod
    def of(
        cls,
        items: Sequence[object],
        columns: Mapping[str, ArrayLike],
        scores: Mapping[str, Callable[[Sums], Numbers]],
        *,
        first: str,
        lengths: Sequence[int],
    ) -> Counted:
        """Counts by name, (N,) or (N, L) each, and scores that are made of their sums.

        The items themselves are counted as "items".

        >>> found = Counted.of(
        ...     ["line 1", "line 2"],
        ...     {"right": [3, 0], "words": [4, 1]},
        ...     {"accuracy": ratio("right", "words")},
        ...     first="accuracy",
        ...     lengths=[4, 1],
        ... )
        >>> found.scores().values
        {'accuracy': 0.6, 'count': 2.0}
        """
        return counted(items, lengths, {"items": np.ones(len(items)), **columns}, scores)._replace(first=first)

    def scores(self) -> Scores:
        """All scores on all items."""
        values = {name: self.value(name) for name in self.statistics}
        return Scores({**values, "count": float(len(self.items))}, self.first, {}, is_higher_better(self.first))

    def value(self, name: str, items: NDArray[np.int64] | slice = slice(None)) -> float:
        """A score on some of the items."""
        return float(self.statistics[name](self.counts[items].sum(0)))


def counted(
    items: Sequence[object],
    lengths: Sequence[int] | NDArray[np.int64],
    columns: Mapping[str, ArrayLike],
    statistics: Mapping[str, Callable[[Sums], Numbers]],
) -> Counted:
    """Counts by name, (N,) or (N, L) each, and scores that are made of their sums.

    >>> right = {"right": [3, 0], "steps": [4, 1]}
    >>> found = counted(["a", "b"], [4, 1], right, {"accuracy": lambda sums: sums["right"] / sums["steps"]})
    >>> found.value("accuracy"), found.value("accuracy", np.array([0]))
    (0.6, 0.75)
    """
    tables = {name: np.asarray(column, np.float64) for name, column in columns.items()}
    places: dict[str, int | slice] = {}
    width = 0
    for name, table in tables.items():
        places[name] = width if table.ndim == 1 else slice(width, width + table.shape[1])
        width += 1 if table.ndim == 1 else table.shape[1]

    def of_sums(score: Callable[[Sums], Numbers]) -> Statistic:
        return lambda sums: score({name: sums[..., place] for name, place in places.items()})

    parts = [table[:, None] if table.ndim == 1 else table for table in tables.values()]
    whole = np.concatenate(parts, axis=1) if parts else np.zeros((len(items), 0))
    return Counted(
        tuple(items),
        np.asarray(lengths, np.int64),
        whole,
        {name: of_sums(score) for name, score in statistics.items()},
    )


def share(part: Numbers, whole: Numbers, *, of_nothing: float = float("nan")) -> Numbers:
    """part / whole, where there is a whole.

    >>> share(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, np.divide(part, whole), of_nothing)


def ratio(part: str, whole: str, *, of_nothing: float = float("nan")) -> Callable[[Sums], Numbers]:
    """The score part / whole."""
    return lambda sums: share(sums[part], sums[whole], of_nothing=of_nothing)


def root(part: str, whole: str) -> Callable[[Sums], Numbers]:
    """The score √(part / whole)."""
    return lambda sums: np.sqrt(share(sums[part], sums[whole]))


def found_and_right(
    prefix: str = "", suffix: str = "", *, of_nothing: float = 0.0
) -> dict[str, Callable[[Sums], Numbers]]:
    """F1, precision and recall from the counts `right`, `gold` and `said` that begin with the prefix."""
    right, gold, said = f"{prefix}right", f"{prefix}gold", f"{prefix}said"
    return {
        f"f1{suffix}": lambda sums: share(2 * sums[right], sums[gold] + sums[said], of_nothing=of_nothing),
        f"precision{suffix}": ratio(right, said, of_nothing=of_nothing),
        f"recall{suffix}": ratio(right, gold, of_nothing=of_nothing),
    }


def is_higher_better(name: str) -> bool:
    """Whether more of a score is better.

    >>> is_higher_better("accuracy.xpos"), is_higher_better("nll")
    (True, False)
    """
    return name.partition(".")[0] not in LOWER_IS_BETTER
