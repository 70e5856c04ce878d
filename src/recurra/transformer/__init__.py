"""Transformer: layers that look at all steps at once, made of the parts of recurra.attention, to compare with."""

from __future__ import annotations

from recurra.transformer.layer import Cache, TransformerLayer
from recurra.transformer.stack import Form, Reading, Transformer, continued

__all__ = ["Cache", "Form", "Reading", "Transformer", "TransformerLayer", "continued"]
