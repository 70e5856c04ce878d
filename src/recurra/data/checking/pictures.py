"""Whether the values of a column are pictures: paths of files, pen strokes, or pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the formats ask for pictures too, to tell a header from values
    from recurra.data.formats.reader import Value

PATHS, STROKES = "paths of pictures", "pen strokes"
"""Kinds of columns."""

ENDINGS = (".png", ".jpg", ".jpeg")
PIXELS = ("image", "picture", "pixels")
"""What columns of pixels are called: the numbers alone do not tell them from a series."""


def is_path(value: Value) -> bool:
    """Whether a text names a picture.

    >>> is_path("formulas/a 1.PNG"), is_path("It ends in .png"), is_path(".png")
    (True, False, False)
    """
    if not isinstance(value, str) or not value.lower().endswith(ENDINGS):
        return False
    name = value.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    return bool(name) and not name.endswith(" ")


def is_drawing(value: Value) -> bool:
    """Whether an array is a list of pen strokes, [[x, …], [y, …]] or points [x, y] each.

    >>> is_drawing([[[0, 4, 9], [1, 1, 2]]]), is_drawing([[[0, 1], [4, 1], [9, 2]]]), is_drawing([[0, 1], [4, 1]])
    (True, True, False)
    """
    if not isinstance(value, list) or not all(isinstance(stroke, list) and stroke for stroke in value):
        return False
    if not all(isinstance(row, list) for stroke in value for row in stroke):  # type: ignore[union-attr]
        return False
    sizes = [{len(row) for row in stroke} for stroke in value]  # type: ignore[arg-type, union-attr]
    are_columns = all(len(stroke) == 2 and len(size) == 1 for stroke, size in zip(value, sizes, strict=True))  # type: ignore[arg-type]
    return bool(value) and (are_columns or all(size == {2} for size in sizes))
