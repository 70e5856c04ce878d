"""What a model is asked over the network: JSON to an example.

A text is a text here, never the path of a file: what stands on this machine's disk is not read for a visitor.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from recurra.data.images import image_of
from recurra.errors import DataError
from recurra.reading.schema import ABOUT
from recurra.tasks.task import Task

LONGEST = 20_000
"""Letters of a text, pixels of a side of a picture, or steps of anything else, of one input."""

MOST_NUMBERS = 1 << 20

MOST_PIXELS = 1 << 24

DEEPEST = 8
"""Lists in lists: a picture has three."""

LARGEST = 1e300
"""JSON has whole numbers of any size, but not every one is a number to compute with."""


def question(task: Task[Any, Any, Any], value: object) -> Any:
    """The example that is asked with a value out of JSON."""
    [example] = task.questions(None, [checked(task, value)])
    return example


def checked(task: Task[Any, Any, Any], value: object) -> Any:
    """What `task.questions` takes for a value out of JSON: a text, lists of numbers, or an object of them; no file."""
    kind = task.schema().kind
    if kind == "picture" and isinstance(value, str):
        return _pixels(value)
    size = _size(value)
    are_words = isinstance(value, list) and all(isinstance(each, str) for each in value)
    fits = isinstance(value, str) or are_words if kind == "text" else isinstance(value, list)
    fits = fits or (kind == "series" and isinstance(value, dict))
    if not fits or (are_words and value and kind != "text"):
        raise DataError(f"the input of this model must be {ABOUT[kind]}, but found {_shown(value)}.")
    if kind == "text" and size > LONGEST:
        raise DataError(f"a text can have at most {LONGEST:,} characters, but this one has {size:,}.")
    if kind != "text" and (len(value) > LONGEST or size > MOST_NUMBERS):  # type: ignore[arg-type]  # a list
        raise DataError(
            f"an input can have at most {LONGEST:,} steps and {MOST_NUMBERS:,} numbers, but this one has more."
        )
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
            elif isinstance(each, dict):
                below += [*each, *each.values()]
            elif isinstance(each, str):
                if any("\ud800" <= letter <= "\udfff" for letter in each):
                    raise DataError("a text contains a lone surrogate, which is not valid Unicode.")
                size += len(each)
            else:
                if isinstance(each, int | float) and abs(each) > LARGEST:
                    raise DataError("an input contains a number that is too large to compute with.")
                size += 1
        depth += 1
        if depth > DEEPEST and below:
            raise DataError(f"the lists of an input are nested more than {DEEPEST} levels deep.")
        level = below
    return size


def _pixels(url: str) -> list[Any]:
    """The rows of pixels of a picture in a data URL."""
    start, _, content = url.partition(",")
    if not start.startswith("data:image/") or not start.endswith(";base64"):
        raise DataError(f"the input of this model must be {ABOUT['picture']}, but found a text that is neither.")
    try:
        raw = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError("the data URL of the picture says base64, but its content is not valid base64.") from error
    picture = image_of(raw, "the picture", most=MOST_PIXELS)
    if max(picture.shape) > LONGEST:  # each row takes more memory than its pixels, where they are few
        raise DataError(f"the picture: a side can have at most {LONGEST:,} pixels, but one has {max(picture.shape):,}.")
    # Pixels that are 0 or 1 alone would be taken for black and white.
    return list(picture if picture.max() > 1 else picture * 0)
