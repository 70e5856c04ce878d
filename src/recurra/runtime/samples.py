"""Inputs to begin with: examples of the data as JSON that a model can be asked with."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.data.pictures import picture_of
from recurra.errors import RecurraError
from recurra.runtime.inputs import checked, columns_of, input_of
from recurra.tasks.forecasting import Forecasting
from recurra.tasks.language_model import LanguageModel
from recurra.tasks.seq2seq import Seq2Seq
from recurra.tasks.tagging import Tagging
from recurra.tasks.task import Task
from recurra.tasks.vec2seq import Vec2Seq
from recurra.views.pixels import write_png

LOOKED_AT = 400
"""Examples of which a few are taken: data is often sorted, and its first rows are all alike."""

EASY = 400
"""A text of so many letters at most is easily read and changed."""

LINE = 160
"""Letters of a beginning that a language model is to continue."""

STEPS = 120
"""Steps of a series of which a forecast is made."""


def samples(task: Task[Any, Any, Any], count: int = 5) -> list[object]:
    """Inputs of validation or else of training that may be asked with; none where the files are gone."""
    for part in ("valid", "train"):
        try:
            if found := _usable(task, list(islice(_read(task, part), LOOKED_AT)), count):
                return found
        except RecurraError:
            continue
    return []


def _read(task: Task[Any, Any, Any], part: str) -> Iterator[Any]:
    files = task.settings.data.files(part)
    return task.read(files) if files else iter(())


def _usable(task: Task[Any, Any, Any], examples: list[Any], count: int) -> list[object]:
    """A few of some examples: short ones where there are any, none that would be refused."""
    if isinstance(task, LanguageModel):
        lines = [line for example in examples for line in beginnings(example.text)]
        return list(spread(list(dict.fromkeys(lines)), count))
    if isinstance(task, Forecasting):
        return list(spread([cut for example in examples[:count] for cut in windows(example.values, count)], count))
    if input_of(task).kind == "text":
        texts = list(dict.fromkeys(str(sent(task, example)) for example in examples))
        return list(spread([text for text in texts if 0 < len(text) <= EASY] or texts[:count], count))
    found: list[object] = []
    for example in spread(examples, count):
        try:
            value = sent(task, example)
            checked(task, value)
        except RecurraError:  # it is too large, or its picture is gone
            continue
        found.append(value)
    return found


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


def sent(task: Task[Any, Any, Any], example: Any) -> object:
    """An example as JSON that `question` takes."""
    kind, data = input_of(task).kind, task.settings.data
    if kind == "series":
        return example.values.tolist()
    if kind in ("frames", "places", "vector"):
        return _typed(getattr(example, kind))
    if kind in ("picture", "strokes"):
        value = example.picture if isinstance(task, Vec2Seq) else example.picture.value
        if kind == "strokes":
            return _strokes(value)
        folder = "" if isinstance(task, Vec2Seq) else example.picture.folder
        # As it was taken: the question turns it over, where data.image.invert says so.
        drawn = picture_of(value, "the picture", dataclasses.replace(data.image, invert=False), folder=folder)
        return f"data:image/png;base64,{base64.b64encode(write_png(drawn)).decode()}"
    if isinstance(task, Tagging):
        return " ".join(example.tokens)
    if isinstance(task, Seq2Seq):
        return _texts(columns_of(data), example, data)
    return str(example.text)


def _typed(values: NDArray[Any]) -> Any:
    """Numbers with no more digits than tell them apart: 0.1, and not what single precision makes of it."""
    return values.astype(str).astype(np.float64).tolist()


def _strokes(value: Any) -> list[Any]:
    """Strokes as [[x, …], [y, …]], whether or not they were lists of points."""
    strokes = [np.asarray(stroke) for stroke in value]
    are_rows = all(len(stroke) == 2 for stroke in strokes)
    return [(stroke if are_rows else stroke.T).tolist() for stroke in strokes]


def _texts(columns: Sequence[str], example: Any, data: Any) -> str:
    """The texts of a pair with tabs between them; all its features stand in the first column of them."""
    sources, features = iter(example.source), " ".join(example.features)
    found = []
    for name in columns:
        if name in (data.features or ()):
            found.append(features)
            features = ""
        else:
            found.append(next(sources) if name == data.source.column else "")
    return "\t".join(found)
