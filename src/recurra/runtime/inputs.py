"""What a model is asked over the network: JSON to an example, and examples of the data as JSON to ask with.

A text is a text here, never the path of a file: what stands on this machine's disk is not read for a visitor.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from recurra.data.images import image_of
from recurra.data.pictures import picture_of
from recurra.data.png import write_png
from recurra.errors import DataError, RecurraError
from recurra.tasks.classification import Classification
from recurra.tasks.forecasting import Forecasting
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Task
from recurra.tasks.vec2seq import Vec2Seq

Kind = Literal["text", "frames", "series", "vector", "places", "picture", "strokes"]

LONGEST = 20_000
"""Letters of a text, or numbers of anything else, of one input."""

MOST_PIXELS = 1 << 24

ABOUT: dict[Kind, str] = {
    "text": "a text",
    "frames": "a list of steps, each a list of numbers",
    "series": "a list of steps, each a number or a list of numbers",
    "vector": "a list of numbers",
    "places": "features of places, S × F or H × W × F numbers",
    "picture": "a PNG or JPEG picture as a data URL, data:image/png;base64,…, or its pixels as lists of numbers",
    "strokes": "a list of pen strokes, each [[x, …], [y, …]] with y downwards",
}


class Input(NamedTuple):
    """What one input of a model is; of several columns their names."""

    kind: Kind
    columns: Sequence[str] = ()


def input_of(task: Task[Any, Any, Any]) -> Input:
    """What a task is asked with."""
    data = task.settings.data
    if isinstance(task, Forecasting):
        return Input("series", list(data.values or []))
    if isinstance(task, Vec2Seq) and data.vector is not None:
        return Input("vector", list(data.vector))
    if isinstance(task, Vec2Seq | Classification) and data.image.given is not None:
        return Input("picture" if data.image.strokes is None else "strokes")
    if isinstance(task, Vec2Seq):
        return Input("places")
    if getattr(data, "frames", None) is not None:
        return Input("frames")
    if isinstance(task, Seq2Seq):
        return Input("text", _columns(data))
    return Input("text")


def _columns(data: Any) -> list[str]:
    """The texts of one question of sequence to sequence, in the order in which tabs separate them."""
    usual = [data.source.column, *(data.features or ())]
    return [name for name in data.columns or usual if name != data.target.column]


def question(task: Task[Any, Any, Any], value: object) -> Any:
    """The example that is asked with a value out of JSON."""
    kind = input_of(task).kind
    is_text = isinstance(value, str)
    if kind == "picture" and is_text:
        value = _pixels(str(value))
    elif is_text != (kind == "text") or not isinstance(value, str | list):
        words = kind == "text" and isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not words:
            raise DataError(f"an input of this model is {ABOUT[kind]}, but found {_shown(value)}.")
    if kind != "picture" and _size(value) > LONGEST:
        raise DataError(f"an input has {LONGEST:,} {'letters' if is_text else 'numbers'} at most.")
    [example] = task.questions(None, [value])  # type: ignore[list-item]
    return example


def _shown(value: object) -> str:
    return "a text" if isinstance(value, str) else f"{value!r:.60}"


def _size(value: object) -> int:
    """Letters or numbers, nested as they may be."""
    if isinstance(value, str):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, list) else 1


def _pixels(url: str) -> list[Any]:
    """The rows of pixels of a picture in a data URL."""
    start, _, content = url.partition(",")
    if not start.startswith("data:image/") or not start.endswith(";base64"):
        raise DataError(f"an input of this model is {ABOUT['picture']}, but found another text.")
    try:
        raw = base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise DataError("the picture is not base64 as its data URL says.") from error
    return list(image_of(raw, "the picture", most=MOST_PIXELS))


def samples(task: Task[Any, Any, Any], count: int = 5) -> list[object]:
    """Inputs of validation or else of training that may be asked with; none where the files are gone."""
    found: list[object] = []
    for part in ("valid", "train"):
        try:
            for example in islice(_read(task, part), count - len(found)):
                found.append(sent(task, example))
        except RecurraError:
            continue
        if found:
            break
    return found


def _read(task: Task[Any, Any, Any], part: str) -> Iterator[Any]:
    files = task.settings.data.files(part)
    return task.read(files) if files else iter(())


def sent(task: Task[Any, Any, Any], example: Any) -> object:
    """An example as JSON that `question` takes."""
    kind, data = input_of(task).kind, task.settings.data
    if kind == "series":
        return example.values.tolist()
    if kind in ("frames", "places"):
        return (example.frames if kind == "frames" else example.places).tolist()
    if kind == "vector":
        return example.vector.tolist()
    if kind in ("picture", "strokes"):
        value = example.picture if isinstance(task, Vec2Seq) else example.picture.value
        if kind == "strokes":
            return np.asarray(value).tolist() if isinstance(value, np.ndarray) else value
        folder = "" if isinstance(task, Vec2Seq) else example.picture.folder
        drawn = picture_of(value, "the picture", data.image, folder=folder)
        return f"data:image/png;base64,{base64.b64encode(write_png(drawn)).decode()}"
    if isinstance(task, Tagging):
        return " ".join(example.tokens)
    if isinstance(task, Seq2Seq):
        sources, features = iter(example.source), dict(zip(data.features or (), example.features, strict=True))
        return "\t".join(features[name] if name in features else next(sources) for name in _columns(data))
    return str(example.text)
