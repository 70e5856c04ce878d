"""Draws the pictures of the docs: python docs/draw.py [--check].

Writes docs/cells/pictures/NAME.svg, the data flow of the cells, and docs/pictures/NAME.svg, that of whole models: one
picture per function of PICTURES. With --check nothing is written, and the exit status is 1 where a picture on disk is
not what would be written. A picture in which a wire runs through a box or a label, or two of these lie on each other,
is refused.
"""

from __future__ import annotations

import argparse
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

DOCS = Path(__file__).parent

# Okabe and Ito's colours, told apart by colour-blind readers too. Shapes say the same: what has weights is a box with
# corners, what has none is round, what is random is dashed.
BLACK, ORANGE, SKY, GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
BLUE, VERMILLION, PURPLE = "#0072b2", "#d55e00", "#cc79a7"
INK, GREY, FRAME = "#1f2933", "#5b6470", "#f6f7f9"
PALE = {ORANGE: "#fdecc8", SKY: "#d9eefb", GREEN: "#d3efe4", PURPLE: "#f7e3ee", GREY: "#ffffff"}
STATE = {"h": VERMILLION, "s": VERMILLION, "c": BLUE, "n": PURPLE, "m": BLACK, "x": GREEN}


class Point(NamedTuple):
    x: float
    y: float


class Area(NamedTuple):
    """A rectangle by its centre and size."""

    x: float
    y: float
    width: float
    height: float

    def top(self, shift: float = 0) -> Point:
        return Point(self.x + shift, self.y - self.height / 2)

    def bottom(self, shift: float = 0) -> Point:
        return Point(self.x + shift, self.y + self.height / 2)

    def left(self, shift: float = 0) -> Point:
        return Point(self.x - self.width / 2, self.y + shift)

    def right(self, shift: float = 0) -> Point:
        return Point(self.x + self.width / 2, self.y + shift)

    def overlaps(self, other: Area) -> bool:
        """True where the two share more than a line along their borders."""
        across, down = abs(self.x - other.x), abs(self.y - other.y)
        return 2 * across < self.width + other.width - 2 and 2 * down < self.height + other.height - 2

    def drawn(self, radius: float, style: str) -> str:
        x, y = self.left().x, self.top().y
        size = f'width="{self.width:g}" height="{self.height:g}"'
        return f'<rect x="{x:g}" y="{y:g}" {size} rx="{radius:g}" {style}/>'


class Wire(NamedTuple):
    points: tuple[Point, ...]
    colour: str
    arrow: bool
    width: float

    @property
    def pieces(self) -> list[tuple[Point, Point]]:
        return list(pairwise(self.points))

    @property
    def areas(self) -> list[Area]:
        """Its pieces as rectangles without width."""
        return [Area((a.x + b.x) / 2, (a.y + b.y) / 2, abs(a.x - b.x), abs(a.y - b.y)) for a, b in self.pieces]


class Picture:
    """Boxes, circles, labels and the wires between them, inside one frame that stands for one step."""

    def __init__(self, title: str, description: str, width: float, height: float) -> None:
        self.title = title
        self.description = description
        self.width = width
        self.height = height
        # The frame leaves room around it for the names of what comes in and goes out.
        self.frame = Area(width / 2, height / 2, width - 180, height - 112)
        self.wires: list[Wire] = []
        self.areas: list[Area] = []
        self.marks: list[str] = []

    def box(
        self, x: float, y: float, *lines: str, colour: str = ORANGE, width: float = 150, height: float = 56
    ) -> Area:
        """Something with weights, or something random; of several lines the first is written larger."""
        dashes = ' stroke-dasharray="5 3"' if colour == PURPLE else ""
        return self._shape(Area(x, y, width, height), lines, 6, colour, dashes)

    def pill(self, x: float, y: float, line: str, *, width: float = 60) -> Area:
        """A function without weights."""
        return self._shape(Area(x, y, width, 30), [line], 15, GREY)

    def _shape(self, area: Area, lines: Sequence[str], radius: float, colour: str, dashes: str = "") -> Area:
        self.marks.append(area.drawn(radius, f'fill="{PALE[colour]}" stroke="{colour}" stroke-width="2"{dashes}'))
        sizes = [17.0 if len(lines) > 1 and number == 0 else 13.0 for number in range(len(lines))]
        y = area.y - sum(sizes) * 0.65
        for line, size in zip(lines, sizes, strict=True):
            y += size * 1.3
            if text_width(line, size) > area.width - 6:
                raise ValueError(f"{self.title}: '{line}' does not fit into its box of width {area.width:g}.")
            self.marks.append(text(Point(area.x, y - size * 0.3), line, size, "middle", INK))
        self.areas.append(area)
        return area

    def circle(self, x: float, y: float, sign: str) -> Area:
        """An operation on two values, unit by unit."""
        area = Area(x, y, 28, 28)
        self.marks.append(f'<circle cx="{x:g}" cy="{y:g}" r="14" fill="#ffffff" stroke="{INK}" stroke-width="2"/>')
        if sign == "⊙":
            self.marks.append(f'<circle cx="{x:g}" cy="{y:g}" r="3.5" fill="{INK}"/>')
        elif sign == "+":
            self.marks.append(f'<path d="M{x - 7:g} {y:g}H{x + 7:g}M{x:g} {y - 7:g}V{y + 7:g}" {stroke(INK, 2)}/>')
        else:
            size = 20 if sign == "÷" else 15
            self.marks.append(text(Point(x, y + size * 0.35), sign, size, "middle", INK))
        self.areas.append(area)
        return area

    def joint(self, x: float, y: float) -> Area:
        """Two values side by side as one vector."""
        area = Area(x, y, 6, 40)
        self.marks.append(area.drawn(2, f'fill="{INK}"'))
        self.areas.append(area)
        return area

    def group(self, area: Area) -> None:
        """A dotted line around things that belong together; wires may cross it."""
        self.marks.append(area.drawn(10, f'fill="none" stroke="{GREY}" stroke-dasharray="2 4"'))

    def label(
        self, x: float, y: float, content: str, *, anchor: str = "start", size: float = 15, colour: str = INK
    ) -> None:
        width = text_width(content, size)
        centre = x + {"start": width / 2, "middle": 0, "end": -width / 2}[anchor]
        self.areas.append(Area(centre, y - size * 0.35, width, size))
        self.marks.append(text(Point(x, y), content, size, anchor, colour))

    def wire(self, *through: Point, colour: str = GREY, arrow: bool = True, width: float = 2) -> None:
        """A line with rounded corners; where two points are not in line it goes up or down first, then across."""
        points = [through[0]]
        for point in through[1:]:
            if point.x != points[-1].x and point.y != points[-1].y:
                points.append(Point(points[-1].x, point.y))
            points.append(point)
        self.wires.append(Wire(tuple(points), colour, arrow, width))

    def enter(self, name: str, y: float, *through: Point) -> None:
        """A previous state, from the left."""
        start = Point(self.frame.left().x - 26, y)
        self.label(start.x - 7, y + 6, f"{name}_{{t−1}}", anchor="end", size=19, colour=STATE[name])
        self.wire(start, *through, colour=STATE[name], width=3)

    def leave(self, name: str, *through: Point) -> None:
        """A new state, to the right."""
        end = Point(self.frame.right().x + 26, through[-1].y)
        self.wire(*through, end, colour=STATE[name], width=3)
        self.label(end.x + 7, end.y + 6, f"{name}_t", size=19, colour=STATE[name])

    def rise(self, name: str, start: Point) -> None:
        """The output to the layer above."""
        end = Point(start.x, self.frame.top().y - 20)
        self.wire(start, end, colour=STATE[name], width=3)
        self.label(end.x, end.y - 10, f"{name}_t", anchor="middle", size=19, colour=STATE[name])

    def feed(self, x: float, *through: Point) -> None:
        """The input, from below."""
        start = Point(x, self.frame.bottom().y + 20)
        self.label(x, start.y + 22, "x_t", anchor="middle", size=19, colour=STATE["x"])
        self.wire(start, *through, colour=STATE["x"], width=3)

    def check(self) -> None:
        for number, area in enumerate(self.areas):
            for other in (*self.areas[:number], *(piece for wire in self.wires for piece in wire.areas)):
                if area.overlaps(other):
                    raise ValueError(f"{self.title}: {area} and {other} lie on each other.")

    def drawn(self) -> Iterator[str]:
        """The elements, without the sheet that they lie on."""
        self.check()
        yield self.frame.drawn(16, f'fill="{FRAME}" stroke="#c9ced6" stroke-width="1.5"')
        for number, wire in enumerate(self.wires):
            for under in self.wires[:number]:
                yield from gaps(wire, under)
            yield from drawn_wire(wire)
        for wire in self.wires:
            x, y = start = wire.points[0]
            if any(
                start == other.points[-1] or any(lies_on(start, a, b) for a, b in other.pieces) for other in self.wires
            ):
                yield f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="{wire.colour}"/>'
        yield from self.marks


