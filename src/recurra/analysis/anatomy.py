"""Anatomy: the parts of a model as `recurra info --draw` shows them, unrolled over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from recurra.analysis.gates import Stack, ways_of
from recurra.cells.wrappers.wrapper import Wrapper
from recurra.encoders.pyramid import Pyramid


class UnrolledLevel(NamedTuple):
    """A layer of a network: its name and its directions."""

    name: str
    ways: Sequence[str] = ()  # of forward and backward; () where it reads all steps at once
    joined: str = ""  # how two ways become one


class Anatomy(NamedTuple):
    """The structure of a network for drawing: encoder, decoder, what connects them, and where the outputs are."""

    reader: Sequence[UnrolledLevel]  # from below
    writer: Sequence[UnrolledLevel] = ()
    is_whole: bool = False  # whether what is read has no steps
    enters: str = ""  # how what was read enters the writer, beside attention
    attention: str = ""  # what it is, in words
    wiring: str = ""  # where attention stands in the writer
    answers: Literal["steps", "ahead", "whole"] = "steps"  # one for each step, for the step after each, or for all
    summary: str = "answer"  # what is said where there is one for all
    chained: str = ""  # what joins neighbouring answers
    is_turned: bool = False  # whether the writer begins with the last of its outputs
    is_aligned: bool = False  # whether each step gives a token or nothing, and the tokens that are left are the answer


def levels_of(stack: Stack) -> list[UnrolledLevel]:
    """The layers of a recurrent stack, from below."""
    layers: list[Any] = list(stack.cells)  # of a stack ModuleLists, a cell for each way
    ways = ways_of(stack)
    merges = [] if isinstance(stack, Pyramid) else list(stack.merges)
    halved = ", of pairs" if isinstance(stack, Pyramid) else ""
    return [
        UnrolledLevel(
            cell_in_words(cells[0]) + halved * bool(number),
            ways,
            type(merges[number]).__name__.lower() if len(ways) > 1 and merges else "",
        )
        for number, cells in enumerate(layers)
    ]


def cell_in_words(cell: Any) -> str:
    """What a cell is called, and its size.

    >>> from recurra.cells import GRU
    >>> cell_in_words(GRU(2, 3))
    'gru 3'
    """
    while isinstance(cell, Wrapper):
        cell = cell.cell
    return f"{cell.name} {cell.hidden_size}"
