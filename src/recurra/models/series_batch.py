"""A batch of series as tensors: their values, and what is known beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from recurra.data.origins import COUNT
from recurra.data.store import Encoded, Rows
from recurra.encoders.covariates import Beside
from recurra.models.rows import padded
from recurra.padding import Padded, coarser, widened


class ForecasterBatch(NamedTuple):
    """Some sequences as tensors."""

    values: Padded  # (B, T, d)
    known: Tensor  # (B, T, d), False where a value was missing
    future: Tensor | None = None  # (B, T', k), T' ≥ T: known ahead; of a row of T_b steps, from T_b on of coming ones
    past: Tensor | None = None  # (B, T, p): known up to now
    static_numbers: Tensor | None = None  # (B, s): of the whole series
    static_names: Tensor | None = None  # (B, c): categories of the whole series
    gaps: Tensor | None = None  # (B, T, d + 1): 1 where a value was observed, else 0, and the time since the last step
    origin: Tensor | None = None  # (B,): in training, the first of the steps from which direct forecasts start
    origins: Tensor | None = None  # (B,): how many of these steps there are
    starts: int = 0  # the same of all rows
    most: int = COUNT  # of a row, at most
    unseen: Tensor | None = None  # (B,): where intervals adapt, the first step that training has not seen; −1: none
    unit: Tensor | None = None  # (B, d): of counts with a scale for each series, how many a value of 1 stands for

    @property
    def beside(self) -> Beside:
        """All but the values."""
        return Beside(self.future, self.past, self.static_numbers, self.static_names, self.unit)


def recurring_series(batch: ForecasterBatch) -> ForecasterBatch:
    """The batch with empty rows and steps, of a size that occurs again."""
    B, T = batch.known.shape[:2]
    B, T = coarser(B, parts=2), coarser(T)
    more = T - batch.known.shape[1]

    def wider(tensor: Tensor | None, *sizes: int) -> Tensor | None:
        return None if tensor is None else widened(tensor, B, *sizes)

    return ForecasterBatch(
        batch.values.widened(B, T),
        widened(batch.known, B, T),
        None if batch.future is None else wider(batch.future, batch.future.shape[1] + more),
        wider(batch.past, T),
        wider(batch.static_numbers),
        wider(batch.static_names),
        wider(batch.gaps, T),
        wider(batch.origin),
        wider(batch.origins),
        batch.starts,
        unit=wider(batch.unit),
    )


def batched(rows: Sequence[Encoded]) -> ForecasterBatch:
    """Encoded sequences as one batch."""
    rows = Rows.of(rows)

    def steps(field: str, dtype: type) -> Tensor | None:
        return padded(rows, field, dtype).values if rows.has(field) else None

    origin, origins, starts, most = None, None, 0, COUNT
    if rows.has("origin"):
        first, counts = (rows.flat(name).values.astype(np.int64) for name in ("origin", "origins"))
        origin, origins = torch.from_numpy(first), torch.from_numpy(counts)
        starts, most = int(counts.sum()), int(counts.max())
    return ForecasterBatch(
        padded(rows, "values", np.float32),
        padded(rows, "known", np.bool_).values,
        steps("future", np.float32),
        steps("past", np.float32),
        steps("static_numbers", np.float32),
        steps("static_names", np.int64),
        steps("gaps", np.float32),
        origin,
        origins,
        starts,
        most,
        torch.from_numpy(rows.flat("unseen").values) if rows.has("unseen") else None,
        steps("unit", np.float64),
    )