def drawn_wire(wire: Wire, radius: float = 9) -> Iterator[str]:
    *_, before, end = wire.points
    length = abs(end.x - before.x) + abs(end.y - before.y)
    along = Point((end.x - before.x) / length, (end.y - before.y) / length)
    head = 10 if wire.arrow else 0
    stop = Point(end.x - along.x * (head - 1), end.y - along.y * (head - 1)) if head else end
    path = [f"M{wire.points[0].x:g} {wire.points[0].y:g}"]
    for a, corner, b in zip(wire.points, wire.points[1:], wire.points[2:], strict=False):
        near, far = (towards(corner, point, radius) for point in (a, b))
        path.append(f"L{near.x:g} {near.y:g}Q{corner.x:g} {corner.y:g} {far.x:g} {far.y:g}")
    path.append(f"L{stop.x:g} {stop.y:g}")
    yield f'<path d="{"".join(path)}" {stroke(wire.colour, wire.width)}/>'
    if wire.arrow:
        back, side = Point(end.x - along.x * head, end.y - along.y * head), Point(along.y * 5, along.x * 5)
        yield (
            f'<path d="M{end.x:g} {end.y:g}L{back.x + side.x:g} {back.y + side.y:g}'
            f'L{back.x - side.x:g} {back.y - side.y:g}Z" fill="{wire.colour}"/>'
        )


def gaps(over: Wire, under: Wire) -> Iterator[str]:
    """What interrupts the lower wire wherever two wires cross without meeting."""
    for a, b in over.pieces:
        for c, d in under.pieces:
            crossing = Point(a.x, c.y) if a.x == b.x else Point(c.x, a.y)
            if lies_on(crossing, a, b) and lies_on(crossing, c, d):
                yield f'<circle cx="{crossing.x:g}" cy="{crossing.y:g}" r="7" fill="{FRAME}"/>'


def towards(start: Point, end: Point, distance: float) -> Point:
    length = abs(end.x - start.x) + abs(end.y - start.y)
    share = min(distance, length / 2) / length
    return Point(start.x + (end.x - start.x) * share, start.y + (end.y - start.y) * share)


def lies_on(point: Point, a: Point, b: Point) -> bool:
    """True strictly between the ends of a level or upright line."""
    if a.x == b.x == point.x:
        return min(a.y, b.y) < point.y < max(a.y, b.y)
    return a.y == b.y == point.y and min(a.x, b.x) < point.x < max(a.x, b.x)


def stroke(colour: str, width: float) -> str:
    return f'fill="none" stroke="{colour}" stroke-width="{width:g}" stroke-linecap="round"'


def runs(content: str) -> Iterator[tuple[str, str]]:
    """'h_{t−1} + b' as ("", "h"), ("_", "t−1"), ("", " + b"): a text in pieces on, below or above the line."""
    for plain, shift, group, single in re.findall(r"([^_^]+)|([_^])(?:\{([^}]*)\}|(.))", content):
        yield shift, plain or group or single


def text_width(content: str, size: float) -> float:
    """About as wide as a wide font sets it."""
    ems = 0.0
    for shift, run in runs(content):
        for letter in run:
            width = 0.36 if letter in " ijlftr|()[],;." else 0.86 if letter in "W+−=≤⊙mw" else 0.61
            ems += 0 if unicodedata.combining(letter) else width * (0.72 if shift else 1)
    return size * ems


