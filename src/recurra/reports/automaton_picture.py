"""An automaton as a picture: states on a circle, and an arrow for each symbol."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path as File

from recurra.analysis.automata import WORDS, Automaton
from recurra.errors import ConfigError
from recurra.views.page import write_whole
from recurra.views.png import as_png
from recurra.views.scene import Circle, Colour, Label, Path, Scene, SceneShape, width_of
from recurra.views.svg import as_svg

NODE, EDGE, LINE = 20.0, 28.0, 24.0
"""Pixels: the radius of a state, the margin, a line of text."""

NAMED = 24
"""Of more states than that only dots and arrows are drawn."""

COLOURS: tuple[Colour, ...] = ("one", "two", "three", "four", "five")
"""Of symbols, in turn."""

Place = tuple[float, float]


def write(automaton: Automaton, path: File, said: str) -> None:
    """Write the picture to a file, .svg or .png."""
    check_ending(path)
    if path.suffix == ".png":
        as_png(path, picture(automaton, said))
    else:
        write_whole(path, as_svg(picture(automaton, said)))


def check_ending(path: File) -> None:
    """Refuse a file that is no picture."""
    if path.suffix not in (".svg", ".png"):
        raise ConfigError(f"--automaton {path}: the file must end in .svg or .png.")


def picture(automaton: Automaton, said: str) -> Scene:
    """The automaton below a line of text. An arrow from nowhere marks the first state, a double ring words."""
    count, is_named = automaton.states, automaton.states <= NAMED
    node = NODE if is_named else 4.0
    radius = max(3.2 * node, count * (5.2 if is_named else 3.0) * node / (2 * math.pi)) if count > 1 else 0.0
    middle = EDGE + radius + 3 * node + 24
    centre = (middle, EDGE + 1.4 * LINE + radius + 3 * node + 24)
    places = [_on_circle(centre, radius, number / count) for number in range(count)]
    shapes: list[SceneShape] = [Label(said, EDGE, EDGE + 12, bold=True)]
    for number, (symbol, colour) in enumerate(zip(automaton.symbols, _colours(automaton), strict=True)):
        left = EDGE + sum(width_of(each) + 34 for each in automaton.symbols[:number])
        shapes += [
            Path([(left, EDGE + LINE + 8), (left + 18, EDGE + LINE + 8)], colour, 2),
            Label(symbol, left + 22, EDGE + LINE + 12),
        ]
    for state, place in enumerate(places):
        leaving = sorted((int(to), symbol) for symbol, to in enumerate(automaton.moves[state]))
        for to, group in groupby(leaving, key=lambda each: each[0]):
            symbols = [symbol for _, symbol in group]
            text = ", ".join(automaton.symbols[symbol] for symbol in symbols) if is_named else ""
            colour = _colours(automaton)[symbols[0]] if len(symbols) == 1 else "ink"
            shapes += _loop(place, centre, node, text, colour) if to == state else []
            shapes += _arrow(place, places[to], node, text, colour) if to != state else []
    shapes += _entry(places[0], centre, node)
    for state, (x, y) in enumerate(places):
        answer = automaton.answers[int(automaton.says[state])]
        title = f"state {state}: {answer}"
        shapes += [Circle(x, y, node, "paper", filled=True), Circle(x, y, node, "ink", title=title)]
        if automaton.answers == WORDS and answer == WORDS[1]:
            shapes.append(Circle(x, y, node - 4, "ink"))
        elif is_named and automaton.answers != WORDS:
            shapes.append(Label(answer, x, y + 4, "middle", 11))
    width = max(2 * middle, width_of(said) + 2 * EDGE)
    return Scene(width, centre[1] + radius + 3 * node + 24, shapes, f"{said}: an automaton of {count} states")


def _colours(automaton: Automaton) -> list[Colour]:
    return [COLOURS[number % len(COLOURS)] for number in range(len(automaton.symbols))]


def _on_circle(centre: Place, radius: float, turn: float) -> Place:
    angle = math.pi + 2 * math.pi * turn  # the first state on the left, then clockwise
    return centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)


def _outward(place: Place, centre: Place) -> Place:
    """The direction from the centre to a place; to the left where they are one."""
    x, y = place[0] - centre[0], place[1] - centre[1]
    length = math.hypot(x, y)
    return (x / length, y / length) if length > 1e-9 else (-1.0, 0.0)


def _arrow(start: Place, end: Place, node: float, text: str, colour: Colour) -> list[SceneShape]:
    """A line bent to its left, so that the way back is another one."""
    x, y = end[0] - start[0], end[1] - start[1]
    length = math.hypot(x, y)
    across = (y / length, -x / length)
    bend = 0.08 * length + 0.25 * node
    top = ((start[0] + end[0]) / 2 + bend * across[0], (start[1] + end[1]) / 2 + bend * across[1])
    points = _clipped(_bent(start, top, end), start, end, node)
    shapes: list[SceneShape] = [Path(points, colour), _head(points, node, colour)]
    if text:
        at = points[len(points) // 2]
        shapes.append(Label(text, at[0] + 9 * across[0], at[1] + 9 * across[1] + 4, "middle", 11))
    return shapes


def _loop(place: Place, centre: Place, node: float, text: str, colour: Colour) -> list[SceneShape]:
    """From a state back to itself, on the side away from the centre."""
    out = _outward(place, centre)
    side = (-out[1], out[0])
    reach = 2.3 * node
    one, two = (
        (
            place[0] + reach * out[0] + sign * 1.1 * node * side[0],
            place[1] + reach * out[1] + sign * 1.1 * node * side[1],
        )
        for sign in (-1, 1)
    )
    points = _clipped(_curve(place, one, two, place), place, place, node)
    shapes: list[SceneShape] = [Path(points, colour), _head(points, node, colour)]
    if text:
        far = 0.75 * reach + 9  # a cubic curve comes three quarters of the way
        shapes.append(Label(text, place[0] + far * out[0], place[1] + far * out[1] + 4, "middle", 11))
    return shapes


def _entry(place: Place, centre: Place, node: float) -> list[SceneShape]:
    x, y = _outward(place, centre)
    out = (0.6 * x - 0.8 * y, 0.8 * x + 0.6 * y)  # beside the place of a loop
    points = [(place[0] + far * out[0], place[1] + far * out[1]) for far in (node + 22, node + 1)]
    return [Path(points, "soft"), _head(points, max(node, 8.0), "soft")]


def _bent(start: Place, top: Place, end: Place) -> list[Place]:
    return _curve(start, top, top, end)


def _curve(a: Place, b: Place, c: Place, d: Place) -> list[Place]:
    """Points of a cubic curve, a few pixels apart."""
    found, steps = [], 24 + int(math.dist(a, d) / 4)
    for number in range(steps + 1):
        t = number / steps
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        found.append(tuple(sum(w * p[axis] for w, p in zip(weights, (a, b, c, d), strict=True)) for axis in (0, 1)))
    return [(x, y) for x, y in found]


def _clipped(points: list[Place], start: Place, end: Place, node: float) -> list[Place]:
    """Without what lies inside the two states."""
    kept = [each for each in points if math.dist(each, start) >= node and math.dist(each, end) >= node + 1]
    return kept if len(kept) > 1 else [points[len(points) // 2 - 1], points[len(points) // 2]]


def _head(points: list[Place], node: float, colour: Colour) -> Path:
    """The head of an arrow along the end of a line."""
    (x, y), (to_x, to_y) = points[-2:]
    length = max(1e-6, math.hypot(to_x - x, to_y - y))
    along, across, size = (to_x - x) / length, (to_y - y) / length, min(7.0, 0.7 * node)
    one, other = (
        (to_x - size * along + side * across, to_y - size * across - side * along) for side in (size / 2, -size / 2)
    )
    return Path([one, (to_x, to_y), other], colour)
