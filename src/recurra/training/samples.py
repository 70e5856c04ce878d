"""A few inputs of a run's own data, kept in its folder: it can be tried wherever the folder is copied to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from recurra.errors import RecurraError
from recurra.tasks.task import Task
from recurra.text.json_file import read_json
from recurra.training.loading import EXPORT

FILE = "samples.json"

COUNT = 5
"""Inputs that are kept."""

LOOKED_AT = 400
"""Examples of which a few are taken: data is often sorted, and its first rows are all alike."""

LARGEST = 1 << 20
"""Letters of one input, written as JSON: a larger one is not kept."""


def samples_of_data(task: Task[Any, Any, Any], count: int = COUNT) -> list[object]:
    """Inputs of the validation or else of the training data; none where the files are gone."""
    for part in ("valid", "train"):
        try:
            files = task.settings.data.files(part)
            examples = list(islice(task.read(files), LOOKED_AT)) if files else []
            if found := task.samples(examples, count):
                return found
        except RecurraError:
            continue
    return []


def keep_samples(
    task: Task[Any, Any, Any], examples: Sequence[Any], folder: Path, others: Sequence[object] | None = None
) -> None:
    """Write samples.json: inputs of these examples; where there are none, the others, or those of the data."""
    found = task.samples(examples[:LOOKED_AT], COUNT) or (samples_of_data(task) if others is None else others)
    written = [json.dumps(value, ensure_ascii=False) for value in found]
    text = "[\n" + ",\n".join(each for each in written if len(each) <= LARGEST) + "\n]\n"
    (folder / FILE).write_text(text, "utf-8")


def kept_samples(folder: Path) -> list[object]:
    """The inputs that were kept, in a run or an exported folder; none in an older run, or one that is not finished."""
    if not (folder / FILE).is_file():
        return []
    try:
        found = read_json(folder / FILE)
    except RecurraError:  # they are a convenience, and the data may still be there
        return []
    if not isinstance(found, list):
        return []
    if (folder / EXPORT).is_file():  # each stands beside the answer to it
        return [each["input"] for each in found if isinstance(each, dict) and "input" in each]
    return found
