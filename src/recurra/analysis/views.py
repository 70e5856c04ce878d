"""What was measured of one answer, as views: each as text, as numbers, as a picture and as a piece of a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.analysis import (
    alignment,
    beam_tree,
    beam_tree_picture,
    coloured_words,
    forecast_picture,
    gates_picture,
    heat_map,
    picture_attention,
    picture_heat_map,
    probabilities,
    saliency_picture,
)
from recurra.analysis import gates as measured_gates
from recurra.analysis import saliency as measured_saliency
from recurra.analysis.alignment import Alignment, labels, rounded
from recurra.analysis.beam_tree import BeamTree
from recurra.analysis.coloured_words import ColouredWords
from recurra.analysis.forecast_picture import Forecast
from recurra.analysis.gates import Gates
from recurra.analysis.page import table_in_html
from recurra.analysis.picture_attention import PictureAttention
from recurra.analysis.probabilities import Probabilities
from recurra.analysis.saliency import Method, Probe
from recurra.views.table import Table
from recurra.views.viewer import Asked, View, Viewer


@singledispatch
def view_of(found: object) -> View:
    """What was measured, as a view."""
    raise TypeError(f"{type(found).__name__} is nothing that can be seen.")


@view_of.register
def _over_words(found: Alignment) -> View:
    return View(
        "Where it looked",
        alignment.as_text(found),
        lambda: alignment.as_json(found),
        lambda: heat_map.as_svg(found),
        lambda: heat_map.in_html(found),
        lambda path: heat_map.as_png(path, found),
    )


@view_of.register
def _over_places(found: PictureAttention) -> View:
    return View(
        "Where it looked",
        picture_attention.as_text(found),
        lambda: picture_attention.as_json(found),
        lambda: picture_heat_map.as_svg(found),
        lambda: picture_heat_map.in_html(found),
        lambda path: picture_heat_map.as_png(path, found),
    )


def view(viewer: Viewer, asked: Asked) -> View:
    """What there is to see of an answer; a RecurraError says why there is nothing."""
    return view_of(viewer.measure(asked))


class Queries(NamedTuple):
    """What the learned queries of a summary looked at: weights (queries, tokens)."""

    said: str
    tokens: Sequence[str]
    weights: NDArray[np.float64]


@view_of.register
def _over_queries(found: Queries) -> View:
    said, tokens, weights = found
    names = [f"query {number + 1}" for number in range(len(weights))]
    rows = [_weighed(f"{said}: where its queries looked, on average", tokens, weights.mean(0))]
    rows += [_weighed(name, tokens, each) for name, each in zip(names, weights, strict=True)] * (len(weights) > 1)
    table = [
        [token, *map(float, each)] for token, each in zip(labels(tokens), [*zip(*weights, strict=True)], strict=True)
    ]
    numbers = table_in_html(Table(["token", *names], table))
    return View(
        "Where it looked",
        f"{said}: where its queries looked\n{Table(['token', *names], table).text()}",
        lambda: {"kind": "queries", "tokens": list(tokens), "weights": rounded(weights)},
        lambda: coloured_words.as_svg(*rows),
        lambda: (
            '<p class="soft">Words are read, and means of them are weighed by learned queries: the stronger, the more '
            f"weight. Point at a word for its share.</p>{coloured_words.in_html(*rows)}"
            f"<details><summary>All weights as numbers</summary>{numbers}</details>"
        ),
        lambda path: coloured_words.as_png(path, *rows),
    )


def _weighed(title: str, tokens: Sequence[str], weights: NDArray[np.float64]) -> ColouredWords:
    said = [f"{token}: {weight:.3f}" for token, weight in zip(labels(tokens), weights, strict=True)]
    return ColouredWords(title, tokens, weights / (weights.max() or 1.0), said)


@view_of.register
def _surprise(found: Probabilities) -> View:
    """How probable each token was."""
    row = probabilities.coloured(found)
    return View(
        "How sure it was",
        probabilities.as_text(found),
        lambda: probabilities.as_json(found),
        lambda: coloured_words.as_svg(row),
        lambda: (
            f"{coloured_words.in_html(row)}<details><summary>As numbers</summary>"
            f"{table_in_html(Table(*probabilities.as_table(found)))}</details>"
        ),
        lambda path: coloured_words.as_png(path, row),
    )


@view_of.register
def _contributions(probe: Probe) -> View:
    """What speaks for the answer, by integrated gradients and by gradient × input."""
    methods: tuple[Method, Method] = ("integrated", "gradient")
    both = [measured_saliency.saliency(probe, method) for method in methods]
    return View(
        "What mattered",
        measured_saliency.as_text(both[0]),
        lambda: measured_saliency.as_json(*both),
        lambda: saliency_picture.as_svg(*both),
        lambda: saliency_picture.in_html(*both),
        lambda path: saliency_picture.as_png(path, *both),
    )


@view_of.register
def _search_tree(found: BeamTree) -> View:
    """The beam, step by step."""
    return View(
        "How it searched",
        beam_tree.as_text(found),
        lambda: beam_tree.as_json(found),
        lambda: beam_tree_picture.as_svg(found),
        lambda: beam_tree_picture.in_html(found),
        lambda path: beam_tree_picture.as_png(path, found),
        beam_tree_picture.SCRIPT,
    )


@view_of.register
def _gates_over_time(found: Gates) -> View:
    """Gates and states while it read."""
    return View(
        "Gates over time",
        measured_gates.as_text(found),
        lambda: measured_gates.as_json(found),
        lambda: gates_picture.as_svg(found),
        lambda: gates_picture.in_html(found),
        lambda path: gates_picture.as_png(path, found),
    )


@view_of.register
def _forecast(found: Forecast) -> View:
    """A forecast of the end of a series, beside what came."""
    return View(
        "Forecast and what came",
        forecast_picture.as_text(found),
        lambda: forecast_picture.as_json(found),
        lambda: forecast_picture.as_svg(found),
        lambda: forecast_picture.in_html(found),
        lambda path: forecast_picture.as_png(path, found),
    )
