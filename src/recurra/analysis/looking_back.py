"""How much each step of a forecast looked at each step of the past: attention as a heat map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recurra.views.heat_map import HeatMap
from recurra.views.viewer import LOOKED

COLUMNS = 48
"""The most columns of a picture: of more steps, neighbours are one column with the sum of their weights."""


def looking_back(weights: NDArray[np.float64], past: Sequence[str], ahead: Sequence[str], caption: str = "") -> HeatMap:
    """Weights (K, n) of n steps of the past, by their names, and of K steps ahead.

    >>> looking_back(np.full((1, 96), 1 / 96), [str(t) for t in range(96)], ["96"]).columns[:2]
    ('0 … 1', '2 … 3')
    """
    each = -(-len(past) // COLUMNS)
    begins = range(len(past) % each - each if len(past) % each else 0, len(past), each)  # the last column is whole
    groups = [(max(0, begin), begin + each) for begin in begins]
    names = [past[begin] if end - begin == 1 else f"{past[begin]} … {past[end - 1]}" for begin, end in groups]
    summed = np.stack([weights[:, begin:end].sum(1) for begin, end in groups], axis=1)
    of_steps = f"columns are known steps, {each} in each" if each > 1 else "columns are known steps"
    return HeatMap(
        ahead,
        names,
        summed,
        across="known",
        down="forecast",
        of_row="looked at",
        of_column="was looked at by",
        title=LOOKED,
        caption=caption,
        about=f"Rows are forecast steps, {of_steps}, the latest on the right. Point at a cell to see its weight.",
        numbers={"past": list(past), "ahead": list(ahead), "every": weights.round(6).tolist()},
    )
