"""The width at which a network has as many parameters as another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

from recurra.errors import ConfigError

WIDEST = 1 << 14
"""A width beyond which no network is made."""

NEARBY = 16
"""Of so many widths in a row one is possible: a cell with heads needs a multiple of them."""

NEAR = 0.1
"""Sizes that differ by no more than this share are said to be about equal."""


def size_of(model: nn.Module) -> int:
    """The number of parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


def width_for(wanted: int, size: Callable[[int], int]) -> int:
    """The width whose size is nearest to the wanted one; sizes grow with widths. Impossible widths are passed over.

    >>> width_for(1000, lambda width: width * width)
    32
    """
    low, high = 1, 1
    while _from(high, size)[1] < wanted and high < WIDEST:
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if _from(middle, size)[1] < wanted else (low, middle)
    return min((_from(low, size), _from(high, size)), key=lambda found: abs(found[1] - wanted))[0]


def _from(width: int, size: Callable[[int], int]) -> tuple[int, int]:
    """The next possible width, and its size."""
    for each in range(width, width + NEARBY):
        try:
            return each, size(each)
        except ConfigError as error:
            refusal = error
    raise refusal


def other_sizes(sizes: Sequence[tuple[str, int, int]]) -> str:
    """Which networks are not about as large as the first, of each its name, width and size; or nothing.

    >>> other_sizes([("elman", 6, 298), ("lstm", 2, 290), ("ntm", 1, 736)])
    ', but ntm with hidden 1 has 736 instead of 298'
    """
    wanted = sizes[0][2]
    far = {each: None for each in sizes if abs(each[2] - wanted) > NEAR * wanted}
    told = [f"{name} with hidden {width} has {size:,} instead of {wanted:,}" for name, width, size in far]
    return f", but {', '.join(told)}" if told else ""
