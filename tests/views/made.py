"""A view of each kind, and drawings looked at as XML."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from recurra.views.distribution import Distribution
from recurra.views.heat_map import HeatMap
from recurra.views.lines import LOOKS, Band, Curve, Lines, Mark, Panel
from recurra.views.overlay import Overlay
from recurra.views.several import Several
from recurra.views.tokens import TokenRow, Tokens
from recurra.views.tree import BeamTree, End, Node, Step
from recurra.views.units import Units
from recurra.views.view import View

SVG = "{http://www.w3.org/2000/svg}"

EVIL = "<script>alert(1)</script>&\"'"
ODD = ["日本", "مرحبا", "नमस्ते", EVIL, "$x_1$", "a b", "\x1b[2J", "\ud800", "", "long" * 50, "e\u0301", "👩‍👩‍👧", "</s>"]


def parsed(drawing: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawing.encode("utf-8"))


def titles(drawing: str) -> list[str]:
    """What is said where the picture is pointed at."""
    return [each.text or "" for each in parsed(drawing).iter(f"{SVG}title")]


def words(drawing: str) -> list[str]:
    return [each.text or "" for each in parsed(drawing).iter(f"{SVG}text")]


def size(drawing: str) -> tuple[int, int]:
    root = parsed(drawing)
    return int(root.attrib["width"]), int(root.attrib["height"])


token = st.sampled_from([*ODD, "a", "bc"])
text = st.sampled_from(["", "a title", EVIL])
share = st.floats(0, 1)
number = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 1e-30, 1e30])


def _array(draw: st.DrawFn, values: st.SearchStrategy[float], *shape: int) -> NDArray[np.float64]:
    count = math.prod(shape)
    return np.array(draw(st.lists(values, min_size=count, max_size=count))).reshape(shape)


def _some(draw: st.DrawFn, least: int = 1, most: int = 4) -> int:
    return draw(st.integers(least, most))


def _tokens(draw: st.DrawFn, count: int) -> list[str]:
    return draw(st.lists(token, min_size=count, max_size=count))


def _head(draw: st.DrawFn) -> dict[str, Any]:
    return {name: draw(text) for name in ("title", "caption", "about")}


@st.composite
def heat_maps(draw: st.DrawFn) -> HeatMap:
    rows, columns, signed = _some(draw), _some(draw), draw(st.booleans())
    weights = _array(draw, number if signed else share | st.integers(0, 99).map(float), rows, columns)
    return HeatMap(_tokens(draw, rows), _tokens(draw, columns), weights, signed, draw(text), **_head(draw))


@st.composite
def overlays(draw: st.DrawFn) -> Overlay:
    count, rows, columns = _some(draw), _some(draw), _some(draw)
    shape = draw(st.sampled_from([None, (rows + 5, columns + 7), (rows, columns, 1), (rows + 2, columns + 1, 3)]))
    picture = None if shape is None else np.random.default_rng(_some(draw)).integers(0, 256, shape, np.uint8)
    return Overlay(_tokens(draw, count), _array(draw, share, count, rows, columns), picture=picture, **_head(draw))


@st.composite
def token_rows(draw: st.DrawFn) -> Tokens:
    count, rows = _some(draw), _some(draw, most=8)
    every = [
        TokenRow(draw(token), _array(draw, st.floats(-1.5, 1.5), count), [draw(text)] * count, *[draw(text)] * 3)
        for _ in range(rows)
    ]
    return Tokens(
        _tokens(draw, count),
        every,
        ("0", draw(text)),
        total=draw(text),
        left_out=_some(draw, 0),
        subtitle=draw(text),
        **_head(draw),
    )


@st.composite
def trees(draw: st.DrawFn) -> BeamTree:
    steps: list[Step] = []
    for step in range(_some(draw)):
        nodes = []
        for place in range(_some(draw)):
            parent = draw(st.integers(0, len(steps[-1].nodes) - 1)) if step else None
            kept = draw(st.booleans()) or place == 0
            answer = 1 if place == 0 else None
            nodes.append(
                Node(place, parent, draw(token), draw(share), draw(number), kept, draw(st.booleans()), answer, EVIL)
            )
        steps.append(Step(sum(node.kept for node in nodes), len(nodes) + _some(draw, 0), nodes))
    return BeamTree(steps, [End(len(steps) - 1, 0)], **_head(draw))


@st.composite
def units(draw: st.DrawFn) -> Units:
    count = _some(draw)
    values = {
        name: _array(draw, number, _some(draw, most=30), count)
        for name in draw(st.lists(st.sampled_from(["h", "c", EVIL]), min_size=1, max_size=3, unique=True))
    }
    found = Units.of(_tokens(draw, count), values)
    return replace(found, layers=_some(draw), directions=["forward", "backward"], **_head(draw))


@st.composite
def lines(draw: st.DrawFn) -> Lines:
    gap = number | st.just(math.nan)
    names = _tokens(draw, _some(draw)) if draw(st.booleans()) else []
    panels = []
    for _ in range(_some(draw, 0, 3)):
        curves = []
        for _ in range(_some(draw)):
            count = len(names) or _some(draw, 1, 9)
            x = sorted(draw(st.lists(st.integers(-99, 9999), min_size=count, max_size=count, unique=True)))
            y = _array(draw, gap, count).tolist()
            curves.append(
                Curve(
                    draw(token),
                    y,
                    [] if names else x,
                    draw(st.sampled_from(list(LOOKS))),
                    draw(st.booleans()),
                )
            )
        bands = [Band(draw(text), curves[0].y, curves[0].y, curves[0].x)] if draw(st.booleans()) else []
        marks = [Mark(draw(text), curves[0].x[0] if curves[0].x else 0, draw(gap))] if draw(st.booleans()) else []
        bars, log = draw(st.booleans()), draw(st.booleans())
        panels.append(Panel(draw(text), curves, log=log, bands=bands, marks=marks, bars=bars))
    return Lines(panels, draw(text), names, draw(st.booleans()), **_head(draw))


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    count, parts = _some(draw), _some(draw, most=3)
    shares = _array(draw, share, count, parts) / parts
    said = draw(st.sampled_from([[], [EVIL] * count]))
    return Distribution(_tokens(draw, count), shares, _tokens(draw, parts), draw(st.booleans()), said, **_head(draw))


@st.composite
def several(draw: st.DrawFn) -> Several:
    views: list[View] = draw(st.lists(heat_maps() | token_rows() | distributions() | trees(), min_size=1, max_size=3))
    return Several(views, draw(st.sampled_from(["", "Method"])), draw(st.integers(0, len(views))), **_head(draw))


EVERY: dict[str, Callable[[], st.SearchStrategy[View]]] = {
    "heat_map": heat_maps,
    "overlay": overlays,
    "tokens": token_rows,
    "tree": trees,
    "units": units,
    "lines": lines,
    "distribution": distributions,
    "several": several,
}
