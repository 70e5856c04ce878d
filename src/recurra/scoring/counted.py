"""Counts per item: the one thing a task writes to be scored.

Scores, their intervals, comparisons of runs, scores by length and tables are all derived from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import ConfigError, DataError
from recurra.metrics.resampling import Numbers, Sampled, draws
from recurra.scoring.formulas import Formula, Sums, total
from recurra.scoring.scores import Scores, Tables
from recurra.views.table import Table

ITEMS = "items"
"""The name under which every `Counted` counts its items."""

LARGEST = 200_000
"""Numbers that a score of single items may look at: with more, a thousand samples take long, and it has no interval."""

TOGETHER = 1_000_000
"""Items of samples that are scored at once."""

LOWER_IS_BETTER = frozenset(
    {
        "bits_per_character",
        "calibrated_width",
        "calibration_error",
        "crps",
        "hamming",
        "interval_width",
        "known_perplexity",
        "mae",
        "mae_to_last_value",
        "mae_to_seasonal",
        "mape",
        "mase",
        "next_crps",
        "nll",
        "nll_after_first",
        "perplexity",
        "rmse",
        "rmsse",
        "scaled_mae",
        "smape",
        "symbol_error_rate",
        "ter",
        "weighted_quantile_loss",
        "word_error_rate",
    }
)
"""Scores of which less is better; a column's name may follow after a dot."""


class OfItems(NamedTuple):
    """A score that is not a function of sums, such as an AUC or a median: `of` takes the weight of each item, (N,).

    >>> seconds = np.array([3.0, 1.0, 2.0])
    >>> median = OfItems(lambda times: float(np.median(np.repeat(seconds, times))), size=3)
    >>> Counted.of("abc", {}, {"median": median}, first="median").value("median", np.array([0, 0, 1]))
    3.0
    """

    of: Callable[[NDArray[np.int64]], float]
    size: int  # numbers that it looks at


class Tally(NamedTuple):
    """Sparse counts of L kinds per item: much smaller than (N, L) if L is large.

    Entry j adds 1, or `amounts[j]`, to the count of kind `kinds[j]` of item `items[j]`.

    >>> Counted.of("ab", {"tags": Tally(np.array([2, 0, 2]), 3, np.array([0, 0, 1]))}, {}, first="").sums()["tags"]
    array([1., 0., 2.])
    """

    kinds: NDArray[np.int64]
    size: int  # L
    items: NDArray[np.int64] | None = None  # None: each item has one entry
    amounts: Numbers | None = None

    def summed(self, times: Numbers | None = None) -> Numbers:
        """(L,): over all items, each counting so many times."""
        weights = self.amounts
        if times is not None:
            each = times if self.items is None else times[self.items]
            weights = each if weights is None else each * weights
        return np.bincount(self.kinds, weights=weights, minlength=self.size).astype(np.float64)


@final
class _Summed(Mapping[str, Numbers]):
    """Sums that are made when they are asked for: a score that is not wanted costs nothing."""

    def __init__(self, names: Iterable[str], summed: Callable[[str], Numbers]) -> None:
        self._names = tuple(names)
        self._summed = summed
        self._known: dict[str, Numbers] = {}

    def __getitem__(self, name: str) -> Numbers:
        if name not in self._known:
            self._known[name] = self._summed(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, eq=False)
