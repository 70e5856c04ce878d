"""Which source token each target token looked at: attention as a heat map, and links in Pharaoh's format."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from recurra.errors import DataError
from recurra.text.vocabulary import END
from recurra.views.heat_map import HeatMap
from recurra.views.prediction import Prediction
from recurra.views.viewer import ALIGNED, LOOKED


def alignment(source: Sequence[str], target: Sequence[str], weights: ArrayLike, caption: str = "") -> HeatMap:
    """What was read, what was written, and how much each written token looked at each read one: weights (T, S).

    Where there is a row or a column more than tokens, the last one is that of the end of the sequence.

    >>> alignment(["a", "b"], ["x"], [[0.9, 0.1], [0.2, 0.8]]).rows
    ('x', '</s>')
    """
    weights = np.asarray(weights, np.float64)
    rows, columns = weights.shape if weights.ndim == 2 else (-1, -1)
    if rows - len(target) not in (0, 1) or columns - len(source) not in (0, 1):
        raise DataError(
            f"an alignment of {len(target)} target and {len(source)} source tokens needs weights of shape "
            f"({len(target)}, {len(source)}), or one more for the end, but found {weights.shape}."
        )
    if not weights.size:
        raise DataError("an alignment needs at least one source and one target token.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise DataError("alignment weights must be numbers of at least 0, but a negative value or NaN was found.")
    read, written = [*source, END][:columns], [*target, END][:rows]
    weights = np.minimum(weights, 1.0)
    return HeatMap(
        written,
        read,
        weights,
        across="read",
        down="written",
        of_row="looked at",
        of_column="was looked at by",
        title=LOOKED,
        caption=caption,
        about="Rows are output tokens, columns input tokens; ∎ is the end. Point at a cell to see its weight.",
        numbers={"source": read, "target": written, "pharaoh": _links(read, written, weights, None)},
    )


def alignment_of(answer: Prediction, caption: str = "") -> HeatMap:
    """That of an answer of sequence to sequence, with the tokens that were read; frames are numbered from 1.

    >>> detail = {"source_tokens": ["t", "ea"], "tokens": ["T"], "alignment": [[0.9, 0.1], [0.2, 0.8]]}
    >>> alignment_of(Prediction("tea", "T", -0.1, 1, detail)).rows
    ('T', '</s>')
    """
    weights = answer.alignment
    if weights is None:
        raise DataError(
            "the answer has no attention weights: call predict(..., detail=True) on a model with attention."
        )
    if answer.detail.get("columns") is not None:
        raise DataError(
            "the attention of this model is over a picture, not over words: `recurra explain RUN INPUT --out "
            "FILE.html`, "
            "or picture_attention_of(answer, picture), shows it."
        )
    numbers = [str(number) for number in range(1, weights.shape[1] + 1)]
    return alignment(answer.detail.get("source_tokens", numbers), answer.detail["tokens"], weights, caption)


def best_alignment_of(answer: Prediction, caption: str = "") -> HeatMap:
    """At which steps each token stands in the best alignment of CTC, and how probable it is there.

    >>> detail = {"source_tokens": ["t", "ea"], "tokens": ["T", "IY"], "alignment": [[0.9, 0.0], [0.0, 0.8]]}
    >>> best_alignment_of(Prediction("tea", "T IY", -0.1, 1, detail)).numbers["pharaoh"]
    '0-0 1-1'
    """
    return dataclasses.replace(
        alignment_of(answer, caption),
        of_row="stands at",
        of_column="is read as",
        title=ALIGNED,
        about="Rows are output tokens, columns input steps: the probability of a token at each step at which it stands "
        "in the best alignment. At the other steps that alignment has a blank.",
    )


def pharaoh(found: HeatMap, *, threshold: float | None = None) -> str:
    """Links as source-target, counted from 0, ends left out: of each target token the source token it looked at most.

    With a threshold, every source token with at least that weight.

    >>> pair = alignment(["the", "house"], ["das", "Haus"], [[0.7, 0.3], [0.1, 0.9]])
    >>> pharaoh(pair), pharaoh(pair, threshold=0.3)
    ('0-0 1-1', '0-0 1-0 1-1')
    """
    return _links(found.columns, found.rows, found.weights, threshold)


def _links(read: Sequence[str], written: Sequence[str], weights: ArrayLike, threshold: float | None) -> str:
    sources, targets = (len(tokens) - (tokens[-1] == END) for tokens in (read, written))
    links = []
    for row, shares in enumerate(np.asarray(weights)[:targets, :sources]):
        if threshold is not None:
            links += [f"{column}-{row}" for column in np.flatnonzero(shares >= threshold)]
        elif shares.any():  # a token that looked at the end alone is linked to nothing
            links.append(f"{shares.argmax()}-{row}")
    return " ".join(links)