def text(at: Point, content: str, size: float, anchor: str, colour: str) -> str:
    """Words upright, single letters slanted, _{…} below and ^{…} above the line."""
    spans, height = [], 0.0
    for shift, run in runs(content):
        wanted = {"": 0.0, "_": size * 0.25, "^": -size * 0.35}[shift]
        move = f' dy="{wanted - height:g}"' if wanted != height else ""
        small = f' font-size="{size * 0.72:g}"' if shift else ""
        slanted = re.sub(
            r"(?<![^\W\d_])([^\W\d_σφ][\u0300-\u036f]?)(?![^\W\d_\u0300-\u036f])",
            r'<tspan font-style="italic">\1</tspan>',
            escape(run),
        )
        spans.append(f"<tspan{move}{small}>{slanted}</tspan>")
        height = wanted
    return (
        f'<text x="{at.x:g}" y="{at.y:g}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}">'
        f"{''.join(spans)}</text>"
    )


def svg(*pictures: Picture) -> str:
    """One file: pictures below each other on a white sheet, which a dark page leaves readable."""
    width, height = max(picture.width for picture in pictures), sum(picture.height for picture in pictures)
    title, description = pictures[0].title, " ".join(picture.description for picture in pictures)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-labelledby="title description" font-family="sans-serif" '
        'xml:space="preserve">',  # or the spaces around a subscript would be lost
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="description">{escape(description)}</desc>',
        f'<rect width="{width:g}" height="{height:g}" rx="18" fill="#ffffff"/>',
    ]
    y = 0.0
    for picture in pictures:
        lines += [f'<g transform="translate({(width - picture.width) / 2:g} {y:g})">', *picture.drawn(), "</g>"]
        y += picture.height
    return "\n".join([*lines, "</svg>", ""])


def affine(gate: str, recurrent: str = "U") -> str:
    """What a gate squashes: W_f x_t + U_f h_{t−1} + b_f."""
    return f"W_{gate} x_t + {recurrent}_{gate} h_{{t−1}} + b_{gate}"


def spread(picture: Picture, start: Point, targets: Sequence[Area], colour: str, width: float = 3) -> None:
    """One value to the undersides of several boxes, along a rail at the height of `start`."""
    *others, last = sorted(targets, key=lambda target: abs(target.x - start.x))
    picture.wire(start, Point(last.x, start.y), last.bottom(), colour=colour, width=width)
    for target in others:
        picture.wire(Point(target.x, start.y), target.bottom(), colour=colour, width=width)


# The Elman family: a term of the past, a term of the input, their sum, φ.


def sum_and_squash(picture: Picture, past: Area, x: float, weights: str, phi: Area) -> None:
    """past + W x, through φ, out."""
    total = picture.circle(x, past.y, "+")
    inputs = picture.box(x, past.y + 88, weights, colour=GREEN, width=104, height=40)
    picture.wire(past.right(), total.left())
    picture.wire(inputs.top(), total.bottom())
    picture.feed(x, inputs.bottom())
    picture.wire(total.right(), phi.left())
    picture.label((total.right().x + phi.left().x) / 2 - 4, past.y - 9, "a_t", anchor="middle")
    picture.leave("h", phi.right())
    picture.rise("h", Point(phi.right().x + 32, past.y))


def elman() -> str:
    picture = Picture("One step of the Elman cell", "h_t = φ(W x_t + U h_{t−1} + b).", 680, 310)
    past = picture.box(200, 120, "U h_{t−1}", colour=GREEN, width=104, height=40)
    picture.enter("h", 120, past.left())
    sum_and_squash(picture, past, 330, "W x_t + b", picture.pill(460, 120, "φ", width=64))
    return svg(picture)


def orthogonal_elman() -> str:
    picture = Picture(
        "One step of the orthogonal Elman cell",
        "a_t = W x_t + P diag(s) Qᵀ h_{t−1} with P and Q orthogonal; h_t = sign(a_t) relu(|a_t| + b), the modReLU. "
        "With margin m = 0 the matrix U is P alone.",
        864,
        366,
    )
    y = 176
    turn_back = picture.box(190, y, "Q^T", colour=GREEN, width=50, height=40)
    stretch = picture.circle(275, y, "⊙")
    turn = picture.box(360, y, "P", colour=GREEN, width=50, height=40)
    scale = picture.box(275, 110, "s = 1 + m (2σ(p) − 1)", colour=GREEN, width=176, height=36)
    picture.label(275, 226, "U = P diag(s) Q^T;  m = 0: U = P", anchor="middle", size=13)
    picture.group(Area(275, 161, 256, 156))
    picture.enter("h", y, turn_back.left())
    picture.wire(turn_back.right(), stretch.left())
    picture.wire(scale.bottom(), stretch.top())
    picture.wire(stretch.right(), turn.left())
    phi = picture.box(626, y, "modReLU", "sign(a_t) relu(|a_t| + b)", colour=SKY, width=172)
    sum_and_squash(picture, turn, 468, "W x_t", phi)
    return svg(picture)


def ind_rnn() -> str:
    picture = Picture(
        "One step of the independently recurrent cell",
        "h_t = relu(W x_t + u ⊙ h_{t−1} + b) with |u| ≤ 2^(1/horizon).",
        680,
        344,
    )
    past = picture.circle(200, 154, "⊙")
    weights = picture.box(200, 96, "u,  |u| ≤ 2^{1/horizon}", colour=GREEN, width=150, height=36)
    picture.wire(weights.bottom(), past.top())
    picture.enter("h", 154, past.left())
    sum_and_squash(picture, past, 330, "W x_t + b", picture.pill(460, 154, "relu", width=64))
    return svg(picture)


# The LSTM family: what is written into c, and what is read out of it.

LSTM_GATES = (("f", 226, "σ", ORANGE), ("i", 394, "σ", ORANGE), ("c", 562, "tanh", SKY), ("o", 730, "σ", ORANGE))
READ_X = 838  # the column in which h_t is read out of c_t


def join(picture: Picture, y: float, gates: Sequence[Area]) -> None:
    """x_t and h_{t−1} side by side, then to every gate."""
    joint = picture.joint(128, y)
    picture.enter("h", y - 10, joint.left(-10))
    picture.feed(108, joint.left(10))
    spread(picture, joint.right(), gates, INK)
    picture.label(joint.x + 10, y + 20, "x_t, h_{t−1}", size=13)


