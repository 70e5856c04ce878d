"""Metrics: gold and predicted answers -> numbers. None of them needs torch."""

from __future__ import annotations

from recurra.metrics.bootstrap import bootstrap
from recurra.metrics.labels import LabelScores, accuracy, confusion, macro_f1, micro_f1, per_label
from recurra.metrics.numbers import mae, rmse
from recurra.metrics.spans import Scheme, Span, SpanScores, allowed, breaches, scheme_of, span_scores, spans

__all__ = [
    "LabelScores",
    "Scheme",
    "Span",
    "SpanScores",
    "accuracy",
    "allowed",
    "bootstrap",
    "breaches",
    "confusion",
    "macro_f1",
    "mae",
    "micro_f1",
    "per_label",
    "rmse",
    "scheme_of",
    "span_scores",
    "spans",
]
