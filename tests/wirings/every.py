"""Every wiring, small ones drawn at random, and sources for them to look at."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from recurra.attention import Attention
from recurra.cells import AnyState
from recurra.cells.cell import fields
from recurra.named import built
from recurra.padding import Padded
from recurra.wirings import Features, Shape, Source, Wiring, WiringState

INPUT, WIDTH, MEMORY, FEATURES, SUMMARY = 3, 4, 4, 5, 2


class Variant(NamedTuple):
    name: str
    query: Literal["previous", "current"] | None = None

    def __str__(self) -> str:
        return self.name if self.query is None else f"{self.name}-{self.query}"


VARIANTS = [
    Variant("alone"),
    Variant("outside"),
    Variant("outside", "current"),
    Variant("outside", "previous"),
    Variant("between"),
    Variant("between", "previous"),
    Variant("inside"),
    Variant("conditional"),
    Variant("feeding"),
]
CELLS = ["lstm", "gru", "elman", "peephole_lstm"]
ATTENTIONS: list[dict[str, Any]] = [
    {"name": "additive", "size": 3},
    {"name": "bilinear", "values": 3},
    {"name": "dot"},
    {"name": "scaled_dot", "terms": [{"name": "coverage", "strength": 0.5}]},
    {"name": "projected_dot", "heads": 2, "terms": [{"name": "location", "filters": 3, "width": 3}]},
    {"name": "bilinear", "terms": [{"name": "monotonic", "strength": 0.3}]},
]


def widths(variant: Variant, layers: int) -> tuple[int, ...]:
    """Between layers there are at least two."""
    return (WIDTH,) * max(layers, 2 if variant.name == "between" else 1)


def drawn(
    variant: Variant, cell: Any = "gru", layers: int = 1, attention: Any = None, engine: str = "loop", **options: Any
) -> Wiring:
    """In float64, with weights as large as those of a trained one."""
    shape = Shape(
        cell=cell,
        input_size=INPUT,
        widths=widths(variant, layers),
        memory_size=MEMORY,
        summary_size=SUMMARY,
        features=FEATURES,
        attention=None if variant.name == "alone" else attention or ATTENTIONS[0],
        query=variant.query,
        engine=engine,
        **options,
    )
    wiring = built(Wiring, variant.name, shape).double()
    for name, parameter in wiring.named_parameters():
        if "strength" not in name and "pace" not in name:
            nn.init.normal_(parameter, std=0.7)
    return wiring


def source_of(wiring: Wiring, places: Tensor, lengths: list[int], summary: Tensor) -> Source:
    """What the wiring is given of memories (B, S, MEMORY) and summaries (B, SUMMARY)."""
    attention = getattr(wiring, "attention", None)
    if not isinstance(attention, Attention):
        return Source(None, summary)
    mask = Padded(places, torch.tensor(lengths)).mask
    return Source(attention.remember(places.masked_fill(~mask.unsqueeze(2), torch.nan), mask), summary)


def drawn_source(wiring: Wiring, lengths: list[int]) -> Source:
    places = torch.randn(len(lengths), max(lengths), MEMORY, dtype=torch.float64)
    return source_of(wiring, places, lengths, torch.randn(len(lengths), SUMMARY, dtype=torch.float64))


def drawn_starts(wiring: Wiring, rows: int) -> tuple[AnyState, ...]:
    """States that are not zero, to start from."""
    starts = [cell.start(rows, torch.zeros((), dtype=torch.float64)) for cell in wiring.layers]
    return tuple(type(state)(*(torch.randn_like(getattr(state, name)) for name in fields(state))) for state in starts)


def inputs(rows: int, steps: int) -> Tensor:
    return torch.randn(rows, steps, INPUT, dtype=torch.float64)


def step_by_step(wiring: Wiring, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> Features:
    features, weights = [], []
    for x_t in x.unbind(1):
        h, state = wiring.step(x_t, state, source, fixed)
        features.append(h)
        weights.append(state.weights)
    seen = [each for each in weights if each is not None]
    return Features(torch.stack(features, 1), torch.stack(seen, 1) if seen else None)
