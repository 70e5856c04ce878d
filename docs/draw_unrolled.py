"""Draws models step by step: python docs/draw_unrolled.py [--check].

Writes docs/pictures/NAME.svg for every function of PICTURES: how the encoder, the attention and the decoder of a
sequence-to-sequence model are wired, over three steps of the target, a search, and the shapes of sequence problems.
With --check nothing is written, and the exit status is 1 where a picture on disk is not what would be written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from draw import BLUE, DOCS, GREEN, GREY, INK, ORANGE, SKY, STATE, Area, Picture, Point, main, svg

READOUT, CELL = 100.0, 310.0  # y
TOKEN, WITHIN, SEEN = (
    GREEN,
    STATE["h"],
    BLUE,
)  # colours: what is read, states, and the source with all that is seen of it


class Column(NamedTuple):
    """One step of a decoder: its cell and what the output sees."""

    number: int
    x: float
    cell: Area
    readout: Area


def sheet(title: str, description: str, width: float = 880, height: float = 450) -> Picture:
    """A picture whose frame leaves room above and below it alone."""
    picture = Picture(title, description, width, height)
    picture.frame = Area(width / 2, height / 2, width - 24, height - 92)
    return picture


def encoder(picture: Picture, y: float = CELL, height: float = 164) -> Area:
    """What reads the source."""
    box = picture.box(118, y, "encoder", "m_1 … m_S", colour=SKY, width=124, height=height)
    foot = picture.height - 30
    picture.wire(Point(box.x, foot), box.bottom(), colour=TOKEN, width=3)
    picture.label(box.x, foot + 20, "x_1 … x_S", anchor="middle", size=17, colour=TOKEN)
    return box


def decoder(
    picture: Picture, xs: Sequence[float], *, cell: float = CELL, readout: float = READOUT, layer: str = ""
) -> list[Column]:
    """Cells in a row, the tokens that they read, and what is predicted from each."""
    columns: list[Column] = []
    for number, x in enumerate(xs, 1):
        state = picture.box(x, cell, f"s{layer}_{number}", colour=SKY, width=90, height=44)
        seen = picture.box(x, readout, f"h̃_{number}", colour=ORANGE, width=90, height=40)
        write(picture, seen, number)
        read(picture, number, state.bottom())
        if columns:
            picture.wire(columns[-1].cell.right(), state.left(), colour=WITHIN, width=3)
        columns.append(Column(number, x, state, seen))
    return columns


def write(picture: Picture, readout: Area, number: int) -> None:
    """What the output predicts."""
    picture.wire(readout.top(), Point(readout.x, 34))
    picture.label(readout.x, 24, f"y_{number}", anchor="middle", size=17)


def read(picture: Picture, number: int, to: Point) -> None:
    """The token before, from below."""
    foot = picture.height - 30
    picture.wire(Point(to.x, foot), to, colour=TOKEN, width=3)
    name = "<s>" if number == 1 else f"y_{number - 1}"
    picture.label(to.x, foot + 20, name, anchor="middle", size=17, colour=TOKEN)


def begin(picture: Picture, source: Area, first: Area, name: str = "s_0") -> None:
    """The state that a decoder starts from."""
    picture.wire(Point(source.right().x, first.y), first.left(), colour=WITHIN, width=3)
    picture.label(source.right().x + 8, first.y - 9, name, colour=WITHIN)


def rail(picture: Picture, start: Point, ends: Sequence[Point], name: str, *, below: bool = False) -> None:
    """One value of the source along a level line, and up or down to each of several places."""
    *others, last = ends
    picture.wire(start, Point(last.x, start.y), last, colour=SEEN)
    for end in others:
        picture.wire(Point(end.x, start.y), end, colour=SEEN)
    picture.label(start.x + 8, start.y + (19 if below else -8), name, colour=SEEN)


def attend(picture: Picture, x: float, y: float) -> Area:
    return picture.pill(x, y, "attend", width=84)


def rise(picture: Picture, column: Column) -> None:
    """s_t to the output."""
    picture.wire(column.cell.top(), column.readout.bottom(), colour=WITHIN, width=3)


def alone() -> str:
    picture = sheet(
        "A decoder without attention",
        "s_t = cell(y_{t-1}, s_{t-1}), started from the encoder's end; h̃_t = tanh(W s_t).",
    )
    source, columns = encoder(picture), decoder(picture, (330, 540, 750))
    begin(picture, source, columns[0].cell)
    for column in columns:
        rise(picture, column)
    return svg(picture)


def conditioning_first() -> str:
    picture = sheet("A summary as the first input", "Before any token, the decoder reads a learned map of the summary.")
    source, columns = encoder(picture), decoder(picture, (430, 600, 770))
    before = picture.box(280, CELL, "s_0'", colour=SKY, width=70, height=44)
    begin(picture, source, before)
    picture.wire(before.right(), columns[0].cell.left(), colour=WITHIN, width=3)
    rail(picture, source.right(60), [before.bottom()], "summary")
    for column in columns:
        rise(picture, column)
    return svg(picture)


def conditioning_every() -> str:
    picture = sheet("A summary at every step", "x_t is the token's vector and the summary, side by side.")
    source, columns = encoder(picture), decoder(picture, (330, 540, 750))
    begin(picture, source, columns[0].cell)
    rail(picture, source.right(60), [column.cell.bottom(-24) for column in columns], "summary")
    for column in columns:
        rise(picture, column)
    return svg(picture)


def conditioning_output() -> str:
    picture = sheet("A summary at the output", "h̃_t = tanh(W [s_t; summary]).")
    source, columns = encoder(picture), decoder(picture, (330, 540, 750))
    begin(picture, source, columns[0].cell)
    for column in columns:
        rise(picture, column)
    rail(picture, source.right(-60), [column.readout.bottom(-24) for column in columns], "summary")
    return svg(picture)


def given_at_once() -> str:
    """Three ways in which a vector enters a decoder that writes a sequence of it."""
    picture = sheet(
        "A vector to a sequence",
        "The vector v is the decoder's first state, its first input, or part of every input.",
        width=820,
        height=640,
    )
    picture.frame = Area(410, 320, 796, 616)
    for number, name in enumerate(("initial", "first", "every")):
        y = 120.0 + 196 * number
        picture.label(118, y - 48, name, anchor="middle", colour=GREY)
        vector = picture.box(118, y, "v", colour=SKY, width=64, height=44)
        before = Area(0, 0, 0, 0)
        cells = [
            picture.box(x, y, f"s_{step}", colour=SKY, width=70, height=44) for step, x in enumerate((390, 550, 710), 1)
        ]
        for step, cell in enumerate(cells, 1):
            picture.wire(cell.top(), Point(cell.x, y - 54))
            picture.label(cell.x, y - 62, f"y_{step}", anchor="middle", size=17)
            picture.wire(Point(cell.x, y + 66), cell.bottom(), colour=TOKEN, width=3)
            picture.label(
                cell.x, y + 84, "<s>" if step == 1 else f"y_{step - 1}", anchor="middle", size=17, colour=TOKEN
            )
            if step > 1:
                picture.wire(before.right(), cell.left(), colour=WITHIN, width=3)
            before = cell
        if name == "initial":
            picture.wire(vector.right(), cells[0].left(), colour=WITHIN, width=3)
        elif name == "first":
            zero = picture.box(250, y, "s_0", colour=SKY, width=70, height=44)
            picture.wire(vector.bottom(), Point(vector.x, y + 44), Point(zero.x, y + 44), zero.bottom(), colour=SEEN)
            picture.wire(zero.right(), cells[0].left(), colour=WITHIN, width=3)
        else:
            *others, last = [cell.bottom(-22) for cell in cells]
            picture.wire(vector.bottom(), Point(vector.x, y + 44), Point(last.x, y + 44), last, colour=SEEN)
            for end in others:
                picture.wire(Point(end.x, y + 44), end, colour=SEEN)
    return svg(picture)


def looks_from_now(picture: Picture, columns: Sequence[Column], source: Area) -> None:
    """Attention from s_t, seen by the output."""
    looks = [attend(picture, column.x + 72, 190) for column in columns]
    for column, look in zip(columns, looks, strict=True):
        rise(picture, column)
        picture.wire(Point(column.x, 272), Point(look.x - 18, 272), look.bottom(-18), colour=WITHIN, width=3)
        picture.wire(look.top(), Point(look.x, READOUT), column.readout.right(), colour=SEEN)
    rail(picture, source.right(-60), [look.bottom(18) for look in looks], "memory")


def outside() -> str:
    picture = sheet(
        "Attention outside the cells",
        "The cells run over the whole target; attention looks from s_t; h̃_t = tanh(W [s_t; context_t]).",
    )
    source, columns = encoder(picture), decoder(picture, (310, 520, 730))
    begin(picture, source, columns[0].cell)
    looks_from_now(picture, columns, source)
    return svg(picture)


def query_previous() -> str:
    picture = sheet("Attention from the state before", "context_t = attend(s_{t-1}); h̃_t = tanh(W [s_t; context_t]).")
    source, columns = encoder(picture), decoder(picture, (350, 560, 770))
    begin(picture, source, columns[0].cell)
    looks = [attend(picture, column.x - 88, 190) for column in columns]
    for column, look in zip(columns, looks, strict=True):
        rise(picture, column)
        picture.wire(Point(look.x + 18, CELL), look.bottom(18), colour=WITHIN, width=3)
        picture.wire(look.top(), Point(look.x, READOUT), column.readout.left(), colour=SEEN)
    rail(picture, source.right(-60), [look.bottom(-18) for look in looks], "memory", below=True)
    return svg(picture)


def between() -> str:
    picture = sheet(
        "Attention between decoder layers",
        "The first layer runs over the whole target and looks; the second reads s1_t and the context.",
        height=560,
    )
    low, high = 420.0, 230.0
    source = encoder(picture, low)
    columns = decoder(picture, (310, 520, 730), cell=low, layer="^1")
    upper: list[Area] = []
    looks = []
    for number, x, cell, readout in columns:
        above = picture.box(x, high, f"s^2_{number}", colour=SKY, width=90, height=44)
        look = attend(picture, x + 88, 312)
        picture.wire(cell.top(), above.bottom(), colour=WITHIN, width=3)
        picture.wire(above.top(), readout.bottom(), colour=WITHIN, width=3)
        if upper:
            picture.wire(upper[-1].right(), above.left(), colour=WITHIN, width=3)
        picture.wire(Point(x, 386), Point(look.x - 18, 386), look.bottom(-18), colour=WITHIN, width=3)
        picture.wire(look.left(), Point(x + 28, 312), above.bottom(28), colour=SEEN)
        picture.wire(look.top(), Point(look.x, READOUT), readout.right(), colour=SEEN)
        upper.append(above)
        looks.append(look)
    begin(picture, source, columns[0].cell)
    rail(picture, source.right(-60), [look.bottom(18) for look in looks], "memory")
    return svg(picture)


def inside() -> str:
    picture = sheet(
        "Attention inside the cell",
        "context_t = attend(s_{t-1}); the cell reads the token and the context; h̃_t = tanh(W [s_t; context_t]).",
    )
    cell = 214.0
    source = encoder(picture, 268, 200)
    columns = decoder(picture, (350, 560, 770), cell=cell)
    begin(picture, source, columns[0].cell)
    looks = [attend(picture, column.x - 88, 300) for column in columns]
    for column, look in zip(columns, looks, strict=True):
        rise(picture, column)
        picture.wire(Point(look.x - 18, cell), look.top(-18), colour=WITHIN, width=3)
        picture.wire(look.right(), Point(column.x - 28, look.y), column.cell.bottom(-28), colour=SEEN)
        picture.wire(look.top(18), Point(look.x + 18, READOUT), column.readout.left(), colour=SEEN)
    rail(picture, source.right(80), [look.bottom() for look in looks], "memory")
    return svg(picture)


def conditional() -> str:
    picture = sheet(
        "Two cells and the attention between them",
        "s'_t = cell1(y_{t-1}, s_{t-1}); context_t = attend(s'_t); s_t = cell2(context_t, s'_t).",
        width=1010,
    )
    source = encoder(picture)
    looks, before = [], None
    for number, x in enumerate((310, 565, 820), 1):
        first = picture.box(x - 55, CELL, f"s'_{number}", colour=SKY, width=70, height=44)
        second = picture.box(x + 65, CELL, f"s_{number}", colour=SKY, width=70, height=44)
        readout = picture.box(x + 65, READOUT, f"h̃_{number}", colour=ORANGE, width=90, height=40)
        look = attend(picture, x, 220)
        write(picture, readout, number)
        read(picture, number, first.bottom())
        picture.wire(first.right(), second.left(), colour=WITHIN, width=3)
        picture.wire(first.top(), Point(first.x, look.y), look.left(), colour=WITHIN, width=3)
        fork = Point(x + 55, look.y)
        picture.wire(look.right(), fork, colour=SEEN, arrow=False)
        picture.wire(fork, second.top(-10), colour=SEEN)
        picture.wire(fork, readout.bottom(-10), colour=SEEN)
        picture.wire(second.top(18), readout.bottom(18), colour=WITHIN, width=3)
        if before is None:
            begin(picture, source, first)
        else:
            picture.wire(before.right(), first.left(), colour=WITHIN, width=3)
        looks.append(look)
        before = second
    start = source.top()
    picture.wire(start, Point(start.x, 160), colour=SEEN, arrow=False)
    rail(picture, Point(start.x, 160), [look.top() for look in looks], "memory")
    return svg(picture)


def feeding() -> str:
    picture = sheet(
        "Input feeding",
        "The cell reads the token and h̃_{t-1}; attention looks from s_t; h̃_t = tanh(W [s_t; context_t]).",
    )
    source, columns = encoder(picture), decoder(picture, (310, 520, 730))
    begin(picture, source, columns[0].cell)
    looks_from_now(picture, columns, source)
    under = 374.0
    for column, after in pairwise(columns):
        turn = column.x + 138
        picture.wire(
            Point(column.x, 62), Point(turn, 62), Point(turn, under), Point(after.x - 28, under),
            after.cell.bottom(-28), colour=ORANGE, width=3,
        )  # fmt: skip
    first = columns[0].cell.bottom(-28)
    picture.wire(Point(first.x - 40, under), Point(first.x, under), first, colour=ORANGE, width=3)
    picture.label(first.x - 46, under + 6, "0", anchor="end", colour=INK)
    return svg(picture)


def bridge() -> str:
    picture = sheet(
        "The bridge",
        "For each layer, what the encoder's two directions ended in, side by side, is where the decoder starts, as it "
        "is or by a learned map.",
        width=820,
        height=340,
    )
    for y, name, mapped in ((120, "h", "tanh(W_h e_h + b_h)"), (220, "c", "W_c e_c + b_c")):
        ends = picture.box(150, y, f"e_{name} = [{name}→_S; {name}←_1]", colour=SKY, width=190, height=44)
        bent = picture.box(410, y, mapped, colour=ORANGE, width=190, height=44)
        start = picture.box(670, y, f"{name}_0", colour=SKY, width=90, height=44)
        picture.wire(ends.right(), bent.left(), colour=STATE[name], width=3)
        picture.wire(bent.right(), start.left(), colour=STATE[name], width=3)
    picture.label(150, 74, "the encoder ends", anchor="middle", colour=GREY)
    picture.label(410, 74, "as it is, or mapped", anchor="middle", colour=GREY)
    picture.label(670, 74, "the decoder starts", anchor="middle", colour=GREY)
    picture.label(410, 276, "for each layer of the decoder", anchor="middle", colour=GREY)
    return svg(picture)


# Shapes of problems: what is read, and what is written.


def shape(name: str, reads: Sequence[str], writes: Sequence[str], description: str, states: Sequence[str] = ()) -> str:
    """Cells in a row; "" where nothing is read or written."""
    steps = len(reads)
    picture = sheet(name, description, width=100 + 120 * steps, height=240)
    states = states or [f"h_{number}" for number in range(1, steps + 1)]
    before = None
    for number, (read_here, written) in enumerate(zip(reads, writes, strict=True)):
        cell = picture.box(110 + 120 * number, 120, states[number], colour=SKY, width=64, height=44)
        if before is not None:
            picture.wire(before.right(), cell.left(), colour=WITHIN, width=3)
        if read_here:
            picture.wire(Point(cell.x, 210), cell.bottom(), colour=TOKEN, width=3)
            picture.label(cell.x, 230, read_here, anchor="middle", size=17, colour=TOKEN)
        if written:
            picture.wire(cell.top(), Point(cell.x, 34))
            picture.label(cell.x, 24, written, anchor="middle", size=17)
        before = cell
    return svg(picture)


def one_to_one() -> str:
    return shape("One to one", ["x"], ["y"], "A vector to a vector: no sequence, and nothing to remember.")


def one_to_many() -> str:
    return shape("One to many", ["x", "y_1", "y_2"], ["y_1", "y_2", "y_3"], "One thing is read, a sequence is written.")


def many_to_one() -> str:
    return shape("Many to one", ["x_1", "x_2", "x_3"], ["", "", "y"], "A sequence is read, one thing is written.")


def many_to_many_aligned() -> str:
    reads, writes = ["x_1", "x_2", "x_3"], ["y_1", "y_2", "y_3"]
    return shape("Many to many, aligned", reads, writes, "Something is written for each element that is read.")


def many_to_many() -> str:
    reads, writes = ["x_1", "x_2", "<s>", "y_1", "y_2"], ["", "", "y_1", "y_2", "y_3"]
    states = ["h_1", "h_2", "s_1", "s_2", "s_3"]
    return shape("Many to many", reads, writes, "A sequence is read, then another one is written.", states)


def beam() -> str:
    """The example of docs/search.md, which is checked there."""
    picture = sheet(
        "A beam of two",
        "At each step the two most probable of all continuations are kept; what ends is an answer.",
        width=920,
        height=470,
    )
    left, step, first, down = 190, 190, 100, 90
    layers: list[list[tuple[str, float, float, int, str]]] = [
        [("the", -0.43, 0.5, 0, SKY), ("a", -1.05, 2.5, 0, SKY)],
        [("cat", -1.35, 0, 0, SKY), ("dog", -1.35, 1, 0, GREY), ("cat", -1.16, 2, 1, SKY), ("dog", -3.35, 3, 1, GREY)],
        [
            ("sleeps", -1.45, 0, 0, SKY),
            ("</s>", -3.65, 1, 0, GREY),
            ("sleeps", -1.26, 2, 2, SKY),
            ("</s>", -3.46, 3, 2, GREY),
        ],
        [("</s>", -1.45, 0, 0, ORANGE), ("</s>", -1.26, 2, 2, ORANGE)],
    ]
    before = [picture.pill(left - 110, first + 1.5 * down, "<s>", width=50)]
    for number, layer in enumerate(layers):
        here: list[Area] = []
        ways: list[tuple[bool, tuple[Point, ...]]] = []
        for word, score, row, parent, colour in layer:
            x, y = left + step * number + 40, first + row * down
            node = picture.box(x, y, word, f"{score:.2f}".replace("-", "−"), colour=colour, width=96, height=54)
            start, turn = before[parent].right(), node.left().x - 24
            bent: tuple[Point, ...] = (Point(turn, start.y), Point(turn, y)) if start.y != y else ()
            ways.append((colour != GREY, (start, *bent, node.left())))
            here.append(node)
        for is_kept, way in sorted(ways, key=lambda each: each[0]):  # those that are kept lie above
            picture.wire(*way, colour=WITHIN if is_kept else GREY, width=3 if is_kept else 2)
        before = here
    picture.label(left + step * 3 + 40, first + 0.65 * down, "second", anchor="middle", colour=GREY)
    picture.label(left + step * 3 + 40, first + 2.65 * down, "best", anchor="middle", colour=GREY)
    return svg(picture)


WIRINGS: tuple[Callable[[], str], ...] = (
    *(alone, conditioning_first, conditioning_every, conditioning_output),
    *(given_at_once,),
    *(outside, query_previous, between, inside, conditional, feeding, bridge),
)
SHAPES = (one_to_one, one_to_many, many_to_one, many_to_many_aligned, many_to_many)

PICTURES = {DOCS / "pictures": (beam,), DOCS / "pictures" / "wirings": WIRINGS, DOCS / "pictures" / "shapes": SHAPES}

if __name__ == "__main__":
    sys.exit(main(PICTURES, "Draw models step by step."))
