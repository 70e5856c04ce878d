"""Attention as a picture: SVG, an HTML page, or PNG; squares on paper, the darker the more a token looked there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from recurra.analysis.alignment import Alignment, labels
from recurra.analysis.canvas import POINT, drawn
from recurra.analysis.page import page, table_in_html
from recurra.errors import DataError
from recurra.text.visible import columns, without_controls
from recurra.views.table import Table

# Paper to ink in one hue, so that a picture may be printed without colours; the lighter ink is for a dark screen.
_STYLE = """
.alignment{--ink:#222;--paper:#fff;--panel:#f2f4f7;--one:#0072b2;color:var(--ink);max-width:none}
@media screen and (prefers-color-scheme:dark){.alignment{--ink:#ddd;--paper:#16181c;--panel:#22252b;--one:#56b4e9}}
.alignment text{font:13px system-ui,sans-serif;fill:currentColor}
.alignment .name{font-weight:600}
.alignment text[class^=of-s]{text-anchor:middle}
.alignment text[class^=of-t]{text-anchor:end}
.alignment text.slanted[class]{text-anchor:start}
.alignment .back{fill:var(--panel)}
.alignment path{stroke:var(--paper);stroke-width:2}
.alignment .panel g rect{fill:var(--one)}
.alignment .panel g text{font-size:11px;opacity:0;pointer-events:none;text-anchor:middle;
paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.alignment .panel g:hover text{opacity:1}
.alignment .panel g:hover rect{stroke:currentColor;stroke-width:1.5}
"""
_PANEL, _INK = (0xF2 / 255, 0xF4 / 255, 0xF7 / 255), (0.0, 0x72 / 255, 0xB2 / 255)  # the same for a PNG
_CELL, _GAP, _LINE, _EDGE = 30.0, 28.0, 26.0, 12.0  # pixels: a cell, between panels, a line of text, around it all
_LETTER = 8.2  # pixels: about the mean width of a letter at 13 pixels
_SLANT = 0.7072  # sine and cosine of 45 degrees


class _Label(NamedTuple):
    text: str
    x: float
    y: float
    key: str  # name, or s3 for the source token 3, or t3
    slanted: bool = False


class _Panel(NamedTuple):
    """Where one alignment lies in a picture: the upper left corner of its cells, and its labels."""

    alignment: Alignment
    x: float
    y: float
    labels: Sequence[_Label]
    right: float
    bottom: float


def _laid_out(alignments: Sequence[Alignment], width: float) -> list[_Panel]:
    """Panels from left to right, and on in the next row where the width is used up."""
    if not alignments:
        raise DataError("there is no alignment to draw.")
    panels: list[_Panel] = []
    left, top = _EDGE, _EDGE
    for alignment in alignments:
        panel = _panel(alignment, left, top)
        if panel.right > width and left > _EDGE:
            left, top = _EDGE, max(panel.bottom for panel in panels) + _GAP
            panel = _panel(alignment, left, top)
        panels.append(panel)
        left = panel.right + _GAP
    return panels


def _panel(alignment: Alignment, left: float, top: float) -> _Panel:
    source, target, title = labels(alignment.source), labels(alignment.target), without_controls(alignment.title)
    slanted = max(map(columns, source)) * _LETTER > _CELL - 2
    sizes = [columns(token) * _LETTER * (_SLANT if slanted else 0.5) for token in source]
    head = (_LINE if title else 0.0) + (max(sizes) + 16 if slanted else _LINE - 4)
    x, y = left + max(map(columns, target)) * _LETTER + 8, top + head
    texts = [_Label(title, left, top + 14, "name")] if title else []
    texts += [
        _Label(token, x + (n + 0.5 - 0.1 * slanted) * _CELL, y - 8, f"s{n}", slanted) for n, token in enumerate(source)
    ]
    texts += [_Label(token, x - 8, y + (n + 0.5) * _CELL + 4.5, f"t{n}") for n, token in enumerate(target)]
    ends = [x + (n + 0.5) * _CELL + size for n, size in enumerate(sizes)]
    right = max(*ends, x + len(source) * _CELL, left + columns(title) * _LETTER)
    return _Panel(alignment, x, y, texts, right + 2, y + len(target) * _CELL)


def _size(panels: Sequence[_Panel]) -> tuple[int, int]:
    return round(max(panel.right for panel in panels) + _EDGE), round(max(panel.bottom for panel in panels) + _EDGE)


def as_svg(*alignments: Alignment, width: float = 900) -> str:
    """A picture of one or several alignments; a cell that is pointed at shows its weight.

    >>> picture = as_svg(Alignment("tea", ["T", "IY"], [[0.9, 0.1, 0.0], [0.0, 0.6, 0.4]]))
    >>> picture.startswith("<svg "), picture.count("<title>")
    (True, 4)
    """
    panels = _laid_out(alignments, width)
    across, down = _size(panels)
    label = "Attention: " + "; ".join(
        f"{' '.join(labels(pair.source))} → {' '.join(labels(pair.target))}" for pair in alignments
    )
    longest = max(max(len(pair.source), len(pair.target)) for pair in alignments)
    # The two tokens of a cell that is pointed at stand out.
    pointed = ",".join(f".panel:has(.{side}{n}:hover) .of-{side}{n}" for n in range(longest) for side in "st")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="alignment" role="img" aria-label={quoteattr(label)} '
        f'viewBox="0 0 {across} {down}" width="{across}" height="{down}">',
        f"<style>{_STYLE}{pointed}{{font-weight:700;fill:var(--one)}}\n</style>",
        f'<rect width="{across}" height="{down}" style="fill:var(--paper)"/>',
        *(line for panel in panels for line in _drawn(panel)),
    ]
    return "\n".join([*parts, "</svg>\n"])


def _drawn(panel: _Panel) -> Iterable[str]:
    shares = panel.alignment.shares
    source, target = [list(map(escape, labels(s))) for s in (panel.alignment.source, panel.alignment.target)]
    yield '<g class="panel">'
    across, down = len(source) * _CELL, len(target) * _CELL
    yield f'<rect class="back" x="{panel.x:.1f}" y="{panel.y:.1f}" rx="3" width="{across:g}" height="{down:g}"/>'
    lines = [f"M{panel.x + n * _CELL:.1f} {panel.y:.1f}v{down:g}" for n in range(1, len(source))]
    lines += [f"M{panel.x:.1f} {panel.y + n * _CELL:.1f}h{across:g}" for n in range(1, len(target))]
    yield f'<path d="{"".join(lines)}"/>'
    for text, x, y, key, slanted in panel.labels:
        place = f'x="{x:.1f}" y="{y:.1f}"' if not slanted else f'transform="translate({x:.1f} {y:.1f}) rotate(-45)"'
        look = key if key == "name" else f"of-{key}{' slanted' * slanted}"
        yield f'<text class="{look}" {place}>{escape(text)}</text>'
    for row, column in np.argwhere(shares >= 0.005):  # less would be shown as 0.00
        weight, x, y = shares[row, column], panel.x + column * _CELL, panel.y + row * _CELL
        yield (
            f'<g class="s{column} t{row}"><rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{_CELL - 2:g}" '
            f'height="{_CELL - 2:g}" rx="3" fill-opacity="{weight:.3f}"/>'
            f'<text x="{x + _CELL / 2:.1f}" y="{y + _CELL / 2 + 4:.1f}">{weight:.2f}</text>'
            f"<title>{target[row]} ← {source[column]}: {weight:.3f}</title></g>"
        )
    yield "</g>"


def in_html(*alignments: Alignment) -> str:
    """The picture with what it means, and the weights as tables."""
    tables = []
    for pair in alignments:
        rows = [
            [label, *(f"{weight:.3f}" for weight in weights)]
            for label, weights in zip(labels(pair.target), pair.shares, strict=True)
        ]
        caption = f"<p>{escape(without_controls(pair.title))}</p>" if pair.title else ""
        tables.append(caption + table_in_html(Table(["", *labels(pair.source)], rows)))
    pieces = [
        '<p class="soft">Rows are what was written, columns what was read; ∎ is the end. Point at a cell to see its '
        "weight.</p>",
        f'<figure style="overflow:auto">{as_svg(*alignments)}</figure>',
        f"<details><summary>All weights as numbers</summary>{''.join(tables)}</details>",
    ]
    return "\n".join(pieces)


def as_html(*alignments: Alignment, title: str = "Attention") -> str:
    """One page that fetches nothing: the picture, and the weights as tables.

    >>> page = as_html(Alignment("tea", ["T", "IY"], [[0.9, 0.1, 0.0], [0.0, 0.6, 0.4]]))
    >>> "<td>0.600</td>" in page, "<script" in page
    (True, False)
    """
    title = without_controls(title)
    return page(title, [f"<h1>{escape(title)}</h1>", in_html(*alignments)])


def as_png(path: str | os.PathLike[str], *alignments: Alignment, width: float = 900, scale: float = 2.0) -> None:
    """Write the picture that as_svg draws as a PNG with `scale` times as many pixels; needs matplotlib."""
    panels = _laid_out(alignments, width)
    texts = [label.text for panel in panels for label in panel.labels]
    with drawn(path, *_size(panels), texts=texts, scale=scale) as axes:
        for panel in panels:
            rows, across = panel.alignment.shares.shape
            edges = [panel.x + _CELL * np.arange(across + 1), panel.y + _CELL * np.arange(rows + 1)]
            colours = np.array(_PANEL) + panel.alignment.shares[..., None] * (np.array(_INK) - np.array(_PANEL))
            axes.pcolormesh(*edges, colours, edgecolors="white", linewidth=2 * POINT)
            for words, x, y, key, slanted in panel.labels:
                where = "left" if slanted or key == "name" else "center" if key[0] == "s" else "right"
                weight = "bold" if key == "name" else "normal"
                turned = 45 if slanted else 0
                text = axes.text(x, y, words, size=13 * POINT, ha=where, weight=weight, color="#222")
                text.set(rotation=turned, rotation_mode="anchor")
