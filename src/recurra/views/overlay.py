"""Overlay: a picture once for each of several tokens, coloured where that token looked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError
from recurra.text.visible import columns as columns_of
from recurra.text.visible import without_controls
from recurra.views.pixels import as_address, from_address
from recurra.views.scene import LETTER, Box, Image, Label, Path, Scene, SceneShape, width_of
from recurra.views.table import Table
from recurra.views.view import PAGE, WIDTH, View, captioned, labels, rounded

MOST = 60
"""So many tokens are drawn; what comes after them is counted."""

COLUMNS = ["token", "row", "column", "share", "places with half"]

_EDGE, _GAP, _LINE = 12.0, 18.0, 22.0  # pixels: around it all, between panels, a line
_WIDEST, _HIGHEST, _LOWEST, _PLACE = 262.0, 160.0, 72.0, 28.0  # pixels: of a panel, and of a place
_FADED = 0.55  # of a photo, so that the colour of attention stands out
_PHONE = 390.0  # pixels
_STRONGEST = 0.85  # of colour: what is under it can still be seen
_WEAKEST = 0.02  # of the largest weight: less cannot be seen


@dataclasses.dataclass(frozen=True, eq=False)
class Overlay(View):
    """Tokens, maps of weights (T, rows, columns), and a picture (H, W, C) of bytes, if there is one.

    `down` and `across` are the pixels at which rows and columns of places begin, and the last one ends; without them
    the picture is divided evenly. Without a picture the places are drawn alone.

    >>> Overlay(["x"], [[[0.1, 0.2], [0.3, 0.4]]]).svg().count("<title>")
    4
    """

    kind: ClassVar[str] = "overlay"

    tokens: Sequence[str]
    weights: ArrayLike
    down: ArrayLike = ()
    across: ArrayLike = ()
    picture: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = np.asarray(self.weights, np.float64)
        if weights.ndim != 3 or len(weights) != len(self.tokens) or not weights.size:
            raise DataError(
                f"{len(self.tokens)} tokens need one map of places each, at least one, but the weights have "
                f"shape {weights.shape}."
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise DataError("attention weights must be numbers of at least 0, but a negative value or NaN was found.")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "tokens", tuple(self.tokens))
        if self.picture is not None and self.picture.ndim == 2:
            object.__setattr__(self, "picture", self.picture[:, :, None])
        sizes = weights.shape[1:] if self.picture is None else self.picture.shape[:2]
        for name, places, size in zip(("down", "across"), weights.shape[1:], sizes, strict=True):
            edges = np.asarray(getattr(self, name), np.float64)
            edges = edges if edges.size else np.linspace(0, size, places + 1)
            if len(edges) != places + 1 or edges[0] != 0 or edges[-1] != size or (np.diff(edges) < 0).any():
                raise DataError(
                    f"'{name}' needs the {places + 1} edges of {places} places, from 0 to {size}, but found "
                    f"{edges.tolist()}."
                )
            object.__setattr__(self, name, edges)

    @cached_property
    def maps(self) -> NDArray[np.float64]:
        """(T, rows, columns): the weights as they are drawn and said."""
        return rounded(self.weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of pixels; of places where there is no picture."""
        height, width = self.maps.shape[1:] if self.picture is None else self.picture.shape[:2]
        return height, width

    def looks(self) -> list[tuple[str, int, int, float, int]]:
        """Of each token the row and the column, from 1, where it looked most, that share, and places with half of all.

        >>> Overlay(["x"], [[[0.1, 0.0], [0.3, 0.6]]]).looks()
        [('x', 2, 2, 0.6, 1)]
        """
        found = []
        for label, each in zip(labels(self.tokens), self.maps, strict=True):
            row, column = np.unravel_index(each.argmax(), each.shape)
            summed = np.cumsum(np.sort(each.ravel())[::-1])
            half = int(np.searchsorted(summed, summed[-1] / 2)) + 1
            found.append((label, int(row) + 1, int(column) + 1, float(each.max()), half))
        return found

    def json(self) -> dict[str, Any]:
        """The value as JSON has it; the picture is a data: address."""
        picture = None if self.picture is None else as_address(self.picture)
        return {**super().json(), "weights": self.maps.tolist(), "picture": picture}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The view whose json() was given."""
        picture = None if given["picture"] is None else from_address(given["picture"])
        return super().from_json({**given, "picture": picture})

    def text(self) -> str:
        """For the terminal: a line for each token.

        >>> print(Overlay(["x", "</s>"], [[[0.1, 0.0], [0.3, 0.6]], [[0.25, 0.25], [0.25, 0.25]]]).text())
        token row column  share places with half
        x       2      2 0.6000                1
        ∎       1      1 0.2500                2
        """
        return captioned(self.caption, *(table.text() for table in self.tables().values()))

    def scene(self, width: float = WIDTH) -> Scene:
        """The picture once for each token, coloured where it looked; a place that is pointed at says its weight."""
        caption = without_controls(self.caption)
        high, wide = self.shape
        scale = self._scale(width)
        named = labels(self.tokens)[:MOST]
        panel = max(wide * scale, *(width_of(label) + 36 for label in named))
        a_row = max(1, int((width - 2 * _EDGE + _GAP) // (panel + _GAP)))
        top = _EDGE + (_LINE if caption else 0)
        deep = _LINE + high * scale + _GAP
        shapes: list[SceneShape] = []
        room = int((width - 2 * _EDGE) / (LETTER * 13))
        if columns_of(caption) > room:
            caption = caption[: room // 2 if columns_of(caption) > len(caption) else room - 1] + "…"
        if caption:
            shapes.append(Label(caption, _EDGE, _EDGE + 12, bold=True))
        under, over = self._layers(scale)
        for number, label in enumerate(named):
            x, y = _EDGE + number % a_row * (panel + _GAP), top + number // a_row * deep + _LINE
            shapes.append(Label(label, x, y - 7, bold=True))
            share = f"{self.maps[number].max():.2f}"
            shapes.append(Label(share, x + panel, y - 7, "end", 11, colour="soft"))
            shapes.append(Box(x, y, wide * scale, high * scale))
            shapes += [each._replace(x=x, y=y) for each in under]
            shapes += self._coloured(number, label, x, y, scale)
            shapes += [each._replace(x=x, y=y) for each in over]
            shapes += self._lines(x, y, scale) if self.picture is None else []
        bottom = top + math.ceil(len(named) / a_row) * deep - _GAP
        left_out = f"The first {MOST} of {len(self.tokens)} tokens are shown." if len(self.tokens) > MOST else ""
        if left_out:
            shapes.append(Label(left_out, _EDGE, bottom + 14, size=11, colour="soft"))
            bottom += _LINE
        right = max(min(a_row, len(named)) * (panel + _GAP) - _GAP, width_of(caption), width_of(left_out, 11))
        label = "Where it looked: " + " ".join(labels(self.tokens))
        return Scene(math.ceil(right + 2 * _EDGE), math.ceil(bottom + _EDGE), shapes, label)

    def _scale(self, width: float) -> float:
        """Pixels of the drawing for a pixel of the picture."""
        high, wide = self.shape
        side = max(float(np.median(np.diff(np.asarray(edges)))) for edges in (self.down, self.across))
        scale = min(_HIGHEST / high, _PLACE / side)
        if wide * scale <= _WIDEST:
            return scale
        # A long line of writing may be wider, so that it can be read.
        return max(_WIDEST / wide, min(scale, _LOWEST / high, (width - 2 * _EDGE) / wide))

    def _layers(self, scale: float) -> tuple[list[Image], list[Image]]:
        """What lies under the colour, and what over it.

        A line drawing is ink in the colour of the letters, so that it can be read on paper and on a dark screen; a
        photo keeps its colours.
        """
        if self.picture is None:
            return [], []
        high, wide = (size * scale for size in self.shape)
        ink = ink_of(self.picture)
        if ink is None:
            return [Image(0, 0, wide, high, self.picture, strength=_FADED)], []
        return [], [Image(0, 0, wide, high, ink, is_ink=True)]

    def _coloured(self, number: int, label: str, x: float, y: float, scale: float) -> list[SceneShape]:
        weights = self.maps[number]
        down, across = (np.asarray(edges) * scale for edges in (self.down, self.across))
        peak = float(weights.max())
        if not peak:
            return []
        found: list[SceneShape] = []
        for row, column in np.argwhere(weights >= _WEAKEST * peak).tolist():
            (top, bottom), (left, right) = down[row : row + 2], across[column : column + 2]
            weight = float(weights[row, column])
            said = f"{label}: {weight:.3f} at row {row + 1}, column {column + 1}"
            strength = _STRONGEST * weight / peak
            found.append(Box(x + left, y + top, right - left, bottom - top, "look", strength, said, round=0))
        return found

    def _lines(self, x: float, y: float, scale: float) -> list[SceneShape]:
        """Between the places, where there is no picture."""
        rows, columns = self.shape
        lines = [[(x + n * scale, y), (x + n * scale, y + rows * scale)] for n in range(1, columns)]
        lines += [[(x, y + n * scale), (x + columns * scale, y + n * scale)] for n in range(1, rows)]
        return [Path(line, "paper", 2) for line in lines]

    def figure(self) -> str:
        """The pictures in a wide form and in one for phones, under the whole caption."""
        caption = without_controls(self.caption)
        untitled = dataclasses.replace(self, caption="")
        pieces = [
            f"<p><strong>{escape(caption)}</strong></p>" if caption else "",
            f'<figure class="wide" style="overflow:auto">{untitled.svg(PAGE)}</figure>',
            f'<figure class="narrow" style="overflow:auto">{untitled.svg(_PHONE)}</figure>',
        ]
        return "\n".join(filter(None, pieces))

    def tables(self) -> dict[str, Table]:
        """Where each token looked most."""
        return {"As numbers": Table(COLUMNS, [list(row) for row in self.looks()])}


def ink_of(picture: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """(H, W): how much ink is where, if the picture is lines on paper of one shade; None for a photo.

    >>> ink_of(np.array([[255, 255, 0]], np.uint8)).tolist(), ink_of(np.array([[99, 120, 130]], np.uint8))
    ([[0, 0, 255]], None)
    """
    if picture.ndim == 3 and (np.ptp(picture, axis=2) > 8).any():
        return None
    gray = picture if picture.ndim == 2 else picture[:, :, 0]
    dark, bright = (gray < 32).mean(), (gray > 223).mean()
    if max(dark, bright) < 0.5:
        return None
    found: NDArray[np.uint8] = gray if dark >= bright else 255 - gray
    return found
