"""What a trained model did with an example, measured by its task."""

from __future__ import annotations

from typing import Any

from recurra.analysis.beam_tree import BeamTree
from recurra.analysis.gates import Gates
from recurra.analysis.probabilities import Probabilities
from recurra.analysis.saliency import Probe
from recurra.reports.explaining import asked_of
from recurra.training.trained import Trained


def measured(model: Trained, example: Any, view: str, **options: Any) -> Any:
    """What the viewer of that name measures."""
    return model.task.viewers()[view].measure(asked_of(model, example)._replace(**options))


def gates_of(model: Trained, example: Any, *, layer: int | None = None, direction: str | None = None) -> Gates:
    found: Gates = measured(model, example, "gates", layer=layer, direction=direction)
    return found


def tree_of(model: Trained, example: Any) -> BeamTree:
    found: BeamTree = measured(model, example, "tree")
    return found


def probe_of(model: Trained, example: Any, *, best: int = 1) -> Probe:
    found: Probe = measured(model, example, "saliency", best=best)
    return found


def probabilities_of(model: Trained, example: Any, *, best: int = 1) -> Probabilities:
    found: Probabilities = measured(model, example, "probabilities", best=best)
    return found
