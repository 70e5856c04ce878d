"""What several networks looked at, as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def mean_of_alike(arrays: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """The mean of what several networks looked at; None where not all have looked, or at other places.

    >>> mean_of_alike([np.array([1.0, 0.0]), np.array([0.0, 1.0])]).tolist()
    [0.5, 0.5]
    """
    known = [each for each in arrays if each is not None]
    if len(known) < len(arrays) or len({each.shape for each in known}) > 1:
        return None
    return np.asarray(np.mean(known, axis=0))
