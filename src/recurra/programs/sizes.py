"""Sizes that are not known before there is an input: whole numbers written with names, such as 2*B*T+1 or (T+1)//2.

    size      =  Σ coefficient * factor * factor …  +  a whole number
    factor    =  name  |  (size without quotients)//whole number  |  (size without quotients)//name

A quotient is rounded down, also below zero; by a name that is 0, it is 0. A program keeps sizes as text, in which they
are read, printed as C and written to a file.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Product: TypeAlias = tuple[str, ...]
"""Factors that are multiplied, in alphabetical order; () is 1."""

NAME = r"[A-Za-z][A-Za-z0-9]{0,31}"
FACTOR = rf"(?:{NAME}|\([^()]+\)//(?:\d+|{NAME}))"
TERM = rf"([+-]?)(\d+|{FACTOR})((?:\*{FACTOR})*)"
MOST = 1 << 40
"""The largest coefficient, divisor or whole number of a size."""

QUOTIENT = rf"\(([^()]+)\)//(\d+|{NAME})"


@dataclass(frozen=True)
class Size:
    """Σ coefficient · product.

    >>> rows = Size.named("B")
    >>> str(rows * Size.named("T") * 2 + 1), (rows * 3 + 1).at({"B": 5})
    ('2*B*T+1', 16)
    >>> half = Size.read("(T+3)//2")
    >>> half.at({"T": 4}), str(half * rows + half), (half * rows).at({"T": 4, "B": 5})
    (3, '(T+3)//2*B+(T+3)//2', 15)
    """

    terms: tuple[tuple[Product, int], ...] = ()

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def of(number: int) -> Size:
        return Size((((), number),)) if number else Size()

    @classmethod
    def named(cls, name: str) -> Size:
        return cls((((name,), 1),))

    @classmethod
    def read(cls, text: str | int) -> Size:
        """What `str` wrote; a ValueError where it is no size."""
        if isinstance(text, int) and not isinstance(text, bool):
            return Size.of(_bounded(text))
        return _read(text)

    @functools.cached_property
    def constant(self) -> int | None:
        """The number that it always is; None where it depends on names."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @functools.cached_property
    def names(self) -> frozenset[str]:
        found: set[str] = set()
        for product, _ in self.terms:
            for factor in product:
                found |= {factor} if not factor.startswith("(") else _names_in(factor)
        return frozenset(found)

    def at(self, sizes: Mapping[str, int]) -> int:
        """The number for these values of its names."""
        total = 0
        for product, coefficient in self.terms:
            for factor in product:
                coefficient *= sizes[factor] if not factor.startswith("(") else _quotient_at(factor, sizes)
            total += coefficient
        return total

    def __add__(self, other: Size | int) -> Size:
        other = Size.of(other) if isinstance(other, int) else other
        found: dict[Product, int] = {}
        for product, coefficient in (*self.terms, *other.terms):
            found[product] = found.get(product, 0) + coefficient
        return Size(_ordered(found))

    def __mul__(self, other: Size | int) -> Size:
        other = Size.of(other) if isinstance(other, int) else other
        if len(self.terms) == len(other.terms) == 1:
            [(one, a)], [(two, b)] = self.terms, other.terms
            return Size(((tuple(sorted((*one, *two))), a * b),))
        found: dict[Product, int] = {}
        for one, a in self.terms:
            for two, b in other.terms:
                product = tuple(sorted((*one, *two)))
                found[product] = found.get(product, 0) + a * b
        return Size(_ordered(found))

    def divided(self, over: int | str) -> Size:
        """The same by a whole number, or by a name, rounded down."""
        assert not any(factor.startswith("(") for product, _ in self.terms for factor in product), "a quotient of one"
        return Size.named(f"({self})//{over}")

    def __str__(self) -> str:
        parts: list[str] = []
        for product, coefficient in self.terms:
            factors = "*".join(product)
            number = str(coefficient) if not factors else factors if coefficient == 1 else f"{coefficient}*{factors}"
            number = f"-{factors}" if factors and coefficient == -1 else number
            parts.append(number if not parts or number.startswith("-") else f"+{number}")
        return "".join(parts) or "0"


def quotient(factor: str) -> tuple[Size, int | str]:
    """What is divided in a factor that is a quotient, and by what."""
    found = re.fullmatch(QUOTIENT, factor)
    assert found is not None, f"{factor} is a quotient"
    return _read(found[1]), int(found[2]) if found[2].isdigit() else found[2]


def product_of(sizes: Iterable[Size]) -> Size:
    """How many numbers an array of these sizes has."""
    first, *others = [*sizes] or [Size.of(1)]
    return functools.reduce(Size.__mul__, others, first)


def _names_in(factor: str) -> frozenset[str]:
    whole, over = quotient(factor)
    return whole.names | ({over} if isinstance(over, str) else set())


def _quotient_at(factor: str, sizes: Mapping[str, int]) -> int:
    whole, over = quotient(factor)
    by = sizes[over] if isinstance(over, str) else over
    return whole.at(sizes) // by if by else 0  # nothing, shared by nobody


def _ordered(found: Mapping[Product, int]) -> tuple[tuple[Product, int], ...]:
    """Products with most factors first, a plain number last."""
    return tuple(sorted(((p, c) for p, c in found.items() if c), key=lambda each: (-len(each[0]), each[0])))


@functools.lru_cache(maxsize=4096)
def _read(text: str) -> Size:
    if not isinstance(text, str) or len(text) > 200:
        raise ValueError(f"{text!r:.60} is not a size")
    if all(map(_is_name, factors := text.split("*"))):  # as most are
        return Size(((tuple(sorted(factors)), 1),))
    size, place, pattern = Size(), 0, re.compile(TERM)  # which keeps it
    while place < len(text):
        term = pattern.match(text, place)
        if term is None or (place and not term[1]):
            raise ValueError(f"{text!r} is not a size")
        sign, first, _ = term.groups()
        each = Size.of(_bounded(int(first))) if first.isdigit() else _factor(first)
        for factor in re.findall(FACTOR, term[3]) if term[3] else ():
            each = each * _factor(factor)
        size, place = size + each * (-1 if sign == "-" else 1), term.end()
    if not text or (size == Size() and text != "0"):
        raise ValueError(f"{text!r} is not a size")
    return size


def _is_name(text: str) -> bool:
    return text.isascii() and text.isalnum() and text[0].isalpha() and len(text) <= 32


def _bounded(number: int) -> int:
    if not -MOST <= number <= MOST:
        raise ValueError(f"{number:.0e} is not a size")
    return number


def _factor(text: str) -> Size:
    if text.startswith("("):
        whole, over = quotient(text)
        if over == 0 or (isinstance(over, int) and over > MOST):
            raise ValueError(f"{text!r} divides by {over}")
        return whole.divided(over)
    return Size.named(text)
