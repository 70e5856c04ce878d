"""Tokens: words on coloured ground, blue for what speaks for something and orange for what speaks against it."""

from __future__ import annotations

import dataclasses
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from recurra.errors import DataError
from recurra.text.visible import without_controls
from recurra.views.heat_map import map_scene
from recurra.views.scene import Box, Colour, Label, Scene, SceneShape, width_of
from recurra.views.table import Table
from recurra.views.view import PAGE, WIDTH, View, captioned, labels, minus, minuses, rounded

FEW = 5
"""So many rows are drawn as coloured words, more as a map of rows by tokens."""

NAMED = 3
"""In the terminal, so many of the strongest tokens of each row are named where there are many rows."""

_STRONGEST = 0.62  # of colour: a word on it can still be read
_EDGE, _LINE, _ROW, _BOX, _GAP = 12.0, 24.0, 30.0, 24.0, 4.0  # pixels: around, a line, a row, a word, between words

_STYLE = """<style>
.words{--more:0 114 178;--less:213 94 0;line-height:2.1;margin:.25rem 0 .5rem}
@media screen and (prefers-color-scheme:dark){.words{--more:86 180 233;--less:240 138 60}}
.words bdi{padding:.15rem .3rem;border-radius:.25rem;white-space:pre-wrap;-webkit-box-decoration-break:clone;
box-decoration-break:clone;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.words bdi:hover{outline:1.5px solid}
</style>"""


class TokenRow(NamedTuple):
    """The strength of each token's colour, from -1 to 1, and the text shown when it is pointed at."""

    name: str  # of what the tokens are coloured for, such as an answer
    strengths: ArrayLike
    said: Sequence[str]
    heading: str = ""  # above the words, if it is not the name
    note: str = ""  # beneath them
    total: str = ""  # beside them in a map

    @property
    def colours(self) -> list[tuple[Colour, float]]:
        """Of each word its colour, and how much of it."""
        return [("more" if each >= 0 else "less", _STRONGEST * abs(each)) for each in np.asarray(self.strengths)]