def name_output(picture: Picture, box: Area, content: str, shift: float = 0) -> None:
    """Says beside the wire what leaves the top of a box."""
    picture.label(box.x + shift + 8, box.top().y - 11, content)


def write_cell(picture: Picture, y: float, forget: Area, written: Area) -> Area:
    """c_t = f_t ⊙ c_{t−1} + written; returns the sum."""
    kept = picture.circle(forget.x, y, "⊙")
    total = picture.circle(written.x, y, "+")
    picture.enter("c", y, kept.left())
    picture.wire(forget.top(), kept.bottom())
    name_output(picture, forget, "f_t")
    picture.wire(kept.right(), total.left(), colour=BLUE, width=3)
    picture.wire(written.top(), total.bottom())
    picture.leave("c", total.right())
    return total


def read_cell(picture: Picture, y: float, output: Area, rail: float, steps: Sequence[Area]) -> None:
    """h_t = o_t ⊙ tanh(c_t); the steps on the way down from c_t are the tanh and what comes before it."""
    read = picture.circle(READ_X, output.top().y - 46, "⊙")
    start = Point(READ_X, y)
    for step in (*steps, read):
        picture.wire(start, step.top(), colour=BLUE)
        start = step.bottom()
    picture.wire(output.top(), read.left())
    name_output(picture, output, "o_t")
    picture.leave("h", read.bottom(), Point(READ_X, rail))
    picture.rise("h", Point(max(step.right().x for step in steps) + 16, rail))


def write_product(picture: Picture, y: float, enter: Area, candidate: Area) -> Area:
    """i_t ⊙ the candidate, above it."""
    written = picture.circle(candidate.x, y, "⊙")
    picture.wire(enter.top(), written.left())
    name_output(picture, enter, "i_t")
    picture.wire(candidate.top(), written.bottom())
    return written


def lstm() -> str:
    picture = Picture(
        "One step of the LSTM",
        "f_t, i_t and o_t are σ of W x_t + U h_{t−1} + b, ĉ_t is tanh of it; c_t = f_t ⊙ c_{t−1} + i_t ⊙ ĉ_t; "
        "h_t = o_t ⊙ tanh(c_t).",
        1010,
        438,
    )
    boxes = [picture.box(x, 286, phi, affine(gate), colour=colour) for gate, x, phi, colour in LSTM_GATES]
    forget, enter, candidate, output = boxes
    join(picture, 350, boxes)
    write_cell(picture, 96, forget, write_product(picture, 168, enter, candidate))
    name_output(picture, candidate, "ĉ_t")
    read_cell(picture, 96, output, 350, [picture.pill(READ_X, 149, "tanh")])
    return svg(picture)


def peephole_lstm() -> str:
    picture = Picture(
        "One step of the peephole LSTM",
        "As the LSTM, but f_t and i_t also see P c_{t−1}, and o_t sees P_o c_t, the new cell.",
        1010,
        458,
    )
    seen = {"f": ["P_f c_{t−1}"], "i": ["P_i c_{t−1}"], "c": [], "o": ["P_o c_t"]}
    boxes = []
    for gate, x, phi, colour in LSTM_GATES:
        past = f"W_{gate} x_t + U_{gate} h_{{t−1}}"
        rest = "".join(f" + {term}" for term in (*seen[gate], f"b_{gate}")).strip()
        boxes.append(picture.box(x, 300, phi, past, rest, colour=colour, height=70))
    forget, enter, candidate, output = boxes
    join(picture, 370, boxes)
    total = write_cell(picture, 96, forget, write_product(picture, 168, enter, candidate))
    name_output(picture, candidate, "ĉ_t")
    read_cell(picture, 96, output, 370, [picture.pill(READ_X, 152, "tanh")])
    # Peepholes come in from above, beside what goes out.
    shift, rail = -48, 214
    picture.wire(Point(146, 96), Point(146, rail), Point(enter.x + shift, rail), enter.top(shift), colour=BLUE)
    picture.wire(Point(forget.x + shift, rail), forget.top(shift), colour=BLUE)
    picture.wire(Point(output.x + shift, total.y), output.top(shift), colour=BLUE)
    return svg(picture)


def coupled_lstm() -> str:
    picture = Picture(
        "One step of the coupled LSTM",
        "As the LSTM with i_t = 1 − f_t: c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ ĉ_t; h_t = o_t ⊙ tanh(c_t).",
        1010,
        438,
    )
    boxes = [
        picture.box(x, 286, phi, affine(gate), colour=colour) for gate, x, phi, colour in LSTM_GATES if gate != "i"
    ]
    forget, candidate, output = boxes
    join(picture, 350, boxes)
    written = picture.circle(candidate.x, 168, "⊙")
    rest = picture.circle(394, 168, "1−")
    write_cell(picture, 96, forget, written)
    picture.wire(Point(forget.x, 168), rest.left())
    picture.wire(rest.right(), written.left())
    picture.label(rest.x + 58, 159, "i_t = 1 − f_t", anchor="start")
    picture.wire(candidate.top(), written.bottom())
    name_output(picture, candidate, "ĉ_t")
    read_cell(picture, 96, output, 350, [picture.pill(READ_X, 149, "tanh")])
    return svg(picture)


def layer_norm_lstm() -> str:
    picture = Picture(
        "One step of the layer-normalised LSTM",
        "a_t = LN(W x_t; g₁) + LN(U h_{t−1}; g₂) + b holds a quarter for each of f_t, i_t, ĉ_t, o_t; "
        "c_t = f_t ⊙ c_{t−1} + i_t ⊙ ĉ_t; h_t = o_t ⊙ tanh(LN(c_t; g₃, b₃)).",
        1040,
        524,
    )
    pills = [picture.pill(x, 316, phi) for gate, x, phi, _ in LSTM_GATES]
    forget, enter, candidate, output = pills
    write_cell(picture, 96, forget, write_product(picture, 180, enter, candidate))
    name_output(picture, candidate, "ĉ_t")
    normal = picture.box(READ_X, 148, "LN( · ; g_3, b_3)", colour=GREEN, width=112, height=34)
    low, rail = 428, 370
    past = picture.box(188, low, "U h_{t−1}", colour=GREEN, width=74, height=40)
    normal_past = picture.box(299, low, "LN( · ; g_2)", colour=GREEN, width=88, height=40)
    total = picture.circle(enter.x, low, "+")
    normal_input = picture.box(504, low, "LN( · ; g_1) + b", colour=GREEN, width=116, height=40)
    inputs = picture.box(640, low, "W x_t", colour=GREEN, width=74, height=40)
    picture.enter("h", low, past.left())
    picture.wire(past.right(), normal_past.left())
    picture.wire(normal_past.right(), total.left())
    picture.feed(inputs.x, inputs.bottom())
    picture.wire(inputs.left(), normal_input.right())
    picture.wire(normal_input.left(), total.right())
    # The sum of 4H values goes up; each gate takes its quarter.
    picture.wire(total.top(), enter.bottom(), colour=INK, width=3)
    picture.wire(Point(enter.x, rail), Point(forget.x, rail), forget.bottom(), colour=INK, width=3)
    spread(picture, Point(enter.x, rail), [candidate, output], INK)
    for gate, x, _, _ in LSTM_GATES:
        picture.label(x + 9, rail - 16, f"a_{gate}", size=13)
    read_cell(picture, 96, output, low, [normal, picture.pill(READ_X, 202, "tanh")])
    return svg(picture)


