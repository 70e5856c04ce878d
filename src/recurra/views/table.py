"""Table: rows under a head, for the terminal and for pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from recurra.frozen import NamedTuple
from recurra.text.visible import columns


class Table(NamedTuple):
    """Rows under a head; a row may be shorter than the head."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]  # text, whole numbers, fractions

    def text(self) -> str:
        """Columns under each other, numbers to the right.

        >>> print(Table(["tag", "such as", "f1"], [["NOUN", "cafe\u0301", 0.5], ["X", "no", 1.0]]).text())
        tag  such as     f1
        NOUN cafe\u0301    0.5000
        X    no      1.0000
        """
        cells = [[f"{c:.4f}" if isinstance(c, float) else str(c) for c in row] for row in [self.columns, *self.rows]]
        sides = []
        for number, column in enumerate(zip(*cells, strict=True)):
            is_text = all(isinstance(row[number], str) and not _is_number(row[number]) for row in self.rows)
            width = max(map(columns, column))
            room = [" " * (width - columns(cell)) for cell in column]
            is_left = number == 0 or is_text
            sides.append([cell + left if is_left else left + cell for cell, left in zip(column, room, strict=True)])
        return "\n".join(" ".join(line).rstrip() for line in zip(*sides, strict=True))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from recurra.views.page import in_notebook, table_in_html

        return in_notebook(table_in_html(self))


def _is_number(cell: str) -> bool:
    return cell.lstrip("[+-−")[:1].isdigit()


def in_words(value: object) -> str:
    """A value as a reader wants to see it.

    >>> in_words(1234567), in_words(0.93125), in_words(31.4159), in_words(None), in_words(["a", 2])
    ('1,234,567', '0.9313', '31.42', '–', 'a, 2')
    """
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    return "–"


def in_cell(value: object) -> str:
    """A value as it stands in a column, where all fractions have four decimals.

    >>> in_cell(0.9), in_cell(1.0), in_cell(2e-5), in_cell(12), in_cell("NOUN")
    ('0.9000', '1.0000', '2e-05', '12', 'NOUN')
    """
    return f"{value:.4f}" if isinstance(value, float) and 0.001 <= abs(value) <= 1 else in_words(value)
