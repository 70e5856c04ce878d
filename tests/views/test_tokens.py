"""Coloured tokens: the right word has the colour, in lines or in a map."""

from __future__ import annotations

import pytest

from recurra.errors import DataError
from recurra.views.scene import Box, Label
from recurra.views.tokens import FEW, TokenRow, Tokens
from tests.views.made import titles


def test_right_to_left_words_stand_from_right_to_left() -> None:
    view = Tokens(["שלום", "עולם"], [TokenRow("", [0.5, -0.5], ["", ""])])
    places = {shape.text: shape.x for shape in view.scene().shapes if isinstance(shape, Label)}
    assert places["שלום"] > places["עולם"]
    assert 'dir="rtl"' in view.figure()
    assert 'dir="ltr"' in Tokens(["a"], [TokenRow("", [0.5], [""])]).figure()


def test_words_break_into_lines_that_fit_the_width() -> None:
    view = Tokens(["word"] * 40, [TokenRow("", [0.5] * 40, [""] * 40)])
    boxes = [shape for shape in view.scene(400).shapes if isinstance(shape, Box)]
    assert max(box.x + box.width for box in boxes) <= 400
    assert len({box.y for box in boxes}) > 3


def test_few_rows_are_words_and_many_rows_are_a_map_that_says_the_same() -> None:
    rows = [TokenRow(f"r{n}", [1.0, -0.5], ["+2", "-1"], total=f"{n}.0") for n in range(FEW + 1)]
    few, many = Tokens(["a", "b"], rows[:FEW], total="odds"), Tokens(["a", "b"], rows, total="odds", left_out=2)
    assert titles(few.svg())[:2] == ["a: +2", "b: -1"]
    assert titles(many.svg())[:2] == ["r0 ← a: +2", "r0 ← b: -1"]
    assert f"The first {FEW + 1} of {FEW + 3} are shown." in many.svg()
    colours = [(box.colour, box.strength) for box in many.scene().shapes if isinstance(box, Box) and box.title]
    assert colours[:2] == [("more", 1.0), ("less", 0.5)]


def test_a_table_of_its_own_replaces_what_is_said() -> None:
    view = Tokens(["a"], [TokenRow("x", [1.0], ["+2"]), TokenRow("y", [0.5], ["+1"])])
    assert view.tables()["As numbers"].rows == [["a", "+2", "+1"]]
    assert view.text() == "x  a +2\ny  a +1"


def test_strengths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match=r"2 tokens need one strength.*of shape \(1,\) and 2 texts"):
        Tokens(["a", "b"], [TokenRow("", [1.0], ["", ""])])
    with pytest.raises(DataError, match="at least one token and one row"):
        Tokens([], [TokenRow("", [], [])])
