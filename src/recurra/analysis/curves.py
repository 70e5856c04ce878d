"""Learning curves of a run as one SVG picture, written by hand: it needs no plotting library and no script."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from recurra.training.log import Line, TrainLine, ValidLine

# Okabe and Ito's colours, which people who see colours differently can tell apart: the darker ones on paper, the
# lighter ones on a dark screen. Curves differ without colours too: faint, plain, with marks, dashed, dotted.
_STYLE = """
.curves{--ink:#222;--paper:#fff;--grid:#ddd;--one:#0072b2;--two:#d55e00;--three:#009e73;--four:#cc79a7;color:var(--ink)}
@media screen and (prefers-color-scheme:dark){
.curves{--ink:#ddd;--paper:#16181c;--grid:#3a3d44;--one:#56b4e9;--two:#e69f00;--three:#2cc295;--four:#e09fc4}}
.curves text{font:12px system-ui,sans-serif;fill:currentColor}
.curves .name{font-weight:600}
.curves path{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.curves .axis{stroke:currentColor;stroke-width:1}
.curves .grid{stroke:var(--grid);stroke-width:1}
.curves .raw{stroke:var(--one);stroke-width:1;opacity:.6}
.curves .train{stroke:var(--one)}
.curves .valid{stroke:var(--two)}
.curves .rate{stroke:var(--three);stroke-dasharray:7 4}
.curves .other{stroke:var(--four);stroke-dasharray:1 5}
.curves circle[class]{fill:var(--paper);stroke-dasharray:none;stroke-width:1.75}
.curves circle.best[class]{fill:currentColor;stroke:currentColor}
"""
_LETTER = 6.7  # pixels: about the mean width of a letter at 12 pixels
_LOOKS = ("valid", "train", "rate", "other")


class Point(NamedTuple):
    x: float
    y: float  # NaN: a gap


class Curve(NamedTuple):
    name: str
    look: str  # a class of the style sheet
    points: Sequence[Point]
    best: Point | None = None


class Panel(NamedTuple):
    title: str
    curves: Sequence[Curve]
    share: int  # of the picture's height
    log: bool = False  # where that shows more


class Axis(NamedTuple):
    """A range of values along a line of so many pixels."""

    low: float
    high: float
    pixels: float
    log: bool = False

    @classmethod
    def around(cls, values: Iterable[float], pixels: float, *, margin: float = 0.05, log: bool = False) -> Axis:
        """The axis that shows all the values; logarithmic only where they are positive and tenfold apart or more."""
        values = list(values)
        low, high = min(values), max(values)
        if log and low > 0 and high / low >= 10:
            return cls(low / (high / low) ** margin, high * (high / low) ** margin, pixels, log=True)
        if high - low <= 1e-9 * max(abs(low), abs(high)):  # constant, or nearly: then in the middle
            low, high, margin = low - (abs(low) or 1.0) / 10, high + (abs(high) or 1.0) / 10, 0.0
        return cls(low - (high - low) * margin, high + (high - low) * margin, pixels)

    def place(self, value: float) -> float:
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low) * self.pixels
        return (value - self.low) / (self.high - self.low) * self.pixels

    def ticks(self, at_most: int) -> list[tuple[float, str]]:
        """Round values along the axis, each with its label."""
        if self.log:
            return [(tick, labels([tick])[0]) for tick in decades(self.low, self.high, at_most)]
        found = ticks(self.low, self.high, at_most)
        return list(zip(found, labels(found), strict=True))


def ticks(low: float, high: float, at_most: int) -> list[float]:
    """The multiples of 1, 2 or 5 times a power of ten that lie in a range, as many as allowed.

    >>> ticks(0.13, 0.94, 5), ticks(0, 12345, 7)
    ([0.2, 0.4, 0.6, 0.8], [0.0, 2000.0, 4000.0, 6000.0, 8000.0, 10000.0, 12000.0])
    """
    bottom, top = Fraction(repr(low)), Fraction(repr(high))  # the decimals as they are written: 0.2 is a fifth
    power = Fraction(10) ** math.floor(math.log10((high - low) / (at_most + 1)))
    for factor in (1, 2, 5, 10, 20, 50, 100):
        numbers = range(math.ceil(bottom / (factor * power)), math.floor(top / (factor * power)) + 1)
        if len(numbers) <= at_most:
            break
    return [float(number * factor * power) for number in numbers]


def decades(low: float, high: float, at_most: int) -> list[float]:
    """The powers of ten in a range, with 2 and 5 times them where there is room, or every n-th where there is not.

    >>> decades(0.03, 7, 8), decades(1e-6, 1e3, 5)
    ([0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0], [1e-06, 0.0001, 0.01, 1.0, 100.0])
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    finer = [float(f"{factor}e{exponent}") for exponent in exponents for factor in (1, 2, 5)]
    powers = [tick for tick in finer[::3] if low <= tick <= high]
    finer = [tick for tick in finer if low <= tick <= high]
    return finer if len(finer) <= at_most or len(powers) < 2 else powers[:: math.ceil(len(powers) / at_most)]


def labels(values: Sequence[float]) -> list[str]:
    """Numbers as they are written along an axis, all in the same way.

    >>> labels([0.5, 0.75, 1.0]), labels([0, 5000, 10000]), labels([0.0, 2.5e-5])
    (['0.50', '0.75', '1.00'], ['0', '5k', '10k'], ['0', '2.5e-5'])
    """
    largest = max(map(abs, values))
    if largest >= 1e9 or largest < 1e-3:
        return [_scientific(value) for value in values]
    unit, letter = (1e6, "M") if largest >= 1e6 else (1e3, "k") if largest >= 1e4 else (1, "")
    scaled = [Decimal(f"{value / unit:.12g}") for value in values]
    if letter:
        return [f"{number:f}{letter}" if number else "0" for number in scaled]
    decimals = max(len(f"{number:f}".partition(".")[2]) for number in scaled)
    return [f"{number:.{decimals}f}" if number else "0" for number in scaled]


def _scientific(value: float) -> str:
    mantissa, _, exponent = f"{value:.11e}".partition("e")
    return f"{float(mantissa):.12g}e{int(exponent)}" if value else "0"


def smoothed(points: Sequence[Point]) -> list[Point]:
    """The mean of an exponential average from the left and one from the right, so that nothing lags behind."""
    decay = 1 - 2 / (max(len(points) / 50, 1) + 1)

    def averages(values: Iterable[float]) -> list[float]:
        total = weight = 0.0
        result = []
        for value in values:
            if not math.isnan(value):
                total, weight = total * decay + value, weight * decay + 1
            result.append(total / weight if weight else math.nan)
        return result

    values = [point.y for point in points]
    both = zip(points, averages(values), reversed(averages(reversed(values))), strict=True)
    return [Point(x, math.nan if math.isnan(y) else left / 2 + right / 2) for (x, y), left, right in both]


def thinned(points: Sequence[Point], axis: Axis) -> list[list[Point]]:
    """Unbroken pieces of a curve: of each column of pixels the first, lowest, highest and last point, so spikes stay.

    >>> axis = Axis(0, 100, pixels=4)
    >>> thinned([Point(x, 9 if x == 30 else 1) for x in range(26, 50)], axis)
    [[Point(x=26, y=1), Point(x=30, y=9), Point(x=49, y=1)]]
    """
    pieces: list[list[Point]] = [[]]
    for _, column in itertools.groupby(points, key=lambda point: math.floor(axis.place(point.x))):
        found = [point for point in column if not math.isnan(point.y)]
        if found:
            heights = [point.y for point in found]
            kept = {0, heights.index(min(heights)), heights.index(max(heights)), len(found) - 1}
            pieces[-1] += [found[i] for i in sorted(kept)]
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def curves(lines: Sequence[Line], *, metrics: Sequence[str] = (), width: int = 720, height: int = 640) -> str:
    """An SVG picture of the loss, of metrics (none named: the first of the validations), and of what else was told.

    >>> picture = curves([TrainLine(1, 0, 2.0, 0.1), TrainLine(2, 0, 1.0, 0.1), ValidLine(2, 0, {"f1": 0.5})])
    >>> picture.startswith("<svg "), picture.count('<path class="train"')
    (True, 2)
    """
    panels = _panels(lines, metrics)
    steps = [point.x for panel in panels for curve in panel.curves for point in curve.points]
    label = "Learning curves: " + (", ".join(panel.title for panel in panels) or "nothing was logged yet")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="curves" role="img" aria-label={quoteattr(label)} '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<title>{escape(label)}</title>\n<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" style="fill:var(--paper)"/>',
    ]
    if not panels:
        parts.append(f'<text x="{width / 2:g}" y="{height / 2:g}" text-anchor="middle">nothing was logged yet</text>')
    left, right, foot, top = 58, 14, 36, 0.0
    if steps and min(steps) * 10 < max(steps):
        steps.append(0)  # a run that begins at step 1 or 100 begins at the left edge
    across = Axis.around(steps or [0], width - left - right, margin=0.0)
    whole = [step for step in ticks(across.low, across.high, max(5, width // 90)) if step.is_integer()]
    for panel in panels:
        room = (height - foot) * panel.share / sum(panel.share for panel in panels)
        parts += [f'<g transform="translate({left} {top:.2f})">', *_drawn(panel, across, room, whole), "</g>"]
        top += room
    if panels:
        parts += [
            f'<text x="{left + across.place(step):.1f}" y="{top + 14:.1f}" text-anchor="middle">{text}</text>'
            for step, text in zip(whole, labels(whole), strict=True)
        ]
        parts.append(f'<text x="{width - right}" y="{top + 30:.1f}" text-anchor="end">step</text>')
    return "\n".join([*parts, "</svg>\n"])


def _panels(lines: Sequence[Line], metrics: Sequence[str]) -> list[Panel]:
    """What there is to draw; a curve without a single number is left out, and so is an empty panel."""
    train = sorted((line for line in lines if isinstance(line, TrainLine)), key=lambda line: line.step)
    valid = sorted((line for line in lines if isinstance(line, ValidLine)), key=lambda line: line.step)
    metrics = metrics or list(dict.fromkeys(name for line in valid for name in list(line.scores)[:1]))
    best = next((line for line in reversed(valid) if line.best), None)
    raw = [_point(line.step, line.loss) for line in train]
    loss = [Curve("train", "train", smoothed(raw)), Curve("valid", "valid", [_point(v.step, v.loss) for v in valid])]
    if len(train) > 50:
        loss = [Curve("train, raw", "raw", raw), *loss]
    scores = [
        Curve(
            f"{name}, valid",
            _LOOKS[i % len(_LOOKS)],
            [_point(line.step, line.scores.get(name, math.nan)) for line in valid],
            _point(best.step, best.scores.get(name, math.nan)) if best is not None else None,
        )
        for i, name in enumerate(metrics)
    ]
    rate = [Curve("", "rate", [_point(line.step, line.learning_rate) for line in train])]
    panels = [Panel("loss", loss, 3, log=True), Panel(", ".join(metrics), scores, 3), Panel("learning rate", rate, 2)]
    for name in dict.fromkeys(name for line in train for name in line.logged):
        told = [_point(line.step, line.logged.get(name, math.nan)) for line in train]
        panels.append(Panel(name.replace("_", " "), [Curve("", "other", told)], 2))
    drawable = [
        panel._replace(curves=[c for c in panel.curves if any(not math.isnan(point.y) for point in c.points)])
        for panel in panels
    ]
    return [panel for panel in drawable if panel.curves]


def _point(step: int, value: float) -> Point:
    """A point; what is too large to reckon with is a gap, and what is too small is 0."""
    return Point(step, (value if abs(value) > 1e-100 else 0.0) if abs(value) < 1e100 else math.nan)


def _drawn(panel: Panel, across: Axis, room: float, steps: Sequence[float]) -> list[str]:
    """A panel whose left edge is at x = 0: title and legend, grid, axes, curves."""
    values = [point.y for curve in panel.curves for point in curve.points if not math.isnan(point.y)]
    up = Axis.around(values, 1, log=panel.log)
    title = panel.title + (" (log scale)" if up.log else "")
    parts = [f'<text class="name" x="0" y="18">{escape(title)}</text>']
    x, y = _LETTER * len(title) + 24, 14
    legend = [(curve.name, curve.look) for curve in panel.curves if curve.name]
    for name, look in legend + [("best", "best")] * any(curve.best is not None for curve in panel.curves):
        size = 44 + _LETTER * len(name)
        if x + size > across.pixels:
            x, y = 0.0, y + 20
        sample = f'd="M{x:.1f} {y}h20"' if look != "best" else f'cx="{x + 14:.1f}" cy="{y}" r="4"'
        parts.append(f'<{"path" if look != "best" else "circle"} class="{look}" {sample}/>')
        parts.append(f'<text x="{x + 26:.1f}" y="{y + 4}">{escape(name)}</text>')
        x += size
    below, bottom = y + 16, room - 8  # the curves' own rectangle
    up = up._replace(pixels=bottom - below)
    for tick, text in up.ticks(max(5, int(up.pixels / 28))):
        parts.append(f'<path class="grid" d="M0 {bottom - up.place(tick):.1f}h{across.pixels:g}"/>')
        parts.append(f'<text x="-8" y="{bottom - up.place(tick) + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<path class="axis" d="M0 {below:.1f}V{bottom:.1f}H{across.pixels:g}"/>')
    parts += [f'<path class="axis" d="M{across.place(step):.1f} {bottom:.1f}v4"/>' for step in steps]
    for curve in panel.curves:
        parts += _line(curve, across, up, bottom)
    return parts


def _line(curve: Curve, across: Axis, up: Axis, bottom: float) -> list[str]:
    def at(point: Point) -> str:
        return f"{across.place(point.x):.1f} {bottom - up.place(point.y):.1f}"

    def mark(point: Point, look: str, size: float) -> str:
        x, y = at(point).split()
        words = f"{curve.name or 'value'} {point.y:.5g} at step {point.x:g}" + (
            ", the best" if point == curve.best else ""
        )
        return f'<circle class="{look}" cx="{x}" cy="{y}" r="{size:g}"><title>{escape(words)}</title></circle>'

    pieces = thinned(curve.points, across)
    path = "".join(f"M{'L'.join(map(at, piece))}" for piece in pieces if len(piece) > 1)
    parts = [f'<path class="{curve.look}" d="{path}"/>'] if path else []
    known = [point for point in curve.points if not math.isnan(point.y)]
    marked = known if curve.look in ("valid", "other") and len(known) <= 60 else [p[0] for p in pieces if len(p) == 1]
    parts += [mark(point, curve.look, 3) for point in marked]
    if curve.best is not None and not math.isnan(curve.best.y):
        parts.append(mark(curve.best, "best", 4))
    return parts
