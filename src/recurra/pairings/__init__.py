"""Pairings: how two texts are read together. The file name is the config name."""

from __future__ import annotations

from recurra.named import built
from recurra.pairings.pairing import Paired, Pairing, Parts
from recurra.settings import Part, about

__all__ = ["Paired", "Pairing", "Parts", "pairing"]


def pairing(spec: Part, size: int, parts: Parts) -> Pairing:
    """The pairing that a config file means, for words as vectors of that size."""
    with about("pairing"):
        return built(Pairing, spec, size, parts)
