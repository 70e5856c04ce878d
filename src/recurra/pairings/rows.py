"""Two batches as one, so that a network that reads both does so at once."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from recurra.padding import Padded
from recurra.recording import both


def stacked(first: Padded, second: Padded) -> Padded:
    """The rows of the first and then those of the second, (2B, max(T₁, T₂), …).

    >>> pair = stacked(Padded.full(torch.ones(1, 2, 3)), Padded.full(torch.ones(1, 4, 3)))
    >>> pair.values.shape, pair.lengths.tolist()
    (torch.Size([2, 4, 3]), [2, 4])
    """
    steps = max(first.values.shape[1], second.values.shape[1])
    values = [functional.pad(each.values, (0, 0, 0, steps - each.values.shape[1])) for each in (first, second)]
    lengths = both(lambda n, m: torch.cat([n, m]), first.lengths, second.lengths)
    return Padded(torch.cat(values), lengths)


def halves(values: Tensor) -> tuple[Tensor, Tensor]:
    """What belongs to the rows of the first, and what to those of the second."""
    first, second = values.chunk(2)
    return first, second
