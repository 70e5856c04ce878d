"""Which places of a picture each written token looked at: attention over a grid, as maps over the picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.errors import DataError
from recurra.text.vocabulary import END
from recurra.views.overlay import Overlay
from recurra.views.prediction import Prediction
from recurra.views.viewer import LOOKED


def picture_attention(
    picture: NDArray[np.uint8] | None, tokens: Sequence[str], weights: ArrayLike, columns: int, caption: str = ""
) -> Overlay:
    """A picture (H, W, C), what was written of it, and how much each token looked at each place: weights (T, places).

    Places stand row after row, so many `columns` a row. Where there is a row of weights more than tokens, it is that
    of the end. Without a picture, where only features of places are known, the places are drawn alone.

    >>> found = picture_attention(np.zeros((9, 12), np.uint8), ["x"], [[0.1, 0.2, 0.3, 0.4, 0, 0]], 3)
    >>> found.weights.shape, found.down.tolist()
    ((1, 2, 3), [0.0, 4.5, 9.0])
    """
    weights = np.asarray(weights, np.float64)
    rows, places = weights.shape if weights.ndim == 2 else (-1, -1)
    if rows - len(tokens) not in (0, 1) or rows < 1:
        raise DataError(
            f"{len(tokens)} tokens need one row of weights each, and optionally one for the end of the sequence, "
            f"but the weights have shape {weights.shape}."
        )
    if columns < 1 or not places or places % columns:
        raise DataError(f"{places} places cannot be arranged in rows of {columns}.")
    maps = weights.reshape(rows, -1, columns)
    down, across = edges(maps.shape[1:] if picture is None else picture.shape[:2], maps.shape[1:])
    return Overlay(
        [*tokens, END][:rows],
        maps,
        down,
        across,
        picture,
        title=LOOKED,
        caption=caption,
        about="One picture for each output token; ∎ is the end. The strongest colour marks the place with the "
        "largest attention weight, given as a number. Point at a place to see its weight.",
    )


def picture_attention_of(answer: Prediction, picture: NDArray[np.uint8] | None = None, caption: str = "") -> Overlay:
    """That of an answer of vector to sequence, and the picture that was read.

    >>> answer = Prediction("a.png", "x", -0.1, 1, {"tokens": ["x"], "alignment": [[0.9, 0.1]], "columns": 2})
    >>> picture_attention_of(answer).weights.tolist()
    [[[0.9, 0.1]]]
    """
    if answer.alignment is None:
        raise DataError(
            "the answer has no attention weights: call predict(..., detail=True) on a model with attention."
        )
    columns = answer.detail.get("columns")
    if columns is None:
        raise DataError("the input is not a picture but a sequence: use alignment_of(answer).")
    return picture_attention(picture, answer.detail["tokens"], answer.alignment, columns, caption)


def edges(shape: tuple[int, ...], places: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The pixels at which places begin, and the last one ends: (rows + 1,) down, (columns + 1,) across.

    A convolution that keeps every second place sees as much before it as behind: place i is centred on pixel
    i × stride, so that the first one is half as large.

    >>> [each.tolist() for each in edges((8, 30), (1, 4))]
    [[0.0, 8.0], [0.0, 4.0, 12.0, 20.0, 30.0]]
    """
    stride = _stride(shape, places)
    before = 0 if stride in (None, 1) else 0.5
    sides = [stride if stride is not None else size / count for size, count in zip(shape, places, strict=True)]
    down, across = (
        np.array([0.0, *((np.arange(1, count) - before) * side), size])
        for size, count, side in zip(shape, places, sides, strict=True)
    )
    return down, across


def _stride(shape: tuple[int, ...], places: tuple[int, ...]) -> int | None:
    """Pixels from place to place, where convolutions have halved the picture some times."""
    (height, width), wanted = shape, tuple(places)
    sizes = (1 << power for power in range(16))
    return next((size for size in sizes if (-(-height // size), -(-width // size)) == wanted), None)
