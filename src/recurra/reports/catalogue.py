"""The catalogue of cells: equations, sizes, and which engines can run each."""

from __future__ import annotations

import inspect
from typing import NamedTuple

import torch

from recurra.cells import Cell, Spec, Wrapper, build
from recurra.cells.cell import fields
from recurra.engines import ENGINES, DirectedCell
from recurra.engines.planning import PLANS
from recurra.named import catalogue, find, options_of
from recurra.padding import Padded


class Entry(NamedTuple):
    """What there is to know about a cell before it has learned anything."""

    name: str
    summary: str
    equations: str
    notes: str
    options: dict[str, object]  # with their defaults
    state: tuple[str, ...]
    parameters: int
    engines: dict[str, str | None]  # None: can run it; else the reason why not


class WrapperEntry(NamedTuple):
    """What there is to know about a wrapper."""

    name: str
    summary: str
    equations: str
    notes: str
    options: dict[str, object]


def entry(spec: Spec, input_size: int, hidden_size: int) -> Entry:
    """A cell of that size, described.

    >>> lstm = entry("lstm", 10, 20)
    >>> lstm.parameters, lstm.state, lstm.engines["vendor"]
    (2480, ('h', 'c'), None)
    """
    cell = build(spec, input_size, hidden_size)
    name = spec if isinstance(spec, str) else spec["name"]
    x = Padded.full(torch.zeros(1, 1, input_size))
    layer = [DirectedCell(cell, cell.start(1, x.values), cell.fixed(1, x.values))]
    kind = find(Cell, name)
    return Entry(
        name,
        *described(kind),
        options=defaults(kind),
        state=fields(cell.State),
        parameters=sum(parameter.numel() for parameter in cell.parameters()),
        engines={engine.name: engine.refusal(layer, x) for engine in ENGINES},
    )


def plan_of(spec: Spec, input_size: int, hidden_size: int) -> str:
    """The plan of a cell in words, or why it has none.

    >>> print(plan_of("elman", 3, 4))
    forward, each step:
        product: forward product 0 = previous 0 · 4 x 4 weights
        row pass: forward product 0, inputs -> state 0
            1 add, 1 tanh
    backward, each step:
        row pass: state 0, d_state 0, carried 0, backward product 0 -> d_inputs, carried 0
            2 mul, 1 sub
        product: backward product 0 = d_inputs · 4 x 4 weights
    saved for the backward pass, per row and step: 0 numbers besides the states
    after the loop:
        matrix gradient 4 x 4 = Σ_t (d_inputs)ᵀ (previous 0), one product
    """
    cell = build(spec, input_size, hidden_size)
    x = torch.zeros(1, 1, input_size)
    plan = PLANS.plan(DirectedCell(cell, cell.start(1, x), cell.fixed(1, x)), x)
    return f"'{cell.name}' has no plan: {plan}" if isinstance(plan, str) else str(plan)


def entries(input_size: int, hidden_size: int) -> list[Entry]:
    """Every cell, in the order of names."""
    return [entry(name, input_size, hidden_size) for name in catalogue(Cell)]


def wrapper_entries() -> list[WrapperEntry]:
    """Every wrapper, in the order of names."""
    kinds = [(name, find(Wrapper, name)) for name in catalogue(Wrapper)]
    return [WrapperEntry(name, *described(kind), options=defaults(kind)) for name, kind in kinds]


def described(kind: type) -> tuple[str, str, str]:
    """A docstring as its first line, its indented equations, and the rest.

    >>> from recurra.cells import IndRNN
    >>> described(IndRNN)[1]
    "h' = φ(W x + u ∘ h + b),   |u| ≤ 2^(1/horizon)"
    """
    summary, _, rest = (inspect.getdoc(kind) or "").partition("\n")
    paragraphs = [paragraph for paragraph in rest.split("\n\n") if paragraph.strip()]
    equations = [inspect.cleandoc("\n" + p.strip("\n")) for p in paragraphs if p.lstrip("\n").startswith("    ")]
    notes = [" ".join(p.split()) for p in paragraphs if not p.lstrip("\n").startswith("    ")]
    return summary.strip(), "\n\n".join(equations), "\n".join(notes)


def defaults(kind: type) -> dict[str, object]:
    """The options of a class and their defaults; a required one has the value ...

    >>> from recurra.cells import Zoneout
    >>> defaults(Zoneout)
    {'rate': Ellipsis}
    """
    options = options_of(kind)
    return {name: ... if option.default is option.empty else option.default for name, option in options.items()}
