"""Scenes: shapes at their places, as SVG and as PNG."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from recurra.views.pixels import from_address, write_png
from recurra.views.png import as_png
from recurra.views.scene import COLOURS, Box, Cells, Circle, Image, Label, Scene
from recurra.views.scene import Path as Line
from recurra.views.svg import as_svg
from tests.views.made import SVG, parsed, titles

EVERY = Scene(
    200,
    100,
    [
        Box(10, 10, 20, 20, "more", 0.5, "a box", "line", dashed=True, number="5", lights=("a",)),
        Line([(0, 50), (50, 60), (100, 50)], "two", 2, (4, 2), title="a line"),
        Line([(0, 50), (100, 90)], curved=True, step=3),
        Line([(110, 10), (120, 10), (120, 20)], "three", filled=True, strength=0.2),
        Circle(60, 20, 4, "less", filled=True, title="a dot"),
        Circle(75, 20, title="a ring"),
        Label("words", 100, 20, "middle", 11, bold=True, slanted=True, name="a"),
        Cells(130, 40, 10, 10, np.array([[0.5, -1.0], [0.0, 2.0]])),
        Image(150, 10, 20, 20, np.eye(4, dtype=np.uint8) * 255, is_ink=True),
        Image(175, 10, 20, 20, np.full((4, 4, 3), 99, np.uint8), strength=0.5),
    ],
    'a label with "quotes" & <signs>',
)


def test_every_shape_is_drawn_with_what_it_says() -> None:
    drawing = as_svg(EVERY)
    root = parsed(drawing)
    assert root.attrib["aria-label"] == EVERY.label
    assert titles(drawing) == ["a box", "a line", "a dot", "a ring"]
    assert [each.attrib["data-step"] for each in root.iter() if "data-step" in each.attrib] == ["3"]
    assert len(list(root.iter(f"{SVG}mask"))) == len(list(root.iter(f"{SVG}use"))) == 1


def test_only_colours_that_are_used_are_defined_for_light_and_dark_screens() -> None:
    drawing = as_svg(Scene(9, 9, [Box(0, 0, 5, 5, "three")], ""))
    assert all(colour in drawing for colour in COLOURS["three"])
    assert "--four" not in drawing


def test_an_image_that_is_shown_often_is_embedded_once() -> None:
    picture = np.arange(12, dtype=np.uint8).reshape(3, 4)
    scene = Scene(99, 99, [Image(x, 0, 8, 6, picture) for x in (0, 10, 20)], "")
    drawing = as_svg(scene)
    assert drawing.count("data:image/png;base64,") == 1
    assert drawing.count("<use ") == 3
    name = drawing.split('id="')[1].split('"')[0]
    assert name not in as_svg(scene._replace(width=50)), "a hidden form of the picture cannot lend its image"


def test_a_png_has_twice_the_pixels_and_the_same_shapes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    as_png(tmp_path / "a.png", EVERY)
    found = (tmp_path / "a.png").read_bytes()
    assert struct.unpack(">II", found[16:24]) == (400, 200)
    pixels = (255 * imread(tmp_path / "a.png")[..., :3]).round().astype(int)

    def colour(x: float, y: float) -> str:
        return "#" + "".join(f"{value:02x}" for value in pixels[int(2 * y), int(2 * x)])

    assert colour(60, 20) == COLOURS["less"][0]
    assert colour(5, 5) == COLOURS["paper"][0]
    assert colour(145, 45) == COLOURS["less"][0]  # -1 among the cells
    assert colour(152, 12) == COLOURS["ink"][0]  # ink where the mask is white
    assert colour(185, 20) == "#b1b1b1"  # a photo of half the strength


def test_a_very_large_png_is_made_smaller(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    as_png(tmp_path / "a.png", Scene(100, 24_000, [], ""))
    assert struct.unpack(">II", (tmp_path / "a.png").read_bytes()[16:24]) == (50, 12_000)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://a.b/c.png", "does not begin with data:image/png;base64,"),
        ("data:image/png;base64,????", "cannot be read"),
        ("data:image/png;base64,AAAA", "it is not a PNG"),
    ],
)
def test_a_picture_of_another_making_is_refused(address: str, said: str) -> None:
    from recurra.errors import DataError

    with pytest.raises(DataError, match=f"the picture of a view is a PNG as json\\(\\) writes it.*{said}"):
        from_address(address)


def test_a_png_of_other_pixels_is_refused() -> None:
    from base64 import b64encode

    from recurra.errors import DataError

    content = bytearray(write_png(np.zeros((2, 2), np.uint8)))
    content[24] = 16  # bits of a pixel
    with pytest.raises(DataError, match="its pixels are of kind 0 with 16 bits"):
        from_address("data:image/png;base64," + b64encode(bytes(content)).decode())
