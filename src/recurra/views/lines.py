"""Lines: curves over a common axis, in panels one below the other, with bands, marks and bars."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from recurra.errors import DataError
from recurra.text.visible import without_controls
from recurra.views.axis import Axis, number_labels, ticks
from recurra.views.scene import Box, Circle, Colour, Label, Path, Scene, SceneShape, width_of
from recurra.views.table import Table
from recurra.views.view import PAGE, PHONE, WIDTH, View, captioned, minus

Style: TypeAlias = Literal["one", "two", "three", "four", "five", "solid", "strong", "soft", "raw", "faint"]


class Stroke(NamedTuple):
    colour: Colour
    width: float = 1.75
    dashes: tuple[float, ...] = ()
    strength: float = 1.0


LOOKS: dict[Style, Stroke] = {
    "one": Stroke("one"),
    "two": Stroke("two", dashes=(8, 4)),
    "three": Stroke("three", dashes=(2, 4)),
    "four": Stroke("four", dashes=(10, 3, 2, 3)),
    "five": Stroke("five", dashes=(5, 3)),
    "solid": Stroke("two"),
    "strong": Stroke("two", 2.5),
    "soft": Stroke("soft", 1.5),
    "raw": Stroke("one", 1.0, strength=0.6),
    "faint": Stroke("faint", 1.25, (1, 3)),
}
"""Curves differ by their dashes as well as by their colours, so that a picture may be printed without colours."""

IN_TURN: tuple[Style, ...] = ("one", "two", "three", "four", "five")
"""Of curves that are of one rank; more of them begin anew."""

_EDGE, _LEFT, _RIGHT, _LINE, _FOOT = 8.0, 58.0, 14.0, 24.0, 36.0  # pixels: around, beside the curves, a line, below
_SIZE = 12.0  # of letters
_LETTER = 0.9  # of the usual width: names of curves are in small letters
_DOTS = 60  # points of a curve that can be told apart
_STRIPS = 200  # steps that can be pointed at
_SHADE = 0.22  # of a band; where bands lie over each other it is darker
_ROWS, _TABLE_ROWS = 24, 200  # of a table in the terminal and on a page


class Point(NamedTuple):
    x: float
    y: float  # NaN: a gap


class _Curve(NamedTuple):
    name: str
    y: Sequence[float]
    x: Sequence[float] = ()
    look: Style = "one"
    dots: bool = False


class Curve(_Curve):
    """A named curve. Without x, the points are at 0, 1, …; with dots, points show their values. Arrays become lists.

    >>> Curve("loss", np.array([2.0, 1.0])).y
    [2.0, 1.0]
    """

    __slots__ = ()

    def __new__(cls, name: str, y: ArrayLike, x: ArrayLike = (), look: Style = "one", dots: bool = False) -> Self:
        return super().__new__(cls, name, _numbers(name, y), _numbers(name, x), look, dots)

    @property
    def places(self) -> Sequence[float]:
        """Where the points are."""
        return self.x or range(len(self.y))

    @property
    def points(self) -> list[Point]:
        """The points in their order; what is too large to draw is a gap, what is too small is 0."""
        return [Point(x, drawable(y)) for x, y in zip(self.places, self.y, strict=True)]


class _Band(NamedTuple):
    name: str
    low: Sequence[float]
    high: Sequence[float]
    x: Sequence[float] = ()
    look: Style = "strong"


class Band(_Band):
    """An area between two curves; arrays become lists."""

    __slots__ = ()

    def __new__(cls, name: str, low: ArrayLike, high: ArrayLike, x: ArrayLike = (), look: Style = "strong") -> Self:
        return super().__new__(cls, name, _numbers(name, low), _numbers(name, high), _numbers(name, x), look)

    @property
    def places(self) -> Sequence[float]:
        """Where the ends are."""
        return self.x or range(len(self.low))


class Mark(NamedTuple):
    """A highlighted point."""

    name: str
    x: float
    y: float


class Panel(NamedTuple):
    """Curves over one axis of values; with `bars`, each number is a bar with the number above it."""

    title: str
    curves: Sequence[Curve]
    height: float = 200.0
    log: bool = False  # where that shows more
    bands: Sequence[Band] = ()
    marks: Sequence[Mark] = ()
    bars: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Lines(View):
    """Panels with a common axis x, whose steps may have names of their own.

    With `together`, pointing at a step shows the values of all curves.

    >>> Lines([Panel("f1", [Curve("one", [0.5, 0.25], dots=True)])], "epoch").svg().count("<circle")
    2
    """

    kind: ClassVar[str] = "lines"

    panels: Sequence[Panel]
    x: str = "step"
    x_labels: Sequence[str] = ()
    together: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for panel in self.panels:
            for curve in panel.curves:
                if curve.x and len(curve.x) != len(curve.y):
                    raise DataError(f"'{curve.name}' has {len(curve.y)} values at {len(curve.x)} places.")
                if self.x_labels and curve.y and not curve.x and len(curve.y) != len(self.x_labels):
                    raise DataError(
                        f"'{curve.name}' has {len(curve.y)} values, but there are {len(self.x_labels)} steps."
                    )
            for band in panel.bands:
                if len({len(band.low), len(band.high), len(band.x or band.low)}) > 1:
                    raise DataError(
                        f"the lower and the upper end of the band '{band.name}' have different numbers of values."
                    )
            if self.x_labels:
                self._check_places(panel)

    def _check_places(self, panel: Panel) -> None:
        """Steps with names are counted from 0, and nothing lies between or beyond them."""
        placed = [(curve.name, x) for curve in panel.curves for x in curve.places]
        placed += [(band.name, x) for band in panel.bands for x in band.places]
        placed += [(mark.name, mark.x) for mark in panel.marks]
        for name, x in placed:
            if x not in range(len(self.x_labels)):
                raise DataError(
                    f"'{name}' has a value at step {x:g}, but x_labels names {len(self.x_labels)} steps, counted from "
                    "0: name all steps, or leave x_labels out."
                )

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The view whose json() was given."""

        def numbers(values: Sequence[float | None]) -> list[float]:
            return [math.nan if value is None else value for value in values]

        panels = []
        for panel in given["panels"]:
            curves = [Curve(**{**curve, "y": numbers(curve["y"])}) for curve in panel["curves"]]
            bands = [Band(**{**b, "low": numbers(b["low"]), "high": numbers(b["high"])}) for b in panel["bands"]]
            marks = [Mark(mark["name"], *numbers([mark["x"], mark["y"]])) for mark in panel["marks"]]
            panels.append(Panel(**{**panel, "curves": curves, "bands": bands, "marks": marks}))
        return super().from_json({**given, "panels": panels})

    def text(self) -> str:
        """For the terminal: the numbers at some steps.

        >>> print(Lines([Panel("f1", [Curve("a", [0.5, 0.25]), Curve("b", [1.0, float("nan")])])]).text())
        step    a b
        0     0.5 1
        1    0.25 –
        >>> print(Lines([Panel("up", [Curve("a", [1.0])]), Panel("down", [Curve("a", [2.0])])]).text())
        step up, a down, a
        0        1       2
        """
        return captioned(self.caption, self._table(_ROWS).text())

    def tables(self) -> dict[str, Table]:
        """The numbers at the steps; of very many steps, at some of them."""
        return {"As numbers": self._table(_TABLE_ROWS)} if self.panels else {}

    def _table(self, most: int) -> Table:
        every = [(panel.title, curve) for panel in self.panels for curve in panel.curves]
        often = Counter(curve.name for _, curve in every)  # a name that stands in several panels needs theirs
        curves = [
            (", ".join(filter(None, (panel if often[curve.name] > 1 else "", curve.name))) or panel, curve)
            for panel, curve in every
        ]
        known = [dict(zip(curve.places, curve.y, strict=True)) for _, curve in curves]
        steps = sorted({x for each in known for x in each})
        chosen = [
            steps[n] for n in np.unique(np.linspace(0, len(steps) - 1, min(most, len(steps))).round().astype(int))
        ]
        rows = [[self.x_of(x), *(_said(each.get(x, math.nan)) for each in known)] for x in chosen]
        return Table([self.x, *(without_controls(name) for name, _ in curves)], rows)

    def x_of(self, x: float) -> str:
        """A step in words."""
        return without_controls(self.x_labels[int(x)]) if self.x_labels else minus(f"{x:,.6g}")

    def scene(self, width: float = WIDTH) -> Scene:
        """The panels, and under the last one the steps; dots and steps say their numbers."""
        caption = without_controls(self.caption)
        label = f"{self.title or 'Lines'}: {', '.join(map(_in_words, self.panels)) or 'nothing yet'}"
        if not self.panels:
            words = Label(caption or "There is nothing to draw yet.", width / 2, 40, "middle", _SIZE)
            return Scene(width, 80, [words], label)
        shapes: list[SceneShape] = []
        top = _EDGE
        if caption:
            shapes.append(Label(caption, _LEFT, top + 14, bold=True))
            top += _LINE
        across = self._axis(width - _LEFT - _RIGHT)
        steps = self._steps(across)
        for panel in self.panels:
            drawn = _Panel(self, panel, across, [x for x, _ in steps], top)
            shapes += drawn.shapes()
            top = drawn.end
        shapes += [Label(text, _LEFT + x, top + 14, "middle", _SIZE) for x, text in steps]
        shapes.append(Label(self.x, width - _RIGHT, top + 30, "end", _SIZE))
        return Scene(max(width, _LEFT + width_of(caption) + _RIGHT), top + _FOOT, shapes, label)

    def _axis(self, pixels: float) -> Axis:
        """The common axis; steps with names of their own stand in the middle of as many equal parts."""
        if self.x_labels:
            return Axis(-0.5, len(self.x_labels) - 0.5, pixels)
        steps = [x for panel in self.panels for curve in panel.curves for x in curve.places]
        steps += [x for panel in self.panels for band in panel.bands for x in band.places]
        steps += [mark.x for panel in self.panels for mark in panel.marks]
        if steps and 0 < min(steps) * 10 < max(steps):
            steps.append(0)  # a run that begins at step 1 or 100 begins at the left edge
        return Axis.around(steps or [0], pixels, margin=0.0)

    def _steps(self, across: Axis) -> list[tuple[float, str]]:
        """The steps that are named below, and where they lie."""
        if self.x_labels:
            every = math.ceil((max(map(width_of, self.x_labels)) + 4) * len(self.x_labels) / across.pixels)
            return [(across.place(n), without_controls(self.x_labels[n])) for n in range(0, len(self.x_labels), every)]
        found = [step for step in ticks(across.low, across.high, max(4, int(across.pixels / 80))) if step.is_integer()]
        return [
            (across.place(step), minus(text)) for step, text in zip(found, number_labels(found or [0]), strict=False)
        ]

    def figure(self) -> str:
        """The picture in a wide form and in one for phones, both made smaller where the page is narrower."""
        wide, narrow = (
            f'<div class="{form}">{self.svg(width)}</div>' for form, width in (("wide", PAGE), ("narrow", PHONE))
        )
        return f'<figure class="fits">{wide}{narrow}</figure>'


