"""Inputs to begin with: examples of the data that a model can be asked with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from recurra.config import ImageData

EASY = 400
"""A text of so many letters at most is easily read and changed."""

LINE = 160
"""Letters of a beginning that a language model is to continue."""

STEPS = 120
"""Steps of a series of which a forecast is made."""


def spread(items: Sequence[Any], count: int) -> Sequence[Any]:
    """So many of some items, from all over them.

    >>> spread("abcdefghij", 3), spread("ab", 3)
    (['a', 'd', 'g'], ['a', 'b'])
    """
    many = min(count, len(items))
    return [items[place * len(items) // many] for place in range(many)]


def beginnings(text: str) -> list[str]:
    """Lines of a text that it may be continued from, of some length and not too long.

    >>> beginnings("ROMEO:\\n\\nBut soft, what light through yonder window breaks?\\nIt is the east.")
    ['But soft, what light through yonder window breaks?', 'It is the east.']
    """
    lines = [line.strip() for line in text.split("\n")]
    told = [line for line in lines if len(line.split()) > 1] or [line for line in lines if line]
    return [line if len(line) <= LINE else line[:LINE].rpartition(" ")[0] or line[:LINE] for line in told]


def windows(values: NDArray[Any], count: int) -> list[list[Any]]:
    """The end of a series, and where it is long, some stretches of it before.

    >>> [len(each) for each in windows(np.zeros((300, 1)), 5)], windows(np.ones((2, 1)), 5)
    ([120, 120], [[[1.0], [1.0]]])
    """
    many = min(count, max(1, len(values) // STEPS))
    ends = [len(values) - back * STEPS for back in range(many)]
    return [values[max(0, end - STEPS) : end].tolist() for end in ends]


def easy(texts: Sequence[str], count: int) -> list[str]:
    """A few texts that are easily read and changed, each once.

    >>> easy(["", "a", "a", "b" * 500], 2), easy(["b" * 500], 2) == ["b" * 500]
    (['a'], True)
    """
    each = list(dict.fromkeys(texts))
    return list(spread([text for text in each if 0 < len(text) <= EASY] or each[:count], count))


def typed(values: NDArray[Any]) -> Any:
    """Numbers with no more digits than tell them apart: 0.1, and not what single precision makes of it."""
    return values.astype(str).astype(np.float64).tolist()


def sent_picture(value: Any, image: ImageData, folder: str = "") -> object:
    """A picture as a data URL, or strokes as lists: as a question takes them."""
    if image.strokes is not None:
        return _strokes(value)
    from base64 import b64encode

    from recurra.data.pictures import picture_of
    from recurra.views.pixels import write_png

    # As it was taken: the question turns it over, where data.image.invert says so.
    drawn = picture_of(value, "the picture", dataclasses.replace(image, invert=False), folder=folder)
    return f"data:image/png;base64,{b64encode(write_png(drawn)).decode()}"


def asked_as(sample: Any) -> Any:
    """A sample as `predict` takes it: a picture in a data URL as its rows of pixels."""
    start, _, content = sample.partition(",") if isinstance(sample, str) else ("", "", "")
    if start != "data:image/png;base64":
        return sample
    from base64 import b64decode

    from recurra.data.images import image_of

    picture = image_of(b64decode(content), "a sample")
    # Pixels that are 0 or 1 alone would be taken for black and white.
    return (picture if picture.max(initial=0) > 1 else picture * 0).tolist()


def _strokes(value: Any) -> list[Any]:
    """Strokes as [[x, …], [y, …]], whether or not they were lists of points."""
    strokes = [np.asarray(stroke) for stroke in value]
    are_rows = all(len(stroke) == 2 for stroke in strokes)
    return [(stroke if are_rows else stroke.T).tolist() for stroke in strokes]