# The GRU family: the new state is a mix of the old one and the candidate.


def blend(picture: Picture, state: str, y: float, gate: Point, candidate: Point, *, direct: str) -> None:
    """s_t = (1 − g) ⊙ s_{t−1} + g ⊙ ŝ; or, where the gate goes direct to the "old" state, the other way round.

    The gate's and the candidate's wires come up from the points given.
    """
    split = y + 94
    old, new = picture.circle(gate.x, y, "⊙"), picture.circle(candidate.x, split, "⊙")
    total = picture.circle(candidate.x, y, "+")
    if direct == "new":
        rest = picture.circle(gate.x, y + 48, "1−")
        picture.wire(gate, rest.bottom())
        picture.wire(rest.top(), old.bottom())
        picture.wire(Point(gate.x, split), new.left())
    else:
        rest = picture.circle((gate.x + candidate.x) / 2, split, "1−")
        picture.wire(gate, old.bottom())
        picture.wire(Point(gate.x, split), rest.left())
        picture.wire(rest.right(), new.left())
    picture.enter(state, y, old.left())
    picture.wire(old.right(), total.left(), colour=STATE[state], width=3)
    picture.wire(candidate, new.bottom())
    picture.wire(new.top(), total.bottom())
    picture.leave(state, total.right())
    picture.rise("h", Point(total.right().x + 44, y))


def gru_gates(picture: Picture, end: Point) -> tuple[Area, Area]:
    """z and r on the left; h_{t−1} from above, on to `end`."""
    update, reset = (
        picture.box(x, 340, "σ", affine(gate), colour=ORANGE, width=152) for gate, x in (("z", 230), ("r", 408))
    )
    rail, shift = 258, -40
    picture.wire(Point(130, 96), Point(130, rail), end, colour=VERMILLION)
    for gate in (update, reset):
        picture.wire(Point(gate.x + shift, rail), gate.top(shift), colour=VERMILLION)
    picture.label(138, rail - 9, "h_{t−1}", size=13)
    return update, reset


def gru_before() -> str:
    picture = Picture(
        "One step of the GRU, reset before the product",
        "r_t and z_t are σ of W x_t + U h_{t−1} + b; ĥ_t = tanh(W_h x_t + U_h (r_t ⊙ h_{t−1}) + b_h); "
        "h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ ĥ_t.",
        930,
        488,
    )
    kept = picture.circle(532, 258, "⊙")
    update, reset = gru_gates(picture, kept.left())
    candidate = picture.box(686, 340, "tanh", "W_h x_t + U_h (r_t ⊙ h_{t−1}) + b_h", colour=SKY, width=214)
    picture.wire(reset.right(), Point(kept.x, reset.y), kept.bottom())
    picture.label(kept.x + 8, 294, "r_t")
    picture.wire(kept.right(), Point(candidate.x - 40, kept.y), candidate.top(-40))
    picture.label(554, 249, "r_t ⊙ h_{t−1}", size=13)
    blend(picture, "h", 96, update.top(40), candidate.top(40), direct="new")
    name_output(picture, update, "z_t", 40)
    name_output(picture, candidate, "ĥ_t", 40)
    picture.feed(update.x, update.bottom())
    spread(picture, Point(update.x, 406), [reset, candidate], GREEN)
    return svg(picture)


def gru_after() -> str:
    picture = Picture(
        "One step of the GRU, reset after the product",
        "r_t and z_t are σ of W x_t + U h_{t−1} + b; ĥ_t = tanh(W_h x_t + b_h + r_t ⊙ (U_h h_{t−1} + b′)); "
        "h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ ĥ_t.",
        1010,
        488,
    )
    past = picture.box(560, 258, "U_h h_{t−1} + b′", colour=GREEN, width=112, height=40)
    update, reset = gru_gates(picture, past.left())
    kept, total = picture.circle(664, 258, "⊙"), picture.circle(742, 258, "+")
    inputs = picture.box(742, 340, "W_h x_t + b_h", colour=GREEN, width=112, height=40)
    squash = picture.pill(828, 258, "tanh")
    picture.wire(past.right(), kept.left())
    picture.wire(reset.right(), Point(kept.x, reset.y), kept.bottom())
    picture.label(kept.x - 8, 294, "r_t", anchor="end")
    picture.wire(kept.right(), total.left())
    picture.wire(inputs.top(), total.bottom())
    picture.wire(total.right(), squash.left())
    blend(picture, "h", 96, update.top(40), squash.top(), direct="new")
    name_output(picture, update, "z_t", 40)
    name_output(picture, squash, "ĥ_t")
    picture.feed(update.x, update.bottom())
    spread(picture, Point(update.x, 406), [reset, inputs], GREEN)
    return svg(picture)


def min_gru() -> str:
    picture = Picture(
        "One step of the minimal GRU",
        "z_t = σ(W_z x_t + b_z); h̃_t = W_h x_t + b_h; h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ h̃_t.",
        610,
        430,
    )
    update = picture.box(200, 282, "σ", "W_z x_t + b_z", width=116)
    candidate = picture.box(400, 282, "W_h x_t + b_h", colour=GREEN, width=116)
    blend(picture, "h", 96, update.top(), candidate.top(), direct="new")
    name_output(picture, update, "z_t")
    name_output(picture, candidate, "h̃_t")
    picture.feed(update.x, update.bottom())
    spread(picture, Point(update.x, 346), [candidate], GREEN)
    return svg(picture)


