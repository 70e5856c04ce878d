"""Gates over time as a picture: for each value a map of units by time, with the mean over all units above it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from recurra.analysis import scene
from recurra.analysis.alignment import labels
from recurra.analysis.gates import MOST, Gates
from recurra.analysis.page import page, table_in_html
from recurra.analysis.scene import Box, Cells, Path, Scene, Shape, Words, width_of
from recurra.text.visible import without_controls
from recurra.views.table import Table

_EDGE, _LINE, _CURVE, _GAP, _UNIT = 12.0, 22.0, 34.0, 24.0, 7.0  # pixels: around, a line, the curve, between, a unit
_SLIMMEST, _WIDEST = 9.0, 34.0  # of a step
_NARROWEST = 130.0  # of a panel, with its name
_SLANT = 0.7072  # sine and cosine of 45 degrees


def _scene(gates: Gates, width: float, most: int) -> Scene:
    """Panels beside each other where there is room, tokens above the first row of them."""
    tokens, units, title = labels(gates.tokens), gates.units(most), without_controls(gates.title)
    wide = min(_WIDEST, max(_SLIMMEST, (width - 2 * _EDGE) // len(tokens)))  # of whole pixels, or gaps are seen
    size = min(13.0, max(9.0, wide - 1))
    longest = max(width_of(token, size) for token in tokens)
    slanted = longest > wide - 2
    ends = [(n + 0.5) * wide + width_of(token, size) * (_SLANT if slanted else 0.5) for n, token in enumerate(tokens)]
    panel = math.ceil(max(_NARROWEST, wide * len(tokens), *ends))
    a_row = max(1, min(len(gates.values), int((width - 2 * _EDGE + _GAP) // (panel + _GAP))))
    rise = math.ceil(longest * _SLANT) + 14 if slanted else _LINE
    shapes: list[Shape] = [Words(title, _EDGE, _EDGE + 12, bold=True)]
    top = _EDGE + _LINE + _LINE + rise
    names = list(gates.values)
    for row in range(0, len(names), a_row):
        some = names[row : row + a_row]
        for place, name in enumerate(some):
            left = _EDGE + place * (panel + _GAP)
            if row == 0:
                shapes += _axis(tokens, left, top, wide, size, slanted)
            shapes += _panel(gates, name, gates.values[name][units[name]], left, top, wide, rise if row == 0 else 0)
        top += _CURVE + 4 + _UNIT * max(len(units[name]) for name in some) + _GAP + _LINE
    across = max(a_row * (panel + _GAP) - _GAP, width_of(title)) + 2 * _EDGE
    return Scene(across, top - _GAP - _LINE + _EDGE, shapes, f"Gates over time, {title}: {' '.join(tokens)}")


def _axis(tokens: Sequence[str], left: float, top: float, wide: float, size: float, slanted: bool) -> Iterable[Shape]:
    for number, token in enumerate(tokens):
        x = left + (number + 0.5) * wide
        yield Words(token, x - 1 if slanted else x, top - 6, "start" if slanted else "middle", size, slanted=slanted)


def _panel(
    gates: Gates, name: str, chosen: NDArray[np.float64], left: float, top: float, wide: float, rise: float
) -> Iterable[Shape]:
    values, means = gates.values[name], gates.means[name]
    limit, tokens = limit_of(chosen), labels(gates.tokens)
    lowest = -limit if values.min() < 0 else 0.0
    bottom = top + _CURVE
    beyond = " and beyond" if np.abs(chosen).max() > limit else ""

    def height(value: float) -> float:
        return bottom - (min(max(value, lowest), limit) - lowest) / (limit - lowest) * _CURVE

    yield Words(name, left, top - rise - 7, bold=True)
    said = f"{lowest:.3g} to {limit:.3g}{beyond}".replace("-", "−")
    yield Words(said, left + width_of(name) + 8, top - rise - 7, size=11, colour="soft")
    yield Box(left, top, wide * len(means), _CURVE)
    yield Path([(left, height(0.0)), (left + wide * len(means), height(0.0))], "line", 1)
    curve = [(left + (n + 0.5) * wide, height(mean)) for n, mean in enumerate(means)]
    yield Path(curve if len(curve) > 1 else [(left, curve[0][1]), (left + wide, curve[0][1])], "more", 2)
    yield Cells(left, bottom + 4, wide, _UNIT, chosen / limit)
    deep = _CURVE + 4 + _UNIT * len(chosen)
    for number, (token, mean) in enumerate(zip(tokens, means, strict=True)):
        low, high = values[:, number].min(), values[:, number].max()
        said = f"{name} at {token}: mean {mean:.3f}, from {low:.3f} to {high:.3f}"
        yield Box(left + number * wide, top, wide, deep, strength=0.0, title=said)


def limit_of(values: NDArray[np.float64]) -> float:
    """What the strongest colour stands for: 1, or more where values that large are not rare.

    >>> limit_of(np.array([0.2, -0.9])), limit_of(np.arange(101.0))
    (1.0, 95.0)
    """
    return max(1.0, float(np.quantile(np.abs(values), 0.95)))


def as_svg(gates: Gates, *, width: float = 900, most: int = MOST) -> str:
    """A panel for each value; a step that is pointed at shows its mean and range.

    >>> as_svg(Gates(["a", "b"], {"z": np.array([[0.0, 1.0]])}, "GRU")).count("<title>")
    2
    """
    return scene.as_svg(_scene(gates, width, most))


def in_html(gates: Gates, *, most: int = MOST) -> str:
    """The picture with what it means, and the means as a table."""
    units = max(map(len, gates.values.values()))
    few = f" Of {units} units, the {most} that change most are drawn; means are over all." if units > most else ""
    rows = [[token, *map(float, row)] for token, *row in zip(labels(gates.tokens), *gates.means.values(), strict=True)]
    table = table_in_html(Table(["token", *gates.values], rows))
    return (
        '<p class="soft">Time goes to the right, a line is a unit: blue above 0, orange below, stronger if larger. '
        f"The curve is the mean over all units. Point at a step for its numbers.{few}</p>"
        f'<figure style="overflow:auto">{as_svg(gates, width=860, most=most)}</figure>'
        f"<details><summary>Means as numbers</summary>{table}</details>"
    )


def as_html(gates: Gates, *, title: str = "Gates over time", most: int = MOST) -> str:
    """One page that fetches nothing."""
    return page(title, [f"<h1>{escape(without_controls(title))}</h1>", in_html(gates, most=most)])


def as_png(path: str | os.PathLike[str], gates: Gates, *, width: float = 900, most: int = MOST) -> None:
    """Write the picture that as_svg draws as a PNG; needs matplotlib."""
    scene.as_png(path, _scene(gates, width, most))
