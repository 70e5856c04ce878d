"""Distribution: shares of a whole as bars, one for each name; a bar may have several parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from recurra.errors import DataError
from recurra.text.visible import without_controls
from recurra.views.scene import Box, Colour, Label, Scene, SceneShape, width_of
from recurra.views.table import Table
from recurra.views.view import PAGE, PHONE, WIDTH, View, captioned, labels

_EDGE, _ROW, _BAR, _LINE = 12.0, 22.0, 15.0, 24.0  # pixels: around, a row, its bar, a line of text
_WIDEST = 720.0
_COLOURS: tuple[Colour, ...] = ("one", "two", "three", "four", "five")


@dataclasses.dataclass(frozen=True, eq=False)
class Distribution(View):
    """Names, and shares (names,) or (names, parts) from 0 to 1.

    Parts stand one after the other from the left; with `apart`, of two parts the second stands at the right end.

    >>> print(Distribution(["cat", "dog"], [0.75, 0.25]).text())
         share
    cat 75.0 %
    dog 25.0 %
    """

    kind: ClassVar[str] = "distribution"

    names: Sequence[str]
    shares: ArrayLike
    parts: Sequence[str] = ("share",)
    apart: bool = False
    said: Sequence[str] = ()  # more about each name, where it is pointed at

    def __post_init__(self) -> None:
        super().__post_init__()
        shares = np.asarray(self.shares, np.float64)
        shares = shares[:, None] if shares.ndim == 1 else shares
        if shares.shape != (len(self.names), len(self.parts)) or not shares.size:
            raise DataError(
                f"{len(self.names)} names with {len(self.parts)} parts need one share for each name and part, but "
                f"the shares have shape {shares.shape}."
            )
        if self.said and len(self.said) != len(self.names):
            raise DataError(f"{len(self.names)} names need one text each, but found {len(self.said)}.")
        if not (np.isfinite(shares).all() and (shares >= 0).all() and (shares.sum(1) <= 1 + 1e-6).all()):
            raise DataError("the shares of a name must be at least 0, and their sum at most 1.")
        object.__setattr__(self, "shares", shares)

    def text(self) -> str:
        """For the terminal: a line for each name."""
        return captioned(self.caption, *(table.text() for table in self.tables().values()))

    def tables(self) -> dict[str, Table]:
        """A row for each name."""
        rows = [
            [name, *(f"{100 * share:.1f} %" for share in shares)]
            for name, shares in zip(labels(self.names), np.asarray(self.shares), strict=True)
        ]
        return {"As numbers": Table(["", *map(without_controls, self.parts)], rows)}

    def scene(self, width: float = WIDTH) -> Scene:
        """A bar for each name; a part that is pointed at says its share."""
        names, caption = labels(self.names), without_controls(self.caption)
        shapes: list[SceneShape] = []
        top = _EDGE
        if caption:
            shapes.append(Label(caption, _EDGE, top + 12, size=12, bold=True))
            top += _LINE
        numbers = [", ".join(f"{share:.0%}" for share in shares) for shares in np.asarray(self.shares)]
        left = _EDGE + max(width_of(name, 12) for name in names) + 8
        beside = max(width_of(each, 12) for each in numbers) + 6
        across = max(120.0, min(width, _WIDEST) - left - beside - _EDGE)
        for number, (name, shares) in enumerate(zip(names, np.asarray(self.shares), strict=True)):
            y = top + _ROW * number
            about = f"{name}: {self.said[number]}" if self.said else name
            shapes.append(Label(name, left - 8, y + 12, "end", 12))
            shapes.append(Box(left, y, across, _BAR, "grid", title=about, round=0))
            x = left
            for place, (part, share) in enumerate(zip(self.parts, shares.tolist(), strict=True)):
                long = across * share
                at = left + across - long if self.apart and place else x
                said = f"{name}: {share:.1%} {part}"
                shapes.append(Box(at, y, long, _BAR, _COLOURS[place % len(_COLOURS)], title=said, round=0))
                x += long
            shapes.append(Label(numbers[number], left + across + 6, y + 12, size=12))
        bottom = top + _ROW * len(names)
        right = max(left + across + beside, _EDGE + width_of(caption, 12)) + _EDGE
        return Scene(right, bottom + _EDGE, shapes, f"{self.title or 'Shares'}: {', '.join(names)}")

    def figure(self) -> str:
        """The bars in a wide form and in one for phones, both made smaller where the page is narrower."""
        wide, narrow = (
            f'<div class="{form}">{self.svg(width)}</div>' for form, width in (("wide", PAGE), ("narrow", PHONE))
        )
        return f'<figure class="fits">{wide}{narrow}</figure>'