def min_lstm() -> str:
    picture = Picture(
        "One step of the minimal LSTM",
        "f_t = σ(W_f x_t + b_f); i_t = σ(W_i x_t + b_i); h̃_t = W_h x_t + b_h; "
        "h_t = (f_t ⊙ h_{t−1} + i_t ⊙ h̃_t) / (f_t + i_t).",
        840,
        476,
    )
    y, scale, mix, low = 96, 148, 200, 250
    forget = picture.box(190, 328, "σ", "W_f x_t + b_f", width=116)
    enter = picture.box(370, 328, "σ", "W_i x_t + b_i", width=116)
    candidate = picture.box(530, 328, "W_h x_t + b_h", colour=GREEN, width=116)
    kept, total, share = picture.circle(190, y, "⊙"), picture.circle(530, y, "+"), picture.circle(640, y, "÷")
    written, both = picture.circle(530, mix, "⊙"), picture.circle(280, low, "+")
    picture.enter("h", y, kept.left())
    picture.wire(forget.top(), kept.bottom())
    picture.wire(enter.top(), written.left())
    picture.wire(Point(forget.x, low), both.left())
    picture.wire(Point(enter.x, low), both.right())
    picture.wire(candidate.top(), written.bottom())
    picture.wire(kept.right(), total.left(), colour=VERMILLION, width=3)
    picture.wire(total.right(), share.left(), colour=VERMILLION, width=3)
    picture.wire(both.top(), Point(both.x, scale), Point(share.x, scale), share.bottom())
    picture.wire(written.top(), total.bottom())
    picture.label(both.x + 10, scale - 9, "f_t + i_t")
    for box, content in ((forget, "f_t"), (enter, "i_t"), (candidate, "h̃_t")):
        name_output(picture, box, content)
    picture.leave("h", share.right())
    picture.rise("h", Point(share.right().x + 44, y))
    picture.feed(forget.x, forget.bottom())
    spread(picture, Point(forget.x, 392), [enter, candidate], GREEN)
    return svg(picture)


def slstm() -> str:
    picture = Picture(
        "One step of the sLSTM",
        "ℓ_t = log σ(W_f x_t + R_f h_{t−1} + b_f); ĩ_t = W_i x_t + R_i h_{t−1} + b_i; z_t is tanh and o_t is σ of "
        "such a sum; m_t = max(ℓ_t + m_{t−1}, ĩ_t); f_t = exp(ℓ_t + m_{t−1} − m_t); i_t = exp(ĩ_t − m_t); "
        "c_t = f_t ⊙ c_{t−1} + i_t ⊙ z_t; n_t = f_t ⊙ n_{t−1} + i_t; h_t = o_t ⊙ c_t / n_t.",
        1080,
        672,
    )
    c, h, n, mix, exp, m, low = 96, 156, 216, 280, 340, 410, 516
    forget = picture.box(226, low, "log σ", affine("f", "R"), width=156)
    enter = picture.box(420, low, affine("i", "R"), colour=GREEN, width=156)
    candidate = picture.box(672, low, "tanh", affine("z", "R"), colour=SKY, width=156)
    output = picture.box(850, low, "σ", affine("o", "R"), width=156)
    join(picture, 582, [forget, enter, candidate, output])
    for box, content in ((forget, "ℓ_t"), (enter, "ĩ_t"), (candidate, "z_t"), (output, "o_t")):
        name_output(picture, box, content)

    shifted, largest = picture.circle(226, m, "+"), picture.pill(420, m, "max", width=56)
    forget_gate = picture.pill(310, exp, "exp(ℓ_t + m_{t−1} − m_t)", width=204)
    input_gate = picture.pill(570, exp, "exp(ĩ_t − m_t)", width=112)
    picture.enter("m", m, shifted.left())
    picture.wire(forget.top(), shifted.bottom())
    picture.wire(shifted.right(), largest.left(), colour=BLACK)
    picture.wire(Point(310, m), forget_gate.bottom(), colour=BLACK)
    picture.wire(enter.top(), largest.bottom())
    picture.leave("m", largest.right())
    corner = Point(466, exp)
    picture.wire(Point(corner.x, m), corner, colour=BLACK, arrow=False)
    picture.wire(corner, forget_gate.right(), colour=BLACK)
    picture.wire(corner, input_gate.left(), colour=BLACK)
    picture.wire(Point(enter.x, 450), Point(input_gate.x, 450), input_gate.bottom())

    kept_n, total_n = picture.circle(310, n, "⊙"), picture.circle(input_gate.x, n, "+")
    kept_c, total_c = picture.circle(250, c, "⊙"), picture.circle(candidate.x, c, "+")
    written = picture.circle(candidate.x, mix, "⊙")
    picture.enter("n", n, kept_n.left())
    picture.wire(kept_n.right(), total_n.left(), colour=PURPLE, width=3)
    picture.leave("n", total_n.right())
    picture.enter("c", c, kept_c.left())
    picture.wire(kept_c.right(), total_c.left(), colour=BLUE, width=3)
    picture.leave("c", total_c.right())
    picture.wire(forget_gate.top(), kept_n.bottom())
    picture.wire(Point(kept_n.x, mix), Point(kept_c.x, mix), kept_c.bottom())
    picture.label(kept_n.x + 8, mix - 6, "f_t")
    picture.wire(input_gate.top(), total_n.bottom())
    picture.wire(Point(input_gate.x, mix), written.left())
    picture.label(input_gate.x + 8, mix - 10, "i_t")
    picture.wire(candidate.top(), written.bottom())
    picture.wire(written.top(), total_c.bottom())

    share, read = picture.circle(760, h, "÷"), picture.circle(output.x, h, "⊙")
    picture.wire(Point(share.x, c), share.top(), colour=BLUE)
    picture.wire(Point(share.x, n), share.bottom(), colour=PURPLE)
    picture.wire(share.right(), read.left())
    picture.wire(output.top(), read.bottom())
    picture.leave("h", read.right())
    picture.rise("h", Point(output.x + 60, h))
    return svg(picture)


# The wrappers: what they put around a cell.


