"""The k largest of each row in a fixed order, without waiting for a device."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64
"""Numbers of a row whose largest stands for all of them at first."""


def largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row (N, V), largest first, and where they stand; of equals, the lower places first.

    torch.topk promises no order among equals. Here whole blocks are compared by their largest first: the k largest
    numbers lie in the k blocks with the largest of them, of equals the first ones. So only k blocks are sorted.

    >>> found, places = largest(torch.tensor([[0.5, 2.0, 2.0, 1.0]]), 3)
    >>> found.tolist(), places.tolist()
    ([[2.0, 2.0, 1.0]], [[1, 2, 3]])
    """
    size = values.shape[1]
    if k == 1:
        found = values.max(1, keepdim=True)  # of equals, the first
        return found.values, found.indices
    if size <= 2 * k * BLOCK:
        return in_order(values, k)
    whole = size // BLOCK * BLOCK
    tops = values[:, :whole].unflatten(1, (-1, BLOCK)).amax(2)
    if whole < size:
        tops = torch.cat([tops, values[:, whole:].amax(1, keepdim=True)], dim=1)
    blocks = in_order(tops, k)[1].sort(dim=1).values  # in the order of their places, which decides between equals
    places = (blocks.unsqueeze(2) * BLOCK + torch.arange(BLOCK, device=values.device)).flatten(1)
    if whole == size:
        few, order = in_order(values.gather(1, places), k)
    else:
        beyond = places >= size  # they stand last, after at least k others
        few, order = in_order(values.gather(1, places.clamp_max(size - 1)).masked_fill(beyond, -torch.inf), k)
    return few, places.gather(1, order)


def in_order(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The same by sorting all of them."""
    found = values.sort(dim=1, descending=True, stable=True)
    return found.values[:, :k], found.indices[:, :k]
