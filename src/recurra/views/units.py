"""Units: named values of many units over steps, such as the gates of a cell while it reads."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError
from recurra.text.visible import without_controls
from recurra.views.scene import Box, Cells, Label, Path, Scene, SceneShape, width_of
from recurra.views.table import Table
from recurra.views.view import WIDTH, View, captioned, labels, minus, plain, rounded

MOST = 24
"""So many units are drawn: of more, those whose output changes most."""

_EDGE, _LINE, _CURVE, _GAP, _UNIT = 12.0, 22.0, 34.0, 24.0, 7.0  # pixels: around, a line, the curve, between, a unit
_SLIMMEST, _WIDEST = 9.0, 34.0  # of a step
_NARROWEST = 130.0  # of a panel, with its name
_SLANT = 0.7072  # sine and cosine of 45 degrees

_DIGITS = 9  # of means and ranges: so many more than are said that what is said is rounded once

_ABOUT = (
    "Time runs from left to right; each row is a unit: blue above 0, orange below, stronger for larger values. The "
    "curve is the mean over all units. Point at a step for its numbers."
)


class Values(NamedTuple):
    """What is shown of one name: means, least and largest over all its units (T,), and some units' rows (n, T)."""

    means: ArrayLike
    units: Sequence[int]  # which ones the rows are
    rows: ArrayLike
    low: ArrayLike
    high: ArrayLike

    @property
    def limit(self) -> float:
        """What the strongest colour stands for: 1, or more where values that large are not rare."""
        return max(1.0, float(np.quantile(np.abs(np.asarray(self.rows)), 0.95)))


