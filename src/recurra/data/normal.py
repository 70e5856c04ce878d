"""Mean and spread of real-valued columns, learned on training data, so that a network sees numbers near 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from recurra.errors import CheckpointError, DataError
from recurra.frozen import NamedTuple
from recurra.opening import read_file


class Normal(NamedTuple):
    """x ↦ (x − mean) / spread, column by column; a constant column has spread 1.

    >>> counted = Normal.counted()
    >>> counted.add(np.array([[1.0, 5.0], [3.0, 5.0]]), "here")
    >>> counted.finished().scaled(np.array([[3.0, 5.0]])).tolist()
    [[1.0, 0.0]]
    """

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]

    @staticmethod
    def counted() -> Counted:
        return Counted()

    def scaled(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return (values - self.mean) / self.spread

    def unscaled(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return values * self.spread + self.mean

    def check(self, values: NDArray[Any], place: str) -> None:
        """Refuse steps (T, n), or numbers (n,), of another n than in training; where there is no step there is no n.

        >>> Normal(np.zeros(2), np.ones(2)).check(np.zeros((5, 1)), "a.jsonl:3")
        Traceback (most recent call last):
        recurra.errors.DataError: a.jsonl:3: found 1 number per step, but training has 2.
        """
        is_stepped = values.ndim > 1
        if values.shape[-1] != len(self.mean) and not (is_stepped and len(values) == 0):
            a_step = " per step" if is_stepped else ""
            raise DataError(f"{place}: found {numbers(values.shape[-1])}{a_step}, but training has {len(self.mean)}.")

    def or_kept(self, base: Normal | None) -> Normal:
        """The scale of the run that training starts from, where it has as many columns, else this one."""
        return self if base is None or base.mean.shape != self.mean.shape else base

    def to_json(self) -> dict[str, list[float]]:
        return {"mean": self.mean.tolist(), "spread": self.spread.tolist()}

    @staticmethod
    def load_all(path: Path) -> dict[str, Normal]:
        """The scales of a run, by name."""
        try:
            found = json.loads(read_file(path))
            scales = {
                name: Normal(np.array(scale["mean"], float), np.array(scale["spread"], float))
                for name, scale in found.items()
            }
            for name, (mean, spread) in scales.items():
                if mean.ndim != 1 or mean.shape != spread.shape or not (spread > 0).all():
                    raise ValueError(f"each column of '{name}' must have a mean, and a spread above 0")
            return scales
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CheckpointError(f"{path} cannot be read ({error}): the run folder is incomplete.") from error


@final
class Counted:
    """Sums from which mean and spread come (Welford's, a block at a time); missing numbers (NaN) are left out."""

    def __init__(self) -> None:
        self.count: NDArray[np.float64] | None = None
        self.mean = np.zeros(0)
        self.squares = np.zeros(0)

    def add(self, values: NDArray[Any], place: str) -> None:
        """Count the steps of one example, (T, n), in; one without steps has no n to agree on."""
        if len(values) == 0:
            return
        width = values.shape[1]
        if self.count is None:
            self.count, self.mean, self.squares = np.zeros(width), np.zeros(width), np.zeros(width)
        if width != len(self.count):
            raise DataError(f"{place}: found {numbers(width)} per step, but the first example has {len(self.count)}.")
        values = values.astype(np.float64)
        known = ~np.isnan(values)
        count = known.sum(0)
        mean = np.where(known, values, 0).sum(0) / np.maximum(count, 1)
        squares = (np.where(known, values - mean, 0) ** 2).sum(0)
        self._join(count, mean, squares)

    def join(self, other: Counted, place: str) -> None:
        """Count in what another has counted.

        >>> one, other = Counted(), Counted()
        >>> one.add(np.array([[1.0]]), "a:1")
        >>> other.add(np.array([[3.0]]), "a:2")
        >>> one.join(other, "a")
        >>> one.finished()
        Normal(mean=array([2.]), spread=array([1.]))
        """
        if other.count is None:
            return
        if self.count is None:
            self.count, self.mean, self.squares = other.count, other.mean, other.squares
            return
        if len(other.count) != len(self.count):
            raise DataError(
                f"{place}: found {numbers(len(other.count))} per step, but the first example has {len(self.count)}."
            )
        self._join(other.count, other.mean, other.squares)

    def _join(self, count: NDArray[Any], mean: NDArray[np.float64], squares: NDArray[np.float64]) -> None:
        assert self.count is not None, "the width is known"
        total = self.count + count
        shift = mean - self.mean
        self.squares += squares + shift**2 * self.count * count / np.maximum(total, 1)
        self.mean = self.mean + shift * count / np.maximum(total, 1)
        self.count = total

    def finished(self) -> Normal:
        """What mean and spread come to."""
        if self.count is None:
            raise DataError("there are no numbers in the training data.")
        spread = np.sqrt(self.squares / np.maximum(self.count, 1))
        # The mean of equal numbers is rounded, so their spread is not quite 0.
        is_constant = spread <= 1e-12 * np.abs(self.mean)
        return Normal(self.mean, np.where(is_constant, 1.0, spread))


def numbers(count: int) -> str:
    return "1 number" if count == 1 else f"{count} numbers"
