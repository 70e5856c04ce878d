"""What a trained model did with an example, measured by its task."""

from __future__ import annotations

from typing import Any

from recurra.analysis.gates import Gates
from recurra.analysis.probabilities import Probabilities
from recurra.analysis.saliency import Probe
from recurra.training.trained import Trained
from recurra.views.tree import BeamTree


def gates_of(model: Trained, example: Any, *, layer: int | None = None, direction: str | None = None) -> Gates:
    return model.task.gates(model.asked(example)._replace(layer=layer, direction=direction))


def tree_of(model: Trained, example: Any) -> BeamTree:
    task: Any = model.task
    found: BeamTree = task.tree(model.asked(example))
    return found


def probe_of(model: Trained, example: Any, *, best: int = 1) -> Probe:
    task: Any = model.task
    found: Probe = task.probe(model.asked(example)._replace(best=best))
    return found


def probabilities_of(model: Trained, example: Any, *, best: int = 1) -> Probabilities:
    task: Any = model.task
    found: Probabilities = task.probabilities(model.asked(example)._replace(best=best))
    return found
