"""A picture as a list of shapes, drawn alike as SVG, for light and dark screens, and as PNG."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from typing import Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from recurra.analysis.canvas import POINT, drawn
from recurra.text.visible import columns

Colour: TypeAlias = Literal["ink", "soft", "paper", "panel", "line", "more", "less"]

# Blue and orange are told apart by all eyes (Okabe and Ito 2008).
COLOURS: dict[Colour, tuple[str, str]] = {
    "ink": ("#222222", "#e4e4e4"),
    "soft": ("#5c5f66", "#a0a4ac"),
    "paper": ("#ffffff", "#16181c"),
    "panel": ("#f2f4f7", "#22252b"),
    "line": ("#c9ccd2", "#4a4e57"),
    "more": ("#0072b2", "#56b4e9"),
    "less": ("#d55e00", "#f08a3c"),
}
"""Of each colour, that on a light and on a dark screen."""

LETTER = 8.2 / 13
"""About the mean width of a letter, in its size."""

LEVELS = 16
"""So many strengths of a colour are told apart in cells."""


class Box(NamedTuple):
    """A rectangle; `title` is shown where it is pointed at. With an outline it is drawn around, dashed if so wanted."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour = "panel"
    strength: float = 1.0
    title: str = ""
    outline: Colour | None = None
    dashed: bool = False
    step: int | None = None
    round: float = 3.0  # of the corners


class Path(NamedTuple):
    """A line through points; as a curve, from side to side through the first and the last."""

    points: Sequence[tuple[float, float]]
    colour: Colour = "ink"
    width: float = 1.5
    dashed: bool = False
    curved: bool = False
    step: int | None = None


class Words(NamedTuple):
    """A text at a place; slanted ones rise to the right."""

    text: str
    x: float
    y: float
    anchor: Literal["start", "middle", "end"] = "start"
    size: float = 13
    bold: bool = False
    slanted: bool = False
    colour: Colour = "ink"
    step: int | None = None


class Cells(NamedTuple):
    """A grid of numbers from -1 to 1: blue above 0, orange below, the paler the nearer to it."""

    x: float
    y: float
    width: float  # of a cell
    height: float
    values: NDArray[np.float64]


Shape: TypeAlias = Box | Path | Words | Cells


class Scene(NamedTuple):
    """A picture of so many pixels, and what it shows in words."""

    width: float
    height: float
    shapes: Sequence[Shape]
    label: str


def width_of(text: str, size: float = 13) -> float:
    """About how many pixels a text takes."""
    return columns(text) * LETTER * size


def _style() -> str:
    light, dark = ("".join(f"--{name}:{pair[way]};" for name, pair in COLOURS.items()) for way in (0, 1))
    return (
        f".scene{{{light}max-width:none}}@media screen and (prefers-color-scheme:dark){{.scene{{{dark}}}}}"
        ".scene text{font-family:system-ui,sans-serif}.scene .pointed:hover{stroke:var(--ink);stroke-width:1.5}"
    )


def as_svg(scene: Scene) -> str:
    """The picture as SVG.

    >>> as_svg(Scene(9, 9, [Box(1, 1, 5, 5, title="<b>")], "a box")).count("<title>&lt;b&gt;</title>")
    1
    """
    size = f'width="{scene.width:.0f}" height="{scene.height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="scene" role="img" aria-label={quoteattr(scene.label)} '
        f'viewBox="0 0 {scene.width:.0f} {scene.height:.0f}" {size}>',
        f"<style>{_style()}</style>",
        f'<rect {size} style="fill:var(--paper)"/>',
        *(line for shape in scene.shapes for line in _in_svg(shape)),
    ]
    return "\n".join([*parts, "</svg>\n"])


def _in_svg(shape: Shape) -> Iterable[str]:
    if isinstance(shape, Cells):
        yield from _cells_in_svg(shape)
        return
    step = "" if shape.step is None else f' data-step="{shape.step}"'
    if isinstance(shape, Box):
        around = "" if shape.outline is None else f";stroke:var(--{shape.outline})"
        around += ";stroke-dasharray:3 3" if shape.dashed else ""
        look = ' class="pointed"' if shape.title else ""
        title = f"<title>{escape(shape.title)}</title>" if shape.title else ""
        yield (
            f'<rect{look}{step} x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" '
            f'height="{shape.height:.1f}" rx="{shape.round:g}" fill-opacity="{shape.strength:.3f}" '
            f'style="fill:var(--{shape.colour}){around}">{title}</rect>'
        )
    elif isinstance(shape, Path):
        if shape.curved:
            (x, y), (right, down) = shape.points[0], shape.points[-1]
            middle = (x + right) / 2
            course = f"M{x:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {down:.1f} {right:.1f} {down:.1f}"
        else:
            course = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in shape.points)
        dashes = ";stroke-dasharray:3 3" if shape.dashed else ""
        yield (
            f'<path{step} d="{course}" style="fill:none;stroke:var(--{shape.colour});stroke-width:{shape.width:g}'
            f'{dashes}"/>'
        )
    else:
        place = f'x="{shape.x:.1f}" y="{shape.y:.1f}"'
        if shape.slanted:
            place = f'transform="translate({shape.x:.1f} {shape.y:.1f}) rotate(-45)"'
        weight = ' font-weight="600"' if shape.bold else ""
        yield (
            f'<text{step} {place} text-anchor="{shape.anchor}" font-size="{shape.size:g}"{weight} '
            f'style="fill:var(--{shape.colour})">{escape(shape.text)}</text>'
        )


