"""How sure a model was of each token that it read on or wrote: probabilities and surprise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError
from recurra.views.table import Table
from recurra.views.tokens import TokenRow, Tokens
from recurra.views.view import labels, rounded
from recurra.views.viewer import SURE

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
                f"{len(self.tokens)} tokens need one probability each, but the probabilities have shape {given.shape}."
            )
        object.__setattr__(self, "log_probabilities", given)

    @property
    def bits(self) -> NDArray[np.float64]:
        """The surprise of each token, -log₂ p."""
        return np.maximum(-np.asarray(self.log_probabilities) / math.log(2), 0.0)

    def view(self) -> Tokens:
        """The tokens, orange where they surprised.

        >>> print(Probabilities(["a", "b"], np.log([0.5, 0.25]), "1.50 bits a token").view().text())
        1.50 bits a token
        token      p   bits
        a     0.5000 1.0000
        b     0.2500 2.0000
        """
        bits, p = self.bits, np.exp(np.asarray(self.log_probabilities))
        scale, mean = max(LEAST_SCALE, float(bits.max())), float(bits.mean())
        row = TokenRow(
            "",
            -bits / scale,
            [f"p {each:.4g}, {surprise:.2f} bits" for each, surprise in zip(p, bits, strict=True)],
            f"Surprise: {self.title}" if self.title else "",
            f"{mean:.2f} bits a token on average, perplexity {2**mean:.2f}; full colour is {scale:.3g} bits",
        )
        rows = [list(each) for each in zip(labels(self.tokens), p.tolist(), bits.tolist(), strict=True)]
        return Tokens(
            self.tokens,
            [row],
            ("0", f"{scale:.3g} bits"),
            table=Table(["token", "p", "bits"], rows),
            title=SURE,
            caption=self.title,
            about="The stronger the orange, the less probable the token was given the tokens before it. The number "
            "is its surprisal, −log₂ p, in bits.",
            numbers={"log_probabilities": rounded(self.log_probabilities), "bits": rounded(bits)},
        )