class _Panel:
    """One panel of a picture, from `top` to `end`: title and legend, grid, curves."""

    def __init__(self, view: Lines, panel: Panel, across: Axis, steps: Sequence[float], top: float) -> None:
        self.view, self.panel, self.across, self.steps = view, panel, across, steps
        self.curves = [(curve, curve.points) for curve in panel.curves]
        values = [point.y for _, points in self.curves for point in points]
        values += [drawable(value) for band in panel.bands for value in (*band.low, *band.high)]
        values += [drawable(mark.y) for mark in panel.marks]
        known = [value for value in values if math.isfinite(value)] or [0.0]
        if panel.bars:
            known = [*known, 0.0] if any(known) else [0.0, 1.0]  # bars stand on 0, those of nothing at the bottom
        self.up = Axis.around(known, 1, margin=0.0 if panel.bars else 0.05, log=panel.log)
        self.top = top
        self.legend = list(self._legend())
        below = max((shape.y for shape in self.legend if isinstance(shape, Label)), default=top + 18)
        self.above = below + 12 + (14 if panel.bars else 0)  # the curves' own rectangle
        self.bottom = self.above + max(20.0, panel.height - 42)
        hangs = panel.bars and min(known) < 0  # the number of a negative bar stands below it
        self.end = self.bottom + (22 if hangs else 8)
        self.up = self.up._replace(pixels=self.bottom - self.above)

    def place(self, point: Point) -> tuple[float, float]:
        return _LEFT + self.across.place(point.x), self.bottom - self.up.place(point.y)

    def shapes(self) -> Iterator[SceneShape]:
        right = _LEFT + self.across.pixels
        yield from self.legend
        if not self.panel.bars:
            for tick, text in self.up.ticks(max(3, int(self.up.pixels / 28))):
                y = self.bottom - self.up.place(tick)
                yield Path([(_LEFT, y), (right, y)], "grid", 1)
                yield Label(minus(text), _LEFT - 8, y + 4, "end", _SIZE)
        yield Path([(_LEFT, self.above), (_LEFT, self.bottom), (right, self.bottom)], "ink", 1)
        if not self.view.x_labels:
            yield from (Path([(_LEFT + x, self.bottom), (_LEFT + x, self.bottom + 4)], "ink", 1) for x in self.steps)
        for band in self.panel.bands:
            yield from self._band(band)
        for curve, points in self.curves:
            yield from self._bars(curve, points) if self.panel.bars else self._line(curve, points)
        for mark in self.panel.marks:
            point = Point(mark.x, drawable(mark.y))
            if not math.isnan(point.y):
                yield Circle(*self.place(point), 4, "ink", filled=True, title=self._named(mark.name, point))
        if self.view.together:
            yield from self._strips()

    def _legend(self) -> Iterator[SceneShape]:
        """The title, and a sample of each curve with its name; a row more where one is full."""
        title = self.panel.title + (" (log scale)" if self.up.log else "")
        yield Label(title, _LEFT, self.top + 18, size=_SIZE, bold=True)
        x, y = _LEFT + _LETTER * width_of(title, _SIZE) + 24, self.top + 14
        # What has no number is not drawn, and so not named.
        known = [curve for curve, points in self.curves if not all(math.isnan(point.y) for point in points)]
        named: list[tuple[str, Style | None]] = [(curve.name, curve.look) for curve in known if curve.name]
        named += [(band.name, band.look) for band in self.panel.bands if band.name and len(_ends(band)) > 1]
        marked = [mark.name for mark in self.panel.marks if not math.isnan(drawable(mark.y))]
        named += [(name, None) for name in dict.fromkeys(marked)]
        for name, look in named if not self.panel.bars else ():
            name = without_controls(name)
            size = 44 + _LETTER * width_of(name, _SIZE)
            if x + size - 18 > _LEFT + self.across.pixels and x > _LEFT:
                x, y = _LEFT, y + 20
            if look is None:
                yield Circle(x + 14, y, 4, "ink", filled=True)
            elif found := [band for band in self.panel.bands if without_controls(band.name) == name]:
                strength = 1 - (1 - _SHADE) ** _depth(found[0], self.panel.bands)
                yield Box(x, y - 5, 20, 10, LOOKS[look].colour, strength, round=0)
            else:
                yield _stroke([(x, y), (x + 20, y)], look)
            yield Label(name, x + 26, y + 4, size=_SIZE)
            x += size

    def _line(self, curve: Curve, points: Sequence[Point]) -> Iterator[SceneShape]:
        pieces = thinned(points, self.across)
        for piece in pieces:
            if len(piece) > 1:
                yield _stroke([self.place(point) for point in piece], curve.look, curve.name or self.panel.title)
        known = [point for point in points if not math.isnan(point.y)]
        dotted = known if curve.dots and len(known) <= _DOTS else [piece[0] for piece in pieces if len(piece) == 1]
        for point in dotted:
            yield Circle(*self.place(point), 3, LOOKS[curve.look].colour, title=self._named(curve.name, point))

    def _named(self, name: str, point: Point) -> str:
        where = f" at {self.view.x} {self.view.x_of(point.x)}"
        return f"{without_controls(name) or self.panel.title}: {_said(point.y)}{where}"

    def _bars(self, curve: Curve, points: Sequence[Point]) -> Iterator[SceneShape]:
        step = self.across.place(1) - self.across.place(0)
        wide = min(step, 60) * 0.7
        zero = self.bottom - self.up.place(0)
        for point in points:
            if not math.isnan(point.y):
                x, y = self.place(point)
                said = self._named(curve.name, point)
                yield Box(x - wide / 2, min(y, zero), wide, abs(zero - y), "grid", title=said, round=0)
                yield Label(minus(f"{point.y:,.6g}"), x, y + 13 if point.y < 0 else y - 4, "middle", _SIZE)
        if zero < self.bottom:
            yield Path([(_LEFT, zero), (_LEFT + self.across.pixels, zero)], "ink", 1)

    def _band(self, band: Band) -> Iterator[SceneShape]:
        known = _ends(band)
        if len(known) > 1:
            there = [self.place(Point(x, high)) for x, _, high in known]
            back = [self.place(Point(x, low)) for x, low, _ in reversed(known)]
            yield Path([*there, *back], LOOKS[band.look].colour, filled=True, strength=_SHADE)

    def _strips(self) -> Iterator[SceneShape]:
        """An unseen box for each step, which says the numbers of all curves there."""
        steps = sorted({point.x for _, points in self.curves for point in points})
        if not steps or len(steps) > _STRIPS:
            return
        places = [_LEFT + self.across.place(x) for x in steps]
        edges = [places[0], *((one + other) / 2 for one, other in itertools.pairwise(places)), places[-1]]
        every = [(curve.name or self.panel.title, {p.x: p.y for p in points}) for curve, points in self.curves]
        bands = [(band.name, {x: ends for x, *ends in _ends(band)}) for band in self.panel.bands if band.name]
        for number, x in enumerate(steps):
            said = ", ".join(
                [
                    *(f"{name} {_said(each[x])}" for name, each in every if not math.isnan(each.get(x, math.nan))),
                    *(f"{name} {_said(each[x][0])} to {_said(each[x][1])}" for name, each in bands if x in each),
                ]
            )
            left, right = edges[number], edges[number + 1]
            title = f"{self.panel.title}, {self.view.x} {self.view.x_of(x)}: {said}"
            yield Box(left, self.above, right - left, self.bottom - self.above, strength=0.0, title=title, round=0)


