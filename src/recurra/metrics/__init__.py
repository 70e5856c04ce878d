"""Metrics: gold and predicted answers -> numbers. None of them needs torch.

A task is scored by what it counts of each item (recurra.scoring); here is what such counts are made with.
"""

from __future__ import annotations

from recurra.metrics.auc import area_under_curve, auc
from recurra.metrics.bleu import bleu, bleu_counts, bleu_of
from recurra.metrics.chrf import chrf, chrf_counts, chrf_of
from recurra.metrics.confidence import recall_at_false_alarms
from recurra.metrics.edits import Edit, edit_counts, edit_distance, edits, symbol_error_rate
from recurra.metrics.lengths import Bucket, buckets
from recurra.metrics.meteor import meteor, meteor_counts, meteor_of
from recurra.metrics.resampling import Difference, Sampled, difference, draws, interval
from recurra.metrics.rouge import rouge_l, rouge_l_each, rouge_n
from recurra.metrics.spans import Scheme, Span, allowed, breaches, scheme_of, spans
from recurra.metrics.stemming import stem
from recurra.metrics.ter import ter, ter_counts, ter_of

__all__ = [
    "Bucket",
    "Difference",
    "Edit",
    "Sampled",
    "Scheme",
    "Span",
    "allowed",
    "area_under_curve",
    "auc",
    "bleu",
    "bleu_counts",
    "bleu_of",
    "breaches",
    "buckets",
    "chrf",
    "chrf_counts",
    "chrf_of",
    "difference",
    "draws",
    "edit_counts",
    "edit_distance",
    "edits",
    "interval",
    "meteor",
    "meteor_counts",
    "meteor_of",
    "recall_at_false_alarms",
    "rouge_l",
    "rouge_l_each",
    "rouge_n",
    "scheme_of",
    "spans",
    "stem",
    "symbol_error_rate",
    "ter",
    "ter_counts",
    "ter_of",
]
