"""Inputs to begin with, out of a run's own data."""

from __future__ import annotations

from itertools import islice
from typing import Any

from recurra.errors import RecurraError
from recurra.runtime.inputs import checked
from recurra.tasks.task import Task

LOOKED_AT = 400
"""Examples of which a few are taken: data is often sorted, and its first rows are all alike."""


def samples(task: Task[Any, Any, Any], count: int = 5) -> list[object]:
    """Inputs of validation or else of training that may be asked with; none where the files are gone."""
    for part in ("valid", "train"):
        try:
            files = task.settings.data.files(part)
            examples = list(islice(task.read(files), LOOKED_AT)) if files else []
            if found := [value for value in task.samples(examples, count) if _is_accepted(task, value)]:
                return found
        except RecurraError:
            continue
    return []


def _is_accepted(task: Task[Any, Any, Any], value: object) -> bool:
    try:
        checked(task, value)
    except RecurraError:  # it is too large
        return False
    return True