def _cells_in_svg(cells: Cells) -> Iterable[str]:
    """One path for all cells of a strength: a rectangle for each would make a page of many megabytes."""
    rows, across = cells.values.shape
    yield (
        f'<rect x="{cells.x:.1f}" y="{cells.y:.1f}" width="{across * cells.width:.1f}" '
        f'height="{rows * cells.height:.1f}" style="fill:var(--panel)"/>'
    )
    levels = np.rint(cells.values.clip(-1, 1) * LEVELS).astype(int)
    for level in np.unique(levels[levels != 0]):
        course = "".join(
            f"M{cells.x + column * cells.width:.1f} {cells.y + row * cells.height:.1f}"
            f"h{cells.width:.2f}v{cells.height:.2f}h-{cells.width:.2f}z"
            for row, column in np.argwhere(levels == level)
        )
        colour = "more" if level > 0 else "less"
        look = f'fill-opacity="{abs(level) / LEVELS:.3f}" style="fill:var(--{colour})" shape-rendering="crispEdges"'
        yield f'<path d="{course}" {look}/>'


def as_png(path: str | os.PathLike[str], scene: Scene) -> None:
    """Write the picture as a PNG with twice as many pixels; needs matplotlib."""
    texts = [shape.text for shape in scene.shapes if isinstance(shape, Words)]
    with drawn(path, scene.width, scene.height, texts=texts) as axes:
        from matplotlib.patches import FancyBboxPatch, PathPatch
        from matplotlib.path import Path as Course

        for shape in scene.shapes:
            if isinstance(shape, Cells):
                rows, across = shape.values.shape
                edges = [
                    shape.x + shape.width * np.arange(across + 1),
                    shape.y + shape.height * np.arange(rows + 1),
                ]
                axes.pcolormesh(*edges, _blended(shape.values))
                continue
            if isinstance(shape, Words):
                where = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
                text = axes.text(shape.x, shape.y, shape.text, size=shape.size * POINT, ha=where)
                text.set(color=COLOURS[shape.colour][0], weight="bold" if shape.bold else "normal")
                text.set(rotation=45 if shape.slanted else 0, rotation_mode="anchor")
                continue
            dashes = (0, (3, 3)) if shape.dashed else "solid"
            if isinstance(shape, Path):
                (x, y), (right, down) = shape.points[0], shape.points[-1]
                middle = (x + right) / 2
                course = (
                    Course([(x, y), (middle, y), (middle, down), (right, down)], [1, 4, 4, 4])
                    if shape.curved
                    else Course(list(shape.points))
                )
                line = PathPatch(course, fill=False, edgecolor=COLOURS[shape.colour][0], linewidth=shape.width * POINT)
                line.set_linestyle(dashes)  # type: ignore[arg-type]  # its stubs know no pairs
                axes.add_patch(line)
                continue
            box = FancyBboxPatch(
                (shape.x + shape.round, shape.y + shape.round),
                max(0.0, shape.width - 2 * shape.round),
                max(0.0, shape.height - 2 * shape.round),
                boxstyle=f"round,pad={shape.round:g},rounding_size={shape.round:g}",
                linewidth=POINT,
            )
            red, green, blue = _numbers(shape.colour)
            box.set_facecolor((red, green, blue, shape.strength))
            box.set_edgecolor("none" if shape.outline is None else COLOURS[shape.outline][0])
            box.set_linestyle(dashes)  # type: ignore[arg-type]
            axes.add_patch(box)


def _numbers(colour: Colour) -> tuple[float, float, float]:
    """Red, green and blue, from 0 to 1, on paper."""
    red, green, blue = bytes.fromhex(COLOURS[colour][0][1:])
    return red / 255, green / 255, blue / 255


def _blended(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows, columns, 3): the colours of cells on paper."""
    under = np.array(_numbers("panel"))
    over = np.where(values[..., None] > 0, np.array(_numbers("more")), np.array(_numbers("less")))
    strength = np.abs(values.clip(-1, 1))[..., None]
    mixed: NDArray[np.float64] = under * (1 - strength) + over * strength
    return mixed
