"""What the learned queries of a summary looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recurra.views.table import Table
from recurra.views.tokens import TokenRow, Tokens
from recurra.views.view import labels, rounded
from recurra.views.viewer import LOOKED


def queries(said: str, tokens: Sequence[str], weights: NDArray[np.float64]) -> Tokens:
    """The answer, what was read, and how much each query weighed each token, (queries, tokens): a row for each query.

    Of several queries their mean is the first row.

    >>> print(queries("praise", ["not", "bad"], np.array([[0.25, 0.75], [0.5, 0.5]])).text())
    praise: where its queries looked
    token query 1 query 2
    not    0.2500  0.5000
    bad    0.7500  0.5000
    """
    names = [f"query {number + 1}" for number in range(len(weights))]
    first = "all on average" if len(weights) > 1 else "the query"
    rows = [_row(first, weights.mean(0), f"{said}: where its queries looked, on average")]
    rows += [_row(name, each) for name, each in zip(names, weights, strict=True)] * (len(weights) > 1)
    table = [list(each) for each in zip(labels(tokens), *rounded(weights).tolist(), strict=True)]
    return Tokens(
        tokens,
        rows,
        ("0", "most"),
        asked="Which query?",
        table=Table(["token", *names], table),
        title=LOOKED,
        caption=f"{said}: where its queries looked",
        about="Learned queries weigh the words: the stronger the colour, the larger the weight. Point at a word for "
        "its weight.",
        numbers={"weights": rounded(weights)},
    )


def _row(name: str, weights: NDArray[np.float64], heading: str = "") -> TokenRow:
    return TokenRow(name, weights / (weights.max() or 1.0), [f"{weight:.3f}" for weight in weights], heading)
