"""Every pairing with its options, small, and pairs of texts as vectors."""

from __future__ import annotations

from typing import Any

import torch

from recurra.config import ClassificationModel
from recurra.models.classifier import parts_of
from recurra.padding import Padded
from recurra.pairings import Pairing, pairing

E = 3

EVERY: dict[str, tuple[Any, dict[str, Any]]] = {
    "siamese": ({"name": "siamese", "size": 4, "layers": 2}, {}),
    "conditional": ("conditional", {"bidirectional": False}),
    "conditional both ways": ("conditional", {}),
    "conditional attention": ({"name": "conditional", "attention": "additive", "state": "all"}, {}),
    "word_by_word": ("word_by_word", {"bidirectional": False}),
    "word_by_word both ways": ("word_by_word", {}),
    "attentive": ("attentive", {}),
    "impatient": ("impatient", {}),
    "decomposable": ({"name": "decomposable", "size": 8}, {}),
    "decomposable within": ({"name": "decomposable", "size": 4, "within": True, "distance": 2, "layers": 1}, {}),
    "decomposable read": (
        {"name": "decomposable", "size": 4, "read": True, "compare": "all", "pool": "mean_max", "layers": 1},
        {},
    ),
}
"""A spec, and settings of the model beside it."""


def drawn(name: str, **others: Any) -> Pairing:
    """A pairing in float64, with weights large enough to tell."""
    torch.manual_seed(3)
    spec, settings = EVERY[name]
    settings = {"cell": "lstm", "hidden": 4, "dropout": 0.0, "engine": "loop", **settings, **others}
    made = pairing(spec, E, parts_of(ClassificationModel(**settings))).double().eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return made


def texts(first: list[int], second: list[int], seed: int = 1) -> tuple[Padded, Padded]:
    """Two batches of texts of such lengths, with NaN on padding."""
    made = torch.Generator().manual_seed(seed)
    found = []
    for lengths in (first, second):
        values = torch.randn(len(lengths), max(lengths), E, generator=made, dtype=torch.float64)
        batch = Padded(values, torch.tensor(lengths))
        found.append(Padded(values.masked_fill(~batch.mask.unsqueeze(2), torch.nan), batch.lengths))
    return found[0], found[1]
