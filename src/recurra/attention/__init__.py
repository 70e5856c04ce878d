"""Attention: where to look, as weights that sum to 1."""

from __future__ import annotations

from recurra.attention.attention import Attended, Attention, Memory, Past

__all__ = ["Attended", "Attention", "Memory", "Past"]
