"""Runs of a folder side by side, by what they keep about themselves: the values that are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One run."""

    name: str  # its path inside the folder
    task: str
    state: str  # finished, or why there are no scores
    created: str | None
    first: str | None  # the score that training went by
    valid: Mapping[str, float]
    test: Mapping[str, float]
    parameters: int | None
    seconds: float | None
    steps: int | None
    settings: Mapping[str, object]  # by names with dots, those that are not the same in all runs


class Overview(NamedTuple):
    """The runs of a folder, by name."""

    folder: str
    runs: list[Row]

    @property
    def settings(self) -> list[str]:
        """The settings that differ, in the order of config.toml, those of the data last."""
        names = dict.fromkeys(name for run in self.runs for name in run.settings)
        return sorted(names, key=lambda name: name.startswith("data."))

    def scores(self, part: str) -> list[str]:
        """The scores on 'valid' or 'test', those that training went by first."""
        firsts = dict.fromkeys(run.first for run in self.runs if run.first in getattr(run, part))
        names = dict.fromkeys(name for run in self.runs for name in getattr(run, part))
        return [*(name for name in firsts if name is not None), *(name for name in names if name not in firsts)]

    def json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"folder": self.folder, "runs": [run._asdict() for run in self.runs]}


def differing(tables: Sequence[Mapping[str, object]]) -> list[str]:
    """The names under which those tables that have them hold different values.

    >>> differing([{"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3}, {"d": 4}])
    ['b']
    """
    first: dict[str, object] = {}
    differ: dict[str, None] = {}
    for table in tables:
        for name, value in table.items():
            if first.setdefault(name, value) != value:
                differ[name] = None
    return [name for name in first if name in differ]
