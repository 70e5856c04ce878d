"""Brackets that an answer opens and closes, as a rule of every search."""

from __future__ import annotations

from recurra.frozen import NamedTuple


class Brackets(NamedTuple):
    """Which ids open a bracket, and by which id each is closed; one may close several.

    tree: the answer is one bracket with all that it holds, and nothing before or after it.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    tree: bool = False
