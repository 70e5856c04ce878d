"""Scene: a picture as a list of shapes in pixels, y downwards. svg.py and png.py draw it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.text.visible import columns

# fmt: off
Colour: TypeAlias = Literal[
    "ink", "soft", "faint", "paper", "panel", "line", "grid",  # what is written, and what it is written on
    "more", "less", "look",  # above 0, below 0, where attention is
    "one", "two", "three", "four", "five",  # of curves
]
# fmt: on

# Okabe and Ito's colours (2008), which people who see colours differently can tell apart.
COLOURS: dict[Colour, tuple[str, str]] = {
    "ink": ("#222222", "#e4e4e4"),
    "soft": ("#5c5f66", "#a0a4ac"),
    "faint": ("#8a8d93", "#8a8d93"),
    "paper": ("#ffffff", "#16181c"),
    "panel": ("#f2f4f7", "#22252b"),
    "line": ("#c9ccd2", "#4a4e57"),
    "grid": ("#dddddd", "#3a3d44"),
    "more": ("#0072b2", "#56b4e9"),
    "less": ("#d55e00", "#f08a3c"),
    "look": ("#e8710a", "#f08a24"),
    "one": ("#0072b2", "#56b4e9"),
    "two": ("#d55e00", "#e69f00"),
    "three": ("#009e73", "#2cc295"),
    "four": ("#cc79a7", "#e09fc4"),
    "five": ("#5b6470", "#a0a4ac"),
}
"""Each colour on a light and on a dark screen."""

LETTER = 8.2 / 13
"""The mean width of a letter, as a share of its size."""

LEVELS = 16
"""The number of strengths of a colour that Cells tell apart."""


class Box(NamedTuple):
    """A rectangle; `title` is shown when it is pointed at, and so is `number`, in its middle.

    The labels whose names it `lights` stand out while it is pointed at. With an outline, a line is drawn around it.
    """

    x: float
    y: float
    width: float
    height: float
    colour: Colour = "panel"
    strength: float = 1.0
    title: str = ""
    outline: Colour | None = None
    dashed: bool = False
    step: int | None = None  # of a search: parts with a step can be hidden until it is played
    round: float = 3.0  # of the corners
    number: str = ""
    lights: tuple[str, ...] = ()


class Path(NamedTuple):
    """A line through points; as a curve, from side to side through the first and the last; filled, the area inside."""

    points: Sequence[tuple[float, float]]
    colour: Colour = "ink"
    width: float = 1.5
    dashes: tuple[float, ...] = ()
    curved: bool = False
    step: int | None = None
    strength: float = 1.0
    filled: bool = False
    title: str = ""


class Circle(NamedTuple):
    """A dot: a ring of a colour, or a disk of it."""

    x: float
    y: float
    radius: float = 3.0
    colour: Colour = "ink"
    filled: bool = False
    title: str = ""


class Label(NamedTuple):
    """A text at a place; slanted texts rise to the right."""

    text: str
    x: float
    y: float
    anchor: Literal["start", "middle", "end"] = "start"
    size: float = 13
    bold: bool = False
    slanted: bool = False
    colour: Colour = "ink"
    step: int | None = None
    name: str = ""


class Cells(NamedTuple):
    """A grid of numbers from -1 to 1: blue above 0, orange below, the paler the nearer to it."""

    x: float
    y: float
    width: float  # of a cell
    height: float
    values: NDArray[np.float64]


class Image(NamedTuple):
    """Pixels (H, W) or (H, W, C); as ink, (H, W) says how much of the ink's colour is where."""

    x: float
    y: float
    width: float
    height: float
    pixels: NDArray[np.uint8]
    is_ink: bool = False
    strength: float = 1.0


SceneShape: TypeAlias = Box | Path | Circle | Label | Cells | Image


class Scene(NamedTuple):
    """A picture of so many pixels, and what it shows in words."""

    width: float
    height: float
    shapes: Sequence[SceneShape]
    label: str


def width_of(text: str, size: float = 13) -> float:
    """About how many pixels a text takes."""
    return columns(text) * LETTER * size


def moved(shape: SceneShape, right: float, down: float) -> SceneShape:
    """The same shape elsewhere.

    >>> moved(Label("a", 1, 2), 10, 20)[:3]
    ('a', 11, 22)
    """
    if isinstance(shape, Path):
        return shape._replace(points=[(x + right, y + down) for x, y in shape.points])
    return shape._replace(x=shape.x + right, y=shape.y + down)


def _renamed(shape: SceneShape, prefix: str) -> SceneShape:
    """The same shape, with names of its own that no other scene of the picture has."""
    if isinstance(shape, Label) and shape.name:
        return shape._replace(name=prefix + shape.name)
    if isinstance(shape, Box) and shape.lights:
        return shape._replace(lights=tuple(prefix + name for name in shape.lights))
    return shape


def together(scenes: Sequence[Scene], width: float, *, gap: float = 4.0) -> Scene:
    """One picture of several: from left to right, and on in the next row where the width is used up.

    >>> box = Scene(40, 30, [Box(0, 0, 40, 30)], "a box")
    >>> found = together([box, box, box], 100, gap=10)
    >>> found.width, found.height, [(shape.x, shape.y) for shape in found.shapes]
    (90.0, 70.0, [(0.0, 0.0), (50.0, 0.0), (0.0, 40.0)])
    """
    shapes: list[SceneShape] = []
    left = top = across = bottom = 0.0
    for number, scene in enumerate(scenes):
        if left and left + scene.width > width:
            left, top = 0.0, bottom + gap
        shapes += [_renamed(moved(shape, left, top), f"{number}-") for shape in scene.shapes]
        across, bottom = max(across, left + scene.width), max(bottom, top + scene.height)
        left += scene.width + gap
    return Scene(across, bottom, shapes, "; ".join(scene.label for scene in scenes))
