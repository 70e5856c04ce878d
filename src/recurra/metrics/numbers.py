"""How far predicted numbers lie from the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import DataError

Numbers: TypeAlias = Sequence[float] | Sequence[Sequence[float]] | Sequence[NDArray[np.floating]] | NDArray[np.floating]
"""A number per item, or a sequence of numbers per item; lengths may differ from item to item."""


def mae(gold: Numbers, predicted: Numbers) -> float:
    """The mean absolute error over all numbers, (1/n) Σ |gold - predicted|.

    >>> mae([1.0, 2.0, 3.0], [1.0, 4.0, 2.0])
    1.0
    >>> mae([[1.0, 2.0], [3.0]], [[1.0, 4.0], [2.0]])
    1.0
    """
    return float(np.abs(_differences(gold, predicted)).mean())


def rmse(gold: Numbers, predicted: Numbers) -> float:
    """The root of the mean squared error over all numbers, √((1/n) Σ (gold - predicted)²).

    >>> rmse([0.0, 0.0], [1.0, 7.0])
    5.0
    """
    differences = _differences(gold, predicted)
    # Scaled by the largest, so that no square overflows.
    largest = float(np.abs(differences).max())
    return largest * float(np.sqrt(np.square(differences / largest).mean())) if largest else 0.0


def _differences(gold: Numbers, predicted: Numbers) -> NDArray[np.float64]:
    if len(gold) != len(predicted):
        raise DataError(
            f"gold has {len(gold)} items but predicted has {len(predicted)}: each item needs both. "
            f"Item {min(len(gold), len(predicted)) + 1} is the first without a partner."
        )
    parts = []
    for number, (right, said) in enumerate(zip(gold, predicted, strict=True), start=1):
        true = _finite(right, f"item {number} of gold")
        found = _finite(said, f"item {number} of predicted")
        if true.shape != found.shape:
            raise DataError(
                f"item {number} has {true.size} gold numbers of shape {true.shape} "
                f"but {found.size} predicted of shape {found.shape}: each needs one of both."
            )
        parts.append((true - found).ravel())
    differences = np.concatenate(parts) if parts else np.empty(0)
    if not differences.size:
        raise DataError("an error needs at least one number, but gold and predicted are empty.")
    return differences


def _finite(numbers: float | Sequence[float] | NDArray[np.floating], where: str) -> NDArray[np.float64]:
    try:
        values = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where} must be a number or a sequence of numbers, but is {numbers!r}.") from error
    if not np.isfinite(values).all():
        worst = values[~np.isfinite(values)].ravel()[0]
        raise DataError(f"{where} holds {worst}, which is no number to measure an error with.")
    return values
