"""Scores by length, of one run or of several side by side: whether long inputs are harder, and for whom."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from recurra.analysis.canvas import POINT, drawn
from recurra.analysis.curves import Axis
from recurra.errors import DataError
from recurra.text.visible import columns, without_controls
from recurra.views.table import Table

# Okabe and Ito's colours, as in the learning curves: for paper, and for a dark screen.
_LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#5b6470")
_DARK = ("#56b4e9", "#e69f00", "#2cc295", "#e09fc4", "#a0a4ac")
_DASHES = ("", "7 4", "2 4", "10 3 2 3")  # a line differs from the others without colours too
_STYLE = """
.lengths{--ink:#222;--paper:#fff;--grid:#ddd;--bar:#e3e6ea;color:var(--ink)}
@media screen and (prefers-color-scheme:dark){.lengths{--ink:#ddd;--paper:#16181c;--grid:#3a3d44;--bar:#33373e}}
.lengths text{font:12px system-ui,sans-serif;fill:currentColor}
.lengths .name{font-weight:600}
.lengths path{fill:none;stroke:currentColor;stroke-width:1}
.lengths .grid{stroke:var(--grid)}
.lengths .bar{fill:var(--bar)}
.lengths .run{stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.lengths circle{fill:var(--paper);stroke-width:2}
"""
_LETTER = 7.4  # pixels: about the mean width of a letter at 12 pixels
_LEFT, _RIGHT, _STRIP = 56.0, 16.0, 52.0  # pixels: beside the lines, and of the bars below them


@dataclass(frozen=True)
class ByLength:
    """The scores of runs in the same buckets of lengths, with the items of each bucket; NaN: not known.

    >>> ByLength(["1-9", "10-19"], [40, 60], {"with": [31.5, 30.0], "without": [30.5, 21.0]}, score="bleu").runs["with"]
    [31.5, 30.0]
    """

    buckets: Sequence[str]
    items: Sequence[int]
    runs: Mapping[str, Sequence[float]]
    score: str = "score"
    axis: str = "source length"

    def __post_init__(self) -> None:
        if not self.buckets or not self.runs:
            raise DataError("scores by length need at least one bucket and one run.")
        for name, values in {"the items": self.items, **self.runs}.items():
            if len(values) != len(self.buckets):
                raise DataError(
                    f"scores by length have {len(self.buckets)} buckets, but {name} has {len(values)} values."
                )

    @classmethod
    def of(cls, tables: Mapping[str, Table], score: str) -> ByLength:
        """From each run's table "by length", as evaluation gives it, the column of one score.

        >>> table = Table(["source length", "items", "bleu"], [["1-9", 40, 31.5], ["10-19", 60, 30.0]])
        >>> ByLength.of({"attention": table}, "bleu").items
        [40, 60]
        """
        first = next(iter(tables.values()), Table([], []))
        for name, table in tables.items():
            if score not in table.columns[2:]:
                known = ", ".join(table.columns[2:])
                raise DataError(f"the scores by length of {name} have no {score}. Known: {known}.")
            if [row[:2] for row in table.rows] != [row[:2] for row in first.rows]:
                raise DataError(
                    f"{name} has other buckets of lengths than {next(iter(tables))}: lengths are compared on the same "
                    f"data, cut into tokens in the same way."
                )
        return cls(
            [str(row[0]) for row in first.rows],
            [int(row[1]) for row in first.rows],
            {name: [float(row[table.columns.index(score)]) for row in table.rows] for name, table in tables.items()},
            score=score,
        )


def as_text(by: ByLength) -> str:
    """A table with a row per bucket.

    >>> print(as_text(ByLength(["1-9", "10-19"], [40, 60], {"with": [0.5, 0.25], "without": [0.5, 0.125]})))
    length items   with without
    1-9       40 0.5000  0.5000
    10-19     60 0.2500  0.1250
    """
    rows = [[*row[:2], *map(float, row[2:])] for row in zip(by.buckets, by.items, *by.runs.values(), strict=True)]
    return Table(["length", "items", *map(without_controls, by.runs)], rows).text()


class _Words(NamedTuple):
    x: float
    y: float
    text: str
    anchor: str  # start, middle or end
    look: str = ""


class _Run(NamedTuple):
    name: str
    place: int
    sample: tuple[float, float]  # where its line in the legend begins
    points: Sequence[tuple[float, float, float]]  # x, y, score


class _Plot(NamedTuple):
    """Where everything lies, in pixels, y downwards."""

    width: int
    height: int
    words: Sequence[_Words]
    grid: Sequence[float]  # y
    top: float
    bottom: float
    bars: Sequence[tuple[float, float, float, float]]  # x, y, width, height
    runs: Sequence[_Run]


def _laid_out(by: ByLength, width: int, height: int) -> _Plot:
    across = width - _LEFT - _RIGHT
    words = [_Words(_LEFT, 18, without_controls(by.score), "start", "name")]
    samples: list[tuple[float, float]] = []
    x, y = _LEFT + _LETTER * columns(by.score) + 24, 14.0
    for name in by.runs:
        size = 48 + _LETTER * columns(name)
        if x + size > width and samples:
            x, y = _LEFT, y + 20
        samples.append((x, y))
        words.append(_Words(x + 34, y + 4, without_controls(name), "start"))
        x += size
    height += round(y - 14)  # a long legend does not press the lines together
    top, foot = y + 16, height - 38.0
    bottom = foot - _STRIP
    known = [value for values in by.runs.values() for value in values if math.isfinite(value)]
    up = Axis.around(known or [0.0], bottom - top, margin=0.1)
    ticks = [(bottom - up.place(tick), text) for tick, text in up.ticks(max(5, int(up.pixels / 34)))]
    words += [_Words(_LEFT - 8, place + 4, text, "end") for place, text in ticks]
    step = across / len(by.buckets)
    middles = [_LEFT + (n + 0.5) * step for n in range(len(by.buckets))]
    bars = []
    for middle, items, label in zip(middles, by.items, by.buckets, strict=True):
        size = (_STRIP - 24) * items / max(*by.items, 1)
        bars.append((middle - min(step, 60) * 0.35, foot - size, min(step, 60) * 0.7, size))
        words += [
            _Words(middle, foot - size - 4, f"{items:,}", "middle"),
            _Words(middle, foot + 15, without_controls(label), "middle"),
        ]
    words += [_Words(width - _RIGHT, height - 6, by.axis, "end"), _Words(_LEFT - 8, foot, "items", "end")]
    runs = [
        _Run(
            name,
            place,
            sample,
            [(x, bottom - up.place(v), v) for x, v in zip(middles, values, strict=True) if math.isfinite(v)],
        )
        for place, ((name, values), sample) in enumerate(zip(by.runs.items(), samples, strict=True))
    ]
    return _Plot(width, height, words, [place for place, _ in ticks], top, bottom, bars, runs)


def as_svg(by: ByLength, *, width: int = 720, height: int = 360) -> str:
    """A picture: a line per run over the buckets, and below it the items of each bucket.

    >>> as_svg(ByLength(["1-9", "10-19"], [40, 60], {"a": [0.5, 0.25]})).count("<circle")
    2
    """
    plot = _laid_out(by, width, height)
    height = plot.height
    label = quoteattr(without_controls(f"{by.score} by {by.axis}: {', '.join(by.runs)}"))
    dark = "".join(f".lengths .r{n}{{stroke:{colour}}}" for n, colour in enumerate(_DARK))
    light = "".join(f".lengths .r{n}{{stroke:{colour}}}" for n, colour in enumerate(_LIGHT))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lengths" role="img" aria-label={label} '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{_STYLE}{light}\n@media screen and (prefers-color-scheme:dark){{{dark}}}\n</style>",
        f'<rect width="{width}" height="{height}" style="fill:var(--paper)"/>',
        *(f'<path class="grid" d="M{_LEFT:g} {y:.1f}H{width - _RIGHT:g}"/>' for y in plot.grid),
        *(f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"/>' for x, y, w, h in plot.bars),
        f'<path d="M{_LEFT:g} {plot.top:.1f}V{plot.bottom:.1f}H{width - _RIGHT:g}"/>',
    ]
    for name, place, (x, y), points in plot.runs:
        look = f'class="run r{place % len(_LIGHT)}" stroke-dasharray="{_DASHES[place % len(_DASHES)]}"'
        parts.append(f'<path {look} d="M{x:.1f} {y:.1f}h28"/>')
        if points:
            parts.append(f'<path {look} d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)}"/>')
        parts += [
            f'<circle class="r{place % len(_LIGHT)}" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            f"<title>{escape(without_controls(name))}: {score:.4g}</title></circle>"
            for x, y, score in points
        ]
    parts += [
        f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
        for x, y, text, anchor, look in plot.words
    ]
    return "\n".join([*parts, "</svg>\n"])


def as_png(
    path: str | os.PathLike[str], by: ByLength, *, width: int = 720, height: int = 360, scale: float = 2.0
) -> None:
    """Write the picture that as_svg draws as a PNG with `scale` times as many pixels; needs matplotlib."""
    plot = _laid_out(by, width, height)
    with drawn(path, width, plot.height, texts=[word.text for word in plot.words], scale=scale) as axes:
        axes.hlines(plot.grid, _LEFT, width - _RIGHT, color="#ddd", linewidth=POINT)
        for x, y, across, down in plot.bars:
            axes.fill_between([x, x + across], y, y + down, color="#e3e6ea", linewidth=0)
        axes.plot([_LEFT, _LEFT, width - _RIGHT], [plot.top, plot.bottom, plot.bottom], color="#222", linewidth=POINT)
        for _, place, (x, y), points in plot.runs:
            dashes = [float(size) for size in _DASHES[place % len(_DASHES)].split()]
            colour, style = _LIGHT[place % len(_LIGHT)], (0, tuple(size / 2 for size in dashes)) if dashes else "-"
            axes.plot([x, x + 28], [y, y], color=colour, linewidth=2 * POINT, linestyle=style)
            places = [x for x, _, _ in points], [y for _, y, _ in points]
            axes.plot(*places, color=colour, linewidth=2 * POINT, linestyle=style)
            axes.plot(
                *places,
                "o",
                markerfacecolor="white",
                markeredgecolor=colour,
                markeredgewidth=2 * POINT,
                markersize=8 * POINT,
            )
        sides = {"start": "left", "middle": "center", "end": "right"}
        for x, y, text, anchor, look in plot.words:
            axes.text(x, y, text, size=12 * POINT, ha=sides[anchor], color="#222", weight="bold" if look else "normal")
