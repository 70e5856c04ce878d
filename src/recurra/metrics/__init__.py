"""Metrics: gold and predicted answers -> numbers. None of them needs torch."""

from __future__ import annotations

from recurra.metrics.bleu import bleu, bleu_counts, bleu_of
from recurra.metrics.bootstrap import bootstrap
from recurra.metrics.chrf import chrf
from recurra.metrics.classes import (
    ClassScores,
    Mistake,
    MultilabelScores,
    auc,
    macro_auc,
    most_confused,
    multilabel_scores,
    precision_recall_f1,
    sensitivity_specificity,
)
from recurra.metrics.confidence import Bin, calibration, expected_calibration_error, recall_at_false_alarms
from recurra.metrics.edits import Edit, edit_counts, edit_distance, edits, symbol_error_rate
from recurra.metrics.labels import LabelScores, accuracy, confusion, macro_f1, micro_f1, per_label
from recurra.metrics.lengths import Bucket, buckets
from recurra.metrics.meteor import meteor
from recurra.metrics.numbers import mae, rmse
from recurra.metrics.resampling import Difference, Drawn, difference, drawn, interval
from recurra.metrics.rouge import rouge_l, rouge_n
from recurra.metrics.spans import Scheme, Span, SpanScores, allowed, breaches, scheme_of, span_scores, spans
from recurra.metrics.stemming import stem
from recurra.metrics.ter import ter

__all__ = [
    "Bin",
    "Bucket",
    "ClassScores",
    "Difference",
    "Drawn",
    "Edit",
    "LabelScores",
    "Mistake",
    "MultilabelScores",
    "Scheme",
    "Span",
    "SpanScores",
    "accuracy",
    "allowed",
    "auc",
    "bleu",
    "bleu_counts",
    "bleu_of",
    "bootstrap",
    "breaches",
    "buckets",
    "calibration",
    "chrf",
    "confusion",
    "difference",
    "drawn",
    "edit_counts",
    "edit_distance",
    "edits",
    "expected_calibration_error",
    "interval",
    "macro_auc",
    "macro_f1",
    "mae",
    "meteor",
    "micro_f1",
    "most_confused",
    "multilabel_scores",
    "per_label",
    "precision_recall_f1",
    "recall_at_false_alarms",
    "rmse",
    "rouge_l",
    "rouge_n",
    "scheme_of",
    "sensitivity_specificity",
    "span_scores",
    "spans",
    "stem",
    "symbol_error_rate",
    "ter",
]
