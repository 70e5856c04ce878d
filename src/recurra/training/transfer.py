"""Starting from another run: weights by name, rows of tables by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from recurra.manifest import verify
from recurra.models.saved import read_tensors
from recurra.tasks.task import Axes, Task

SHOWN = 8
"""So many of the tokens that were added are named."""


class Reused(NamedTuple):
    """What became of one parameter."""

    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}"


class Start(NamedTuple):
    """What a new model has of another run."""

    tokens: list[str]  # a line for each vocabulary
    parameters: list[Reused]

    def lines(self) -> list[str]:
        """All of it in words."""
        return [*self.tokens, *map(str, self.parameters)]


@torch.no_grad()
def start_from(model: nn.Module, task: Task[Any, Any, Any], other: Task[Any, Any, Any], folder: Path) -> Start:
    """Put another run's weights into a new model wherever they mean the same, and say what was reused.

    A parameter of the same name and shape is taken whole; one whose rows (or columns) belong to tokens is taken token
    by token, and where most rows are, those of tokens that the run did not have are drawn around their mean, as far
    from it as they are. What else is new keeps its random start.
    """
    verify(folder, "model.safetensors".__eq__)
    tensors, _ = read_tensors(folder / "model.safetensors")
    ours, theirs = task.axes(), other.axes()
    draw = torch.Generator().manual_seed(task.settings.training.seed)
    report = []
    for name, target in model.state_dict().items():
        source = tensors.get(name)
        if source is None:
            report.append(Reused(name, "new"))
        elif name in ours or name in theirs:
            report.append(Reused(name, _by_token(target, source, ours.get(name), theirs.get(name), draw)))
        elif source.shape != target.shape:
            report.append(Reused(name, f"new: it is {shape(source)} there and {shape(target)} here"))
        else:
            target.copy_(source)
            report.append(Reused(name, "reused"))
    return Start(tokens_in_words(ours, theirs, [each.name for each in report]), report)


def tokens_in_words(ours: Mapping[str, Axes], theirs: Mapping[str, Axes], names: Sequence[str]) -> list[str]:
    """A line for each vocabulary of the parameters with these names: what of the other run's is there, what is new.

    >>> tokens_in_words({"out": (("a", "b", "c"),)}, {"out": (("b", "a", "x"),)}, ["out"])
    ["out: 2 of 3 tokens kept, 1 added: 'c', 1 left out"]
    """
    seen: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {}
    for name in names:
        for mine, other in zip(ours.get(name, ()), theirs.get(name, ()), strict=False):
            if mine is not None and other is not None:
                seen.setdefault((mine, other), name.removesuffix(".weight"))
    lines = []
    for (mine, other), name in seen.items():
        before, now = set(other), set(mine)
        added = [token for token in mine if token not in before]
        line = f"{name}: {len(before & now):,} of {len(before):,} tokens kept"
        if added:
            line += f", {len(added):,} added: {', '.join(map(repr, added[:SHOWN]))}{', …' * (len(added) > SHOWN)}"
        if before - now:
            line += f", {len(before - now):,} left out"
        lines.append(line)
    return lines


def _by_token(target: Tensor, source: Tensor, ours: Axes | None, theirs: Axes | None, draw: torch.Generator) -> str:
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
    named = [number for number, tokens in enumerate(ours) if tokens is not None]
    axis = named[0]
    if len(named) == 1 and target.shape[axis] / 2 < len(here[axis]) < target.shape[axis]:
        is_new = torch.ones(target.shape[axis], dtype=torch.bool)
        is_new[here[axis]] = False
        rows = target.movedim(axis, 0)
        kept = rows[here[axis].to(target.device)]
        noise = torch.randn(int(is_new.sum()), *kept.shape[1:], generator=draw).to(kept)
        rows[is_new.to(target.device)] = kept.mean(0) + kept.std(0, correction=0) * noise
    return f"reused, {len(here[axis]):,} of {target.shape[axis]:,} rows"


def shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a number"
