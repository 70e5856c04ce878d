"""Viewer: how a view of one answer is made, and what that costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from recurra.errors import ConfigError, RecurraError
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
FORESEEN = "Gates while it forecast"
REMEMBERED = "What it wrote and read"
WRITTEN_REMEMBERED = "What the decoder wrote to its memory and read"
FORECAST = "Forecast and actual values"
"""Titles of views: the page shows them on tabs before the views are made."""


class Run(NamedTuple):
    """One of several runs that answer as one."""

    name: str
    task: Any
    model: Any


class Asked(NamedTuple):
    """A request to explain one answer: the input and the options."""

    model: Any  # the network, in evaluation mode; of an exported model, its Programmed
    example: Any
    run: str = "this model"  # what a message calls it
    layer: int | None = None
    direction: str | None = None
    best: int = 1  # which of several answers
    runs: tuple[Run, ...] = ()  # of several that answer as one, each
    exported: bool = False  # whether a program answers, which cannot be looked into


class Viewer(NamedTuple):
    """How a view is created and how expensive it is; reports show the cheap ones."""

    make: Callable[[Asked], View]  # a RecurraError says why there is none
    longest: int = 100  # elements of an example whose picture fits a page
    work: Callable[[int], int] | None = None  # elements to how many of them are read in all; None: few
    telling: bool = True  # whether a report shows it
    title: str = ""  # that of its views, on the tab of the page; without one the tab has the view's name
    layered: bool = False  # whether it is of one layer, which `Asked.layer` names; a report shows it once
    possible: bool = True  # whether answers of this run may have it: the page has no tab for one that `make` refuses
    of_several: bool = False  # whether it shows an answer, not a network: several runs have one, exported models too

    def view(self, asked: Asked) -> View:
        """What `make` gives; a ConfigError where there is no network to look into."""
        if asked.exported and not self.of_several:
            raise ConfigError("this view is not available for an exported model: name the run that was exported.")
        return self.make(asked)


def view_of(viewers: Mapping[str, Viewer], name: str, asked: Asked) -> View:
    """The view of that name. Of several runs that answer as one, each has its own, where it shows a network.

    A RecurraError says why there is none.
    """
    if not asked.runs or viewers[name].of_several:
        return viewers[name].view(asked)
    from recurra.views.several import Several

    found: list[View] = []
    refused: dict[str, RecurraError] = {}
    for run in asked.runs:
        own = asked._replace(model=run.model, run=run.name, runs=())
        try:
            view = run.task.viewers()[name].view(own) if name in run.task.viewers() else None
        except RecurraError as error:
            refused[run.name] = error
            continue
        if view is None:
            refused[run.name] = ConfigError("it has no such view.")
        else:
            caption = ": ".join(filter(None, [run.name, view.caption]))
            found.append(dataclasses.replace(view, title=run.name, caption=caption))
    if not found:
        first = next(iter(refused.values()))
        raise type(first)("\n".join(f"{each}: {why}" for each, why in refused.items()))
    missing = "".join(f" {each} has none: {why}" for each, why in refused.items())
    about = f"Each run read the input and answered it by itself.{missing}"
    return Several(found, title=viewers[name].title or name, about=about)
