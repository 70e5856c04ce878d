"""Starting from another run: weights by name, rows of tables by token."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from recurra.manifest import verify
from recurra.models.saved import read_tensors
from recurra.tasks.task import Axes, Task


class Reused(NamedTuple):
    """What became of one parameter."""

    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}"


@torch.no_grad()
def start_from(model: nn.Module, task: Task[Any, Any, Any], other: Task[Any, Any, Any], folder: Path) -> list[Reused]:
    """Put another run's weights into a new model wherever they mean the same, and say what was reused.

    A parameter of the same name and shape is taken whole; one whose rows (or columns) belong to tokens is taken token
    by token; what is new keeps its random start.
    """
    verify(folder, "model.safetensors".__eq__)
    tensors, _ = read_tensors(folder / "model.safetensors")
    ours, theirs = task.axes(), other.axes()
    report = []
    for name, target in model.state_dict().items():
        source = tensors.get(name)
        if source is None:
            report.append(Reused(name, "new"))
        elif name in ours or name in theirs:
            report.append(Reused(name, _by_token(target, source, ours.get(name), theirs.get(name))))
        elif source.shape != target.shape:
            report.append(Reused(name, f"new: it is {shape(source)} there and {shape(target)} here"))
        else:
            target.copy_(source)
            report.append(Reused(name, "reused"))
    return report


def _by_token(target: Tensor, source: Tensor, ours: Axes | None, theirs: Axes | None) -> str:
    if ours is None or theirs is None or len(ours) != len(theirs):
        return "new: its rows have a different meaning there"
    here, there = [], []
    for axis, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine is None or other is None:
            if target.shape[axis] != source.shape[axis]:
                return f"new: it is {shape(source)} there and {shape(target)} here"
            everything = torch.arange(target.shape[axis])
            here.append(everything)
            there.append(everything)
            continue
        known = {token: number for number, token in enumerate(other)}
        pairs = [(number, known[token]) for number, token in enumerate(mine) if token in known]
        here.append(torch.tensor([pair[0] for pair in pairs], dtype=torch.long))
        there.append(torch.tensor([pair[1] for pair in pairs], dtype=torch.long))
    target[torch.meshgrid(*here, indexing="ij")] = source[torch.meshgrid(*there, indexing="ij")].to(target)
    axis = next(number for number, tokens in enumerate(ours) if tokens is not None)
    return f"reused, {len(here[axis]):,} of {target.shape[axis]:,} rows"


def shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a number"
