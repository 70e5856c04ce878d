"""HeatMap: a matrix with names at its rows and columns, the stronger coloured the larger a number is."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError
from recurra.text.visible import columns as columns_of
from recurra.text.visible import without_controls
from recurra.views.scene import Box, Label, Path, Scene, SceneShape, width_of
from recurra.views.table import Table
from recurra.views.view import WIDTH, View, captioned, labels, rounded

SHADES = " ░▒▓█"
SENTENCE = 60
"""So many characters of a sentence are shown."""
# The colours of viridis among the 256 of a terminal, dark to bright: they can be told apart on black and on white.
_TERMINAL = (53, 54, 60, 24, 30, 36, 35, 77, 148, 226)

_CELL, _SMALLEST, _LINE, _EDGE = 30.0, 14.0, 26.0, 12.0  # pixels: a cell, a line of text, around it all
_NUMBERED = 24.0  # pixels of a cell that has room for its number
_TOTALS = 54.0  # pixels of the column on the right
_SLANT = 0.7072  # sine and cosine of 45 degrees
_WEAKEST = 0.005  # of the full colour: less cannot be seen
_WEAKEST_SIGNED = 0.03


@dataclasses.dataclass(frozen=True, eq=False)
class HeatMap(View):
    """Names of rows, names of columns, and weights (rows, columns). Unsigned ones are at least 0.

    `across` and `down` say what columns and rows are, such as "read" and "written"; `of_row` and `of_column` what a
    row does to its columns, as in "le looked at the 0.90".

    >>> HeatMap(["T", "IY"], ["t", "e", "a"], [[0.9, 0.1, 0.0], [0.0, 0.6, 0.4]]).svg().count("<title>")
    4
    """

    kind: ClassVar[str] = "heat_map"

    rows: Sequence[str]
    columns: Sequence[str]
    weights: ArrayLike
    signed: bool = False
    across: str = ""
    down: str = ""
    of_row: str = ""
    of_column: str = ""
    prose: bool = False  # names are sentences: blanks are blanks, and more of them is shown

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = np.asarray(self.weights, np.float64)
        if weights.shape != (len(self.rows), len(self.columns)) or not weights.size:
            raise DataError(
                f"a heat map of {len(self.rows)} rows and {len(self.columns)} columns needs one weight per cell, "
                f"at least one, but the weights have shape {weights.shape}."
            )
        if not np.isfinite(weights).all() or (not self.signed and (weights < 0).any()):
            raise DataError("the weights of a heat map must be numbers of at least 0, or of any sign with signed=True.")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "rows", tuple(self.rows))
        object.__setattr__(self, "columns", tuple(self.columns))

    def _names(self, side: Sequence[str]) -> list[str]:
        """Rows or columns as they are named beside the cells."""
        if not self.prose:
            return labels(side)
        whole = (without_controls(" ".join(name.split())) for name in side)
        return [name if len(name) <= SENTENCE else f"{name[: SENTENCE - 1]}…" for name in whole]

    @cached_property
    def shown(self) -> NDArray[np.float64]:
        """The weights as they are drawn and said."""
        return rounded(self.weights)

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """How strong the colour of each cell is, from -1 to 1: shares are their own strength."""
        largest = float(np.abs(self.shown).max())
        strengths: NDArray[np.float64] = self.shown / (largest if self.signed and largest else max(1.0, largest))
        return strengths

    def said(self, weight: float, digits: int = 3) -> str:
        """A weight in words."""
        return f"{weight:,.0f}" if self.is_count else f"{weight:{'+' * self.signed}.{digits}f}"

    @cached_property
    def is_count(self) -> bool:
        """Whether all weights are whole numbers, and not just 0 and 1."""
        return bool(np.abs(self.shown).max() > 1 and (self.shown == np.rint(self.shown)).all())

    def json(self) -> dict[str, object]:
        """The value as JSON has it."""
        return {**super().json(), "weights": self.shown.tolist()}

    def text(self, *, colour: bool = False) -> str:
        """A heat map for the terminal: the darker a cell, the larger its weight; signed ones are a table.

        >>> print(HeatMap(["T", "IY"], "tea", [[0.9, 0.1, 0.0], [0.0, 0.6, 0.4]]).text())
            t e a
          T ██
         IY   ▒▒▒▒
        """
        if self.signed:
            return captioned(self.caption, *(table.text() for table in self.tables().values()))
        above, beside = [list(map(_steady, side)) for side in (self._names(self.columns), self._names(self.rows))]
        left = max(map(columns_of, beside)) + 2
        widest = max(map(columns_of, above))
        cell = max(2, widest + 1) if widest <= 3 else 2
        if widest <= 3:
            lines = [" " * left + "".join(token + " " * (cell - columns_of(token)) for token in above)]
        else:  # words go down like stairs, each with a line to its column
            lines = [" " * left + "│ " * place + "┌ " + token for place, token in enumerate(above)]
        for token, weights in zip(beside, self.strengths, strict=True):
            cells = "".join(_cell(weight, cell, colour=colour) for weight in weights)
            lines.append(" " * (left - 1 - columns_of(token)) + token + " " + cells)
        return captioned(self.caption, *(line.rstrip(" ") for line in lines))

    def scene(self, width: float = WIDTH) -> Scene:
        """The cells, with rows' names to the left and columns' names above; a cell that is pointed at says its weight.

        The names of its row and its column stand out then.
        """
        shown = self.shown
        return map_scene(
            self._names(self.rows),
            self._names(self.columns),
            self.strengths,
            lambda row, column: self.said(shown[row, column]),
            number=lambda row, column: self.said(shown[row, column], 2),
            signed=self.signed,
            caption=self.caption,
            label=self.title or "Heat map",
            width=width,
        )

    def tables(self) -> dict[str, Table]:
        """All weights, a row for each row."""
        rows = [
            [name, *map(self.said, weights)]
            for name, weights in zip(self._names(self.rows), self.shown.tolist(), strict=True)
        ]
        return {"All weights as numbers": Table(["", *self._names(self.columns)], rows)}


def map_scene(
    rows: Sequence[str],
    columns: Sequence[str],
    strengths: NDArray[np.float64],
    said: Callable[[int, int], str],
    *,
    number: Callable[[int, int], str],
    signed: bool,
    caption: str,
    label: str,
    width: float,
    note: str = "",
    footer: str = "",
    totals: Sequence[str] = (),
    total: str = "",
) -> Scene:
    """A grid of cells of the given strengths; `totals`, under the heading `total`, stand to the right of their rows."""
    side = max(map(width_of, rows)) + 8
    left = _EDGE + side
    room = width - left - _EDGE - (_TOTALS if totals else 0)
    cell = min(_CELL, max(_SMALLEST, room // len(columns)))  # of whole pixels, or gaps are seen
    size = min(13.0, cell - 1)
    slanted = max(width_of(token, size) for token in columns) > cell - 2
    above = min(size, 0.68 * cell) if slanted else size  # slanted texts stand closer to each other
    reach = [width_of(token, above) * (_SLANT if slanted else 0.5) for token in columns]
    shapes: list[SceneShape] = []
    top = _EDGE
    for text, look in ((caption, Label("", 0, 0, bold=True)), (note, Label("", 0, 0, size=11, colour="soft"))):
        if text:
            shapes.append(look._replace(text=text, x=_EDGE, y=top + 14))
            top += _LINE
    top += max(reach) + 16 if slanted else _LINE - 4
    edge, bottom = left + len(columns) * cell, top + len(rows) * cell
    shapes.append(Box(left, top, edge - left, bottom - top))
    lines = [[(x, top), (x, bottom)] for x in (left + n * cell for n in range(1, len(columns)))]
    lines += [[(left, y), (edge, y)] for y in (top + n * cell for n in range(1, len(rows)))]
    shapes += [Path(line, "paper", 2 if cell > 20 else 1) for line in lines]
    for n, token in enumerate(columns):
        x = left + (n + 0.5 - 0.1 * slanted) * cell
        anchor = "start" if slanted else "middle"
        shapes.append(Label(token, x, top - 8, anchor, above, slanted=slanted, name=f"c{n}"))  # type: ignore[arg-type]
    for n, token in enumerate(rows):
        y = top + (n + 0.5) * cell + size / 3
        shapes.append(Label(token, left - 8, y, "end", size, name=f"r{n}"))
        if totals:
            shapes.append(Label(totals[n], edge + _TOTALS, y, "end", min(11.0, size), colour="soft"))
    if totals:
        shapes.append(Label(total, edge + _TOTALS, top - 8, "end", 11, colour="soft"))
    for row, column in np.argwhere(np.abs(strengths) >= (_WEAKEST_SIGNED if signed else _WEAKEST)).tolist():
        strength = float(strengths[row, column])
        shapes.append(
            Box(
                left + column * cell + 1,
                top + row * cell + 1,
                cell - 2,
                cell - 2,
                "more" if strength > 0 else "less",
                abs(strength),
                f"{rows[row]} ← {columns[column]}: {said(row, column)}",
                number=number(row, column) if cell >= _NUMBERED else "",
                lights=(f"c{column}", f"r{row}"),
            )
        )
    if footer:
        shapes.append(Label(footer, _EDGE, bottom + 18, size=11, colour="soft"))
        bottom += _LINE
    ends = [left + (n + 0.5) * cell + size for n, size in enumerate(reach)]
    texts = [_EDGE + width_of(caption), _EDGE + width_of(note, 11), _EDGE + width_of(footer, 11)]
    right = max(edge + (_TOTALS if totals else 0), *ends, *texts) + 2 + _EDGE
    return Scene(right, bottom + _EDGE, shapes, f"{label}: {' '.join(columns)} → {' '.join(rows)}")


def _cell(weight: float, width: int, *, colour: bool) -> str:
    if colour:
        return f"\033[48;5;{_TERMINAL[min(9, int(weight * 10))]}m{' ' * width}\033[0m"
    return SHADES[round(weight * (len(SHADES) - 1))] * width


def _steady(token: str) -> str:
    """A token between marks that keep its place in a line, where a terminal turns right-to-left words around."""
    turned = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in token)
    return f"\u200e{token}\u200e" if turned else token
