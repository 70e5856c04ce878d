"""Intervals that adapt: their correction follows the errors of the same series as its values become known.

Conformal intervals hold as often as they say where new values are exchangeable with those of the validation data
(`conformal`). A series that becomes calmer or livelier is not. Seen from successive origins, the correction Q of one
step of the horizon is therefore moved after every value that has become known (quantile tracking, Angelopoulos et al.
2023; the adaptive conformal inference of Gibbs & Candès 2021, by a quantile in place of its level):

    Q ← Q + η (1{E > Q'} − (1 − c))                    E: the score of the value,  Q': the correction it was given

It starts from the conformal one. Of the k-th step ahead the value is known k steps after its origin, so up to D
forecasts are on their way that have not been told of the last values. Whatever the series does, the share of T values
outside of their intervals differs from 1 − c by at most

    (b + (D + 1) η) / (η T)                            b: how far scores and the first Q lie apart

for Q rises only while scores exceed it, and for D values longer. This holds for the mean over time, not for each value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def tracked(scores: Floats, origins: NDArray[np.int64], start: Floats, step: Floats, coverage: float) -> Floats:
    """(O, h, d): the correction of each forecast, from scores (O, h, d) of which NaN are not known, also later.

    `origins` are the steps that were known, in ascending order; `start` and `step` (h, d) are the first Q, and η.

    >>> scores = np.array([1.0, 1.0, -1.0, np.nan])[:, None, None]
    >>> one = np.ones((1, 1))
    >>> tracked(scores, np.arange(4), 0 * one, one, 0.75).ravel().tolist()
    [0.0, 0.75, 1.5, 1.25]
    """
    count, horizon, _ = scores.shape
    found = np.empty_like(scores)
    now = np.array(start, np.float64)
    ahead = np.arange(1, horizon + 1)
    # How many of the forecasts of each step are known at each origin: x_{o + k} is, k steps later.
    known = np.searchsorted(origins, origins[:, None] - ahead[None], side="right")  # (O, h)
    done = np.zeros(horizon, np.int64)
    steps = np.arange(horizon)
    for number in range(count):
        while (is_new := done < known[number]).any():
            which = np.minimum(done, count - 1)
            score, given = scores[which, steps], found[which, steps]
            moved = step * ((score > given) - (1 - coverage))
            now = now + np.where(is_new[:, None] & ~np.isnan(score), moved, 0.0)
            done = done + is_new
        found[number] = now
    return found
