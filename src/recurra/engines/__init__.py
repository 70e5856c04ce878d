"""Engines: how the steps of a layer are run. `auto` takes the one with the lowest estimated cost that can."""

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
