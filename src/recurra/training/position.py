"""Where a training stands, as its checkpoint says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from recurra.errors import CheckpointError
from recurra.manifest import verify
from recurra.models.saved import read_tensors
from recurra.named import fits

CHECKPOINT = "last/checkpoint.safetensors"
MODEL = "model.safetensors"
"""Files of a run: where training stands, and the weights that predict."""


@dataclass
class Position:
    """Where a training stands: all that a checkpoint holds besides tensors."""

    step: int = 0  # updates made
    epoch: int = 0
    batch: int = 0  # batches of this epoch that were used
    seconds: float = 0.0
    best: float | None = None
    best_loss: float | None = None  # of the weights that are kept
    best_step: int = 0
    best_parts: dict[str, float] | None = None  # of parts kept by a score of their own; None: a run of an earlier
    # version, which keeps the whole at once
    best_part_steps: dict[str, int] = field(default_factory=dict)
    worse: int = 0  # validations since the best
    plateaus: int = 0  # times the learning rate was lowered
    since_plateau: int = 0
    lowest_loss: float | None = None  # of all validations
    since_lowest: int = 0  # validations since then
    stalled: int = 0  # the most of these so far
    averaged: int = 0
    log_bytes: int = 0
    validated: int = -1  # the step of the last validation
    ended: str | None = None  # why it is over
    rows: int = 0  # of the training data, to know it again
    elements: int = 0
    data: str = ""  # a digest of the encoded training data
    valid: str = ""  # and of the validation data; "" in a checkpoint of an earlier version
    processes: int = 1  # that trained since the checkpoint before

    @classmethod
    def read(cls, about: Mapping[str, Any], path: Path) -> Position:
        """The position that a checkpoint holds; a CheckpointError where it holds something else."""
        found, hints = about.get("position"), get_type_hints(cls)
        if isinstance(found, Mapping):
            wrong = [name for name, value in found.items() if name not in hints or not fits(value, hints[name])]
            if not wrong:
                return cls(**found)
        what = (
            f"its position has a wrong value for '{wrong[0]}'" if isinstance(found, Mapping) else "it has no position"
        )
        raise CheckpointError(f"{path} is not a checkpoint of this version of recurra ({what}).")


def position_of(folder: Path) -> Position | None:
    """Where the training in a run folder stands."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    verify(folder, CHECKPOINT.__eq__)
    _, about = read_tensors(path)
    return Position.read(about, path)
