"""Heat maps: the right cell under the right name, whatever the names are made of."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.errors import DataError
from recurra.text.visible import shown
from recurra.views.heat_map import HeatMap
from recurra.views.png import as_png
from recurra.views.scene import Box
from recurra.views.several import Several
from tests.views.made import ODD, SVG, parsed, titles, words

HOUSE = HeatMap(
    ["das", "Häuschen", "</s>"],
    ["the", "little", "house"],
    [[0.8, 0.2, 0.0], [0.0, 0.45, 0.55], [0.0, 0.0, 1.0]],
    caption="en → de",
)


def even(rows: int, across: int) -> NDArray[np.float64]:
    return np.full((rows, across), 1 / across)


def cells(drawing: str) -> list[tuple[ElementTree.Element, str, str]]:
    """Of each cell its rectangle, the number that it shows and what it says where it is pointed at."""
    found = []
    for group in parsed(drawing).iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        number = group.find(f"{SVG}text")
        [rect] = group.findall(f"{SVG}rect")
        assert title is not None
        found.append((rect, "" if number is None else number.text or "", title.text or ""))
    return found


def test_a_cell_lies_under_the_name_of_its_column_and_beside_that_of_its_row() -> None:
    drawing = HOUSE.svg()
    texts = {text.text: text.attrib for text in parsed(drawing).iter(f"{SVG}text")}
    found = cells(drawing)
    assert len(found) == 5
    for rect, number, said in found:
        row, column, weight = re.split(" ← |: ", said)
        x, y = (float(rect.attrib[side]) + 14 for side in ("x", "y"))
        above = float(re.findall(r"[\d.]+", texts[column]["transform"])[0])
        assert abs(above - x) <= 4
        assert abs(float(texts[row]["y"]) - y) <= 6
        assert number == f"{float(weight):.2f}"
        assert float(rect.attrib.get("fill-opacity", 1)) == float(weight)


def test_the_names_of_a_cell_stand_out_where_it_is_pointed_at() -> None:
    drawing = Several([HOUSE, HOUSE]).svg()
    groups = [group.attrib["class"].split() for group in parsed(drawing).iter(f"{SVG}g")]
    named = {text.attrib["class"].split()[-1] for text in parsed(drawing).iter(f"{SVG}text")}
    lit = {name.replace("at-", "of-") for group in groups for name in group}
    assert len(lit) == 12, "each map lights its own names alone"
    assert lit <= named
    assert all(f".scene:has(.{name.replace('of-', 'at-')}:hover) .{name}" in drawing for name in lit)


def test_nothing_lies_outside_the_picture_and_maps_do_not_overlap() -> None:
    scene = Several([HOUSE, HOUSE, HeatMap("xyz", "abc", even(3, 3))]).scene(500)
    assert scene.width <= 520
    boxes = [shape for shape in scene.shapes if isinstance(shape, Box) and shape.colour == "panel"]
    assert len(boxes) == 3
    assert all(b.x >= 0 and b.x + b.width <= scene.width and b.y + b.height <= scene.height for b in boxes)
    assert all(
        a.x + a.width < b.x or b.x + b.width < a.x or a.y + a.height < b.y or b.y + b.height < a.y
        for n, a in enumerate(boxes)
        for b in boxes[:n]
    )


def test_many_columns_make_smaller_cells_that_fit_the_width() -> None:
    for count, cell in ((10, 30), (40, 21), (90, 14)):
        scene = HeatMap(["a"], [f"{n % 10}" for n in range(count)], even(1, count)).scene(900)
        [back] = [shape for shape in scene.shapes if isinstance(shape, Box) and shape.colour == "panel"]
        assert back.width == count * cell
        assert (scene.width <= 900) == (count < 90)


@pytest.mark.parametrize("token", ODD, ids=ascii)
def test_any_token_is_named_as_it_can_be_seen(token: str) -> None:
    found = words(HeatMap([token], [token, "a"], even(1, 2), caption=token).svg())
    assert found.count("∎" if token == "</s>" else shown(token)) >= 2


def test_the_page_shows_every_weight() -> None:
    page = HeatMap(["x"], ["a", "b"], [[0.123, 0.877]], about="How to read it.").page()
    assert "<td>0.123</td><td>0.877</td>" in page
    assert "How to read it." in page


def test_signs_are_told_by_colours_and_the_strongest_has_the_full_colour() -> None:
    drawing = HeatMap(["x", "y"], ["a", "b"], [[3.0, -1.5], [0.0, 0.75]], signed=True).svg()
    looks = {said: (rect.attrib["class"], rect.attrib.get("fill-opacity", "1")) for rect, _, said in cells(drawing)}
    assert looks == {
        "x ← a: +3.000": ("more pointed", "1"),
        "x ← b: -1.500": ("less pointed", "0.500"),
        "y ← b: +0.750": ("more pointed", "0.250"),
    }


def test_counts_are_said_as_whole_numbers() -> None:
    confusion = HeatMap(["NOUN", "VERB"], ["NOUN", "VERB"], [[1200, 3], [0, 40]])
    assert titles(confusion.svg())[0] == "NOUN ← NOUN: 1,200"
    assert confusion.tables()["All weights as numbers"].rows[0] == ["NOUN", "1,200", "3"]


def test_a_png_shows_dark_cells_where_the_weights_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    view = HeatMap("xy", "ab", [[1.0, 0.0], [0.5, 0.5]])
    as_png(tmp_path / "a.png", view.scene(), scale=1)
    [back] = [shape for shape in view.scene().shapes if isinstance(shape, Box) and shape.colour == "panel"]
    places = [(back.y + 15 + 30 * row, back.x + 15 + 30 * column) for row in (0, 1) for column in (0, 1)]
    pixels = imread(tmp_path / "a.png")
    red = [round(255 * float(pixels[int(y), int(x), 0])) for y, x in places]
    assert red == pytest.approx([0, 0xF2, 0xF2 // 2, 0xF2 // 2], abs=1)


def test_any_token_makes_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    HeatMap(ODD, ODD, even(len(ODD), len(ODD)), caption=" ".join(ODD)).png(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match=r"a heat map of 1 rows and 2 columns needs one weight per.*\(2, 1\)"):
        HeatMap(["x"], ["a", "b"], [[1], [2]])
    with pytest.raises(DataError, match="at least one"):
        HeatMap([], [], np.zeros((0, 0)))
    for weights in ([[-0.1]], [[float("nan")]]):
        with pytest.raises(DataError, match="least 0, or of any sign with signed=True"):
            HeatMap(["x"], ["a"], weights)


def test_sentences_keep_their_blanks_and_most_of_their_words() -> None:
    long = "Mary went back to the bathroom."
    view = HeatMap([long, "word " * 20], ["hop 1"], [[1.0], [0.0]], prose=True)
    assert long in view.text()
    assert "hop 1" in view.text()
    assert "word word" in view.svg()
    assert max(len(row) for row in view.text().splitlines()) < 70
    assert long not in HeatMap([long], ["hop 1"], [[1.0]]).text()
