"""Viewer: how a view of one answer is made, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from torch import nn


class View(NamedTuple):
    """One thing to see; numbers, pictures and pieces of a page are made when they are asked for."""

    title: str
    text: str
    json: Callable[[], dict[str, Any]]
    svg: Callable[[], str]
    html: Callable[[], str]
    png: Callable[[Path], None]
    script: str = ""


class Asked(NamedTuple):
    """An answer that is to be explained, and how."""

    model: nn.Module  # in evaluation mode
    example: Any
    run: str = "this model"  # what a message calls it
    layer: int | None = None
    direction: str | None = None
    best: int = 1  # which of several answers
    several: bool = False  # whether several runs answer as one


class Viewer(NamedTuple):
    """How a view is made, and what that costs: a report shows those that are telling and fit a page."""

    measure: Callable[[Asked], object]  # what `recurra.analysis.views.view_of` makes a view of
    longest: int = 100  # elements of an example whose picture fits a page
    work: Callable[[int], int] | None = None  # elements to how many of them are read in all; None: few
    telling: bool = True  # whether a report shows it