def zoneout() -> str:
    picture = Picture(
        "One step of zoneout",
        "The cell makes s̃_t from s_{t−1} and x_t; s_t = m_t ⊙ s_{t−1} + (1 − m_t) ⊙ s̃_t, for each state s.",
        710,
        448,
    )
    lines = "m_t", "Bernoulli(rate), each step", "in evaluation: rate"
    mask = picture.box(222, 292, *lines, colour=PURPLE, width=184, height=70)
    cell = picture.box(500, 306, "the cell", "f(x_t, s_{t−1})", colour=GREY, width=120, height=98)
    blend(picture, "s", 96, mask.top(), cell.top(), direct="old")
    picture.wire(Point(112, 96), Point(112, cell.y + 35), cell.left(35), colour=VERMILLION)
    picture.label(cell.left().x - 60, cell.y + 26, "s_{t−1}", size=13)
    name_output(picture, cell, "s̃_t")
    picture.feed(cell.x, cell.bottom())
    return svg(picture)


def products_and_rest(picture: Picture, product: Area, inputs: Area, *, before: Area) -> None:
    """Any cell: the past through U, the input through W, and the rest, which also sees the states themselves."""
    y = 96
    rest = picture.box(inputs.x, 128, "rest of the cell", colour=GREY, width=124, height=92)
    total = picture.circle(inputs.x, product.y, "+")
    picture.enter("s", y, rest.left(y - rest.y))
    picture.wire(Point(120, y), Point(120, product.y), before.left(), colour=VERMILLION)
    picture.label(128, product.y - 9, "h_{t−1}", size=13)
    picture.wire(product.right(), total.left())
    picture.wire(inputs.top(), total.bottom())
    picture.wire(total.top(), rest.bottom())
    picture.leave("s", rest.right())
    picture.rise("h", Point(rest.right().x + 40, rest.y))


def variational_dropout() -> Picture:
    picture = Picture(
        "One step of recurrent dropout",
        "Variational: every U h_{t−1} becomes U (m ⊙ h_{t−1}) and W x_t becomes W (n ⊙ x_t), with one m and one n for "
        "all steps of a sequence.",
        790,
        490,
    )
    mask = picture.box(250, 160, "m", "one per sequence", colour=PURPLE, width=136, height=52)
    masked = picture.circle(250, 244, "⊙")
    product = picture.box(390, 244, "U (m ⊙ h_{t−1})", colour=GREEN, width=124, height=40)
    inputs = picture.box(550, 314, "W (n ⊙ x_t) + b", colour=GREEN, width=124, height=40)
    masked_input = picture.circle(550, 388, "⊙")
    input_mask = picture.box(390, 388, "n", "one per sequence", colour=PURPLE, width=136, height=52)
    picture.wire(mask.bottom(), masked.top())
    picture.wire(masked.right(), product.left())
    picture.wire(input_mask.right(), masked_input.left())
    picture.wire(masked_input.top(), inputs.bottom())
    picture.feed(550, masked_input.bottom())
    products_and_rest(picture, product, inputs, before=masked)
    return picture


def candidate_dropout() -> Picture:
    picture = Picture(
        "Candidate dropout in an LSTM",
        "Candidate: in an LSTM c_t = f_t ⊙ c_{t−1} + i_t ⊙ (m_t ⊙ ĉ_t), with a new m_t at every step.",
        1010,
        458,
    )
    boxes = [picture.box(x, 306, phi, affine(gate), colour=colour) for gate, x, phi, colour in LSTM_GATES]
    forget, enter, candidate, output = boxes
    masked = picture.circle(candidate.x, 226, "⊙")
    mask = picture.box(654, 226, "m_t", "new each step", colour=PURPLE, width=110, height=50)
    join(picture, 370, boxes)
    picture.wire(candidate.top(), masked.bottom())
    name_output(picture, candidate, "ĉ_t")
    picture.wire(mask.left(), masked.right())
    write_cell(picture, 96, forget, write_product(picture, 162, enter, masked))
    read_cell(picture, 96, output, 370, [picture.pill(READ_X, 158, "tanh")])
    return picture


def recurrent_dropout() -> str:
    pictures = variational_dropout(), candidate_dropout()
    for picture, mode in zip(pictures, ("variational", "candidate"), strict=True):
        picture.label(picture.frame.left().x + 8, 42, f'mode = "{mode}"', size=16)
    return svg(*pictures)


def weight_drop() -> str:
    picture = Picture(
        "One step of weight drop",
        "Every U h_{t−1} becomes Û h_{t−1} with Û = (m ⊙ U) / (1 − rate), m drawn once for all steps of a sequence.",
        830,
        424,
    )
    lines = "m / (1 − rate)", "m ~ Bernoulli(1 − rate),", "one draw for all steps"
    mask = picture.box(244, 166, *lines, colour=PURPLE, width=176, height=72)
    dropped = picture.circle(400, 166, "⊙")
    weights = picture.box(478, 166, "U", colour=GREEN, width=50, height=40)
    product = picture.box(400, 250, "Û h_{t−1}", colour=GREEN, width=104, height=40)
    inputs = picture.box(600, 320, "W x_t + b", colour=GREEN, width=104, height=40)
    picture.wire(mask.right(), dropped.left())
    picture.wire(weights.left(), dropped.right())
    picture.wire(dropped.bottom(), product.top())
    picture.label(408, 208, "Û")
    picture.feed(600, inputs.bottom())
    products_and_rest(picture, product, inputs, before=product)
    return svg(picture)


# Whole models.


