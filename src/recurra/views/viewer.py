"""Viewer: how a view of one answer is made, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from recurra.errors import ConfigError
from recurra.frozen import NamedTuple

if TYPE_CHECKING:
    from recurra.views.view import View

LOOKED = "Where it looked"
ALIGNED = "The best alignment"
MATTERED = "What mattered"
SURE = "How sure it was"
SEARCHED = "How it searched"
GATES = "Gates over time"
WRITTEN = "Gates while it wrote"
REMEMBERED = "What it wrote and read"
WRITTEN_REMEMBERED = "What the decoder wrote to its memory and read"
FORECAST = "Forecast and actual values"
"""Titles of views: the page shows them on tabs before the views are made."""


class Asked(NamedTuple):
    """A request to explain one answer: the input and the options."""

    model: Any  # the network, in evaluation mode; of an exported model, its Programmed
    example: Any
    run: str = "this model"  # what a message calls it
    layer: int | None = None
    direction: str | None = None
    best: int = 1  # which of several answers
    several: bool = False  # whether several runs answer as one
    combined: bool = False  # whether they do so by their outputs: no single network can be looked into
    exported: bool = False  # whether a program answers, which cannot be looked into either


class Viewer(NamedTuple):
    """How a view is created and how expensive it is; reports show the cheap ones."""

    make: Callable[[Asked], View]  # a RecurraError says why there is none
    longest: int = 100  # elements of an example whose picture fits a page
    work: Callable[[int], int] | None = None  # elements to how many of them are read in all; None: few
    telling: bool = True  # whether a report shows it
    title: str = ""  # that of its views, on the tab of the page; without one the tab has the view's name
    layered: bool = False  # whether it is of one layer, which `Asked.layer` names; a report shows it once
    possible: bool = True  # whether answers of this run may have it: the page has no tab for one that `make` refuses
    of_several: bool = False  # whether it shows an answer, not a network: combined runs and exported models have it too

    def view(self, asked: Asked) -> View:
        """What `make` gives; a ConfigError where there is no network to look into."""
        if asked.combined and not self.of_several:
            raise ConfigError("this view is not available for an ensemble of runs: name one of them.")
        if asked.exported and not self.of_several:
            raise ConfigError("this view is not available for an exported model: name the run that was exported.")
        return self.make(asked)
