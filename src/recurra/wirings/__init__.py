"""Wirings: where the attention of a decoder stands, inside its cells or out. The file name is the config name."""

from __future__ import annotations

from recurra.wirings.wiring import Features, Shape, Source, Wiring, WiringState

__all__ = ["Features", "Shape", "Source", "Wiring", "WiringState"]
