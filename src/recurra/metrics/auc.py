"""The area under the ROC curve: how well scores put items that are so before those that are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError


def auc(scores: ArrayLike, positive: ArrayLike) -> float:
    """How often a positive item scores higher than one that is not, ties counting half.

        AUC = (1 / PN) Σ_p Σ_n ([s_p > s_n] + ½ [s_p = s_n])      P positive items, N others

    Both are (N,); NaN where there are no positive items or no others.

    >>> auc([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
    0.875
    """
    area = area_under_curve(scores, positive)
    return area(np.ones(len(np.asarray(scores)), np.int64))


def area_under_curve(scores: ArrayLike, positive: ArrayLike) -> Callable[[NDArray[np.int64]], float]:
    """The same, for items that count so many times each, (N,): they are put in order but once.

    >>> area_under_curve([0.9, 0.4, 0.4, 0.1], [True, True, False, False])(np.array([0, 2, 1, 1]))
    0.75
    """
    values, flags = np.ascontiguousarray(scores, np.float64), np.asarray(positive)
    for name, column in (("scores", values), ("positive", flags)):
        if column.ndim != 1 or not column.size:
            raise DataError(f"{name} must have one value per item, but has shape {column.shape}.")
    if len(values) != len(flags):
        raise DataError(f"scores has {len(values)} items but positive has {len(flags)}: each item needs both.")
    if np.isnan(values).any():
        raise DataError(
            f"scores holds NaN at item {int(np.isnan(values).argmax()) + 1}, which cannot be ranked. Remove the "
            "item, or give it a score."
        )
    if flags.dtype != np.bool_ and not np.isin(flags, (0, 1)).all():
        raise DataError("positive must be true or false for each item, but holds other values.")
    order = np.argsort(values)
    ordered, is_positive = values[order], flags[order].astype(np.bool_)
    hits = np.flatnonzero(is_positive)
    lower, not_higher = (np.searchsorted(ordered, ordered[hits], side=side) for side in ("left", "right"))

    def of(times: NDArray[np.int64]) -> float:
        counts = times[order]
        misses = np.append(0, np.cumsum(np.where(is_positive, 0, counts)))  # among the first 0, 1, … items
        pairs = int(counts[hits].sum()) * int(misses[-1])
        won = int((counts[hits] * (misses[lower] + misses[not_higher])).sum())  # twice: ties count half
        return won / 2 / pairs if pairs else float("nan")

    return of
