"""Every attention with its options, alone and with every term, and small ones drawn at random."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from recurra.attention import Attention, Memory
from recurra.named import built
from recurra.padding import Grid, gridded

Spec: TypeAlias = dict[str, Any]

PLAIN: list[Spec] = [
    {"name": "additive"},
    {"name": "additive", "size": 3, "values": 2},
    {"name": "additive", "activation": "relu"},
    {"name": "additive", "activation": "sigmoid"},
    {"name": "additive", "activation": "identity"},
    {"name": "bilinear"},
    {"name": "bilinear", "values": 7},
    {"name": "dot"},
    {"name": "dot", "values": 2},
    {"name": "scaled_dot"},
    {"name": "scaled_dot", "values": 2},
    {"name": "projected_dot"},
    {"name": "projected_dot", "size": 2, "values": 5},
    {"name": "projected_dot", "heads": 2},
    {"name": "projected_dot", "heads": 3, "size": 2, "values": 9},
    {"name": "projected_dot", "heads": 8, "values": 8},
]
TERMS: list[Spec] = [
    {"name": "monotonic", "strength": 0.3},
    {"name": "coverage", "strength": 0.5},
    {"name": "location", "filters": 3, "width": 3},
]
WITH_TERMS: list[Spec] = [
    *({"name": name, "terms": [term]} for name in ("additive", "bilinear", "dot", "scaled_dot") for term in TERMS),
    *({"name": "projected_dot", "heads": 2, "terms": [term]} for term in TERMS),
    {"name": "bilinear", "values": 3, "terms": TERMS},
    {"name": "projected_dot", "heads": 2, "terms": ["location", "monotonic", "coverage"]},
]
SEEING: list[Spec] = [
    {"name": "additive", "location": {"filters": 3, "width": 3}},
    {"name": "additive", "size": 3, "values": 2, "location": {"filters": 2, "width": 5, "of": "all"}},
    {"name": "additive", "activation": "sigmoid", "location": {"width": 3}, "terms": ["coverage", "monotonic"]},
    {"name": "bilinear", "terms": [{"name": "location", "width": 3, "of": "all"}]},
]
"""Scores that see where one has looked, and what has looked at all places so far."""

LOCAL: list[Spec] = [
    {"name": "bilinear", "look": {"name": "local", "centre": "monotonic", "reach": 2}},
    {"name": "additive", "look": {"name": "local", "reach": 2}, "gate": True},
    {"name": "projected_dot", "heads": 2, "look": {"name": "local", "centre": "predictive", "reach": 3}},
    {"name": "dot", "look": {"name": "local", "centre": "monotonic", "reach": 1}, "terms": ["coverage"]},
]
"""Weights over a few places, which need not sum to 1."""

GATED: list[Spec] = [{"name": "dot", "gate": True}, {"name": "projected_dot", "heads": 2, "gate": True}]

SUMMING_TO_ONE = PLAIN + WITH_TERMS + SEEING + GATED

EVERY = SUMMING_TO_ONE + LOCAL


def title(spec: Spec) -> str:
    """additive size=3 + monotonic"""
    terms = [term if isinstance(term, str) else term["name"] for term in spec.get("terms", ())]
    options = [f"{key}={value}" for key, value in spec.items() if key not in ("name", "terms")]
    return " + ".join([" ".join([spec["name"], *options]), *terms])


def drawn(spec: Spec) -> Attention:
    """In float64, with weights as large as those of a trained one."""
    query_size = 4 if spec["name"] in ("dot", "scaled_dot") else 5
    attention = built(Attention, spec, query_size, 4).double()
    for name, parameter in attention.named_parameters():
        if "strength" not in name and "pace" not in name:
            nn.init.normal_(parameter, std=0.7)
    return attention


def drawn_grid(sizes: list[tuple[int, int]], features: int = 4) -> Grid:
    """Random maps of different sizes, NaN where there is nothing."""
    grid = gridded([torch.randn(features, *size, dtype=torch.float64) for size in sizes])
    return Grid(grid.values.masked_fill(~grid.mask.unsqueeze(1), torch.nan), grid.sizes)


def remembered_grid(attention: Attention, grid: Grid) -> Memory:
    """The places of maps, row after row."""
    places = grid.values.flatten(2).transpose(1, 2)
    return attention.remember(places, grid.mask.flatten(1), grid.values.shape[3])


def remembered(attention: Attention, lengths: list[int], places: int | None = None) -> Memory:
    """Random sources, right-padded with NaN."""
    places = max(lengths) if places is None else places
    values = torch.randn(len(lengths), places, attention.memory_size, dtype=torch.float64)
    mask = torch.arange(places) < torch.tensor(lengths).unsqueeze(1)
    return attention.remember(values.masked_fill(~mask.unsqueeze(2), torch.nan), mask)


def asked(attention: Attention, *shape: int) -> Tensor:
    return torch.randn(*shape, attention.query_size, dtype=torch.float64)
