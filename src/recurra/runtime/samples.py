"""Inputs to begin with, out of a run's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recurra.errors import RecurraError
from recurra.runtime.inputs import checked
from recurra.tasks.task import Task
from recurra.training.samples import kept_samples, samples_of_data


def samples(task: Task[Any, Any, Any], folder: Path | None = None) -> list[object]:
    """Inputs that may be asked with: those kept in a run folder; without a folder, some of the data."""
    return _accepted(task, samples_of_data(task) if folder is None else kept_samples(folder))


def _accepted(task: Task[Any, Any, Any], values: list[object]) -> list[object]:
    return [value for value in values if _is_accepted(task, value)]


def _is_accepted(task: Task[Any, Any, Any], value: object) -> bool:
    try:
        checked(task, value)
    except RecurraError:  # it is too large
        return False
    return True
