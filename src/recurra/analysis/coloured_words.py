"""Words on coloured ground: blue for what speaks for an answer, orange for what speaks against it."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.analysis import scene
from recurra.analysis.alignment import labels
from recurra.analysis.page import page
from recurra.analysis.scene import Box, Scene, Shape, Words, width_of
from recurra.errors import DataError
from recurra.text.visible import without_controls

_STRONGEST = 0.62  # of colour: a word on it can still be read
_EDGE, _LINE, _ROW, _BOX, _GAP = 12.0, 24.0, 30.0, 24.0, 4.0  # pixels: around, a line, a row, a word, between words


@dataclass(frozen=True, eq=False)
class ColouredWords:
    """Tokens, a strength from -1 to 1 for each, and what is said where one is pointed at.

    >>> ColouredWords("praise", ["not", "bad"], [1.0, -0.2], ["+1.5", "-0.3"]).title
    'praise'
    """

    title: str
    tokens: Sequence[str]
    strengths: ArrayLike
    said: Sequence[str]
    note: str = ""

    def __post_init__(self) -> None:
        strengths = np.asarray(self.strengths, np.float64)
        if not len(self.tokens) == len(self.said) == strengths.size or strengths.ndim != 1:
            raise DataError(
                f"{len(self.tokens)} tokens need as many strengths, but these are of shape {strengths.shape}."
            )
        object.__setattr__(self, "strengths", strengths.clip(-1, 1))

    @property
    def colours(self) -> list[tuple[scene.Colour, float]]:
        """Of each word its colour, and how much of it."""
        strengths: NDArray[np.float64] = np.asarray(self.strengths)
        return [("more" if each >= 0 else "less", _STRONGEST * abs(float(each))) for each in strengths]


def is_right_to_left(tokens: Iterable[str]) -> bool:
    """Whether most letters of a text belong to scripts that are written from right to left."""
    ways = [unicodedata.bidirectional(letter) for token in tokens for letter in token]
    return sum(way in ("R", "AL") for way in ways) > sum(way == "L" for way in ways)


def _scene(rows: Sequence[ColouredWords], width: float) -> Scene:
    shapes: list[Shape] = []
    y, right = _EDGE, 0.0
    for row in rows:
        shapes.append(Words(without_controls(row.title), _EDGE, y + 13, bold=True))
        right = max(right, width_of(without_controls(row.title)) + _EDGE)
        y += _LINE
        tokens = labels(row.tokens)
        turned = is_right_to_left(tokens)
        x = _EDGE
        for token, (colour, strength), said in zip(tokens, row.colours, row.said, strict=True):
            wide = width_of(token) + 11
            if x + wide > width - _EDGE and x > _EDGE:
                x, y = _EDGE, y + _ROW
            left = width - x - wide if turned else x
            shapes.append(Box(left, y, wide, _BOX, colour, strength, said))
            shapes.append(Words(token, left + wide / 2, y + 17, "middle"))
            x += wide + _GAP
            right = max(right, width - _EDGE if turned else x)
        y += _ROW
        if row.note:
            shapes.append(Words(row.note, _EDGE, y + 10, size=11, colour="soft"))
            right = max(right, _EDGE + width_of(row.note, 11))
            y += _LINE
        y += 6
    label = "; ".join(f"{without_controls(row.title)}: {' '.join(labels(row.tokens))}" for row in rows)
    return Scene(right + _EDGE, y + _EDGE / 2, shapes, label)


def as_svg(*rows: ColouredWords, width: float = 900) -> str:
    """The words in lines; one that is pointed at shows its number."""
    return scene.as_svg(_scene(rows, width))


STYLE = """<style>
.words{--more:0 114 178;--less:213 94 0;line-height:2.1;margin:.25rem 0 .5rem}
@media screen and (prefers-color-scheme:dark){.words{--more:86 180 233;--less:240 138 60}}
.words bdi{padding:.15rem .3rem;border-radius:.25rem;white-space:pre-wrap;-webkit-box-decoration-break:clone;
box-decoration-break:clone;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.words bdi:hover{outline:1.5px solid}
</style>"""


def in_html(*rows: ColouredWords) -> str:
    """The words as text that can be selected, and that a page breaks as it likes."""
    pieces = [STYLE]
    for row in rows:
        spans = [
            f'<bdi title="{escape(said)}" style="background:rgb(var(--{colour})/{strength:.2f})">{escape(token)}</bdi>'
            for token, (colour, strength), said in zip(labels(row.tokens), row.colours, row.said, strict=True)
        ]
        way = "rtl" if is_right_to_left(row.tokens) else "ltr"
        pieces.append(f"<p><strong>{escape(without_controls(row.title))}</strong></p>" if row.title else "")
        pieces.append(f'<p class="words" dir="{way}">{" ".join(spans)}</p>')
        pieces.append(f'<p class="soft">{escape(row.note)}</p>' if row.note else "")
    return "\n".join(filter(None, pieces))


def as_html(*rows: ColouredWords, title: str = "Words") -> str:
    """One page that fetches nothing."""
    return page(title, [f"<h1>{escape(without_controls(title))}</h1>", in_html(*rows)])


def as_png(path: str | os.PathLike[str], *rows: ColouredWords, width: float = 900) -> None:
    """Write the picture that as_svg draws as a PNG; needs matplotlib."""
    scene.as_png(path, _scene(rows, width))
