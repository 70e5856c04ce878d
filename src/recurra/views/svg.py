"""Writes a scene as SVG, for light and dark screens: no script, nothing fetched."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from html import escape

import numpy as np

from recurra.text.visible import without_controls
from recurra.views.pixels import write_png
from recurra.views.scene import COLOURS, LEVELS, Box, Cells, Circle, Colour, Image, Label, Path, Scene, SceneShape


def as_svg(scene: Scene) -> str:
    """The picture as SVG.

    >>> as_svg(Scene(9, 9, [Box(1, 1, 5, 5, title="<b>")], "a box")).count("<title>&lt;b&gt;</title>")
    1
    """
    size = f'width="{scene.width:.0f}" height="{scene.height:.0f}"'
    images = _images(scene)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="scene" role="img" aria-label="{_plain(scene.label)}" '
        f'viewBox="0 0 {scene.width:.0f} {scene.height:.0f}" {size}>',
        f"<style>{_style(scene.shapes)}</style>",
        *([f"<defs>{''.join(images.values())}</defs>"] if images else []),
        f'<rect class="paper" {size}/>',
        *(line for shape in scene.shapes for line in _in_svg(shape, scene)),
    ]
    return "\n".join([*parts, "</svg>\n"])


def _style(shapes: Sequence[SceneShape]) -> str:
    """The style sheet of a picture: its colours, and what happens where it is pointed at."""
    used = _colours(shapes)
    light, dark = ("".join(f"--{name}:{COLOURS[name][way]};" for name in used) for way in (0, 1))
    fills = "".join(f".scene .{name}{{fill:var(--{name})}}" for name in used)
    lined = {shape.colour for shape in shapes if isinstance(shape, Path | Circle)}
    lines = "".join(f".scene .{name}-line{{fill:none;stroke:var(--{name})}}" for name in used if name in lined)
    style = (
        f".scene{{{light}max-width:none}}@media screen and (prefers-color-scheme:dark){{.scene{{{dark}}}}}"
        f".scene text{{font-family:system-ui,sans-serif}}{fills}{lines}"
        ".scene .pointed:hover{stroke:var(--ink);stroke-width:1.5}"
    )
    if lines:
        style += ".scene path{stroke-linejoin:round;stroke-linecap:round}.scene .ring{fill:var(--paper)}"
    if any(isinstance(shape, Box) and shape.number for shape in shapes):
        style += (
            ".scene .number{font-size:11px;opacity:0;pointer-events:none;paint-order:stroke;stroke:var(--paper);"
            "stroke-width:3px;stroke-linejoin:round}.scene g:hover .number{opacity:1}"
        )
    lit = dict.fromkeys(name for shape in shapes if isinstance(shape, Box) for name in shape.lights)
    if lit:  # the tokens of a cell that is pointed at stand out
        pointed = ",".join(f".scene:has(.at-{name}:hover) .of-{name}" for name in lit)
        style += f"{pointed}{{font-weight:700;fill:var(--more)}}"
    return style


def _colours(shapes: Sequence[SceneShape]) -> list[Colour]:
    """The colours that a picture needs."""
    used: set[Colour] = {"ink", "paper"}
    for shape in shapes:
        if isinstance(shape, Cells):
            used |= {"panel", "more", "less"}
        elif not isinstance(shape, Image):
            used.add(shape.colour)
        if isinstance(shape, Box):
            used |= {shape.outline} if shape.outline is not None else set()
            used |= {"more"} if shape.lights else set()
    return [name for name in COLOURS if name in used]


def _in_svg(shape: SceneShape, scene: Scene) -> Iterable[str]:
    match shape:
        case Box():
            yield _box(shape)
        case Path():
            yield _path(shape)
        case Circle():
            look = f"{shape.colour} {shape.colour}-line" if shape.filled else f"{shape.colour}-line ring"
            fill = f' style="fill:var(--{shape.colour})"' if shape.filled else ""
            yield (
                f'<circle class="{look}" cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius:g}" '
                f'stroke-width="1.75"{fill}' + _ending("circle", shape.title)
            )
        case Label():
            yield _label(shape)
        case Cells():
            yield from _cells(shape)
        case Image():
            yield _image(shape, scene)


def _plain(text: str) -> str:
    """A text that XML can hold, and that is no markup."""
    return escape(without_controls(text))


def _title(text: str) -> str:
    return f"<title>{_plain(text)}</title>" if text else ""


def _ending(tag: str, title: str) -> str:
    return f">{_title(title)}</{tag}>" if title else "/>"


def _step(step: int | None) -> str:
    return "" if step is None else f' data-step="{step}"'


def _box(box: Box) -> str:
    outline = "" if box.outline is None else f' style="stroke:var(--{box.outline})"'
    outline += ' stroke-dasharray="3 3"' if box.dashed else ""
    look = f"{box.colour} pointed" if box.title else box.colour
    corners = f' rx="{box.round:g}"' if box.round else ""
    strength = f' fill-opacity="{box.strength:.3f}"' if box.strength != 1 else ""
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    rect = f'<rect class="{look}"{_step(box.step)} {place}{corners}{strength}{outline}'
    if not box.number and not box.lights:
        return rect + _ending("rect", box.title)
    middle = f'x="{box.x + box.width / 2:.1f}" y="{box.y + box.height / 2 + 4:.1f}" text-anchor="middle"'
    number = f'<text class="ink number" {middle}>{_plain(box.number)}</text>' if box.number else ""
    lights = " ".join(f"at-{name}" for name in box.lights)
    return f'<g class="{lights}">{rect}/>{number}{_title(box.title)}</g>'


def _path(path: Path) -> str:
    if path.curved:
        (x, y), (right, down) = path.points[0], path.points[-1]
        middle = (x + right) / 2
        course = f"M{x:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {down:.1f} {right:.1f} {down:.1f}"
    else:
        course = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in path.points) + "Z" * path.filled
    strength = f' opacity="{path.strength:.3g}"' if path.strength != 1 else ""
    dashes = f' stroke-dasharray="{" ".join(f"{size:g}" for size in path.dashes)}"' if path.dashes else ""
    look = f'class="{path.colour}"' if path.filled else f'class="{path.colour}-line" stroke-width="{path.width:g}"'
    return f'<path {look}{_step(path.step)} d="{course}"{strength}{dashes}' + _ending("path", path.title)


def _label(label: Label) -> str:
    place = f'x="{label.x:.1f}" y="{label.y:.1f}"'
    if label.slanted:
        place = f'transform="translate({label.x:.1f} {label.y:.1f}) rotate(-45)"'
    weight = ' font-weight="600"' if label.bold else ""
    anchor = f' text-anchor="{label.anchor}"' if label.anchor != "start" else ""
    look = f"{label.colour} of-{label.name}" if label.name else label.colour
    return (
        f'<text class="{look}"{_step(label.step)} {place}{anchor} font-size="{label.size:g}"{weight}>'
        f"{_plain(label.text)}</text>"
    )


def _cells(cells: Cells) -> Iterator[str]:
    """One path for all cells of a strength: a rectangle for each would make a page of many megabytes."""
    rows, across = cells.values.shape
    yield (
        f'<rect class="panel" x="{cells.x:.1f}" y="{cells.y:.1f}" width="{across * cells.width:.1f}" '
        f'height="{rows * cells.height:.1f}"/>'
    )
    levels = np.rint(cells.values.clip(-1, 1) * LEVELS).astype(int)
    for level in np.unique(levels[levels != 0]):
        course = "".join(
            f"M{cells.x + column * cells.width:.1f} {cells.y + row * cells.height:.1f}"
            f"h{cells.width:.2f}v{cells.height:.2f}h-{cells.width:.2f}z"
            for row, column in np.argwhere(levels == level)
        )
        colour = "more" if level > 0 else "less"
        strength = f'fill-opacity="{abs(level) / LEVELS:.3f}" shape-rendering="crispEdges"'
        yield f'<path class="{colour}" d="{course}" {strength}/>'


def _name(image: Image, scene: Scene) -> str:
    """What an image is called on its page: the size of the scene belongs to it, for one that is hidden cannot be used.

    A page has a wide form of a picture and a narrow one, of which the other is hidden.
    """
    about = f"{image.pixels.shape} {image.is_ink} {image.width} {image.height} {scene.width} {scene.height}"
    return f"image-{hashlib.blake2b(image.pixels.tobytes() + about.encode(), digest_size=6).hexdigest()}"


def _images(scene: Scene) -> dict[str, str]:
    """The images of a scene, each defined once however often it is shown."""
    found = {}
    for image in (shape for shape in scene.shapes if isinstance(shape, Image)):
        name = _name(image, scene)
        if name not in found:
            size = f'width="{image.width:.1f}" height="{image.height:.1f}"'
            data = b64encode(write_png(image.pixels)).decode()
            inline = f'preserveAspectRatio="none" href="data:image/png;base64,{data}"'
            found[name] = (
                f'<mask id="{name}" maskUnits="userSpaceOnUse" x="0" y="0" {size}><image {size} {inline}/></mask>'
                if image.is_ink
                else f'<image id="{name}" {size} {inline}/>'
            )
    return found


def _image(image: Image, scene: Scene) -> str:
    name, place = _name(image, scene), f'transform="translate({image.x:.1f} {image.y:.1f})"'
    strength = f' opacity="{image.strength:.3g}"' if image.strength != 1 else ""
    if image.is_ink:  # in the colour of the letters, on paper as on a dark screen
        size = f'width="{image.width:.1f}" height="{image.height:.1f}"'
        return f'<rect class="ink" {place} {size} mask="url(#{name})" pointer-events="none"{strength}/>'
    return f'<use href="#{name}" {place}{strength}/>'
