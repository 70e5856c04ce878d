"""What a model is asked over the network: JSON to an example.

A text is a text here, never the path of a file: what stands on this machine's disk is not read for a visitor.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from recurra.data.images import image_of
from recurra.data.normal import Normal
from recurra.errors import DataError
from recurra.tasks.classification import Classification
from recurra.tasks.forecasting import Forecasting
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.task import Task
from recurra.tasks.vec2seq import Vec2Seq

Kind = Literal["text", "frames", "series", "vector", "places", "picture", "strokes"]

LONGEST = 20_000
"""Letters of a text, or steps of anything else, of one input."""

MOST_NUMBERS = 1 << 20

MOST_PIXELS = 1 << 24

DEEPEST = 8
"""Lists in lists: a picture has three."""

LARGEST = 1e300
"""JSON has whole numbers of any size, but not every one is a number to compute with."""

ABOUT: dict[Kind, str] = {
    "text": "a text",
    "frames": "a list of steps, each a list of numbers",
    "series": "a list of steps, each a number or a list of numbers",
    "vector": "a list of numbers",
    "places": "features of places, S × F or H × W × F numbers",
    "picture": "a PNG or JPEG picture as a data URL, data:image/png;base64,…, or its pixels as lists of numbers",
    "strokes": "a list of pen strokes, each [[x, …], [y, …]] with y downwards",
}

RGB = ("red", "green", "blue")


class Input(NamedTuple):
    """What one input of a model is; of several columns their names."""

    kind: Kind
    columns: Sequence[str] = ()
    ranges: Sequence[tuple[float, float]] = ()  # of a vector: where most of each column lies
    colour: int | None = None  # of a vector that is red, green and blue: their most, 255 or 1


def input_of(task: Task[Any, Any, Any]) -> Input:
    """What a task is asked with."""
    data = task.settings.data
    if isinstance(task, Forecasting):
        return Input("series", list(data.values or []))
    if isinstance(task, Vec2Seq) and data.vector is not None:
        assert task.texts.frames is not None, "numbers have a scale"
        return vector_input(data.vector, task.texts.frames)
    if isinstance(task, Vec2Seq | Classification) and data.image.given is not None:
        return Input("picture" if data.image.strokes is None else "strokes")
    if isinstance(task, Vec2Seq):
        return Input("places")
    if getattr(data, "frames", None) is not None:
        return Input("frames")
    if isinstance(task, Seq2Seq):
        return Input("text", columns_of(data))
    return Input("text")


def vector_input(columns: Sequence[str], scale: Normal) -> Input:
    """What a vector is, by the names of its columns and by how large its numbers were in training.

    >>> vector_input(["vector"], Normal(np.array([135.0, 122, 112]), np.array([66.0, 60, 65])))[1:]
    (['red', 'green', 'blue'], [(0, 255), (0, 255), (0, 255)], 255)
    >>> vector_input(["weight", "height"], Normal(np.array([70.0, 1.75]), np.array([10.0, 0.05])))[1:]
    (['weight', 'height'], [(40.0, 100.0), (1.6, 1.9)], None)
    """
    mean, spread = scale.mean, scale.spread
    width = len(mean)
    names = list(columns)
    if len(names) != width:  # a column may hold a list
        names = [f"{'+'.join(names)} {number}" for number in range(1, width + 1)]
    colour = _colour(names, len(columns) == width, scale)
    if colour is not None:
        return Input("vector", list(RGB), [(0, colour)] * 3, colour)
    ends = np.stack([mean - 3 * spread, mean + 3 * spread], 1)
    return Input("vector", names, [(float(f"{low:.3g}"), float(f"{high:.3g}")) for low, high in ends])


def _colour(names: Sequence[str], are_named: bool, scale: Normal) -> int | None:
    """The most of red, green and blue: where columns are called so, or three without names are spread like bytes."""
    if len(names) != 3:
        return None
    if are_named:
        is_called = all(name.strip().lower() in (full, full[0]) for name, full in zip(names, RGB, strict=True))
        return (1 if (scale.mean + scale.spread).max() <= 1.5 else 255) if is_called else None
    middle, spread = scale.mean / 255, scale.spread / 255
    return 255 if ((middle > 0.15) & (middle < 0.85) & (spread > 0.1) & (spread < 0.5)).all() else None


def columns_of(data: Any) -> list[str]:
    """The texts of one question of sequence to sequence, in the order in which tabs separate them."""
    usual = [data.source.column, *(data.features or ())]
    return [name for name in data.columns or usual if name != data.target.column]


def question(task: Task[Any, Any, Any], value: object) -> Any:
    """The example that is asked with a value out of JSON."""
    [example] = task.questions(None, [checked(task, value)])
    return example


def checked(task: Task[Any, Any, Any], value: object) -> Any:
    """What `task.questions` takes for a value out of JSON: a text or lists of numbers, in which no file is named."""
    kind = input_of(task).kind
    if kind == "picture" and isinstance(value, str):
        return _pixels(value)
    size = _size(value)
    are_words = isinstance(value, list) and all(isinstance(each, str) for each in value)
    fits = isinstance(value, str) or are_words if kind == "text" else isinstance(value, list)
    if not fits or (are_words and value and kind != "text"):
        raise DataError(f"an input of this model is {ABOUT[kind]}, but found {_shown(value)}.")
    if kind == "text" and size > LONGEST:
        raise DataError(f"a text has {LONGEST:,} letters at most, but this one has {size:,}.")
    if kind != "text" and (len(value) > LONGEST or size > MOST_NUMBERS):  # type: ignore[arg-type]  # a list
        raise DataError(f"an input has {LONGEST:,} steps and {MOST_NUMBERS:,} numbers at most, but this one has more.")
    return value


def _shown(value: object) -> str:
    return "a text" if isinstance(value, str) else f"{value!r:.60}"


def _size(value: object) -> int:
    """Letters or numbers, nested as they may be."""
    size, depth, level = 0, 0, [value]
    while level:
        below: list[object] = []
        for each in level:
            if isinstance(each, list):
                below += each
            elif isinstance(each, str):
                if any("\ud800" <= letter <= "\udfff" for letter in each):
                    raise DataError("a text holds half of a character (a lone surrogate), which is not Unicode.")
                size += len(each)
            else:
                if isinstance(each, int | float) and abs(each) > LARGEST:
                    raise DataError("an input holds a number that is too large to compute with.")
                size += 1
        depth += 1
        if depth > DEEPEST and below:
            raise DataError(f"the lists of an input are nested more than {DEEPEST} deep.")
        level = below
    return size


def _pixels(url: str) -> list[Any]:
    """The rows of pixels of a picture in a data URL."""
    start, _, content = url.partition(",")
    if not start.startswith("data:image/") or not start.endswith(";base64"):
        raise DataError(f"an input of this model is {ABOUT['picture']}, but found another text.")
    try:
        raw = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError("the picture is not base64 as its data URL says.") from error
    picture = image_of(raw, "the picture", most=MOST_PIXELS)
    # Pixels that are 0 or 1 alone would be taken for black and white.
    return list(picture if picture.max() > 1 else picture * 0)