@dataclasses.dataclass(frozen=True, eq=False)
class Tokens(View):
    """Tokens, and rows of strengths over them.

    `scale` names what no colour and the full colour stand for (of both signs: the strongest orange and the strongest
    blue), `total` the numbers beside the rows of a map, `first` the row that is shown first where one is chosen, and
    `left_out` is how many rows there are that are not among these. `table` replaces the table of what is said.

    >>> Tokens(["not", "bad"], [TokenRow("praise", [1.0, -0.2], ["+1.5", "-0.3"])]).svg().count("<title>")
    2
    """

    kind: ClassVar[str] = "tokens"

    tokens: Sequence[str]
    rows: Sequence[TokenRow]
    scale: tuple[str, str] = ("", "")
    signed: bool = False
    asked: str = ""  # what a reader of a page chooses among the rows
    total: str = ""
    first: int = 0
    left_out: int = 0
    table: Table | None = None
    subtitle: str = ""  # beneath the caption of a map, and in the terminal

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tokens or not self.rows:
            raise DataError("Tokens needs at least one token and one row of strengths.")
        rows = []
        for row in self.rows:
            strengths = rounded(row.strengths, 4)
            if not len(self.tokens) == len(row.said) == strengths.size or strengths.ndim != 1:
                raise DataError(
                    f"{len(self.tokens)} tokens need one strength and one text each, but found strengths of shape "
                    f"{strengths.shape} and {len(row.said)} texts."
                )
            rows.append(row._replace(strengths=strengths.clip(-1, 1)))
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "tokens", tuple(self.tokens))

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The view whose json() was given."""
        table = given.get("table")
        rows = [TokenRow(**row) for row in given["rows"]]
        scale = tuple(given["scale"])
        return super().from_json(
            {**given, "rows": rows, "scale": scale, "table": None if table is None else Table(**table)}
        )

    def text(self) -> str:
        """For the terminal: of one row what is said of each token, of many rows the strongest tokens of each.

        >>> print(Tokens(["not", "bad"], [TokenRow("praise", [1, -0.2], ["+1.5", "-0.3"], note="log odds 2.0")]).text())
        praise: log odds 2.0
        token praise
        not     +1.5
        bad     -0.3
        """
        if self.table is not None or len(self.rows) == 1:
            [row, *others] = self.rows
            about = f"{row.name}: {row.note}" if row.note and row.name and not others else ""
            head = filter(None, map(without_controls, [self.subtitle, about]))
            return captioned(self.caption, *head, *(table.text() for table in self.tables().values()))
        tokens = labels(self.tokens)
        found = []
        for name, row in zip(labels(row.name for row in self.rows), self.rows, strict=True):
            strongest = np.argsort(-np.abs(np.asarray(row.strengths)), kind="stable")[:NAMED]
            found.append([name, row.total, ", ".join(f"{tokens[n]} {row.said[n]}" for n in strongest)])
        lines = [self.subtitle] * bool(self.subtitle) + Table(["", "", ""], found).text().splitlines()[1:]
        if self.left_out:
            lines.append(f"and {self.left_out} more, which are left out")
        return captioned(self.caption, *lines)

    def scene(self, width: float = WIDTH) -> Scene:
        """Words in lines, or a map where there are many rows; what is pointed at says its number."""
        return self._words(width) if len(self.rows) <= FEW else self._map(width)

    def _words(self, width: float) -> Scene:
        shapes: list[SceneShape] = []
        tokens = labels(self.tokens)
        turned = is_right_to_left(tokens)
        y, right = _EDGE, 0.0
        for row in self.rows:
            heading = self._heading(row)
            if heading:
                shapes.append(Label(heading, _EDGE, y + 13, bold=True))
                right = max(right, width_of(heading) + _EDGE)
                y += _LINE
            x = _EDGE
            for token, (colour, strength), said in zip(tokens, row.colours, row.said, strict=True):
                wide = width_of(token) + 11
                if x + wide > width - _EDGE and x > _EDGE:
                    x, y = _EDGE, y + _ROW
                left = width - x - wide if turned else x
                shapes.append(Box(left, y, wide, _BOX, colour, strength, f"{token}: {said}"))
                shapes.append(Label(token, left + wide / 2, y + 17, "middle"))
                x += wide + _GAP
                right = max(right, width - _EDGE if turned else x)
            y += _ROW
            if row.note:
                shapes.append(Label(minuses(row.note), _EDGE, y + 10, size=11, colour="soft"))
                right = max(right, _EDGE + width_of(row.note, 11))
                y += _LINE
            y += 6
        label = "; ".join(f"{self._heading(row)}: {' '.join(tokens)}" for row in self.rows)
        return Scene(math.ceil(right + _EDGE), math.ceil(y + _EDGE / 2), shapes, label)

    def _heading(self, row: TokenRow) -> str:
        return without_controls(row.heading or row.name or self.caption)

    def _map(self, width: float) -> Scene:
        count = len(self.rows)
        names = labels(row.name for row in self.rows)
        return map_scene(
            names,
            labels(self.tokens),
            np.array([row.strengths for row in self.rows]),
            lambda row, column: self.rows[row].said[column],
            number=lambda row, column: "",
            signed=True,
            caption=without_controls(self.caption),
            label=self.title or "Tokens",
            width=width,
            note=self.subtitle,
            footer=f"The first {count} of {count + self.left_out} are shown." if self.left_out else "",
            totals=[minus(row.total) for row in self.rows] if self.total else (),
            total=self.total,
        )

    def figure(self) -> str:
        """Words as text that can be selected, and that a page breaks as it likes; many rows are a map."""
        if len(self.rows) > FEW:
            return f'<figure style="overflow:auto">{self.svg(PAGE)}</figure>'
        pieces = [_STYLE]
        tokens = labels(self.tokens)
        way = "rtl" if is_right_to_left(self.tokens) else "ltr"
        for row in self.rows:
            heading = self._heading(row)
            spans = [
                f'<bdi title="{escape(f"{token}: {said}")}" style="background:rgb(var(--{colour})/{strength:.2f})">'
                f"{escape(token)}</bdi>"
                for token, (colour, strength), said in zip(tokens, row.colours, row.said, strict=True)
            ]
            pieces.append(f"<p><strong>{escape(heading)}</strong></p>" if heading else "")
            pieces.append(f'<p class="words" dir="{way}">{" ".join(spans)}</p>')
            pieces.append(f'<p class="soft">{escape(minuses(row.note))}</p>' if row.note else "")
        return "\n".join(filter(None, pieces))

    def tables(self) -> dict[str, Table]:
        """What is said of each token in each row."""
        if self.table is not None:
            return {"As numbers": self.table}
        said = zip(labels(self.tokens), *(row.said for row in self.rows), strict=True)
        names = [without_controls(row.name) or self.total or "said" for row in self.rows]
        return {"As numbers": Table(["token", *names], [list(each) for each in said])}


def is_right_to_left(tokens: Iterable[str]) -> bool:
    """Whether most letters of a text belong to scripts that are written from right to left."""
    ways = [unicodedata.bidirectional(letter) for token in tokens for letter in token]
    return sum(way in ("R", "AL") for way in ways) > sum(way == "L" for way in ways)
