"""A model unrolled: its layers and directions over some steps of time, and what it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path as File
from typing import Any, Literal, NamedTuple

from recurra.analysis.anatomy import Anatomy, UnrolledLevel
from recurra.errors import ConfigError
from recurra.tasks.task import Task
from recurra.views.page import write_whole
from recurra.views.png import as_png
from recurra.views.scene import Box, Colour, Label, Path, Scene, SceneShape, moved, together, width_of
from recurra.views.svg import as_svg

STEPS = ("₁", "₂", "₃", "ₜ")
"""The last is any number of steps later."""

AHEAD = ("₂", "₃", "₄", "ₜ₊₁")
BEFORE = ("₁", "₂", "ₜ₋₁")
FROM_END, FROM_END_BEFORE = ("ₜ", "ₜ₋₁", "ₜ₋₂", "₁"), ("ₜ", "ₜ₋₁", "₂")

PITCH, ROW, SIDE, HEIGHT = 104.0, 66.0, 62.0, 32.0
MARGIN, LABELS, APART = 28.0, 150.0, 110.0
DASHES = (3.0, 3.0)


class Part(NamedTuple):
    """What reads or what writes: its levels from below, what goes in at each step, and what its states are called."""

    levels: Sequence[UnrolledLevel]
    inputs: Sequence[str]
    symbol: str


class Drawing:
    """Shapes that are added one by one."""

    def __init__(self) -> None:
        self.shapes: list[SceneShape] = []

    def box(
        self, x: float, y: float, text: str, *, width: float = SIDE, colour: Colour = "panel", title: str = ""
    ) -> None:
        """A box around a middle."""
        self.shapes.append(
            Box(x - width / 2, y - HEIGHT / 2, width, HEIGHT, colour, 0.18 if colour != "panel" else 1.0, title, "line")
        )
        self.text(x, y + 4.5, text)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: Literal["start", "middle", "end"] = "middle",
        colour: Colour = "ink",
    ) -> None:
        self.shapes.append(Label(text, x, y, anchor, colour=colour))

    def arrow(self, *points: tuple[float, float], colour: Colour = "soft", dashed: bool = False) -> None:
        """A line with a head at its end."""
        (x, y), (to_x, to_y) = points[-2:]
        length = max(1e-6, ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5)
        along, across = (to_x - x) / length, (to_y - y) / length
        one, other = ((to_x - 7 * along + side * across, to_y - 7 * across - side * along) for side in (3.5, -3.5))
        self.shapes.append(Path(points, colour, dashes=DASHES if dashed else ()))
        self.shapes.append(Path([one, (to_x, to_y), other], colour))


def draw(tasks: Mapping[str, Task[Any, Any, Any]], path: File) -> None:
    """Write the picture of a run to a file, .svg or .png; of several, by their names, one below the other."""
    write(path, {name: unrolled(task) for name, task in tasks.items()}, "--draw")


def write(path: File, scenes: Mapping[str, Scene], option: str) -> None:
    """Write one picture, or several by their names, one below the other."""
    if path.suffix not in (".svg", ".png"):
        raise ConfigError(f"{option} {path}: the file must end in .svg or .png.")
    each = [scene if len(scenes) == 1 else named(name, scene) for name, scene in scenes.items()]
    scene = each[0] if len(each) == 1 else together(each, 0.0)
    if path.suffix == ".png":
        as_png(path, scene)
    else:
        write_whole(path, as_svg(scene))


def named(name: str, scene: Scene) -> Scene:
    """A picture with its name above it."""
    head = Label(name, MARGIN, 22)
    return Scene(
        max(scene.width, 2 * MARGIN + width_of(name)),
        scene.height + 26,
        [head, *(moved(shape, 0, 26) for shape in scene.shapes)],
        f"{name}: {scene.label}",
    )


def unrolled(task: Task[Any, Any, Any]) -> Scene:
    """The network of a task over some steps, as it is built; its weights do not matter."""
    anatomy = task.anatomy(task.build())
    inputs = [] if anatomy.is_whole else [f"x{step}" for step in STEPS]
    reader = Part(anatomy.reader, inputs, "h" if anatomy.reader[0].ways else "m")
    drawing, columns = Drawing(), placed(MARGIN + LABELS)
    tops = drawn(drawing, reader, columns)
    if anatomy.writer:
        right = written(drawing, anatomy, columns, tops)
    else:
        answered(drawing, anatomy, columns, tops)
        right = columns[-1] + SIDE
    said = task.described()
    drawing.text(MARGIN, 58, said, anchor="start", colour="soft")
    width = max(right + MARGIN, 2 * MARGIN + width_of(said))
    down = MARGIN - min(top_of(shape) for shape in drawing.shapes)
    shapes = [moved(shape, 0, down) for shape in drawing.shapes]
    return Scene(width, down + 78, shapes, f"A {task.name} model over time: {said}")


def top_of(shape: SceneShape) -> float:
    return min(y for _, y in shape.points) if isinstance(shape, Path) else shape.y - 13 * isinstance(shape, Label)


def placed(left: float) -> list[float]:
    """The middles of the columns."""
    return [
        left + SIDE / 2 + PITCH * (number + (0.35 if step == STEPS[-1] else 0)) for number, step in enumerate(STEPS)
    ]


def drawn(
    drawing: Drawing, part: Part, columns: Sequence[float], *, named_right: bool = False
) -> list[tuple[float, float]]:
    """Draw a part from its inputs, at y = 0, upwards; where its outputs leave."""
    for x, name in zip(columns, part.inputs, strict=False):
        drawing.text(x, 18, name)
    tops = [(x, 0.0) for x in columns]
    y = -ROW
    for number, level in enumerate(part.levels, 1):
        if not level.ways:
            middle, width = (columns[0] + columns[-1]) / 2, columns[-1] - columns[0] + SIDE
            drawing.box(middle, y, level.name, width=width)
            for x, top in tops if part.inputs else ():
                drawing.arrow((x, top), (x, y + HEIGHT / 2))
            tops = [(x, y - HEIGHT / 2) for x in columns]
            y -= ROW
            continue
        beside = columns[-1] + 44 if named_right else columns[0] - 57
        drawing.text(beside, y + 4.5, level.name, anchor="start" if named_right else "end", colour="soft")
        shift = 17.0 if len(level.ways) > 1 else 0.0
        below, leaving = tops, []
        for row, way in enumerate(level.ways):
            own = [x + (shift if row else -shift) for x in columns]
            colour: Colour = "less" if way == "backward" else "more"
            mark = "←" if way == "backward" else "→"
            for (x, top), at, step in zip(below, own, STEPS, strict=True):
                name = f"{mark if len(level.ways) > 1 else ''}{part.symbol}{step}"
                drawing.box(at, y, name, colour=colour, title=f"{level.name}, layer {number}, {way}, step {step}")
                drawing.arrow((x + (6 if row else -6) * bool(shift), top), (at, y + HEIGHT / 2))
            chain(drawing, own, y, way, colour)
            leaving.append([(at, y - HEIGHT / 2) for at in own])
            y -= ROW
        tops = leaving[-1]
        if level.joined:
            y += 0.3 * ROW
            for x, *ends in zip(columns, *leaving, strict=True):
                drawing.box(x, y, level.joined, width=max(SIDE, width_of(level.joined) + 8))
                for (at, top), side in zip(ends, (-22, 16), strict=True):
                    drawing.arrow((at + (-8 if side < 0 else 0), top), (x + side, y + HEIGHT / 2))
            tops = [(x, y - HEIGHT / 2) for x in columns]
            y -= ROW
    return tops


def chain(drawing: Drawing, xs: Sequence[float], y: float, way: str, colour: Colour) -> None:
    """States from step to step; dots stand for the steps that are left out."""
    for number in range(len(xs) - 1):
        ends = [(xs[number] + SIDE / 2, y), (xs[number + 1] - SIDE / 2, y)]
        if way == "backward":
            ends.reverse()
        drawing.arrow(*ends, colour=colour, dashed=number == len(xs) - 2)


def answered(drawing: Drawing, anatomy: Anatomy, columns: Sequence[float], tops: Sequence[tuple[float, float]]) -> None:
    """What comes out of each step, or of all together."""
    y = tops[0][1] - ROW + HEIGHT / 2
    if anatomy.answers == "whole":
        middle = (columns[0] + columns[-1]) / 2
        drawing.box(middle, y, anatomy.summary, width=max(190.0, width_of(anatomy.summary) + 20))
        for x, top in tops:
            drawing.arrow((x, top), (middle + (x - middle) * 0.35, y + HEIGHT / 2))
        return
    names = [f"x{step}" for step in AHEAD] if anatomy.answers == "ahead" else [f"y{step}" for step in STEPS]
    for (x, top), name in zip(tops, names, strict=True):
        drawing.arrow((x, top), (x, y + 12))
        drawing.text(x, y, name)
    if anatomy.chained:
        for one, other in pairwise(columns):
            drawing.shapes.append(Path([(one + 14, y - 4), (other - 14, y - 4)], "more"))
        drawing.text(columns[0] - SIDE / 2 - 26, y, anatomy.chained, anchor="end", colour="soft")


def written(drawing: Drawing, anatomy: Anatomy, columns: Sequence[float], tops: Sequence[tuple[float, float]]) -> float:
    """The writer beside the reader, and what it sees of it; where it ends on the right."""
    outputs, before = (FROM_END, FROM_END_BEFORE) if anatomy.is_turned else (STEPS, BEFORE)
    part = Part(anatomy.writer, ["<s>", *(f"y{step}" for step in before)], "s")
    others = placed(columns[-1] + SIDE / 2 + APART)
    leaving = drawn(drawing, part, others, named_right=True)
    y = min(leaving[0][1], tops[0][1]) - ROW + HEIGHT / 2
    if anatomy.enters:
        drawing.arrow((columns[-1] + SIDE / 2 + 14, -ROW), (others[0] - SIDE / 2, -ROW), colour="less")
        drawing.text((columns[-1] + others[0]) / 2, -ROW + 20, anatomy.enters, colour="soft")
    if anatomy.attention:
        name = anatomy.attention
        middle = (others[0] + others[-1]) / 2
        width = max(others[-1] - others[0] + SIDE, width_of(name) + 30)
        drawing.box(middle, y, name, width=width, colour="less")
        for x, top in tops:
            drawing.shapes.append(Path([(x, top), (x, y)], "less", 1.2, DASHES))
        drawing.arrow((tops[0][0], y), (middle - width / 2, y), colour="less", dashed=True)
        for x, top in leaving:
            drawing.arrow((x, top), (x, y + HEIGHT / 2))
        leaving = [(x, y - HEIGHT / 2) for x, _ in leaving]
        y -= ROW - HEIGHT / 2
    for (x, top), step in zip(leaving, outputs, strict=True):
        drawing.arrow((x, top), (x, y + 12))
        drawing.text(x, y, f"y{step}")
    return others[-1] + 44 + max(width_of(level.name) for level in part.levels)
