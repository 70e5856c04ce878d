"""Which engine runs a layer: the one asked for, or the cheapest that can."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
from torch import Tensor

from recurra.cells import AnyCell, AnyState
from recurra.engines.cost import work_of
from recurra.engines.engine import DirectedCell, Engine, Layer, Reading, StackEngine, Work
from recurra.engines.graph import Graph
from recurra.engines.loop import Loop, read_parts
from recurra.engines.newton import Newton
from recurra.engines.planned import Planned
from recurra.engines.recompute import Recomputed
from recurra.engines.scan import Scan
from recurra.engines.single import Single
from recurra.engines.vendor import Vendor
from recurra.errors import EngineError
from recurra.named import choose as choose_name
from recurra.padding import Padded
from recurra.products.triton_here import KernelsError

SINGLE, LOOP = Single(), Loop()

ENGINES: tuple[Engine, ...] = (SINGLE, Vendor(), Planned(), Graph(), Scan(), LOOP)
"""All engines that 'auto' chooses from. The last one, the reference, can run everything."""

ON_MPS: tuple[Engine, ...] = (ENGINES[1], LOOP)
"""Those of them that use operations of torch alone, which its devices share."""

ASKED_FOR: tuple[Engine, ...] = (Newton(),)
"""Those that run only where they are asked for by name."""

STACK_ENGINES: tuple[StackEngine, ...] = (SINGLE,)
"""Those that can also read a whole stack of layers in one go."""

BY_NAME = {engine.name: engine for engine in (*ENGINES, *ASKED_FOR)}


class StandIn(Engine, Protocol):
    """An engine that runs all layers, and also says what their cells compute at each step."""

    def read_parts(self, reader: DirectedCell, x: Padded) -> AnyState: ...


_instead: ContextVar[StandIn | None] = ContextVar("instead", default=None)
"""What runs all layers of this thread, while a model is recorded; other threads go on as they are."""


def engine_named(name: str) -> Engine | None:
    """The engine of that name; None for 'auto'."""
    return None if name == "auto" else BY_NAME.get(name) or BY_NAME[choose_name(("auto", *BY_NAME), name, "engine")]


def choose(wanted: Engine | None, layer: Layer, x: Padded, every: bool = False) -> Engine:
    """The wanted engine, or the cheapest that can; an EngineError says why a wanted one cannot."""
    if torch.compiler.is_compiling():
        return _traceable(wanted, layer)
    if wanted is None:
        cheapest_first = by_cost(work_of(layer, x))
        return next(engine for engine in cheapest_first if engine.refusal(layer, x, every) is None)
    reason = wanted.refusal(layer, x, every)
    if reason is not None:
        raise EngineError(
            f"the engine '{wanted.name}' cannot run the cell '{layer[0].cell.name}': {reason}. "
            f"Use engine = 'auto', which selects the fastest engine that supports it."
        )
    return wanted


def _traceable(wanted: Engine | None, layer: Layer) -> Engine:
    """The loop, which torch.compile and torch.export can read; an EngineError where another one is wanted."""
    if wanted is None or wanted is LOOP:
        return LOOP
    raise EngineError(
        f"the engine '{wanted.name}' cannot be compiled or exported by torch, for '{layer[0].cell.name}': use engine = "
        "'auto', which takes the loop there, or 'loop'."
    )


@functools.lru_cache(maxsize=4096)
def by_cost(work: Work) -> list[Engine]:
    """All engines, the lowest estimated cost first. Whether one can run the layer is asked only when its turn comes:
    the answer may take far longer than the estimate, as a cell must be traced before it is known to have a plan."""
    known = ENGINES if work.device != "mps" else ON_MPS
    return sorted(known, key=lambda engine: engine.cost(work))


def read_layer(name: str, layer: Layer, x: Padded, every: bool = False, recompute: int = 0) -> list[Reading]:
    """Read a batch by one layer, on the engine of that name or, with 'auto', on the cheapest that can.

    recompute    keep the state only every so many steps, and compute the rest again on the way back; 0 keeps all
    """
    stand_in = None if torch.compiler.is_compiling() else _instead.get()  # torch cannot read context variables
    engine = choose(engine_named(name), layer, x, every) if stand_in is None else stand_in
    chosen = engine
    if recompute and torch.is_grad_enabled() and x.values.numel():
        engine = Recomputed(engine, recompute)
    try:
        return engine.run(layer, x, every)
    except KernelsError:
        if chosen.refusal(layer, x, every) is None:
            raise
    # Its kernels are not used again: 'auto' takes another engine, and one that is asked for says why it cannot.
    return read_layer(name, layer, x, every, recompute)


def read_stack(
    name: str, cells: Sequence[Sequence[AnyCell]], x: Padded, backward: Sequence[bool]
) -> tuple[Tensor, tuple[tuple[AnyState, ...], ...]] | None:
    """Read a batch by all layers of a plain stack in one go; None where no engine can, or another is asked for.

    In a plain stack each layer reads the outputs of the one before it, both directions side by side, from start
    states. Answers with the outputs of the last layer and the final states of all.
    """
    for engine in () if torch.compiler.is_compiling() or is_replaced() else STACK_ENGINES:
        if name in ("auto", engine.name) and engine.reads_stack(cells, x):
            return engine.run_stack(cells, x.values, backward)
    return None


def is_replaced() -> bool:
    """Whether one engine runs all layers at present (`instead`)."""
    return not torch.compiler.is_compiling() and _instead.get() is not None


def parts_of(reader: DirectedCell, x: Padded) -> AnyState:
    """Every named value of every step of a cell, each (B, T, n), 0 on padding; by the loop, or what stands in."""
    stand_in = _instead.get()
    return (read_parts if stand_in is None else stand_in.read_parts)(reader, x)


@contextmanager
def instead(engine: StandIn) -> Iterator[None]:
    """Inside, one engine runs all layers, whichever is asked for: what records a model stands in for it."""
    before = _instead.set(engine)
    try:
        yield
    finally:
        _instead.reset(before)
