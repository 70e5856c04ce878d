"""Engines: how the steps of a layer are run. `auto` takes the one with the lowest estimated cost that can."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recurra.engines.choice import ENGINES, choose, engine_named, read_layer, read_stack
    from recurra.engines.engine import DirectedCell, Engine, Layer, Reading, StackEngine, Work
    from recurra.engines.graph import Graph
    from recurra.engines.loop import Loop, read_parts
    from recurra.engines.planned import Planned
    from recurra.engines.report import EngineReport, LayerReport, report_layer
    from recurra.engines.resets import Resets
    from recurra.engines.scan import Scan
    from recurra.engines.single import Single
    from recurra.engines.vendor import Vendor

__all__ = [
    "ENGINES",
    "DirectedCell",
    "Engine",
    "EngineReport",
    "Graph",
    "Layer",
    "LayerReport",
    "Loop",
    "Planned",
    "Reading",
    "Resets",
    "Scan",
    "Single",
    "StackEngine",
    "Vendor",
    "Work",
    "choose",
    "engine_named",
    "read_layer",
    "read_parts",
    "read_stack",
    "report_layer",
]

# Imported when first touched, so that C is compiled (c_library.py) without torch.
_HOMES = {
    **dict.fromkeys(("ENGINES", "choose", "engine_named", "read_layer", "read_stack"), "choice"),
    **dict.fromkeys(("DirectedCell", "Engine", "Layer", "Reading", "StackEngine", "Work"), "engine"),
    **dict.fromkeys(("EngineReport", "LayerReport", "report_layer"), "report"),
    **dict.fromkeys(("Loop", "read_parts"), "loop"),
    **{name: name.lower() for name in ("Graph", "Planned", "Resets", "Scan", "Single", "Vendor")},
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recurra.engines' has no attribute '{name}'")
    return getattr(importlib.import_module(f"recurra.engines.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
