"""Encoded rows as padded tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from recurra.data.store import Rows
from recurra.padding import Padded


def padded(rows: Rows, field: str, dtype: type) -> Padded:
    """A field of several rows as one batch.

    >>> import numpy as np
    >>> padded(Rows([{"ids": np.array([4, 5])}, {"ids": np.array([6])}]), "ids", np.int64).values.tolist()
    [[4, 5], [6, 0]]
    """
    found = rows.flat(field)
    return Padded(torch.from_numpy(found.padded(dtype)), torch.from_numpy(found.lengths))


def filled(rows: Rows, field: str, dtype: type, fill: float) -> Tensor:
    """(B, T, ...): a field of several rows, with another number than 0 on padding."""
    return torch.from_numpy(rows.flat(field).padded(dtype, fill))
