"""Forecasts beside what came: the end of a series is hidden from a model, which is asked to go on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.analysis import scene
from recurra.analysis.alignment import rounded
from recurra.analysis.page import table_in_html
from recurra.analysis.scene import Box, Path, Scene, Shape, Words, width_of
from recurra.text.visible import without_controls
from recurra.views.table import Table

BEFORE, READ, COLUMNS = 60, 1000, 3
"""Steps that are drawn before a forecast; that are read; columns that are drawn."""

PATHS = 100
"""Continuations that are drawn to tell how sure a model is."""

_EDGE, _LINE, _HIGH, _WIDE, _GAP = 12.0, 22.0, 110.0, 640.0, 18.0  # pixels


@dataclass(frozen=True, eq=False)
class Forecast:
    """A series before a moment, (T, d); what was said then and what came, (h, d); where 90 % of what is likely lies."""

    title: str
    columns: Sequence[str]
    before: NDArray[np.float64]
    said: NDArray[np.float64]
    came: NDArray[np.float64]
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None


def _scene(found: Forecast) -> Scene:
    title = without_controls(found.title)
    shapes: list[Shape] = [Words(title, _EDGE, _EDGE + 12, bold=True)]
    top = _EDGE + _LINE
    for column, name in list(enumerate(found.columns))[:COLUMNS]:
        shapes += _panel(found, column, without_controls(name), top + _LINE)
        top += _LINE + _HIGH + _GAP
    across = max(_WIDE + 2 * _EDGE + 70, width_of(title) + 2 * _EDGE)
    return Scene(across, top + _EDGE, shapes, f"Forecast and what came: {title}")


def _panel(found: Forecast, column: int, name: str, top: float) -> Iterable[Shape]:
    before, said, came = (each[:, column] for each in (found.before, found.said, found.came))
    band = [] if found.low is None or found.high is None else [found.low[:, column], found.high[:, column]]
    every = np.concatenate([before, said, came, *band])
    least, largest = float(np.nanmin(every)), float(np.nanmax(every))
    room = (largest - least) or 1.0
    steps = len(before) + len(came)

    def point(step: int, value: float) -> tuple[float, float]:
        return _EDGE + (step + 0.5) * _WIDE / steps, top + _HIGH - (value - least) / room * _HIGH

    yield Words(name, _EDGE, top - 7, bold=True)
    yield Box(_EDGE, top, _WIDE, _HIGH)
    for high, value in ((top + 9, largest), (top + _HIGH, least)):
        yield Words(f"{value:.4g}".replace("-", "−"), _EDGE + _WIDE + 6, high, size=11, colour="soft")
    begin = len(before)
    for number in range(len(said) if band else 0):
        (x, low), (_, high) = (point(begin + number, float(edge[number])) for edge in band)
        wide = _WIDE / steps
        yield Box(x - wide / 2, high, wide, max(low - high, 0.5), "less", 0.22, round=0)
    known = [point(step, float(value)) for step, value in enumerate([*before, *came])]
    yield Path(known, "soft", 1.5)
    yield Path([known[begin - 1], *(point(begin + n, float(value)) for n, value in enumerate(said))], "less", 2.5)
    for number, (one, other) in enumerate(zip(said, came, strict=True)):
        x = _EDGE + (begin + number) * _WIDE / steps
        title = f"{name}, {number + 1} ahead: said {one:.4g}, came {other:.4g}"
        yield Box(x, top, _WIDE / steps, _HIGH, strength=0.0, title=title, round=0)


def as_svg(found: Forecast) -> str:
    """A panel for each of the first columns: the series in gray, the forecast in orange; a step says its numbers.

    >>> line = np.arange(6.0)[:, None]
    >>> as_svg(Forecast("a", ["x"], line[:4], line[4:] + 1, line[4:])).count("<title>")
    2
    """
    return scene.as_svg(_scene(found))


def as_table(found: Forecast) -> Table:
    """A row for each step of the forecast."""
    rows = [
        [
            step + 1,
            *(float(each[step, column]) for column in range(len(found.columns)) for each in (found.said, found.came)),
        ]
        for step in range(len(found.said))
    ]
    return Table(["step", *(f"{name}, {what}" for name in found.columns for what in ("said", "came"))], rows)


def as_text(found: Forecast) -> str:
    """For the terminal.

    >>> line = np.arange(6.0)[:, None]
    >>> print(as_text(Forecast("a", ["x"], line[:4], line[4:] + 1, line[4:])))
    a
    step x, said x, came
    1     5.0000  4.0000
    2     6.0000  5.0000
    """
    return f"{without_controls(found.title)}\n{as_table(found).text()}"


def as_json(found: Forecast) -> dict[str, Any]:
    """For a program: the series before the forecast, what was said and what came, a row for each step."""
    return {
        "title": found.title,
        "columns": list(found.columns),
        "before": rounded(found.before),
        "said": rounded(found.said),
        "came": rounded(found.came),
        "low": None if found.low is None else rounded(found.low),
        "high": None if found.high is None else rounded(found.high),
    }


def as_png(path: str | os.PathLike[str], found: Forecast) -> None:
    """Write the picture that as_svg draws as a PNG; needs matplotlib."""
    scene.as_png(path, _scene(found))


def in_html(found: Forecast) -> str:
    """The picture with what it means, and the forecast as a table."""
    return (
        '<p class="soft">The end of the series was hidden: gray is what came, orange what was forecast, with the shade '
        "in which 90 % of what is likely lies, where the model knows how sure it is. Point at a step for its "
        "numbers.</p>"
        f'<figure style="overflow:auto">{as_svg(found)}</figure><details><summary>As numbers</summary>'
        f"{table_in_html(as_table(found))}</details>"
    )
