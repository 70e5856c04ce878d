"""Several trained networks whose outputs are combined, each with the task that reads for it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, final

from torch import nn


@final
class Together(nn.Module):
    """The networks of several runs of one kind of task.

    Each has the task of its own run, since two runs may read an example differently: one by its words, the other by
    n-grams; one from the beginning, the other from the end. `Task.combined` makes one output of theirs.
    """

    def __init__(self, tasks: Sequence[Any], members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.tasks = tuple(tasks)
        self.members = nn.ModuleList(members)

    @property
    def pairs(self) -> list[tuple[Any, nn.Module]]:
        """Each task and its network."""
        return list(zip(self.tasks, self.members, strict=True))

    def __deepcopy__(self, memo: dict[int, Any]) -> Together:
        """Networks of their own; a task never changes, and need not be copied."""
        return Together(self.tasks, [copy.deepcopy(member, memo) for member in self.members])


def pairs_of(task: Any, model: nn.Module) -> list[tuple[Any, nn.Module]]:
    """Each task and its network, of one run or of several that answer together."""
    return model.pairs if isinstance(model, Together) else [(task, model)]
