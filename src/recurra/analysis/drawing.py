"""Lines, bars and words in pixels, y downwards, written as SVG or as PNG: the same picture both ways."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from recurra.analysis.canvas import POINT, drawn

Look = Literal["ink", "grid", "one", "two", "three", "four", "faint"]


class Line(NamedTuple):
    points: Sequence[tuple[float, float]]
    look: Look
    told: str = ""  # shown when it is pointed at


class Dot(NamedTuple):
    x: float
    y: float
    look: Look
    told: str = ""


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    look: Look
    told: str = ""


class Words(NamedTuple):
    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False


Mark: TypeAlias = Line | Dot | Bar | Words

# Okabe and Ito's colours, which people who see colours differently can tell apart: the darker ones on paper, the
# lighter ones on a dark screen. Lines differ by their dashes too, so that a picture may be printed without colours.
_LIGHT: dict[Look, str] = {
    **{"ink": "#222222", "grid": "#dddddd", "faint": "#8a8d93"},
    **{"one": "#0072b2", "two": "#d55e00", "three": "#009e73", "four": "#cc79a7"},
}
_DARK: dict[Look, str] = {
    **{"ink": "#dddddd", "grid": "#3a3d44", "faint": "#8a8d93"},
    **{"one": "#56b4e9", "two": "#e69f00", "three": "#2cc295", "four": "#e09fc4"},
}
_DASHES: dict[Look, tuple[float, ...]] = {"two": (8, 4), "three": (2, 4), "four": (10, 3, 2, 3), "faint": (1, 3)}
_THICK = {"ink": 1.0, "grid": 1.0, "faint": 1.25}


def style(name: str) -> str:
    """The style sheet of pictures of a class."""
    colours = [";".join(f"--{look}:{colour}" for look, colour in each.items()) for each in (_LIGHT, _DARK)]
    lines = "".join(
        f".{name} .{look}{{stroke:var(--{look});stroke-width:{_THICK.get(look, 1.75):g}"
        + (f";stroke-dasharray:{' '.join(f'{size:g}' for size in _DASHES[look])}" if look in _DASHES else "")
        + "}"
        for look in _LIGHT
    )
    fills = "".join(f".{name} rect.{look}{{fill:var(--{look});stroke:none}}" for look in _LIGHT)
    return (
        f".{name}{{{colours[0]};--paper:#fff;color:var(--ink)}}"
        f"@media screen and (prefers-color-scheme:dark){{.{name}{{{colours[1]};--paper:#16181c}}}}"
        f".{name} text{{font:12px system-ui,sans-serif;fill:currentColor}}.{name} .name{{font-weight:600}}"
        f".{name} path{{fill:none;stroke-linejoin:round;stroke-linecap:round}}{lines}{fills}"
        f".{name} circle{{fill:var(--paper);stroke-dasharray:none!important}}"
    )


def as_svg(marks: Iterable[Mark], width: float, height: float, *, label: str, name: str = "marks") -> str:
    """A picture that needs no script and fetches nothing, for light and dark screens.

    >>> picture = as_svg([Line([(0, 0), (9, 9)], "one"), Words(1, 2, "a < b")], 10, 10, label="two")
    >>> "a &lt; b" in picture, 'd="M0.0 0.0L9.0 9.0"' in picture
    (True, True)
    """
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" role="img" aria-label={quoteattr(label)} '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">',
        f"<title>{escape(label)}</title>\n<style>{style(name)}</style>",
        f'<rect width="{width:g}" height="{height:g}" style="fill:var(--paper)"/>',
        *map(_svg, marks),
    ]
    return "\n".join([*parts, "</svg>\n"])


def _svg(mark: Mark) -> str:
    if isinstance(mark, Words):
        look = ' class="name"' if mark.bold else ""
        place = f'x="{mark.x:.1f}" y="{mark.y:.1f}" text-anchor="{mark.anchor}"'
        return f"<text{look} {place}>{escape(mark.text)}</text>"
    told = f"<title>{escape(mark.told)}</title>" if mark.told else ""
    if isinstance(mark, Line):
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in mark.points)
        return f'<path class="{mark.look}" d="M{path}">{told}</path>'
    if isinstance(mark, Dot):
        return f'<circle class="{mark.look}" cx="{mark.x:.1f}" cy="{mark.y:.1f}" r="3">{told}</circle>'
    place = f'x="{mark.x:.1f}" y="{mark.y:.1f}" width="{mark.width:.1f}" height="{mark.height:.1f}"'
    return f'<rect class="{mark.look}" {place}>{told}</rect>'


def as_png(
    path: str | os.PathLike[str], marks: Sequence[Mark], width: float, height: float, *, scale: float = 2.0
) -> None:
    """Write the picture that as_svg draws, as on paper, with `scale` times as many pixels; needs matplotlib."""
    texts = [mark.text for mark in marks if isinstance(mark, Words)]
    sides = {"start": "left", "middle": "center", "end": "right"}
    with drawn(path, width, height, texts=texts, scale=scale) as axes:
        for mark in marks:
            if isinstance(mark, Words):
                weight = "bold" if mark.bold else "normal"
                where = sides[mark.anchor]
                axes.text(mark.x, mark.y, mark.text, size=12 * POINT, ha=where, color="#222", weight=weight)
                continue
            colour, thick = _LIGHT[mark.look], _THICK.get(mark.look, 1.75)
            if isinstance(mark, Line):
                dashes = tuple(size / thick for size in _DASHES.get(mark.look, ()))
                across, down = zip(*mark.points, strict=True)
                how = (0, dashes) if dashes else "-"
                axes.plot(across, down, color=colour, linewidth=thick * POINT, linestyle=how)
            elif isinstance(mark, Dot):
                [dot] = axes.plot([mark.x], [mark.y], "o", markerfacecolor="white", markeredgecolor=colour)
                dot.set(markeredgewidth=thick * POINT, markersize=6 * POINT)
            else:
                edges = [mark.x, mark.x + mark.width]
                axes.fill_between(edges, mark.y, mark.y + mark.height, color=colour, linewidth=0)
