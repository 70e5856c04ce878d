"""Which engine runs each layer, and why not another: what `Recurrent.engine_report` shows."""

from __future__ import annotations

from typing import NamedTuple

from recurra.cells import AnyCell
from recurra.engines.choice import ENGINES, choose, engine_named
from recurra.engines.cost import work_of
from recurra.engines.engine import Engine, Layer
from recurra.padding import Padded


class LayerReport(NamedTuple):
    """The engines before one layer."""

    cell: AnyCell
    directions: int
    engine: Engine
    asked_for: bool
    refusals: tuple[tuple[str, str | None], ...]  # every engine that was asked, and why it cannot run the layer
    costs: tuple[tuple[str, float], ...]  # the same engines, and how many seconds each is estimated to take

    def lines(self, number: int) -> list[str]:
        ways = ", both directions" if self.directions == 2 else ""
        chosen = self.engine.name + (" (asked for)" if self.asked_for else "")
        if (reason := dict(self.refusals)[self.engine.name]) is not None:
            chosen += f", but it refuses: {reason}"
        others = [(name, self.why_not(name)) for name, _ in self.refusals if name != self.engine.name]
        return [
            f"layer {number}, {self.cell.name}{ways}: {chosen}",
            *(f"    not {name}: {reason}" for name, reason in others if reason is not None),
        ]

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
    )
