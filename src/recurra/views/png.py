"""Writes a scene as PNG by matplotlib: the same shapes at the same places as in its SVG, in the colours of paper."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError, DataError
from recurra.text.visible import without_controls
from recurra.views.scene import COLOURS, Box, Cells, Circle, Colour, Image, Label, Path, Scene, SceneShape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINT = 0.72  # of a pixel of ours: matplotlib's letters are measured in points of 1/72 inch, and an inch is 100 pixels
LARGEST = 12_000  # pixels of a side


def as_png(path: str | os.PathLike[str], scene: Scene, *, scale: float = 2.0) -> None:
    """Write the picture with `scale` times as many pixels, fewer where a side would have more than 12,000."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError(
            f"'{path}' needs matplotlib to be drawn: run pip install 'recurra[plot]', or write "
            f"an .svg or .html file, which needs no extra package."
        ) from error
    import matplotlib

    # Letters that the usual font lacks are taken from other fonts of this machine; what none has is a box.
    texts = [shape.text for shape in scene.shapes if isinstance(shape, Label)]
    fonts = ["DejaVu Sans", *_fonts({letter for text in texts for letter in text})]
    with matplotlib.rc_context({"font.family": fonts, "text.parse_math": False}), _quiet():
        width, height = round(scene.width), round(scene.height)
        scale = min(scale, LARGEST / width, LARGEST / height)
        figure = Figure(figsize=(width / 100, height / 100), dpi=100 * scale, facecolor=COLOURS["paper"][0])
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
        axes.set_axis_off()
        axes.set_autoscale_on(False)
        for order, shape in enumerate(scene.shapes):
            _DRAW[type(shape)](axes, shape, order)
        try:
            FigureCanvasAgg(figure)
            figure.savefig(pathlib.Path(path), format="png")
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror}.") from error


def _box(axes: Axes, box: Box, order: int) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    if not box.strength and box.outline is None:  # only there to be pointed at
        return
    look: dict[str, Any] = {
        "facecolor": (*_numbers(box.colour), min(1.0, box.strength)),
        "edgecolor": "none" if box.outline is None else COLOURS[box.outline][0],
        "linewidth": POINT,
        "linestyle": (0, (3, 3)) if box.dashed else "solid",
        "zorder": order,
    }
    if not box.round:
        axes.add_artist(Rectangle((box.x, box.y), box.width, box.height, **look))
        return
    wide, high = (max(0.0, size - 2 * box.round) for size in (box.width, box.height))
    style = f"round,pad={box.round:g},rounding_size={box.round:g}"
    axes.add_artist(FancyBboxPatch((box.x + box.round, box.y + box.round), wide, high, boxstyle=style, **look))


def _path(axes: Axes, path: Path, order: int) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Course

    (x, y), (right, down) = path.points[0], path.points[-1]
    middle = (x + right) / 2
    course = (
        Course([(x, y), (middle, y), (middle, down), (right, down)], [1, 4, 4, 4])
        if path.curved
        else Course(list(path.points))
    )
    dashes: Any = (0, tuple(size / max(path.width, 1e-6) for size in path.dashes)) if path.dashes else "solid"
    colour = (*_numbers(path.colour), path.strength)
    axes.add_artist(
        PathPatch(
            course,
            facecolor=colour if path.filled else "none",
            edgecolor="none" if path.filled else colour,
            linewidth=0.0 if path.filled else path.width * POINT,
            linestyle=dashes,
            capstyle="round",
            joinstyle="round",
            zorder=order,
        )
    )


def _circle(axes: Axes, circle: Circle, order: int) -> None:
    from matplotlib.patches import Circle as Disk

    colour = COLOURS[circle.colour][0]
    fill = colour if circle.filled else COLOURS["paper"][0]
    axes.add_artist(
        Disk(
            (circle.x, circle.y),
            circle.radius,
            facecolor=fill,
            edgecolor=colour,
            linewidth=1.75 * POINT,
            zorder=order,
        )
    )


def _label(axes: Axes, label: Label, order: int) -> None:
    where = {"start": "left", "middle": "center", "end": "right"}[label.anchor]
    text = axes.text(label.x, label.y, without_controls(label.text), size=label.size * POINT, ha=where, zorder=order)
    text.set(color=COLOURS[label.colour][0], weight="bold" if label.bold else "normal")
    text.set(rotation=45 if label.slanted else 0, rotation_mode="anchor")


def _cells(axes: Axes, cells: Cells, order: int) -> None:
    rows, across = cells.values.shape
    edges = [cells.x + cells.width * np.arange(across + 1), cells.y + cells.height * np.arange(rows + 1)]
    axes.pcolormesh(*edges, _blended(cells.values), zorder=order)


def _image(axes: Axes, image: Image, order: int) -> None:
    height, width = image.pixels.shape[:2]
    shown = np.empty((height, width, 4))
    if image.is_ink:
        shown[:] = (*_numbers("ink"), 0.0)
        shown[..., 3] = image.pixels.reshape(height, width) / 255 * image.strength
    else:
        shown[..., :3] = image.pixels.reshape(height, width, -1) / 255
        shown[..., 3] = image.strength
    extent = (image.x, image.x + image.width, image.y + image.height, image.y)
    axes.imshow(shown, extent=extent, aspect="auto", zorder=order)


_DRAW: dict[type[SceneShape], Callable[[Axes, Any, int], None]] = {
    Box: _box,
    Path: _path,
    Circle: _circle,
    Label: _label,
    Cells: _cells,
    Image: _image,
}


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


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences warnings about letters that no font has, and fonts without bold letters."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _fonts(letters: Iterable[str]) -> list[str]:
    """Families of this machine that have the letters which DejaVu Sans lacks."""
    from matplotlib.font_manager import findfont, fontManager

    missing = {ord(letter) for letter in letters if letter.isprintable() and ord(letter) > 0x2FF}
    missing -= _letters_of(findfont("DejaVu Sans")) if missing else set()
    found = []
    for font in fontManager.ttflist if missing else ():
        if font.style == "normal" and "Last Resort" not in font.name and (more := missing & _letters_of(font.fname)):
            found.append(font.name)
            missing -= more
    return found


@cache
def _letters_of(path: str) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(get_font(path).get_charmap())
    except (OSError, RuntimeError):  # a font file that cannot be read has no letters for us
        return frozenset()
