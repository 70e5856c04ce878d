"""Positions as angles: queries and keys are turned, so that their product knows how far apart they are."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from recurra.padding import exact


class Rotation(NamedTuple):
    """The angles of positions: pair j of position p turns by p · 10000^(−2j/d)."""

    cos: Tensor  # (..., T, d / 2)
    sin: Tensor  # (..., T, d / 2)


def rotation(positions: Tensor, size: int, like: Tensor) -> Rotation:
    """The angles of positions (..., T), whole numbers, for vectors of an even size d, in the type of `like`."""
    # Exact first: single precision would round the angle of a position far away.
    places = exact(positions)
    pairs = torch.arange(size // 2, dtype=torch.float64, device=places.device)
    angles = places.unsqueeze(-1) * 10000.0 ** (-2.0 * pairs / size)
    return Rotation(angles.cos().to(like.device, like.dtype), angles.sin().to(like.device, like.dtype))


def rotated(x: Tensor, by: Rotation) -> Tensor:
    """Vectors (..., T, d) turned by the angles of their positions: pair j is (x_j, x_{j + d/2}) (Su et al. 2021).

    A product of two of them depends on how far apart they stand, not on where:

    >>> q, k = torch.randn(1, 4), torch.randn(1, 4)
    >>> at = {place: rotation(torch.tensor([place]), 4, q) for place in (0, 3, 1005, 1008)}
    >>> near = rotated(q, at[3]) @ rotated(k, at[0]).T
    >>> torch.allclose(near, rotated(q, at[1008]) @ rotated(k, at[1005]).T, atol=1e-5)
    True
    """
    first, second = x.chunk(2, dim=-1)
    cos, sin = by
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
