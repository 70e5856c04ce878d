"""Maps over a picture: the right place gets the colour, whatever the picture is."""

from __future__ import annotations

import re
from base64 import b64decode

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.views.overlay import MOST, Overlay
from recurra.views.pixels import write_png
from recurra.views.scene import Box, Image, Label, Scene
from tests.views.made import ODD, parsed, words


def inked() -> NDArray[np.uint8]:
    """A bright line on dark paper, 10 × 20 pixels."""
    picture = np.zeros((10, 20, 1), np.uint8)
    picture[4, 2:18] = 255
    return picture


def looked(picture: NDArray[np.uint8] | None = None, tokens: int = 2, rows: int = 3, columns: int = 5) -> Overlay:
    weights = np.random.default_rng(1).dirichlet(np.ones(rows * columns), tokens).reshape(tokens, rows, columns)
    return Overlay([f"t{n}" for n in range(tokens)], weights, picture=picture)


def places(scene: Scene) -> list[Box]:
    return [shape for shape in scene.shapes if isinstance(shape, Box) and shape.colour == "look"]


def test_the_strongest_colour_is_where_the_token_looked_most() -> None:
    found = looked(inked())
    for number, each in enumerate(found.maps):
        alone = Overlay(["t"], each[None], picture=inked())
        strongest = max(places(alone.scene()), key=lambda box: box.strength)
        row, column = np.unravel_index(each.argmax(), each.shape)
        assert strongest.title == f"t: {each.max():.3f} at row {row + 1}, column {column + 1}"
        assert found.looks()[number][1:4] == (row + 1, column + 1, each.max())


def test_ink_is_drawn_in_the_colour_of_letters_and_is_the_picture_itself() -> None:
    drawing = looked(inked()).svg()
    [data] = re.findall(r'href="data:image/png;base64,([^"]+)"', drawing)
    assert b64decode(data) == write_png(inked()[:, :, 0])
    assert re.findall(r'base64,([^"]+)"', looked(255 - inked()).svg()) == [data]
    assert drawing.count("<mask ") == 1
    assert drawing.count('mask="url(#') == 2


def test_a_photo_is_shown_as_it_is_under_the_colour() -> None:
    photo = np.random.default_rng(1).integers(0, 256, (10, 20, 3), np.uint8)
    view = looked(photo)
    drawing = view.svg()
    [data] = re.findall(r'href="data:image/png;base64,([^"]+)"', drawing)
    assert b64decode(data) == write_png(photo)
    assert "<mask " not in drawing
    shapes = list(view.scene().shapes)
    first = next(n for n, shape in enumerate(shapes) if isinstance(shape, Image))
    assert first < next(n for n, shape in enumerate(shapes) if isinstance(shape, Box) and shape.colour == "look")


def test_what_is_left_out_is_counted() -> None:
    found = looked(inked(), tokens=MOST + 2)
    assert f"The first {MOST} of {MOST + 2} tokens are shown." in words(found.svg())
    assert sum(word.startswith("t") for word in words(found.svg())) == MOST
    assert "are shown" not in looked(inked(), tokens=3).svg()
    assert found.html().count("<td>t") == MOST + 2


def test_panels_go_on_in_the_next_row_and_stay_within_the_width() -> None:
    scene = looked(inked(), tokens=30).scene(400)
    assert scene.width <= 400
    corners = {(shape.x, shape.y) for shape in scene.shapes if isinstance(shape, Image)}
    assert len(corners) == 30
    assert len({y for _, y in corners}) > 1


def test_a_long_caption_is_cut_in_the_drawing_and_whole_on_the_page() -> None:
    for letter in ("x", "茶"):
        found = Overlay(["t"], [[[1.0]]], picture=inked(), caption=letter * 300)
        assert found.scene(400).width <= 400
        assert letter * 300 in found.page()
        assert letter * 300 not in found.svg()


def test_a_page_has_a_form_for_phones() -> None:
    wide, narrow = re.findall(r'<figure class="(?:wide|narrow)".*?</figure>', looked(inked(), 9).html(), re.DOTALL)
    ids = [set(re.findall(r'id="([^"]+)"', form)) for form in (wide, narrow)]
    assert not ids[0] & ids[1], "of two pictures with one name, the hidden one would be used"
    widths = [int(re.findall(r'width="(\d+)"', form)[0]) for form in (wide, narrow)]
    assert widths[1] <= 390 < widths[0]


def test_places_without_a_picture_are_drawn_alone() -> None:
    found = Overlay(ODD, np.full((len(ODD), 2, 3), 1 / 6), caption="<i>\x1b&")
    parsed(found.svg())
    assert "data:image/png" not in found.svg()
    assert "\x1b" not in found.text() + found.page()


def test_a_token_that_looked_nowhere_has_no_colour() -> None:
    found = Overlay(["x"], np.zeros((1, 2, 2)))
    assert places(found.scene()) == []
    assert found.looks() == [("x", 1, 1, 0.0, 1)]
    assert "x" in [shape.text for shape in found.scene().shapes if isinstance(shape, Label)]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((["x"], np.ones((2, 1, 1))), r"1 tokens need one map of places.*\(2, 1, 1\)"),
        (([], np.ones((0, 1, 1))), "at least one"),
        ((["x"], [[[-1.0]]]), "a negative value"),
        ((["x"], [[[1.0]]], [0, 2]), r"'down' needs the 2 edges of 1 places, from 0 to 1, but found \[0.0, 2.0\]"),
        ((["x"], [[[1.0, 0.0]]], (), [0, 2]), "'across' needs the 3 edges of 2 places"),
    ],
)
def test_what_does_not_fit_is_refused(values: tuple[object, ...], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Overlay(*values)  # type: ignore[arg-type]