def _ends(band: Band) -> list[tuple[float, float, float]]:
    """The steps at which a band has both its ends, and these."""
    places = zip(band.places, band.low, band.high, strict=True)
    ends = [(x, drawable(low), drawable(high)) for x, low, high in places]
    return [each for each in ends if not math.isnan(each[1] + each[2])]


def _depth(band: Band, bands: Sequence[Band]) -> int:
    """How many bands lie over each other where this one is: itself, and those drawn before it that enclose it.

    >>> wide, narrow = Band("wide", [0, 0], [3, 3]), Band("narrow", [1, 1], [2, 2])
    >>> _depth(wide, [wide, narrow]), _depth(narrow, [wide, narrow])
    (1, 2)
    """
    own = _ends(band)
    depth = 1
    for other in itertools.takewhile(lambda each: each is not band, bands):
        around = {x: (low, high) for x, low, high in _ends(other)}
        depth += all(x in around and around[x][0] <= low and high <= around[x][1] for x, low, high in own)
    return depth


def _stroke(points: Sequence[tuple[float, float]], look: Style, title: str = "") -> Path:
    colour, width, dashes, strength = LOOKS[look]
    return Path(points, colour, width, dashes, strength=strength, title=without_controls(title))


def _in_words(panel: Panel) -> str:
    named = [curve.name for curve in panel.curves if curve.name and not panel.bars]
    return f"{panel.title} ({', '.join(named)})" if named else panel.title


def _numbers(name: str, values: ArrayLike) -> list[float]:
    found = np.asarray(values)
    if found.ndim != 1:
        raise DataError(f"'{name}' must be one-dimensional, but has shape {found.shape}.")
    numbers: list[float] = found.tolist()
    return numbers


def drawable(value: float) -> float:
    """What is too large to reckon with is a gap, and what is too small is 0: the ratio of any two others is finite.

    >>> drawable(0.5), drawable(-1e150), drawable(1e-150)
    (0.5, nan, 0.0)
    """
    return (value if abs(value) > 1e-100 else 0.0) if abs(value) < 1e100 else math.nan


def _said(value: float) -> str:
    return minus(f"{value:.5g}") if math.isfinite(value) else "–"


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
