"""Positions as angles: queries and keys are turned, so that their product knows how far apart they are."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Rotation(NamedTuple):
    """The angles of W positions, one after the other: pair j of position p turns by p · 10000^(−2j/d)."""

    cos: Tensor  # (W, d / 2)
    sin: Tensor  # (W, d / 2)

    def last(self, steps: int) -> Rotation:
        """Those of the last so many positions."""
        first = len(self.cos) - steps
        return Rotation(self.cos[first:], self.sin[first:])


def rotation(positions: int, size: int, like: Tensor) -> Rotation:
    """The angles of positions 0 … W − 1 for vectors of an even size d, of the type and on the device of `like`."""
    exact = {"dtype": torch.float64, "device": like.device}
    pairs = torch.arange(size // 2, **exact)  # type: ignore[call-overload]
    angles = torch.outer(torch.arange(positions, **exact), 10000.0 ** (-2.0 * pairs / size))  # type: ignore[call-overload]
    return Rotation(angles.cos().to(like.dtype), angles.sin().to(like.dtype))


def rotated(x: Tensor, by: Rotation) -> Tensor:
    """Vectors (..., W, d) turned by the angles of their positions: pair j is (x_j, x_{j + d/2}) (Su et al. 2021).

    A product of two of them depends on how far apart they stand, not on where:

    >>> q, k = torch.randn(1, 4), torch.randn(1, 4)
    >>> angles = rotation(9, 4, q)
    >>> at = [Rotation(*(each[place:place + 1] for each in angles)) for place in (0, 3, 5, 8)]
    >>> near = rotated(q, at[1]) @ rotated(k, at[0]).T
    >>> torch.allclose(near, rotated(q, at[3]) @ rotated(k, at[2]).T, atol=1e-5)
    True
    """
    first, second = x.chunk(2, dim=-1)
    cos, sin = by
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
