"""Attention in text and pictures: the right token in the right place, whatever the tokens are made of."""

from __future__ import annotations

import builtins
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from recurra.analysis.alignment import Alignment, as_text, pharaoh
from recurra.analysis.canvas import drawn
from recurra.analysis.heat_map import as_html, as_png, as_svg
from recurra.errors import ConfigError, DataError
from recurra.tasks.task import Prediction
from recurra.text.visible import columns, shown

SVG = "{http://www.w3.org/2000/svg}"
HOUSE = Alignment(
    ["the", "little", "house"], ["das", "Häuschen"], [[0.8, 0.2, 0.0], [0.0, 0.45, 0.55], [0.0, 0.0, 1.0]], "en → de"
)
ODD = ["日本", "مرحبا", "नमस्ते", "<b>&'\"", "$x_1$", "a b", "\x1b[2J", "\ud800", "", "long" * 50, "e\u0301", "👩‍👩‍👧"]


def even(rows: int, across: int) -> NDArray[np.float64]:
    return np.full((rows, across), 1 / across)


def test_an_answer_has_its_alignment_if_the_model_looked() -> None:
    answer = Prediction("ab", "x", -0.1, 1, {"tokens": ["x"], "alignment": [[0.3, 0.5, 0.2], [0.0, 0.0, 1.0]]})
    frames = Alignment.of(answer, "a title")
    assert (frames.source, frames.target, frames.title) == (("1", "2", "3"), ("x", "</s>"), "a title")
    assert frames.shares.tolist() == answer.detail["alignment"]
    letters = Alignment.of(answer._replace(detail={**answer.detail, "source_tokens": ["a", "b", "</s>"]}))
    assert letters.source == ("a", "b", "</s>")
    with pytest.raises(DataError, match=r"does not say where the model looked: ask for predict\(\.\.\., detail=True\)"):
        Alignment.of(answer._replace(detail={"tokens": ["x"]}))


def test_letters_stand_over_their_columns() -> None:
    weights = [[0.9, 0.1, 0.0, 0.0, 0.0], [0.0, 0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.13, 0.87, 0.0], [0, 0, 0, 0.3, 0.7]]
    assert as_text(Alignment("teat", ["T", "IY", "T"], weights, title="teat")) == (
        "teat\n"  #
        "    t e a t ∎\n"
        "  T ██\n"
        " IY   ▒▒▒▒\n"
        "  T     ░░▓▓\n"
        "  ∎       ░░▓▓"
    )


def test_words_go_down_like_stairs_to_their_columns() -> None:
    assert as_text(HOUSE) == (
        "en → de\n"
        "          ┌ the\n"
        "          │ ┌ little\n"
        "          │ │ ┌ house\n"
        "      das ▓▓░░\n"
        " Häuschen   ▒▒▒▒\n"
        "        ∎     ██"
    )


def test_wide_letters_take_two_columns_of_a_terminal() -> None:
    assert as_text(Alignment("お茶", ["tea", "茶"], np.eye(2))) == (
        "     お 茶\n"  #
        " tea ███\n"
        "  茶    ███"
    )
    assert [columns(text) for text in ("tea", "お茶", "ハ", "ﾊ", "e\u0301", "न\u094d", "")] == [3, 4, 2, 1, 1, 1, 0]


def test_words_from_right_to_left_are_held_in_their_place() -> None:
    line = as_text(Alignment(["a"], ["שלום"], [[1.0]])).splitlines()[1]
    assert line == " \u200eשלום\u200e ██"


def test_colours_are_given_where_they_are_asked_for() -> None:
    text = as_text(Alignment("ab", ["x"], [[0.0, 1.0]]), colour=True)
    assert text.splitlines()[1] == " x \033[48;5;53m  \033[0m\033[48;5;226m  \033[0m"
    assert "\033" not in as_text(Alignment("ab", ["x"], [[0.0, 1.0]]))


@given(st.text(max_size=60))
def test_no_token_moves_the_cursor_or_breaks_a_line(token: str) -> None:
    text = shown(token)
    assert 0 <= columns(text) <= 24
    assert text
    assert len(as_text(Alignment([token], [token], [[1.0]])).split("\n")) == 2
    assert all(letter.isprintable() or letter in "\u200c\u200d" for letter in text)


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats(0.01, 1)))
def test_links_are_those_of_the_largest_weights(weights: NDArray[np.float64]) -> None:
    rows, across = weights.shape
    with_ends = np.pad(weights, ((0, 1), (0, 1)), constant_values=2.0)  # nothing is linked to or from an end
    pair = Alignment(["s"] * across, ["t"] * rows, with_ends)
    links = [tuple(map(int, link.split("-"))) for link in pharaoh(pair).split()]
    assert [target for _, target in links] == list(range(rows))
    assert all(weights[target, source] == max(weights[target]) for source, target in links)
    soft = {tuple(map(int, link.split("-"))) for link in pharaoh(pair, threshold=0.5).split()}
    assert soft == {(s, t) for t in range(rows) for s in range(across) if weights[t, s] >= 0.5}


def test_a_token_that_looked_at_the_end_alone_is_linked_to_nothing() -> None:
    assert pharaoh(Alignment("ab", "xy", [[0.0, 0.0, 1.0], [0.1, 0.2, 0.7]])) == "1-1"


