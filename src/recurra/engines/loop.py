"""The reference: a loop over the steps, as the equations are written. Every other engine is tested against it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from recurra.cells import AnyState
from recurra.cells.cell import fields
from recurra.engines.cost import Estimate, Rates, in_graph
from recurra.engines.engine import DirectedCell, Layer, Reading, Work
from recurra.padding import Padded

ON_CPU = Estimate(
    training=Rates(call=240e-6, gate=30e-6, weight=5e-10, number=8.5e-9, product=3e-11),
    inference=Rates(call=95e-6, gate=8.5e-6, weight=8.5e-11, number=3.8e-9, product=2.2e-11),
)
ON_GPU = Estimate(training=Rates(call=600e-6, gate=115e-6), inference=Rates(call=200e-6, gate=33e-6))
IN_GRAPH = in_graph(Rates(call=20e-6, gate=15e-6))  # not measured: some ten small kernels a gate, forward and back


class Loop:
    """Runs every cell there is, one step after the other."""

    name = "loop"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        return None

    def cost(self, work: Work) -> float:
        if work.device == "cpu":
            return ON_CPU.seconds(work)
        return (IN_GRAPH if work.graphed else ON_GPU).seconds(work)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        return [read(reader, x, every) for reader in layer]


def read(reader: DirectedCell, x: Padded, every: bool) -> Reading:
    """One cell over one batch."""
    return read_inputs(reader, Padded(reader.cell.project(x.values, reader.fixed), x.lengths), every)


def read_inputs(reader: DirectedCell, inputs: Padded, every: bool) -> Reading:
    """The same, of inputs that are projected already."""
    state = reader.state
    states: list[AnyState] = []
    for _, state in walk(reader, inputs):
        states.append(state)
    if reader.backward:
        states.reverse()
    after_each = [over_time(column, inputs) for column in zip(*states, strict=True)] or [
        inputs.values.new_zeros(inputs.lengths.shape[0], 0, field.shape[-1]) for field in reader.state
    ]
    return Reading(after_each[0], reader.cell.State(*after_each) if every else state)


def read_parts(reader: DirectedCell, x: Padded) -> AnyState:
    """Every named value of every step: the cell's parts, each (B, T, n), 0 on padding."""
    parts = [part for part, _ in walk(reader, Padded(reader.cell.project(x.values, reader.fixed), x.lengths))]
    if reader.backward:
        parts.reverse()
    if not parts:
        # Without a step there is nothing to show; one on zeros tells the names and sizes.
        shown = read_parts(reader, Padded.full(x.values.new_zeros(x.lengths.shape[0], 1, x.values.shape[-1])))
        return type(shown)(*(part[:, :0] for part in shown))
    return type(parts[0])(*(over_time(column, x) for column in zip(*parts, strict=True)))


def walk(reader: DirectedCell, inputs: Padded) -> Iterator[tuple[AnyState, AnyState]]:
    """The parts of each step and the state after it, in the order of reading projected inputs."""
    cell, state, fixed, backward, resets = reader
    steps = inputs.values.unbind(1)
    anew = None if resets is None else resets.before_steps(inputs.lengths, backward)
    restarts = [False] * len(steps) if anew is None else anew.any(0).tolist()
    real = None if inputs.is_full else inputs.mask.unsqueeze(-1).unbind(1)
    for t in reversed(range(len(steps))) if backward else range(len(steps)):
        if restarts[t]:
            assert anew is not None
            assert resets is not None
            here = anew[:, t].unsqueeze(1)
            state = cell.State(*(torch.where(here, new, old) for new, old in zip(resets.state, state, strict=True)))
        parts = cell.parts(steps[t], state, fixed)
        new = cell.State(*(getattr(parts, name) for name in fields(cell.State)))
        if real is not None:
            # Padded steps keep the old state: the final state is that of the last real step, and a backward
            # reader still has its first state when it comes to the last real step.
            new = cell.State(*(torch.where(real[t], now, then) for now, then in zip(new, state, strict=True)))
        state = new
        yield parts, state


def over_time(steps: tuple[Tensor, ...], x: Padded) -> Tensor:
    """T tensors (B, n) as one (B, T, n) with zeros on padding."""
    return Padded(torch.stack(steps, dim=1), x.lengths).zeroed().values
