"""The task that a run is of, if the user allows all that its settings name. Torch is not needed for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recurra.config.given import Given
from recurra.named import find, own_code
from recurra.tasks.task import Task


def allowed(given: Given, config: Path, *, trust: bool) -> type[Task[Any, Any, Any]]:
    """The class of the task that a run's config.toml names, if all that it names may be imported."""
    # What is a setting of a task from outside recurra, only its own code could tell.
    ours = None if own_code(str(given.task)) else _task_of(given)
    if named := given.code(None if ours is None else ours.Settings):
        from recurra.config.trust import check_code

        check_code(config, named, trust=trust)
    return ours or _task_of(given)


def _task_of(given: Given) -> type[Task[Any, Any, Any]]:
    kind: type[Task[Any, Any, Any]] = find(Task, str(given.task or ""))
    return kind.fitting(given.table(kind.Settings))
