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
    """Weights (K, n) of n steps of the past, by their names, and of K steps ahead: as percentages by steps back.

    >>> view = looking_back(np.full((1, 96), 1 / 96), [str(t) for t in range(96)], ["96"])
    >>> view.columns[:2], view.columns[-1], view.numbers["past"][:2]
    (('96', '94'), '2', ['0', '1'])
    """
    count = len(past)
    each = -(-count // COLUMNS)
    columns = -(-count // each)
    padded = np.pad(weights, ((0, 0), (columns * each - count, 0)))  # the last column is whole
    backs = [min(count, (columns - number) * each) for number in range(columns)]
    several = f" (a column is {each} steps, named by the first)" if each > 1 else ""
    return HeatMap(
        ahead,
        [str(back) for back in backs],
        100 * padded.reshape(len(weights), columns, each).sum(2),
        across="steps back",
        down="forecast",
        of_row="looked back",
        of_column="was looked at by",
        title=LOOKED,
        caption=caption,
        about="Rows are forecast steps; columns are known steps by how far they lie back from the first forecast, 1 is "
        f"the last known{several}. Numbers are shares of attention in percent.",
        numbers={"past": list(past), "ahead": list(ahead), "shares": weights.round(6).tolist()},
    )
