"""How sure a model was of each token that it read on or wrote: probabilities and surprise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.analysis.alignment import labels, rounded
from recurra.analysis.coloured_words import ColouredWords
from recurra.errors import DataError
from recurra.text.visible import without_controls
from recurra.views.table import Table

LEAST_SCALE = 8.0
"""Bits of surprise that have the full colour, where no token surprised more."""


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Tokens, and log p of each given those before it.

    >>> Probabilities(["a", "b"], np.log([0.5, 0.25])).bits.tolist()
    [1.0, 2.0]
    """

    tokens: Sequence[str]
    log_probabilities: ArrayLike
    title: str = ""

    def __post_init__(self) -> None:
        given = np.asarray(self.log_probabilities, np.float64)
        if given.shape != (len(self.tokens),) or not len(self.tokens):
            raise DataError(
                f"{len(self.tokens)} tokens need as many probabilities, but these are of shape {given.shape}."
            )
        object.__setattr__(self, "log_probabilities", given)

    @property
    def bits(self) -> NDArray[np.float64]:
        """The surprise of each token, -log₂ p."""
        return np.maximum(-np.asarray(self.log_probabilities) / math.log(2), 0.0)


def coloured(found: Probabilities) -> ColouredWords:
    """The tokens, orange where they surprised."""
    scale = max(LEAST_SCALE, float(found.bits.max()))
    p = np.exp(np.asarray(found.log_probabilities))
    said = [
        f"{token}: p {each:.4g}, {bits:.2f} bits"
        for token, each, bits in zip(labels(found.tokens), p, found.bits, strict=True)
    ]
    note = f"The stronger, the less probable after what stands before: full colour is {scale:.3g} bits."
    return ColouredWords(f"Surprise: {found.title}", found.tokens, -found.bits / scale, said, note)


def as_table(found: Probabilities) -> Table:
    """A row for each token."""
    p = np.exp(np.asarray(found.log_probabilities)).tolist()
    rows = [[token, each, bits] for token, each, bits in zip(labels(found.tokens), p, found.bits.tolist(), strict=True)]
    return Table(["token", "p", "bits"], rows)


def as_json(found: Probabilities) -> dict[str, Any]:
    """For a program.

    >>> as_json(Probabilities(["a"], np.log([0.5])))
    {'tokens': ['a'], 'log_probabilities': [-0.69315], 'bits': [1.0]}
    """
    logs = np.asarray(found.log_probabilities, np.float64)
    return {"tokens": list(found.tokens), "log_probabilities": rounded(logs), "bits": rounded(found.bits)}


def as_text(found: Probabilities) -> str:
    """For the terminal.

    >>> print(as_text(Probabilities(["a", "b"], np.log([0.5, 0.25]), "1.50 bits a token")))
    1.50 bits a token
    token      p   bits
    a     0.5000 1.0000
    b     0.2500 2.0000
    """
    return "\n".join([*([without_controls(found.title)] if found.title else []), as_table(found).text()])