class Counted:
    """Per-item counts and the scores computed from them. Create one with `Counted.of`.

    An item is the unit of bootstrap resampling: a sentence, not a token.
    """

    items: tuple[object, ...]  # what tells one from another: two models are compared on the same ones
    columns: Mapping[str, NDArray[np.generic] | Tally]  # (N,) or (N, L) each
    formulas: Mapping[str, Formula | OfItems]  # each score by its name, in the order in which they are shown
    first: str  # the score that training stops on
    lengths: NDArray[np.int64] | None = None  # (N,); None: there are no scores by length
    sizes: Mapping[str, Formula] = field(default_factory=dict)  # what is shown after the scores, such as how many items
    lower_is_better: Collection[str] = ()  # scores of which less is better, beside those of LOWER_IS_BETTER
    loss: Formula | None = None  # per label, where it is known
    tables: Mapping[str, Callable[[Counted], Table]] = field(default_factory=dict)
    notes: Sequence[str] = ()  # sentences about the scores that whoever reads them should know

    @classmethod
    def of(
        cls,
        items: Sequence[object],
        columns: Mapping[str, ArrayLike | Tally],
        scores: Mapping[str, Formula | OfItems],
        *,
        first: str,
        lengths: ArrayLike | None = None,
        sizes: Mapping[str, Formula] | None = None,
        lower_is_better: Collection[str] = (),
        loss: Formula | None = None,
        tables: Mapping[str, Callable[[Counted], Table]] | None = None,
        notes: Sequence[str] = (),
    ) -> Self:
        """Counts by name, (N,) or (N, L) each, and scores that are made of their sums.

        The items themselves are counted as "items". Less of a score is better where `lower_is_better` names it, or
        where that is usual, as for "mae". `sizes` are shown after the scores; "count", the items, unless others are
        given.

        >>> from recurra.scoring.formulas import ratio
        >>> found = Counted.of(
        ...     ["line 1", "line 2"],
        ...     {"right": [3, 0], "words": [4, 1]},
        ...     {"accuracy": ratio("right", "words")},
        ...     first="accuracy",
        ... )
        >>> found.scores().values
        {'accuracy': 0.6, 'count': 2.0}
        >>> found.value("accuracy", np.array([0]))
        0.75
        """
        found: dict[str, NDArray[np.generic] | Tally] = {ITEMS: np.ones(len(items))}
        for name, given in columns.items():
            if isinstance(given, Tally):
                found[name] = given
                continue
            column = found[name] = np.asarray(given)
            if column.shape[:1] != (len(items),):
                size = f"{len(column)} numbers" if column.shape else "a single one"
                raise DataError(
                    f"the count '{name}' needs one number for each of the {len(items)} items, but has {size}."
                )
        if scores and first not in scores:
            raise ConfigError(f"first = '{first}' is not one of the scores: {', '.join(scores)}.")
        return cls(
            tuple(items),
            found,
            dict(scores),
            first,
            None if lengths is None else np.asarray(lengths, np.int64),
            {"count": total(ITEMS)} if sizes is None else dict(sizes),
            lower_is_better,
            loss,
            tables or {},
            notes,
        )

    def is_higher_better(self, name: str) -> bool:
        """Whether more of a score is better."""
        return is_higher_better(name) and name not in self.lower_is_better

    def sums(self, items: NDArray[np.int64] | None = None) -> Sums:
        """The counts summed over all items, or over some; one that is named twice counts twice."""
        if items is None:
            return _Summed(self.columns, self._summed)
        times = np.bincount(items, minlength=len(self.items)).astype(np.float64)
        return _Summed(self.columns, lambda name: self._summed(name, items, times))

    def _summed(
        self, name: str, items: NDArray[np.int64] | slice = slice(None), times: Numbers | None = None
    ) -> Numbers:
        column = self.columns[name]
        if isinstance(column, Tally):
            return column.summed(times)
        return np.asarray(column[items].sum(0), np.float64)

    def value(self, name: str, items: NDArray[np.int64] | None = None) -> float:
        """A score on all items, or on some of them."""
        formula = self.formulas[name]
        if not isinstance(formula, OfItems):
            return float(formula(self.sums(items)))
        count = len(self.items)
        return formula.of(np.ones(count, np.int64) if items is None else np.bincount(items, minlength=count))

    def scores(self) -> Scores:
        """All scores on all items; tables are made when they are asked for."""
        sums, every = self.sums(), np.ones(len(self.items), np.int64)
        values = {
            name: formula.of(every) if isinstance(formula, OfItems) else float(formula(sums))
            for name, formula in self.formulas.items()
        }
        return Scores(
            values | {name: float(size(sums)) for name, size in self.sizes.items()},
            self.first,
            Tables({title: partial(made, self) for title, made in self.tables.items()}),
            self.is_higher_better(self.first),
            None if self.loss is None else float(self.loss(sums)),
            tuple(self.notes),
        )

    def sampled(self, *, seed: int = 0, resamples: int = 1000) -> dict[str, Sampled]:
        """Each score that is a number on all samples: the items drawn again, as many as there are, so many times.

        >>> from recurra.scoring.formulas import ratio
        >>> counted = Counted.of("ab", {"right": [1, 0]}, {"accuracy": ratio("right", "items")}, first="accuracy")
        >>> sorted({*counted.sampled(resamples=50)["accuracy"].samples.tolist()})
        [0.0, 0.5, 1.0]
        """
        values, count = self.scores().values, len(self.items)
        drawn = draws(count, seed=seed, resamples=resamples)
        samples = {
            name: np.empty(resamples)
            for name, formula in self.formulas.items()
            if not isinstance(formula, OfItems) or formula.size <= LARGEST
        }
        together = max(1, TOGETHER // count)
        for start in range(0, resamples, together):
            times = np.array([*islice(drawn, together)])
            sums = _Summed(self.columns, partial(self._summed_over, times.astype(np.float64)))
            for name, found in samples.items():
                found[start : start + together] = _of_samples(self.formulas[name], sums, times)
        return {
            name: Sampled(values[name], found, count, seed)
            for name, found in samples.items()
            if np.isfinite(found).all()
        }

    def _summed_over(self, times: Numbers, name: str) -> Numbers:
        """(R,) or (R, L): over the items, each as often as a sample, a row of (R, N), has it."""
        column = self.columns[name]
        if isinstance(column, Tally):
            return np.array([column.summed(row) for row in times])
        return np.asarray(times @ column.astype(np.float64), np.float64)


def _of_samples(formula: Formula | OfItems, sums: Sums, times: NDArray[np.int64]) -> Numbers:
    """(R,): a score of each sample; where its formula cannot take the sums of all at once, one after the other."""
    if isinstance(formula, OfItems):
        return np.array([formula.of(row) for row in times])
    try:
        found = np.asarray(formula(sums), np.float64)
    except (TypeError, ValueError):
        found = np.empty(())
    if found.shape == times.shape[:1]:
        return found
    each = [formula({name: sums[name][row] for name in sums}) for row in range(len(times))]
    return np.array(each, np.float64)


def is_higher_better(name: str) -> bool:
    """Whether more of a score is better, by the usual meaning of its name.

    >>> is_higher_better("accuracy.xpos"), is_higher_better("nll")
    (True, False)
    """
    return name.partition(".")[0] not in LOWER_IS_BETTER
