"""Attention over a picture: the picture once for each written token, with colour where that token looked."""

from __future__ import annotations

import hashlib
import math
import os
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from recurra.analysis.alignment import labels
from recurra.analysis.canvas import POINT, drawn
from recurra.analysis.page import page, table_in_html
from recurra.analysis.picture_attention import COLUMNS, PictureAttention, looks
from recurra.data.png import write_png
from recurra.text.visible import columns as columns_of
from recurra.text.visible import without_controls
from recurra.views.table import Table

MOST = 60
"""So many tokens are drawn; what comes after them is counted."""

# A line drawing is shown as ink in the colour of the page's letters, so that it can be read on paper and on a dark
# screen; a photo keeps its colours, faded so that the one of attention stands out.
_STYLE = """
.looked{--ink:#222;--soft:#5c5f66;--paper:#fff;--panel:#f5f6f8;--one:#e8710a;color:var(--ink);max-width:none}
@media screen and (prefers-color-scheme:dark){
.looked{--ink:#e8e8e8;--soft:#a0a4ac;--paper:#16181c;--panel:#202329;--one:#f08a24}}
.looked text{font:13px system-ui,sans-serif;fill:currentColor}
.looked .name,.looked .token{font-weight:600}
.looked .soft{font-size:11px;fill:var(--soft)}
.looked .share{text-anchor:end}
.looked .back{fill:var(--panel)}
.looked .photo{opacity:.55}
.looked .lines{stroke:var(--paper);stroke-width:2;pointer-events:none}
.looked .ink{fill:currentColor;pointer-events:none}
.looked .place{fill:var(--one)}
.looked .place:hover{stroke:currentColor;stroke-width:1.5}
"""
_PAPER, _INK, _ONE = (0xF5, 0xF6, 0xF8), (0x22, 0x22, 0x22), (0xE8, 0x71, 0x0A)  # the same for a PNG
_EDGE, _GAP, _LINE, _LETTER = 12.0, 18.0, 22.0, 8.2  # pixels: around it all, between panels, a line, a letter
_WIDEST, _HIGHEST, _LOWEST, _PLACE = 262.0, 160.0, 72.0, 28.0  # pixels: of a panel, and of a place
_FADED = 0.55
_PAGE, _PHONE = 860.0, 390.0  # pixels: of a drawing
_STRONGEST = 0.85  # of colour: what is under it can still be seen
_WEAKEST = 0.02  # of the largest weight: less cannot be seen


class _Layout(NamedTuple):
    """Where the panels are: the upper left corner of each picture, its scale, and the size of it all."""

    corners: Sequence[tuple[float, float]]
    scale: float
    across: float  # of a panel, where its token may be wider than the picture
    width: float
    height: float
    title: str
    left_out: str


