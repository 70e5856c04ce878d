"""Engines: how the steps of a layer are run. The order of preference is the list below."""

from __future__ import annotations

from recurra.engines.engine import Engine, Layer, Reader, Reading
from recurra.engines.loop import Loop
from recurra.engines.planned import Planned
from recurra.engines.scan import Scan
from recurra.engines.single import Single
from recurra.engines.vendor import Vendor
from recurra.errors import EngineError
from recurra.named import choose as choose_name
from recurra.padding import Padded

__all__ = [
    "ENGINES",
    "Engine",
    "Layer",
    "Loop",
    "Planned",
    "Reader",
    "Reading",
    "Scan",
    "Single",
    "Vendor",
    "choose",
    "engine_named",
]

ENGINES: tuple[Engine, ...] = (Single(), Vendor(), Planned(), Scan(), Loop())
"""Fastest first: 'auto' takes the first that can and is not the slower way. The last one, the reference, always can."""


def engine_named(name: str) -> Engine | None:
    """The engine of that name; None for 'auto'."""
    engines = {engine.name: engine for engine in ENGINES}
    return engines.get(choose_name(("auto", *engines), name, "engine"))


def choose(wanted: Engine | None, layer: Layer, x: Padded, every: bool = False) -> Engine:
    """The wanted engine, or the first that can; an EngineError says why a wanted one cannot."""
    if wanted is None:
        return next(engine for engine in ENGINES if objection(engine, layer, x, every) is None)
    reason = wanted.refusal(layer, x, every)
    if reason is not None:
        raise EngineError(
            f"the engine '{wanted.name}' cannot run the cell '{layer[0].cell.name}': {reason}. "
            f"Use engine = 'auto', which takes the fastest that can."
        )
    return wanted


def objection(engine: Engine, layer: Layer, x: Padded, every: bool = False) -> str | None:
    """Why 'auto' passes an engine by: it cannot run the layer, or another is faster. None: it would take it."""
    return engine.refusal(layer, x, every) or engine.slower(layer, x)