def tagger() -> str:
    picture = Picture(
        "The tagger",
        "Each word is its vector beside what a recurrent network reads off its spelling; dropout with one mask for a "
        "whole row; a recurrent network in both directions; dropout again; scores for each tag, e_t = W h_t + b; and a "
        "CRF, whose A joins neighbouring tags.",
        1060,
        690,
    )
    words, tags = ("every", "bird", "sings"), ("DET", "NOUN", "VERB")
    columns = [(245 + 285 * number, word, tag) for number, (word, tag) in enumerate(zip(words, tags, strict=True))]
    before: list[tuple[Area, Area, Area]] = []
    for number, (x, word, tag) in enumerate(columns, 1):
        chosen = picture.pill(x, 96, f"y_{number}")
        scores = picture.box(x, 176, f"e_{number} = W h_{number} + b", colour=ORANGE, width=170, height=36)
        above = picture.box(x, 250, "m ⊙ [h→; h←] / (1 − rate)", colour=PURPLE, width=216, height=36)
        backward = picture.box(x + 62, 330, "h←", colour=SKY, width=70, height=40)
        forward = picture.box(x - 62, 402, "h→", colour=SKY, width=70, height=40)
        below = picture.box(x, 484, f"m' ⊙ x_{number} / (1 − rate)", colour=PURPLE, width=216, height=36)
        vector = picture.box(x - 62, 566, "word vector", colour=GREEN, width=100, height=40)
        spelling = picture.box(x + 62, 566, "spelling", colour=SKY, width=84, height=40)
        for start, shift in ((vector, -62), (spelling, 62)):
            picture.wire(start.top(), below.bottom(shift), colour=STATE["x"])
        rail = Point(x, 444)
        picture.wire(below.top(), rail, colour=STATE["x"], arrow=False)
        for target in (forward, backward):
            picture.wire(rail, Point(target.x, rail.y), target.bottom(), colour=STATE["x"])
        picture.wire(backward.top(), above.bottom(62), colour=STATE["h"])
        picture.wire(forward.top(), above.bottom(-62), colour=STATE["h"])
        picture.wire(above.top(), scores.bottom(), colour=STATE["h"])
        picture.wire(scores.top(), chosen.bottom())
        fork = Point(x, 620)
        picture.wire(Point(x, 654), fork, colour=STATE["x"], arrow=False)
        for target in (vector, spelling):
            picture.wire(fork, Point(target.x, fork.y), target.bottom(), colour=STATE["x"])
        picture.label(x, 676, word, anchor="middle", size=19, colour=STATE["x"])
        picture.wire(chosen.top(), Point(x, 40))
        picture.label(x, 30, tag, anchor="middle", size=19)
        if before:
            earlier, further, left = before[-1]
            picture.wire(earlier.right(), forward.left(), colour=STATE["h"], width=3)
            picture.wire(backward.left(), further.right(), colour=STATE["h"], width=3)
            picture.wire(left.right(), chosen.left(), colour=BLUE, width=3)
            picture.label((left.x + x) / 2, 86, f"A[y_{number - 1}, y_{number}]", anchor="middle", colour=BLUE)
        before.append((forward, backward, chosen))
    return svg(picture)


def attention() -> str:
    picture = Picture(
        "Attention",
        "A query is compared with the key of each place of the memory; a softmax over the real places makes weights of "
        "the scores; the context is the sum of the values, each times its weight.",
        900,
        640,
    )
    columns = (250, 450, 650)
    softmax = picture.pill(450, 290, "softmax over the real places", width=520)
    scores, latest = [], None
    for number, x in enumerate(columns, 1):
        place = f"h_{number}"
        key = picture.box(x, 506, f"k_{number} = W {place}", colour=ORANGE, width=126, height=40)
        picture.label(x, 618, place, anchor="middle", size=19, colour=STATE["x"])
        picture.wire(Point(x, 596), key.bottom(), colour=STATE["x"], width=3)
        score = picture.box(x, 386, f"score(q_t, k_{number})", colour=ORANGE, width=150, height=40)
        picture.wire(key.top(34), score.bottom(34), colour=STATE["x"], width=3)
        picture.wire(score.top(), softmax.bottom(x - softmax.x))
        picture.label(x + 8, 328, f"e_{{t{number}}}")
        scores.append(score)
        value = picture.box(x, 104, f"v_{number} = W' {place}", colour=ORANGE, width=126, height=40)
        picture.label(x, 26, place, anchor="middle", size=19, colour=STATE["x"])
        picture.wire(Point(x, 34), value.top(), colour=STATE["x"], width=3)
        times = picture.circle(x, 206, "⊙")
        picture.wire(softmax.top(x - softmax.x), times.bottom())
        picture.label(x + 8, 252, f"α_{{t{number}}}")
        picture.wire(value.bottom(), times.top(), colour=STATE["x"], width=3)
        if latest is None:
            latest = times
            continue
        plus = picture.circle(x + 60, times.y, "+")
        picture.wire(times.right(), plus.left(), colour=STATE["c"], width=3)
        turn = latest.right().x + 22
        picture.wire(
            latest.right(), Point(turn, times.y), Point(turn, 158), Point(plus.x, 158), plus.top(),
            colour=STATE["c"], width=3,
        )  # fmt: skip
        latest = plus
    assert latest is not None
    picture.leave("c", latest.right())
    start = Point(picture.frame.left().x - 26, 440)
    picture.label(start.x - 7, start.y + 6, "q_t", anchor="end", size=19, colour=STATE["s"])
    *others, last = scores
    picture.wire(start, Point(last.x - 34, start.y), last.bottom(-34), colour=STATE["s"], width=3)
    for score in others:
        picture.wire(Point(score.x - 34, start.y), score.bottom(-34), colour=STATE["s"], width=3)
    return svg(picture)


PICTURES: tuple[Callable[[], str], ...] = (
    elman,
    orthogonal_elman,
    ind_rnn,
    lstm,
    peephole_lstm,
    coupled_lstm,
    layer_norm_lstm,
    gru_before,
    gru_after,
    min_gru,
    min_lstm,
    slstm,
    zoneout,
    recurrent_dropout,
    weight_drop,
    tagger,
    attention,
)

MODELS = (tagger, attention)

FOLDERS = {
    DOCS / "cells" / "pictures": [draw for draw in PICTURES if draw not in MODELS],
    DOCS / "pictures": MODELS,
}


def main(folders: Mapping[Path, Sequence[Callable[[], str]]], about: str) -> int:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file differs")
    check: bool = parser.parse_args().check
    differing = 0
    for folder, pictures in folders.items():
        for draw in pictures:
            path, content = folder / f"{draw.__name__}.svg", draw()
            if not check:
                folder.mkdir(exist_ok=True)
                path.write_text(content, encoding="utf-8")
            elif not path.exists() or path.read_text(encoding="utf-8") != content:
                print(f"{path}: not what {sys.argv[0]} draws; run python {sys.argv[0]}", file=sys.stderr)
                differing += 1
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(FOLDERS, "Draw the pictures of the docs."))
