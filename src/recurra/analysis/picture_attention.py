"""Which places of a picture each written token looked at: attention over a grid as numbers and as text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recurra.analysis.alignment import labels, rounded
from recurra.data.png import write_png
from recurra.errors import DataError
from recurra.text.visible import without_controls
from recurra.text.vocabulary import END
from recurra.views.prediction import Prediction
from recurra.views.table import Table


@dataclass(frozen=True, eq=False)
class PictureAttention:
    """A picture (H, W, C), what was written of it, and how much each token looked at each place: weights (T, places).

    Places stand row after row, so many `columns` a row. Where there is a row of weights more than tokens, it is that
    of the end. Without a picture, where only features of places are known, the places are drawn alone.

    >>> looked = PictureAttention(np.zeros((9, 12), np.uint8), ["x"], [[0.1, 0.2, 0.3, 0.4, 0, 0]], 3)
    >>> looked.maps.shape, looked.side
    ((1, 2, 3), (4.5, 4.0))
    """

    picture: NDArray[np.uint8] | None
    tokens: Sequence[str]
    weights: ArrayLike
    columns: int
    title: str = ""

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, np.float64)
        rows, places = weights.shape if weights.ndim == 2 else (-1, -1)
        if rows - len(self.tokens) not in (0, 1) or rows < 1:
            raise DataError(
                f"{len(self.tokens)} tokens need as many rows of weights, or one more for the end, but these are of "
                f"shape {weights.shape}."
            )
        if self.columns < 1 or not places or places % self.columns:
            raise DataError(f"{places} places do not make rows of {self.columns}.")
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise DataError("the weights of attention are shares, but found a negative one or one that is no number.")
        object.__setattr__(self, "tokens", (*self.tokens, END)[:rows])
        object.__setattr__(self, "weights", weights)

    @classmethod
    def of(cls, answer: Prediction, picture: NDArray[np.uint8] | None = None, title: str = "") -> PictureAttention:
        """That of an answer of vector to sequence, and the picture that was read.

        >>> answer = Prediction("a.png", "x", -0.1, 1, {"tokens": ["x"], "alignment": [[0.9, 0.1]], "columns": 2})
        >>> PictureAttention.of(answer).maps.tolist()
        [[[0.9, 0.1]]]
        """
        if answer.alignment is None:
            raise DataError(
                "the answer does not say where the model looked: ask for predict(..., detail=True), of a model with "
                "attention."
            )
        columns = answer.detail.get("columns")
        if columns is None:
            raise DataError("what was read is no picture, but places in a row: Alignment.of(answer) shows them.")
        return cls(picture, answer.detail["tokens"], answer.alignment, columns, title)

    @property
    def maps(self) -> NDArray[np.float64]:
        """(T, rows, columns): the weights of each token."""
        weights = np.asarray(self.weights)
        return weights.reshape(len(weights), -1, self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of pixels; of places where there is no picture."""
        height, width = self.maps.shape[1:] if self.picture is None else self.picture.shape[:2]
        return height, width

    @property
    def side(self) -> tuple[float, float]:
        """Pixels of a place, down and across; those at an edge may have fewer or more."""
        (height, width), (rows, columns) = self.shape, self.maps.shape[1:]
        stride = self._stride
        return (stride, stride) if stride is not None else (height / rows, width / columns)

    @property
    def edges(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The pixels at which places begin, and the last one ends: (rows + 1,) down, (columns + 1,) across.

        A convolution that keeps every second place sees as much before it as behind: place i is centred on pixel
        i × stride, so that the first one is half as large.

        >>> looked = PictureAttention(np.zeros((8, 30), np.uint8), ["x"], [[0.1, 0.2, 0.3, 0.4]], 4)
        >>> [each.tolist() for each in looked.edges]
        [[0.0, 8.0], [0.0, 4.0, 12.0, 20.0, 30.0]]
        """
        before = 0 if self._stride in (None, 1) else 0.5
        (height, width), (down, across), (rows, columns) = self.shape, self.side, self.maps.shape[1:]
        inner = [(np.arange(1, count) - before) * side for count, side in ((rows, down), (columns, across))]
        return np.array([0.0, *inner[0], height]), np.array([0.0, *inner[1], width])

    @property
    def _stride(self) -> int | None:
        """Pixels from place to place, where convolutions have halved the picture some times."""
        (height, width), shape = self.shape, self.maps.shape[1:]
        sizes = (1 << power for power in range(16))
        return next((size for size in sizes if (-(-height // size), -(-width // size)) == shape), None)


def looks(looked: PictureAttention) -> list[tuple[str, int, int, float, int]]:
    """Of each token: the row and the column, from 1, where it looked most, that share, and places with half of all.

    >>> looks(PictureAttention(None, ["x"], [[0.1, 0.0, 0.3, 0.6]], 2))
    [('x', 2, 2, 0.6, 1)]
    """
    found = []
    for label, each in zip(labels(looked.tokens), looked.maps, strict=True):
        row, column = np.unravel_index(each.argmax(), each.shape)
        summed = np.cumsum(np.sort(each.ravel())[::-1])
        half = int(np.searchsorted(summed, summed[-1] / 2)) + 1
        found.append((label, int(row) + 1, int(column) + 1, float(each.max()), half))
    return found


COLUMNS = ["token", "row", "column", "share", "places with half"]


def as_json(looked: PictureAttention) -> dict[str, Any]:
    """For a program: a map for each token, the pixels at which places begin, and the picture as the model saw it.

    >>> found = as_json(PictureAttention(None, ["x"], [[0.1, 0.0, 0.3, 0.6]], 2))
    >>> found["weights"], found["down"], found["picture"]
    ([[[0.1, 0.0], [0.3, 0.6]]], [0.0, 1.0, 2.0], None)
    """
    down, across = looked.edges
    picture = None if looked.picture is None else b64encode(write_png(looked.picture)).decode()
    return {
        "kind": "places",
        "tokens": list(looked.tokens),
        "weights": rounded(looked.maps),
        "down": down.tolist(),
        "across": across.tolist(),
        "picture": None if picture is None else f"data:image/png;base64,{picture}",
    }


def as_text(looked: PictureAttention) -> str:
    """For the terminal: a line for each token.

    >>> print(as_text(PictureAttention(None, ["x"], [[0.1, 0.0, 0.3, 0.6], [0.25, 0.25, 0.25, 0.25]], 2)))
    token row column  share places with half
    x       2      2 0.6000                1
    ∎       1      1 0.2500                2
    """
    title = [without_controls(looked.title)] if looked.title else []
    return "\n".join([*title, Table(COLUMNS, [list(row) for row in looks(looked)]).text()])
