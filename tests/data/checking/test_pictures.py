"""Columns of pictures are told from texts and series."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recurra.data.checking.columns import ColumnSurvey
from recurra.data.checking.pictures import is_drawing, is_path


def kind_of(*values: Any) -> str:
    survey = ColumnSurvey("seen")
    for line, value in enumerate(values, 1):
        survey.see(value, line)
    return survey.found().kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a.png", "b/c.jpeg", None, "C:\\d.JPG"], "paths of pictures"),
        (["a.png", "a text"], "text"),
        (["a.png", 3], "number or text"),
        ([[[[0, 1, 2], [3, 4, 5]]], [[[0], [1]], [[2, 3], [4, 5]]]], "pen strokes"),
        ([[[[0, 1], [1, 1], [2, 1]]]], "pen strokes"),
        ([[[[0, 1], [1, 1], [2, 1]]], [[[0, 1, 5], [1, 1, 5], [2, 1, 5]]]], "arrays"),
        ([[[0, 1], [2, 3]]], "arrays"),
        ([[[[0, 1], [2]]]], "arrays"),
        ([[[[0, 1], [2, 3]]], []], "pen strokes"),
        ([[[[0, 1], [2, 3]], []]], "arrays"),
    ],
)
def test_a_column_is_of_pictures_where_all_its_values_are(values: list[Any], kind: str) -> None:
    assert kind_of(*values) == kind


anything: Any = st.recursive(
    st.one_of(st.none(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@given(anything)
def test_any_value_is_a_picture_or_not(value: Any) -> None:
    assert is_path(value) in (True, False)
    assert is_drawing(value) in (True, False)