def _laid_out(looked: PictureAttention, width: float, most: int) -> _Layout:
    (height, across), side = looked.shape, max(looked.side)
    scale = min(_HIGHEST / height, _PLACE / side)
    if across * scale > _WIDEST:  # a long line of writing may be wider, so that it can be read
        scale = max(_WIDEST / across, min(scale, _LOWEST / height, (width - 2 * _EDGE) / across))
    named = labels(looked.tokens)[:most]
    panel = max(across * scale, *(columns_of(label) * _LETTER + 36 for label in named))
    a_row = max(1, int((width - 2 * _EDGE + _GAP) // (panel + _GAP)))
    top = _EDGE + (_LINE if looked.title else 0)
    down = _LINE + height * scale + _GAP
    corners = [(_EDGE + n % a_row * (panel + _GAP), top + n // a_row * down + _LINE) for n in range(len(named))]
    left_out = f"The first {most} of {len(looked.tokens)} tokens are shown." if len(looked.tokens) > most else ""
    bottom = top + math.ceil(len(named) / a_row) * down - _GAP + (_LINE if left_out else 0) + _EDGE
    title, room = without_controls(looked.title), int((width - 2 * _EDGE) / _LETTER)
    if columns_of(title) > room:
        title = title[: room // 2 if columns_of(title) > len(title) else room - 1] + "…"
    right = max(min(a_row, len(named)) * (panel + _GAP) - _GAP, columns_of(title) * _LETTER, 7 * len(left_out))
    return _Layout(corners, scale, panel, math.ceil(right + 2 * _EDGE), math.ceil(bottom), title, left_out)


def _ink(picture: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """(H, W): how much ink is where, if the picture is lines on paper of one shade; None for a photo."""
    if picture.ndim == 3 and (np.ptp(picture, axis=2) > 8).any():
        return None
    gray = picture if picture.ndim == 2 else picture[:, :, 0]
    dark, bright = (gray < 32).mean(), (gray > 223).mean()
    if max(dark, bright) < 0.5:
        return None
    return gray if dark >= bright else 255 - gray


def as_svg(looked: PictureAttention, *, width: float = 900, most: int = MOST) -> str:
    """The picture once for each token, colour where it looked; a place that is pointed at shows its weight.

    >>> drawing = as_svg(PictureAttention(None, ["x"], [[0.1, 0.2, 0.3, 0.4]], 2))
    >>> drawing.startswith("<svg "), drawing.count("<title>")
    (True, 4)
    """
    layout = _laid_out(looked, width, most)
    label = "Where it looked: " + " ".join(labels(looked.tokens))
    size = f'width="{looked.shape[1] * layout.scale:.1f}" height="{looked.shape[0] * layout.scale:.1f}"'
    under, over, defined = "", _lines(looked, layout.scale), ""
    if looked.picture is not None:
        under, over, defined = _embedded(looked.picture, size, f"{width:g}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="looked" role="img" aria-label={quoteattr(label)} '
        f'viewBox="0 0 {layout.width} {layout.height}" width="{layout.width}" height="{layout.height}">',
        f"<style>{_STYLE}</style>{defined}",
        f'<rect width="{layout.width}" height="{layout.height}" style="fill:var(--paper)"/>',
    ]
    if looked.title:
        parts.append(f'<text class="name" x="{_EDGE:g}" y="{_EDGE + 12:g}">{escape(layout.title)}</text>')
    for number, (x, y) in enumerate(layout.corners):
        parts += [f'<g transform="translate({x:.1f} {y:.1f})">', *_named(looked, number, layout)]
        parts += [f'<rect class="back" rx="3" {size}/>', under, *_coloured(looked, number, layout.scale), over, "</g>"]
    if layout.left_out:
        parts.append(f'<text class="soft" x="{_EDGE:g}" y="{layout.height - _EDGE:g}">{layout.left_out}</text>')
    return "\n".join([*filter(None, parts), "</svg>\n"])


def _embedded(picture: NDArray[np.uint8], size: str, mark: str) -> tuple[str, str, str]:
    """What stands under the colour, what over it, and what is defined once for all panels."""
    ink = _ink(picture)
    data = write_png(picture if ink is None else ink)
    name = f"picture-{hashlib.blake2b(data, digest_size=6).hexdigest()}-{mark}"
    inline = f"data:image/png;base64,{b64encode(data).decode()}"
    image = f'<image id="{name}" {size} preserveAspectRatio="none" href="{inline}"/>'
    if ink is None:
        return f'<use class="photo" href="#{name}"/>', "", f"<defs>{image}</defs>"
    mask = f'<mask id="ink-{name}" maskUnits="userSpaceOnUse" x="0" y="0" {size}>{image}</mask>'
    return "", f'<rect class="ink" {size} mask="url(#ink-{name})"/>', f"<defs>{mask}</defs>"


def _lines(looked: PictureAttention, scale: float) -> str:
    """Between the places, where there is no picture."""
    rows, columns = looked.shape
    lines = [f"M{n * scale:.1f} 0v{rows * scale:.1f}" for n in range(1, columns)]
    lines += [f"M0 {n * scale:.1f}h{columns * scale:.1f}" for n in range(1, rows)]
    return f'<path class="lines" d="{"".join(lines)}"/>'


def _named(looked: PictureAttention, number: int, layout: _Layout) -> Iterable[str]:
    label, _, _, share, _ = looks(looked)[number]
    yield f'<text class="token" y="-7">{escape(label)}</text>'
    yield f'<text class="soft share" x="{layout.across:.1f}" y="-7">{share:.2f}</text>'


def _coloured(looked: PictureAttention, number: int, scale: float) -> Iterable[str]:
    weights, token = looked.maps[number], escape(labels(looked.tokens)[number])
    down, across = (edges * scale for edges in looked.edges)
    peak = weights.max() or 1.0
    for row, column in np.argwhere(weights >= _WEAKEST * peak) if weights.any() else ():
        (top, bottom), (left, right) = down[row : row + 2], across[column : column + 2]
        yield (
            f'<rect class="place" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{bottom - top:.1f}" fill-opacity="{_STRONGEST * weights[row, column] / peak:.3f}">'
            f"<title>{token}: {weights[row, column]:.3f} at row {row + 1}, column {column + 1}</title></rect>"
        )


def in_html(looked: PictureAttention, *, most: int = MOST) -> str:
    """The pictures with what they mean, and where each token looked as a table."""
    written, untitled = without_controls(looked.title), replace(looked, title="")
    pieces = [
        '<p class="soft">One picture for each token that was written; ∎ is the end. The strongest colour is where it '
        "looked most, and the number is that place's share of all. Point at a place to see its own.</p>",
        f"<p><strong>{escape(written)}</strong></p>" if written else "",
        f'<figure class="wide" style="overflow:auto">{as_svg(untitled, width=_PAGE, most=most)}</figure>',
        f'<figure class="narrow" style="overflow:auto">{as_svg(untitled, width=_PHONE, most=most)}</figure>',
        f"<details><summary>As numbers</summary>{table_in_html(Table(COLUMNS, looks(looked)))}</details>",
    ]
    return "\n".join(filter(None, pieces))


def as_html(looked: PictureAttention, *, title: str = "Where it looked", most: int = MOST) -> str:
    """One page that fetches nothing: the pictures, and where each token looked as a table.

    >>> page = as_html(PictureAttention(None, ["x"], [[0.1, 0.2, 0.3, 0.4]], 2))
    >>> "<svg " in page, "<script" in page
    (True, False)
    """
    title = without_controls(title)
    return page(title, [f"<h1>{escape(title)}</h1>", in_html(looked, most=most)])


def as_png(path: str | os.PathLike[str], looked: PictureAttention, *, width: float = 900, most: int = MOST) -> None:
    """Write the picture that as_svg draws as a PNG with twice as many pixels; needs matplotlib."""
    layout = _laid_out(looked, width, most)
    named = labels(looked.tokens)
    high, wide = (size * layout.scale for size in looked.shape)
    with drawn(path, layout.width, layout.height, texts=[*named, looked.title]) as axes:
        if looked.title:
            axes.text(_EDGE, _EDGE + 12, layout.title, size=13 * POINT, weight="bold", color="#222")
        for number, (x, y) in enumerate(layout.corners):
            axes.imshow(_blended(looked, number), extent=(x, x + wide, y + high, y), aspect="auto")
            axes.text(x, y - 7, named[number], size=13 * POINT, weight="bold", color="#222")
            share = f"{looked.maps[number].max():.2f}"
            axes.text(x + layout.across, y - 7, share, size=11 * POINT, color="#5c5f66", ha="right")
        if layout.left_out:
            axes.text(_EDGE, layout.height - _EDGE, layout.left_out, size=11 * POINT, color="#5c5f66")


def _blended(looked: PictureAttention, number: int) -> NDArray[np.float64]:
    """(H, W, 3) from 0 to 1: paper or photo, colour on it, ink on that."""
    (height, width), (down, across) = looked.shape, looked.edges
    weights = looked.maps[number]
    rows, columns = (
        np.searchsorted(edges[1:-1], np.arange(size) + 0.5) for size, edges in ((height, down), (width, across))
    )
    strength = _STRONGEST * (weights / (weights.max() or 1.0))[rows][:, columns, None]
    ink = None if looked.picture is None else _ink(looked.picture)
    under = np.broadcast_to(np.array(_PAPER, float), (height, width, 3))
    if looked.picture is not None and ink is None:
        under = under * (1 - _FADED) + looked.picture.reshape(height, width, -1) * _FADED
    mixed: NDArray[np.float64] = under * (1 - strength) + np.array(_ONE) * strength
    if ink is not None:
        share = ink[:, :, None] / 255
        mixed = mixed * (1 - share) + np.array(_INK) * share
    return mixed / 255
