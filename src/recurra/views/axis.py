"""Axis: a range of values along a line of pixels, and the round numbers that stand beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple


class Axis(NamedTuple):
    """A range of values along a line of so many pixels."""

    low: float
    high: float
    pixels: float
    log: bool = False

    @classmethod
    def around(cls, values: Iterable[float], pixels: float, *, margin: float = 0.05, log: bool = False) -> Axis:
        """The axis that shows all the values; logarithmic only where they are positive and tenfold apart or more."""
        values = list(values)
        low, high = min(values), max(values)
        if log and low > 0 and high / low >= 10:
            return cls(low / (high / low) ** margin, high * (high / low) ** margin, pixels, log=True)
        if high - low <= 1e-9 * max(abs(low), abs(high)):  # constant, or nearly: then in the middle
            low, high, margin = low - (abs(low) or 1.0) / 10, high + (abs(high) or 1.0) / 10, 0.0
        return cls(low - (high - low) * margin, high + (high - low) * margin, pixels)

    def place(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low) * self.pixels
        return (value - self.low) / (self.high - self.low) * self.pixels

    def ticks(self, at_most: int) -> list[tuple[float, str]]:
        """Round values along the axis, each with its label."""
        if self.log:
            return [(tick, number_labels([tick])[0]) for tick in decades(self.low, self.high, at_most)]
        found = ticks(self.low, self.high, at_most)
        return list(zip(found, number_labels(found), strict=True))


def ticks(low: float, high: float, at_most: int) -> list[float]:
    """The multiples of 1, 2 or 5 times a power of ten that lie in a range, as many as allowed.

    >>> ticks(0.13, 0.94, 5), ticks(0, 12345, 7)
    ([0.2, 0.4, 0.6, 0.8], [0.0, 2000.0, 4000.0, 6000.0, 8000.0, 10000.0, 12000.0])
    """
    bottom, top = Fraction(repr(low)), Fraction(repr(high))  # the decimals as they are written: 0.2 is a fifth
    power = Fraction(10) ** math.floor(math.log10((high - low) / (at_most + 1)))
    for factor in (1, 2, 5, 10, 20, 50, 100):
        numbers = range(math.ceil(bottom / (factor * power)), math.floor(top / (factor * power)) + 1)
        if len(numbers) <= at_most:
            break
    return [float(number * factor * power) for number in numbers]


def decades(low: float, high: float, at_most: int) -> list[float]:
    """The powers of ten in a range, with 2 and 5 times them where there is room, or every n-th where there is not.

    >>> decades(0.03, 7, 8), decades(1e-6, 1e3, 5)
    ([0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0], [1e-06, 0.0001, 0.01, 1.0, 100.0])
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    finer = [float(f"{factor}e{exponent}") for exponent in exponents for factor in (1, 2, 5)]
    powers = [tick for tick in finer[::3] if low <= tick <= high]
    finer = [tick for tick in finer if low <= tick <= high]
    return finer if len(finer) <= at_most or len(powers) < 2 else powers[:: math.ceil(len(powers) / at_most)]


def number_labels(values: Sequence[float]) -> list[str]:
    """Numbers as they are written along an axis, all in the same way.

    >>> number_labels([0.5, 0.75, 1.0]), number_labels([0, 5000, 10000]), number_labels([0.0, 2.5e-5])
    (['0.50', '0.75', '1.00'], ['0', '5k', '10k'], ['0', '2.5e-5'])
    """
    largest = max(map(abs, values))
    if largest >= 1e9 or largest < 1e-3:
        return [_scientific(value) for value in values]
    unit, letter = (1e6, "M") if largest >= 1e6 else (1e3, "k") if largest >= 1e4 else (1, "")
    scaled = [Decimal(f"{value / unit:.12g}") for value in values]
    if letter:
        return [f"{number:f}{letter}" if number else "0" for number in scaled]
    decimals = max(len(f"{number:f}".partition(".")[2]) for number in scaled)
    return [f"{number:.{decimals}f}" if number else "0" for number in scaled]


def _scientific(value: float) -> str:
    mantissa, _, exponent = f"{value:.11e}".partition("e")
    return f"{float(mantissa):.12g}e{int(exponent)}" if value else "0"
