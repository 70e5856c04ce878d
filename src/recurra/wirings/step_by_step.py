"""A first layer whose every step needs what the one before it saw, and layers above it that need no loop."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from recurra.attention import Attended, Attention, Past
from recurra.cells import AnyState
from recurra.encoders.dropout import Dropout
from recurra.padding import Padded
from recurra.products.deferring import deferring
from recurra.stacks import one_step
from recurra.stacks.recurrent import Fixed, Recurrent
from recurra.wirings.looping import looped
from recurra.wirings.querying import before, memory_of
from recurra.wirings.wiring import Features, Readout, Shape, Source, Wiring, WiringState, layers_of, only, stacked


class AttendingFirst(Wiring):
    """context_t and s_t from x_t and s_{t-1} by `attend`;  then  h̃_t = tanh(W [above(s)_t; context_t])."""

    attention: Attention
    reads_before: bool = False
    """Whether h̃_t is made of what came out of the layers in the step before."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        first, *others = shape.widths
        self.attention = self.attention_from(first)
        self.above = self.stack(first, tuple(others), below=first) if others else None
        self.dropout = Dropout(shape.dropout, locked=shape.locked)
        size = first if self.above is None else self.above.output_size
        self.readout = Readout(shape, size, self.attention.context_size)

    @abstractmethod
    def fixed_of_first(self, rows: int, like: Tensor) -> Any:
        """What the first layer keeps over a sequence."""

    @abstractmethod
    def attend(self, x: Tensor, state: AnyState, past: Past, source: Source, fixed: Any) -> tuple[AnyState, Attended]:
        """One step of the first layer: its state after it, and what it saw."""

    def start(self, cells: tuple[AnyState, ...], source: Source) -> WiringState:
        # Not the state of the last cell: with a way past it, or a mix of layers, what comes out is more than that.
        above = self.above if self.reads_before else None
        fed = None if above is None else above.mixed([state[0] for state in cells])
        return WiringState(cells, self.attention.start(memory_of(source)), fed, None)

    def fixed(self, rows: int, like: Tensor) -> tuple[Any, Fixed | None]:
        first = self.fixed_of_first(rows, like)
        return first, None if self.above is None else self.above.fixed(rows, like)

    def step(self, x: Tensor, state: WiringState, source: Source, fixed: Any = None) -> tuple[Tensor, WiringState]:
        of_first, of_others = self.fixed(len(x), x) if fixed is None else fixed
        first, seen = self.attend(x, state.cells[0], state.past, source, of_first)
        s, others = first[0], state.cells[1:]
        if self.above is not None:
            assert of_others is not None, "`fixed` prepares the layers above where there are some"
            s, upper = self.above.advance(self.dropout(s), only(others), of_others, below=s)
            others = layers_of(upper)
        h = self.readout(source, came_out(state) if self.reads_before else s, seen.context, x=x)
        fed = None if state.fed is None else s
        return h, WiringState((first, *others), seen.past, fed, seen.weights, seen.chance)

    def forward(self, x: Padded, state: WiringState, source: Source) -> Features:
        s, context, *chance, weights = looped(self, x.values, state, source)
        if self.above is not None:
            s = self.above(Padded(self.dropout(s), x.lengths), only(alike(state.cells[1:], s)), below=s)[0].values
        s = before(came_out(state), s) if self.reads_before else s
        return Features(self.readout(source, s, context, x=x.values), weights, chance[0] if chance else None)

    def loop(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...]:
        """All steps of the first layer: its outputs, what it saw, and where it looked."""
        first, past = state.cells[0], state.past
        outputs, contexts, chances, weights = [], [], [], []
        with deferring(self if self.training else None):
            fixed = self.fixed_of_first(len(x), x)
            for x_t in x.unbind(1):  # what comes after a row's end changes nothing before it
                first, seen = self.attend(x_t, first, past, source, fixed)
                past = seen.past
                outputs.append(first[0])
                contexts.append(seen.context)
                chances.append(seen.chance)
                weights.append(seen.weights)
        return torch.stack(outputs, dim=1), torch.stack(contexts, dim=1), *stacked(chances), *stacked(weights)

    def fused(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...] | None:
        """What `loop` computes, by few kernels; None where there are none for it."""
        return None


def came_out(state: WiringState) -> Tensor:
    """What came out of all layers in the step before, (N, ·): of a single one, its state."""
    return state.cells[0][0] if state.fed is None else state.fed


def alike(states: tuple[AnyState, ...], s: Tensor) -> tuple[AnyState, ...]:
    """States in the type of s, which autocast may have lowered."""
    return tuple(type(state)(*(field.to(s.dtype) for field in state)) for state in states)


def stepped(stack: Recurrent, x: Tensor, state: AnyState, fixed: Any) -> AnyState:
    """One step of a stack of one layer."""
    cell: Any = stack.cells[0][0]  # type: ignore[index]  # a ModuleList for each layer
    return one_step.stepped(cell, x, state, fixed[0][0])