def test_weights_that_do_not_fit_the_tokens_are_refused() -> None:
    with pytest.raises(DataError, match=r"of 1 target and 2 source tokens needs weights of shape \(1, 2\).*\(2, 4\)"):
        Alignment("ab", "x", even(2, 4))
    with pytest.raises(DataError, match=r"found \(3,\)"):
        Alignment("ab", "x", [1.0, 0.0, 0.0])
    with pytest.raises(DataError, match="at least one source and one target token"):
        Alignment("", "x", np.zeros((1, 0)))
    with pytest.raises(DataError, match="one that is no number"):
        Alignment("a", "x", [[float("nan")]])
    with pytest.raises(DataError, match="a negative one"):
        Alignment("a", "x", [[-0.1]])
    with pytest.raises(DataError, match="there is no alignment to draw"):
        as_svg()


def test_a_cell_of_the_picture_lies_under_its_source_token_and_beside_its_target_token() -> None:
    picture = ElementTree.fromstring(as_svg(HOUSE))
    cells = {g.attrib["class"]: g for g in picture.iter(f"{SVG}g") if g.attrib["class"] != "panel"}
    assert cells.keys() == {"s0 t0", "s1 t0", "s1 t1", "s2 t1", "s2 t2"}
    labels = {text.attrib["class"]: text for text in picture.iter(f"{SVG}text") if "class" in text.attrib}
    for key, cell in cells.items():
        rect, number, title = cell
        source, target = key.split()
        x, y = float(rect.attrib["x"]) + 14, float(rect.attrib["y"]) + 14
        above = float(re.findall(r"[\d.]+", labels[f"of-{source} slanted"].attrib["transform"])[0])
        assert abs(above - x) <= 4
        assert abs(float(labels[f"of-{target}"].attrib["y"]) - y) <= 6
        weight = HOUSE.shares[int(target[1]), int(source[1])]
        assert (number.text, float(rect.attrib["fill-opacity"])) == (f"{weight:.2f}", weight)
        assert title.text == f"{labels[f'of-{target}'].text} ← {labels[f'of-{source} slanted'].text}: {weight:.3f}"


def test_nothing_lies_outside_the_picture_and_panels_do_not_overlap() -> None:
    picture = ElementTree.fromstring(as_svg(HOUSE, HOUSE, Alignment("abc", "xyz", even(3, 3)), width=500))
    width, height = (float(picture.attrib[side]) for side in ("width", "height"))
    assert width <= 520
    boxes = [
        tuple(float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        for rect in picture.iter(f"{SVG}rect")
        if rect.attrib.get("class") == "back"
    ]
    assert len(boxes) == 3
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    assert all(
        a[0] + a[2] < b[0] or b[0] + b[2] < a[0] or a[1] + a[3] < b[1] or b[1] + b[3] < a[1]
        for n, a in enumerate(boxes)
        for b in boxes[:n]
    )


@pytest.mark.parametrize("token", ODD, ids=ascii)
def test_any_token_makes_a_well_formed_picture_and_page(token: str) -> None:
    pair = Alignment([token, "a"], [token], even(2, 3), title=token)
    words = [text.text for text in ElementTree.fromstring(as_svg(pair)).iter(f"{SVG}text")]
    assert words.count(shown(token)) >= 2
    page = as_html(pair, title=token)
    assert "<b>" not in page
    page.encode()
    ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


def test_the_page_shows_every_weight_and_fetches_nothing() -> None:
    page = as_html(HOUSE, Alignment("ab", "x", [[0.123, 0.877]]), title="a <title>")
    assert page.count("<td>0.") == 8 + 2
    assert "<td>0.123</td><td>0.877</td>" in page
    assert "<h1>a &lt;title&gt;</h1>" in page
    assert not re.search(r"(src|href)=(?!\"data:,\")|<script|url\(|@import", page)


def size_of(path: Path) -> tuple[int, int]:
    found = path.read_bytes()
    assert found.startswith(b"\x89PNG")
    return struct.unpack(">II", found[16:24])


def test_a_png_has_twice_the_pixels_of_the_svg(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    as_png(tmp_path / "a.png", HOUSE)
    picture = ElementTree.fromstring(as_svg(HOUSE))
    assert size_of(tmp_path / "a.png") == (2 * int(picture.attrib["width"]), 2 * int(picture.attrib["height"]))


def test_a_png_shows_dark_cells_where_the_weights_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    as_png(tmp_path / "a.png", Alignment("ab", "xy", [[1.0, 0.0], [0.5, 0.5]]), scale=1)
    picture = ElementTree.fromstring(as_svg(Alignment("ab", "xy", even(2, 2))))
    places = [
        (int(float(rect.attrib["y"])) + 14, int(float(rect.attrib["x"])) + 14)
        for rect in picture.iter(f"{SVG}rect")
        if "fill-opacity" in rect.attrib
    ]
    pixels = imread(tmp_path / "a.png")
    red = [round(255 * float(pixels[y, x, 0])) for y, x in places]
    assert red == [0, 0xF2, 0xF2 // 2, 0xF2 // 2]


def test_any_token_makes_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    as_png(tmp_path / "a.png", Alignment(ODD, ODD, even(len(ODD), len(ODD)), title=" ".join(ODD)))
    assert min(size_of(tmp_path / "a.png")) > 600


def test_a_very_large_png_is_made_smaller(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with drawn(tmp_path / "a.png", 100, 24_000, texts=[]):
        pass
    assert size_of(tmp_path / "a.png") == (50, 12_000)


def test_a_png_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(DataError, match=r"a\.png cannot be written: No such file or directory"):
        as_png(tmp_path / "none" / "a.png", HOUSE)


def test_without_matplotlib_a_png_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return whole(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"pip install 'recurra\[plot\]', or write an \.svg or \.html file"):
        as_png("a.png", HOUSE)


def test_texts_and_svg_need_neither_torch_nor_matplotlib() -> None:
    program = "import sys; import recurra.analysis.heat_map; print({'torch', 'matplotlib'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
