"""Which engine runs each layer, and why not another: what `Recurrent.engine_report` shows."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from recurra.cells import AnyCell
from recurra.engines.choice import ENGINES, choose, engine_named
from recurra.engines.cost import work_of
from recurra.engines.engine import Engine, Layer
from recurra.padding import Padded
from recurra.recording import graphed


class Replayed(NamedTuple):
    """The engine that 'auto' selects inside a CUDA graph, where it is another one than outside."""

    engine: Engine
    times: float  # how many times its time the engine outside is estimated to take there


class LayerReport(NamedTuple):
    """The engines before one layer."""

    cell: AnyCell
    directions: int
    engine: Engine
    asked_for: bool
    refusals: tuple[tuple[str, str | None], ...]  # every engine that was asked, and why it cannot run the layer
    costs: tuple[tuple[str, float], ...]  # the same engines, and how many seconds each is estimated to take
    replayed: Replayed | None = None  # what runs instead where the layer is replayed as a part of a CUDA graph

    def lines(self, number: int) -> list[str]:
        ways = ", both directions" if self.directions == 2 else ""
        chosen = self.engine.name + (" (asked for)" if self.asked_for else "")
        if (reason := dict(self.refusals)[self.engine.name]) is not None:
            chosen += f", but it refuses: {reason}"
        others = [(name, self.why_not(name)) for name, _ in self.refusals if name != self.engine.name]
        return [
            f"layer {number}, {self.cell.name}{ways}: {chosen}",
            *(f"    not {name}: {reason}" for name, reason in others if reason is not None),
            *([] if self.replayed is None else [f"    {self.in_graphs(self.replayed)}"]),
        ]

    def engines_in_words(self) -> str:
        """The engine outside of CUDA graphs, and the one inside if that is another."""
        if self.replayed is None:
            return self.engine.name
        return f"{self.engine.name}, and {self.replayed.engine.name} where steps are replayed"

    def in_graphs(self, replayed: Replayed) -> str:
        """Which engine runs where steps are replayed from CUDA graphs, and why."""
        return (
            f"in steps that are replayed from a CUDA graph: {replayed.engine.name} (there the host's time does not "
            f"count, and {self.engine.name} is estimated {replayed.times:.1f} times as slow)"
        )

    def why_not(self, name: str) -> str | None:
        """Why an engine was not taken; None where it could run the layer, but another was asked for."""
        if (reason := dict(self.refusals)[name]) is not None or self.asked_for:
            return reason
        costs = dict(self.costs)
        return f"estimated {costs[name] / costs[self.engine.name]:.1f} times the time of {self.engine.name}"


class EngineReport(NamedTuple):
    """Which engine runs each layer, and why not another. Print it."""

    layers: tuple[LayerReport, ...]

    def __str__(self) -> str:
        return "\n".join(line for number, layer in enumerate(self.layers, 1) for line in layer.lines(number))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<pre>{escape(str(self))}</pre>"


def report_layer(name: str, layer: Layer, x: Padded, every: bool = False, *, slower_ones: bool = True) -> LayerReport:
    """The report of one layer; without `slower_ones`, engines that cost more than the one taken are left out."""
    wanted = engine_named(name)
    engine = choose(None, layer, x, every) if wanted is None else wanted
    work = work_of(layer, x)
    every_one = [*ENGINES, *([] if engine in ENGINES else [engine])]
    costs = {each.name: each.cost(work) for each in every_one}
    asked = [each for each in every_one if slower_ones or each is engine or costs[each.name] < costs[engine.name]]
    return LayerReport(
        layer[0].cell,
        len(layer),
        engine,
        wanted is not None,
        tuple((each.name, each.refusal(layer, x, every)) for each in asked),
        tuple((each.name, costs[each.name]) for each in asked),
        replayed_instead(engine, layer, x, every) if wanted is None and x.values.is_cuda else None,
    )


def replayed_instead(engine: Engine, layer: Layer, x: Padded, every: bool = False) -> Replayed | None:
    """What 'auto' selects for a layer inside a CUDA graph; None where that is the engine that it selects outside."""
    with graphed():
        other, work = choose(None, layer, x, every), work_of(layer, x)
    return None if other is engine else Replayed(other, engine.cost(work) / other.cost(work))
