"""How many places of a memory are real."""

from __future__ import annotations

from collections.abc import Sequence

from recurra.frozen import NamedTuple


class Extents(NamedTuple):
    """How many places the memory of each source really has."""

    each: Sequence[tuple[int, int]]  # rows and columns of them; of steps one row
    columns: int | None  # of the batch, as `Places` has it
