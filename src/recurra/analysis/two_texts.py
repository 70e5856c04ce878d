"""What the words of one text looked at in the other, where two texts are read together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recurra.views.heat_map import HeatMap
from recurra.views.several import Several
from recurra.views.table import Table
from recurra.views.tokens import TokenRow, Tokens
from recurra.views.view import View, labels, rounded
from recurra.views.viewer import LOOKED


class Named(NamedTuple):
    """A text: what it is called, such as premise, and its tokens."""

    name: str
    tokens: Sequence[str]


def two_texts(
    said: str, first: Named, second: Named, looked: NDArray[np.float64], back: NDArray[np.float64] | None = None
) -> View:
    """The answer, both texts, and what the second looked at in the first: (T₂, T₁), or (1, T₁) where it did as a whole.

    `back` is what the first looked at in the second, (T₁, T₂), where both look.

    >>> texts = Named("premise", ["a", "dog", "runs"]), Named("hypothesis", ["an", "animal"])
    >>> two_texts("entailment", *texts, np.array([[0.8, 0.1, 0.1], [0.0, 0.9, 0.1]])).rows
    ('an', 'animal')
    """
    if len(looked) == 1 != len(second.tokens):
        return _as_a_whole(said, first, second, looked[0])
    there = _map(said, second, first, looked)
    if back is None:
        return there
    views = [
        dataclasses.replace(there, title=f"{second.name} at {first.name}"),
        dataclasses.replace(_map(said, first, second, back), title=f"{first.name} at {second.name}"),
    ]
    return Several(views, "Which looks", title=LOOKED, about="The words of each text look at those of the other.")


def _map(said: str, looking: Named, seen: Named, weights: NDArray[np.float64]) -> HeatMap:
    """A row for each token that looks, a column for each that is seen."""
    return HeatMap(
        looking.tokens,
        seen.tokens,
        weights,
        across=seen.name,
        down=looking.name,
        of_row="looked at",
        of_column="was looked at by",
        title=LOOKED,
        caption=f"{said}: what the {looking.name} looked at in the {seen.name}",
        about="A row for each word that looks, a column for each word that is looked at. Point at a cell to see its "
        "weight.",
    )


def _as_a_whole(said: str, first: Named, second: Named, weights: NDArray[np.float64]) -> Tokens:
    """The words of the first text in the colours of their weights."""
    caption = f"{said}: what the {second.name} looked at in the {first.name}"
    row = TokenRow(second.name, weights / (weights.max() or 1.0), [f"{weight:.3f}" for weight in weights], caption)
    table = [list(each) for each in zip(labels(first.tokens), rounded(weights).tolist(), strict=True)]
    return Tokens(
        first.tokens,
        [row],
        ("0", "most"),
        table=Table(["token", "weight"], table),
        title=LOOKED,
        caption=caption,
        about=f"The {second.name} as a whole looks at the words of the {first.name}: the stronger the colour, the "
        "larger the weight. Point at a word for its weight.",
        numbers={"weights": rounded(weights)},
    )
