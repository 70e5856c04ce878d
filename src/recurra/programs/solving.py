"""Sizes out of several recordings of a function: which numbers are the same in all, and how others depend on sizes.

A function is recorded for a few different sizes B, T, … of its inputs. A whole number that differs between recordings
is then one of

    c                         in all of them
    a · m + c                 m a product of one or two names: B, T, B·T
    a · m + b · n + c         m, n names
    (a · m + c) // d          d = 2 … 64: steps that are read together, strides
    n · ⌈m / d⌉ …             n rows of it, or rows and columns: up to three factors

with the fewest names that fit all recordings; recordings are one more than numbers to find. What fits none of these is
refused, in words.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from recurra.errors import ConfigError
from recurra.programs.sizes import Product, Size

DIVISORS = range(2, 65)


class NotExportable(ConfigError):
    """A model does something that a program cannot."""


class Sizes:
    """What the names mean in each recording.

    >>> sizes = Sizes({"B": [2, 3, 5, 4], "T": [7, 5, 11, 6]})
    >>> str(sizes.solved([15, 16, 56, 25])), str(sizes.solved([4, 3, 6, 3])), str(sizes.solved([8, 9, 30, 12]))
    ('B*T+1', '(T+1)//2', '(T+1)//2*B')
    """

    def __init__(self, values: Mapping[str, Sequence[int]]) -> None:
        self.values = {name: tuple(each) for name, each in sorted(values.items())}
        self.count = len(next(iter(values.values()))) if values else 1
        self._solved: dict[tuple[int, ...], Size | None] = {}

    def solved(self, numbers: Sequence[int]) -> Size:
        """The size that is each of these numbers in its recording."""
        key = tuple(numbers)
        if key not in self._solved:
            self._solved[key] = next(self._fitting(key), None)
        found = self._solved[key]
        if found is None:
            known = "; ".join(f"{name} = {', '.join(map(str, each))}" for name, each in self.values.items())
            raise NotExportable(
                f"it uses the numbers {', '.join(map(str, key))} for inputs of the sizes {known}, and they do not "
                "follow from these sizes"
            )
        return found

    @functools.cached_property
    def _products(self) -> list[tuple[Product, tuple[int, ...]]]:
        names = list(self.values)
        found: list[tuple[Product, tuple[int, ...]]] = [((name,), self.values[name]) for name in names]
        for some in itertools.chain(
            itertools.combinations_with_replacement(names, 2), itertools.combinations(names, 3)
        ):
            values = [1] * self.count
            for name in some:
                values = [a * b for a, b in zip(values, self.values[name], strict=True)]
            found.append((tuple(sorted(some)), tuple(values)))
        return found

    def _fitting(self, numbers: tuple[int, ...]) -> Iterator[Size]:
        if len(set(numbers)) == 1:
            yield Size.of(numbers[0])
            return
        for product, values in self._products:
            if (line := _line(values, numbers)) is not None:
                yield _size(product, *line)
        names = [(product, values) for product, values in self._products if len(product) <= 2]
        for (one, a), (two, b) in itertools.combinations(names, 2):
            if (plane := _plane(a, b, numbers)) is not None:
                yield _size(one, plane[0], 0) + _size(two, plane[1], 0) + plane[2]
        yield from self._quotients(numbers)
        yield from self._products_of(numbers, factors=3)

    def _products_of(self, numbers: tuple[int, ...], factors: int) -> Iterator[Size]:
        """Products of names, and of names by whole numbers, rounded up: rows and columns of a map of a picture."""
        if len(set(numbers)) == 1:
            yield Size.of(numbers[0])
            return
        for name, values in self.values.items() if factors else ():
            for over in (1, *DIVISORS):
                each = [-(-v // over) for v in values]
                if len(set(each)) > 1 and all(v and n % v == 0 for v, n in zip(each, numbers, strict=True)):
                    factor = Size.named(name) if over == 1 else (Size.named(name) + (over - 1)).divided(over)
                    rest = tuple(n // v for v, n in zip(each, numbers, strict=True))
                    yield from (factor * other for other in self._products_of(rest, factors - 1))

    def _quotients(self, numbers: tuple[int, ...]) -> Iterator[Size]:
        # Many fit so few numbers: first those that are rounded up or down, as parts of so many steps are counted.
        usual = [(over, 1, plus) for over in DIVISORS for plus in (over - 1, 0)]
        others = [(over, times, plus) for over in DIVISORS for times in (1, 2) for plus in range(-over, 2 * over + 1)]
        for some in (usual, others):
            for name, values in self.values.items():
                for over, times, plus in some:
                    if all((times * v + plus) // over == n for v, n in zip(values, numbers, strict=True)):
                        yield (Size.named(name) * times + plus).divided(over)


def _size(product: Product, times: int, plus: int) -> Size:
    return Size(((product, times),)) + plus


def _line(values: Sequence[int], numbers: Sequence[int]) -> tuple[int, int] | None:
    """a and c of numbers = a · values + c, whole; None where there are none."""
    pairs = sorted(zip(values, numbers, strict=True))
    (x, y), (z, w) = pairs[0], pairs[-1]
    if x == z or (w - y) % (z - x):
        return None
    a = (w - y) // (z - x)
    c = y - a * x
    return (a, c) if a and all(a * v + c == n for v, n in pairs) else None


def _plane(one: Sequence[int], two: Sequence[int], numbers: Sequence[int]) -> tuple[int, int, int] | None:
    """a, b and c of numbers = a · one + b · two + c, whole; None where there are none, or where any would do."""
    for i, j, k in itertools.combinations(range(len(numbers)), 3):
        (p, q), (r, s) = [(one[m] - one[i], two[m] - two[i]) for m in (j, k)]
        determinant = p * s - q * r
        if not determinant:
            continue
        u, v = numbers[j] - numbers[i], numbers[k] - numbers[i]
        a, b = Fraction(u * s - q * v, determinant), Fraction(p * v - u * r, determinant)
        if a.denominator != 1 or b.denominator != 1 or not a or not b:
            return None
        c = numbers[i] - int(a) * one[i] - int(b) * two[i]
        fits = all(int(a) * x + int(b) * y + c == n for x, y, n in zip(one, two, numbers, strict=True))
        return (int(a), int(b), c) if fits else None
    return None
