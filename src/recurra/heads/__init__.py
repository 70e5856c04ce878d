"""Heads: features of each step -> a loss, the best labels, their probabilities. The file name is the config name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recurra.heads.crf import CRF
    from recurra.heads.head import Head
    from recurra.heads.softmax import Softmax
    from recurra.heads.values import Value

UNLABELLED = -100
"""The target of a step whose label is not known: it counts neither in training nor in scores."""

__all__ = ["CRF", "UNLABELLED", "Head", "Softmax", "Value"]

# Imported when first touched, so that the search for the best path (lattice.py) is there without torch.
_HOMES = {"CRF": "crf", "Head": "head", "Softmax": "softmax", "Value": "values"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recurra.heads' has no attribute '{name}'")
    return getattr(importlib.import_module(f"recurra.heads.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
