"""The kinds of views by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recurra.named import choose
from recurra.views.distribution import Distribution
from recurra.views.heat_map import HeatMap
from recurra.views.lines import Lines
from recurra.views.overlay import Overlay
from recurra.views.several import Several
from recurra.views.tokens import Tokens
from recurra.views.tree import BeamTree
from recurra.views.units import Units
from recurra.views.view import View

KINDS: dict[str, type[View]] = {
    each.kind: each for each in (HeatMap, Overlay, Tokens, BeamTree, Units, Lines, Distribution, Several)
}


def view_of(given: Mapping[str, Any]) -> View:
    """The view whose json() was given.

    >>> view_of({"kind": "distribution", "names": ["a"], "shares": [[0.5]]}).title
    ''
    """
    return KINDS[choose(KINDS, given.get("kind"), "the kind of a view")].from_json(given)
