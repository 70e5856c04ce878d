"""How the values of one series are scaled, and forecasts given back in its unit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.data.normal import Normal

Floats = NDArray[np.float64]


class Unit(NamedTuple):
    """x ↦ z, column by column:

        y_t = log max(x_t, floor), or x_t where there is no floor
        u_t = y_t − y_{t−1}, or y_t without `difference`
        z_t = (u_t − mean) / spread

    >>> unit = Unit(Normal(np.array([0.0]), np.array([2.0])), floor=np.array([0.1]))
    >>> z = unit.scaled(np.array([[1.0], [np.exp(4.0)]]))
    >>> z.tolist(), unit.ahead(z, np.array([5.0])).round(3).tolist()
    ([[0.0], [2.0]], [[1.0], [54.598]])
    """

    scale: Normal
    difference: bool = False
    floor: Floats | None = None  # (d,)

    def moved(self, values: Floats) -> Floats:
        """What is scaled, y, of values (..., d)."""
        return values if self.floor is None else np.log(np.maximum(values, self.floor))

    def back(self, moved: Floats) -> Floats:
        """The values of y."""
        return moved if self.floor is None else np.exp(moved)

    def scaled(self, values: Floats) -> Floats:
        """(T, d). The first step has no change; it is read as none."""
        values = self.moved(values)
        return self.scale.scaled(np.diff(values, axis=0, prepend=values[:1]) if self.difference else values)

    def ahead(self, ahead: Floats, last: Floats) -> Floats:
        """Steps ahead, (..., h, d), in the unit of the data; `last`, (..., d), is the step before them."""
        found = self.scale.unscaled(ahead)
        if self.difference:
            found = self.moved(last)[..., None, :] + found.cumsum(-2)
        return self.back(found)

    def fan(self, fan: NDArray[np.floating], last: Floats) -> Floats:
        """Quantiles of steps ahead, (..., h, L, d), in the unit of the data; those of changes are of their sums."""
        if not self.difference:
            return self.back(self.scale.unscaled(fan))
        steps = np.arange(1, fan.shape[-3] + 1)[:, None, None]
        sums = fan * self.scale.spread + steps * self.scale.mean
        return self.back(self.moved(last)[..., None, None, :] + sums)

    def log_size(self, values: Floats) -> Floats:
        """(T, d): log dx/dz at values x, which turns −log p of z into that of x."""
        size = np.broadcast_to(np.log(self.scale.spread), values.shape)
        return size if self.floor is None else size + self.moved(values)
