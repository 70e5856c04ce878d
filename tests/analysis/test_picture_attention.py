"""Attention over a picture: the right place gets the colour, whatever the picture is and whatever was written."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.analysis.alignment import Alignment
from recurra.analysis.picture_attention import PictureAttention, as_text, looks
from recurra.analysis.picture_heat_map import as_html, as_png, as_svg
from recurra.config import ImageModel
from recurra.data.png import write_png
from recurra.encoders.image import ImageEncoder
from recurra.errors import DataError
from recurra.padding import Grid
from recurra.tasks.task import Prediction

SVG = "{http://www.w3.org/2000/svg}"
ODD = ["日本", "مرحبا", "<b>&'\"", "$x_1$", "\x1b[2J", "\ud800", "", "long" * 50]


def inked() -> NDArray[np.uint8]:
    """A bright line on dark paper, 10 × 20 pixels."""
    picture = np.zeros((10, 20, 1), np.uint8)
    picture[4, 2:18] = 255
    return picture


def looked(
    picture: NDArray[np.uint8] | None = None, tokens: int = 2, rows: int = 3, columns: int = 5
) -> PictureAttention:
    weights = np.random.default_rng(1).dirichlet(np.ones(rows * columns), tokens)
    return PictureAttention(picture, [f"t{n}" for n in range(tokens)], weights, columns)


def places(drawing: str) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(drawing).iter(f"{SVG}rect") if each.get("class") == "place"]


def test_an_answer_has_its_maps_if_the_model_looked_at_a_picture() -> None:
    detail = {"tokens": ["x"], "alignment": [[0.1, 0.2, 0.3, 0.4], [0, 0, 0, 1.0]], "columns": 2}
    answer = Prediction("a.png", "x", -0.1, 1, detail)
    found = PictureAttention.of(answer, inked(), "a title")
    assert (found.tokens, found.title, found.maps.shape) == (("x", "</s>"), "a title", (2, 2, 2))
    assert found.maps[0].tolist() == [[0.1, 0.2], [0.3, 0.4]]
    with pytest.raises(DataError, match=r"does not say where the model looked: ask for predict\(\.\.\., detail=True\)"):
        PictureAttention.of(answer._replace(detail={"tokens": ["x"]}))
    with pytest.raises(DataError, match=r"no picture, but places in a row: Alignment\.of\(answer\)"):
        PictureAttention.of(answer._replace(detail={**detail, "columns": None}))
    with pytest.raises(DataError, match=r"do not stand in a row as words do: `recurra explain RUN INPUT"):
        Alignment.of(answer)


@pytest.mark.parametrize(
    ("tokens", "weights", "columns", "said"),
    [
        (["x"], np.ones((3, 4)), 2, r"1 tokens need as many rows of weights.* are of shape \(3, 4\)"),
        ([], np.ones((0, 4)), 2, "0 tokens need as many rows"),
        (["x"], np.ones(4), 2, r"of shape \(4,\)"),
        (["x"], np.ones((1, 5)), 2, "5 places do not make rows of 2"),
        (["x"], np.ones((1, 0)), 2, "0 places do not make rows of 2"),
        (["x"], np.ones((1, 4)), 0, "4 places do not make rows of 0"),
        (["x"], [[0.5, -0.5]], 1, "a negative one"),
        (["x"], [[0.5, np.nan]], 1, "no number"),
    ],
)
def test_what_does_not_fit_is_refused(tokens: list[str], weights: NDArray[np.float64], columns: int, said: str) -> None:
    with pytest.raises(DataError, match=said):
        PictureAttention(None, tokens, weights, columns)


@settings(max_examples=40)
@given(st.integers(1, 50), st.integers(1, 50), st.sampled_from([4, 8, 16]))
def test_places_cover_the_picture_and_nothing_else(height: int, width: int, stride: int) -> None:
    rows, columns = -(-height // stride), -(-width // stride)
    even = np.full((1, rows * columns), 1 / (rows * columns))
    found = PictureAttention(np.zeros((height, width), np.uint8), ["x"], even, columns)
    drawing = ElementTree.fromstring(as_svg(found))
    [back] = [each for each in drawing.iter(f"{SVG}rect") if each.get("class") == "back"]
    cells = [each for each in drawing.iter(f"{SVG}rect") if each.get("class") == "place"]
    sides = [[float(each.get(side) or 0) for side in ("width", "height")] for each in [back, *cells]]
    (wide, high), *others = sides
    scale = wide / width
    assert sum(w * h for w, h in others) == pytest.approx(wide * high, rel=0.05, abs=1)
    down, across = found.side
    # A larger square than that of the convolutions is found only where it covers the picture just as well.
    assert (-(-height // down), -(-width // across)) == (rows, columns)
    assert max(w for w, _ in others) <= 1.5 * max(across, 1) * scale + 0.2


def test_a_place_is_drawn_around_what_the_encoder_sees_there() -> None:
    torch.manual_seed(1)
    network = ImageEncoder(ImageModel(widths=[32, 32, 32], layers=0, norm="layer", positions=False), 1).eval()
    pixels = torch.rand(1, 1, 72, 88, requires_grad=True)
    features = network(Grid(pixels, torch.tensor([[72, 88]]))).values
    rows, columns = features.shape[2:]
    down, across = PictureAttention(np.zeros((72, 88), np.uint8), ["x"], np.ones((1, rows * columns)), columns).edges
    for row, column in ((3, 4), (5, 6)):
        [seen] = torch.autograd.grad(features[0, :, row, column].square().sum(), pixels, retain_graph=True)
        for axis, at, edges in ((0, row, down), (1, column, across)):
            pixel = seen[0, 0].abs().sum(1 - axis).nonzero()
            middle = (float(pixel.min()) + float(pixel.max()) + 1) / 2
            assert abs(middle - (edges[at] + edges[at + 1]) / 2) <= 0.5


def test_the_strongest_colour_is_where_the_token_looked_most() -> None:
    found = looked(inked())
    for number, each in enumerate(found.maps):
        cells = places(as_svg(PictureAttention(inked(), ["t"], each.reshape(1, -1), 5)))
        strongest = max(cells, key=lambda cell: float(cell.get("fill-opacity") or 0))
        row, column = np.unravel_index(each.argmax(), each.shape)
        title = strongest.find(f"{SVG}title")
        assert title is not None
        assert title.text == f"t: {each.max():.3f} at row {row + 1}, column {column + 1}"
        assert looks(found)[number][1:4] == (row + 1, column + 1, each.max())


def test_ink_is_drawn_in_the_colour_of_letters_and_is_the_picture_itself() -> None:
    drawing = as_svg(looked(inked()))
    [data] = re.findall(r'href="data:image/png;base64,([^"]+)"', drawing)
    assert b64decode(data) == write_png(inked()[:, :, 0])
    on_white = as_svg(looked(255 - inked()))
    assert re.findall(r'base64,([^"]+)"', on_white) == [data]
    assert drawing.count("<mask ") == 1
    assert drawing.count('class="ink"') == 2


def test_a_photo_is_shown_as_it_is() -> None:
    photo = np.random.default_rng(1).integers(0, 256, (10, 20, 3), np.uint8)
    drawing = as_svg(looked(photo))
    [data] = re.findall(r'href="data:image/png;base64,([^"]+)"', drawing)
    assert b64decode(data) == write_png(photo)
    assert "<mask " not in drawing
    assert drawing.count('<use class="photo"') == 2


def test_what_is_left_out_is_counted() -> None:
    found = looked(inked(), tokens=9)
    assert "The first 4 of 9 tokens are shown." in as_svg(found, most=4)
    assert as_svg(found, most=4).count('class="token"') == 4
    assert "are shown" not in as_svg(found, most=9)
    assert as_html(found, most=4).count("<td>t") == 9


def test_panels_go_on_in_the_next_row_and_stay_within_the_width() -> None:
    drawing = ElementTree.fromstring(as_svg(looked(inked(), tokens=30), width=400))
    assert float(drawing.get("width") or 0) <= 400
    corners = re.findall(r"translate\(([\d.]+) ([\d.]+)\)", ElementTree.tostring(drawing, "unicode"))
    assert len(set(corners)) == 30
    assert len({y for _, y in corners}) > 1


def test_a_long_title_is_cut_in_the_drawing_and_whole_on_the_page() -> None:
    for letter in ("x", "茶"):
        found = PictureAttention(inked(), ["t"], [[1.0]], 1, letter * 300)
        drawing = ElementTree.fromstring(as_svg(found, width=400))
        assert float(drawing.get("width") or 0) <= 400
        assert letter * 300 in as_html(found)
        assert letter * 300 not in as_svg(found)


def test_any_token_makes_a_whole_drawing_and_a_page_that_fetches_nothing() -> None:
    found = PictureAttention(None, ODD, np.full((len(ODD) + 1, 6), 1 / 6), 3, "<i>\x1b&")
    ElementTree.fromstring(as_svg(found).encode("utf-8", "replace"))
    page = as_html(found)
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert "\x1b" not in as_text(found) + page


def test_a_token_that_looked_nowhere_has_no_colour() -> None:
    found = PictureAttention(None, ["x"], np.zeros((1, 4)), 2)
    assert places(as_svg(found)) == []
    assert looks(found) == [("x", 1, 1, 0.0, 1)]


def test_a_png_is_as_large_as_the_drawing_and_has_its_colours(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    weights = np.zeros((1, 15))
    weights[0, 7] = 1.0
    found = PictureAttention(inked(), ["x"], weights, 5, "a title")
    as_png(tmp_path / "a.png", found)
    width, height = struct.unpack(">II", (tmp_path / "a.png").read_bytes()[16:24])
    drawing = ElementTree.fromstring(as_svg(found))
    assert (width, height) == (2 * int(drawing.get("width") or 0), 2 * int(drawing.get("height") or 0))
    for other in (looked(tokens=3), looked(np.full((10, 20, 3), 99, np.uint8))):
        as_png(tmp_path / "b.png", other, most=2)


def test_it_is_drawn_without_torch_or_an_image_library() -> None:
    command = (
        "import sys, numpy as np; from recurra.analysis.picture_attention import PictureAttention; "
        "from recurra.analysis.picture_heat_map import as_html; "
        "as_html(PictureAttention(np.zeros((9, 9), np.uint8), ['x'], [[1.0]], 1)); "
        "sys.exit(bool({'PIL', 'matplotlib', 'torch'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