@dataclasses.dataclass(frozen=True, eq=False)
class Units(View):
    """Steps, and the values of each name.

    `layer` of `layers` and `direction` of `directions` say which of several are shown: the page offers the others.
    """

    kind: ClassVar[str] = "units"

    tokens: Sequence[str]
    values: Mapping[str, Values]
    layer: int = 1
    layers: int = 1
    direction: str = "forward"
    directions: Sequence[str] = ("forward",)
    about: str = dataclasses.field(default=_ABOUT, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tokens or not self.values:
            raise DataError("there are no units to show: the input is empty.")
        steps = (len(self.tokens),)
        for name, each in self.values.items():
            shapes = {np.shape(values) for values in (each.means, each.low, each.high, *np.asarray(each.rows))}
            if shapes != {steps} or len(each.units) != len(np.asarray(each.rows)):
                raise DataError(f"'{name}' needs values for each of {steps[0]} steps, but has shapes {sorted(shapes)}.")

    @classmethod
    def of(
        cls,
        tokens: Sequence[str],
        values: Mapping[str, NDArray[np.float64]],
        *,
        most: int = MOST,
        title: str = "",
        caption: str = "",
    ) -> Self:
        """From all values of each name, (units, T): those units are shown whose output changes most.

        The output is the first name. Units stand from that which is strongest first to that which is strongest last,
        the same for all names that have as many.

        >>> h = np.array([[0.0, 0.0, 0.9], [0.1, 0.1, 0.1], [0.8, 0.1, 0.0]])
        >>> Units.of("abc", {"h": h}, most=2).values["h"].units
        [2, 0]
        """
        chosen: dict[int, NDArray[np.intp]] = {}
        found = {}
        for name, each in values.items():
            units = chosen.setdefault(len(each), _ordered(each, most))
            found[name] = Values(each.mean(0), units.tolist(), each[units], each.min(0), each.max(0))
        count = max((len(each) for each in values.values()), default=0)
        few = (
            f" The {most} of {count} units that change most are shown; means are over all units."
            if count > most
            else ""
        )
        return cls(tokens, found, title=title, caption=caption, about=_ABOUT + few)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The view whose json() was given."""
        values = {
            name: Values(each["means"], each["units"], np.asarray(each["rows"], np.float64), each["low"], each["high"])
            for name, each in given["values"].items()
        }
        return super().from_json({**given, "values": values})

    @cached_property
    def shown(self) -> dict[str, Values]:
        """The values as they are drawn, said and written: units are colours, for which few digits suffice."""
        return {
            name: Values(
                *(rounded(each.means, _DIGITS), each.units, rounded(each.rows, 4)),
                *(rounded(each.low, _DIGITS), rounded(each.high, _DIGITS)),
            )
            for name, each in self.values.items()
        }

    def json(self) -> dict[str, Any]:
        """The value as JSON has it."""
        return {**super().json(), "values": plain(self.shown)}

    def text(self) -> str:
        """For the terminal: the mean of each value over all units, token by token.

        >>> values = np.array([[0.0, 1.0], [0.5, 0.5]])
        >>> print(Units.of(["a", "b"], {"z": values}, caption="gru, layer 1 of 1, forward").text())
        gru, layer 1 of 1, forward: means over units
        token      z
        a     0.2500
        b     0.7500
        """
        head = f"{without_controls(self.caption)}: means over units" if self.caption else "means over units"
        return captioned("", head, *(table.text() for table in self.tables().values()))

    def tables(self) -> dict[str, Table]:
        """The means over all units."""
        means = [np.asarray(each.means).tolist() for each in self.shown.values()]
        rows = [[token, *row] for token, *row in zip(labels(self.tokens), *means, strict=True)]
        return {"Means as numbers": Table(["token", *self.values], rows)}

    def scene(self, width: float = WIDTH) -> Scene:
        """Panels beside each other where there is room, tokens above the first row; a step says its mean and range."""
        tokens, caption = labels(self.tokens), without_controls(self.caption)
        wide = min(_WIDEST, max(_SLIMMEST, (width - 2 * _EDGE) // len(tokens)))  # of whole pixels, or gaps are seen
        size = min(13.0, max(9.0, wide - 1))
        longest = max(width_of(token, size) for token in tokens)
        slanted = longest > wide - 2
        reach = [width_of(token, size) * (_SLANT if slanted else 0.5) for token in tokens]
        ends = [(n + 0.5) * wide + each for n, each in enumerate(reach)]
        panel = math.ceil(max(_NARROWEST, wide * len(tokens), *ends))
        a_row = max(1, min(len(self.values), int((width - 2 * _EDGE + _GAP) // (panel + _GAP))))
        rise = math.ceil(longest * _SLANT) + 14 if slanted else _LINE
        shapes: list[SceneShape] = [Label(caption, _EDGE, _EDGE + 12, bold=True)]
        top = _EDGE + _LINE + _LINE + rise
        names = list(self.values)
        for row in range(0, len(names), a_row):
            some = names[row : row + a_row]
            for place, name in enumerate(some):
                left = _EDGE + place * (panel + _GAP)
                if row == 0:
                    shapes += _axis(tokens, left, top, wide, size, slanted)
                shapes += _panel(name, self.shown[name], tokens, left, top, wide, rise if row == 0 else 0)
            top += _CURVE + 4 + _UNIT * max(len(self.values[name].units) for name in some) + _GAP + _LINE
        across = max(a_row * (panel + _GAP) - _GAP, width_of(caption)) + 2 * _EDGE
        label = f"{self.title or 'Units'}, {caption}: {' '.join(tokens)}"
        return Scene(across, top - _GAP - _LINE + _EDGE, shapes, label)


def _ordered(values: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    largest = np.sort(np.argsort(-values.std(axis=1), kind="stable")[:most])
    return largest[np.argsort(np.abs(values[largest]).argmax(1), kind="stable")]


def _axis(
    tokens: Sequence[str], left: float, top: float, wide: float, size: float, slanted: bool
) -> Iterable[SceneShape]:
    for number, token in enumerate(tokens):
        x = left + (number + 0.5) * wide
        yield Label(token, x - 1 if slanted else x, top - 6, "start" if slanted else "middle", size, slanted=slanted)


def _panel(
    name: str, values: Values, tokens: Sequence[str], left: float, top: float, wide: float, rise: float
) -> Iterable[SceneShape]:
    means, lows, highs, chosen = (np.asarray(each) for each in (values.means, values.low, values.high, values.rows))
    limit = values.limit
    lowest = -limit if lows.min() < 0 else 0.0
    bottom = top + _CURVE
    beyond = " and beyond" if np.abs(chosen).max() > limit else ""

    def height(value: float) -> float:
        return bottom - (min(max(value, lowest), limit) - lowest) / (limit - lowest) * _CURVE

    yield Label(name, left, top - rise - 7, bold=True)
    said = minus(f"{lowest:.3g} to {limit:.3g}{beyond}")
    yield Label(said, left + width_of(name) + 8, top - rise - 7, size=11, colour="soft")
    yield Box(left, top, wide * len(means), _CURVE)
    yield Path([(left, height(0.0)), (left + wide * len(means), height(0.0))], "line", 1)
    curve = [(left + (n + 0.5) * wide, height(mean)) for n, mean in enumerate(means)]
    yield Path(curve if len(curve) > 1 else [(left, curve[0][1]), (left + wide, curve[0][1])], "more", 2)
    yield Cells(left, bottom + 4, wide, _UNIT, chosen / limit)
    deep = _CURVE + 4 + _UNIT * len(chosen)
    for number, (token, mean, low, high) in enumerate(zip(tokens, means, lows, highs, strict=True)):
        said = f"{name} at {token}: mean {mean:.3f}, from {low:.3f} to {high:.3f}"
        yield Box(left + number * wide, top, wide, deep, strength=0.0, title=said)
