"""Less memory for more time: a long sequence is read in chunks whose insides are computed again on the way back."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from recurra.cells import AnyState
from recurra.engines.engine import Engine, Layer, Reader, Reading
from recurra.padding import Padded


class Recomputed:
    """Another engine, so many steps at a time: between chunks only the states are kept for the backward pass."""

    def __init__(self, engine: Engine, steps: int) -> None:
        self.engine = engine
        self.steps = steps
        self.name = engine.name

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        return self.engine.refusal(layer, x, every)

    def slower(self, layer: Layer, x: Padded) -> str | None:
        return self.engine.slower(layer, x)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        return [self.read(reader, x, every) for reader in layer]

    def read(self, reader: Reader, x: Padded, every: bool) -> Reading:
        """One reader, chunk after chunk; a backward one is a forward one on reversed rows."""
        turned = x.reversed() if reader.backward else x
        state, readings = reader.state, []
        for start in range(0, turned.values.shape[1], self.steps):
            lengths = (x.lengths - start).clamp(0, min(self.steps, turned.values.shape[1] - start))
            chunk = turned.values[:, start : start + self.steps]
            readings.append(self.chunk(reader, Padded(chunk, lengths), state, every))
            # A row that has ended reads a chunk of length 0 and keeps its state.
            state = readings[-1].states if not every else last_states(readings[-1].states, lengths, state)
        outputs = join([reading.outputs for reading in readings], x, reader.backward)
        if not every:
            return Reading(outputs, state)
        fields = zip(*(reading.states for reading in readings), strict=True)
        return Reading(outputs, type(state)(*(join(list(field), x, reader.backward) for field in fields)))

    def chunk(self, reader: Reader, x: Padded, state: AnyState, every: bool) -> Reading:
        kind = type(state)

        def read(values: Tensor, *fields: Tensor) -> tuple[Tensor, ...]:
            again = reader._replace(state=kind(*fields), backward=False)
            [reading] = self.engine.run([again], Padded(values, x.lengths), every)
            return reading.outputs, *reading.states

        outputs, *states = checkpoint(read, x.values, *state, use_reentrant=False)
        return Reading(outputs, kind(*states))


def join(chunks: list[Tensor], x: Padded, backward: bool) -> Tensor:
    whole = torch.cat(chunks, dim=1)
    return Padded(whole, x.lengths).reversed().values if backward else whole


def last_states(every: AnyState, lengths: Tensor, before: AnyState) -> AnyState:
    """The state after each row's last real step of a chunk, out of those of every step."""
    rows, last = torch.arange(len(lengths)), (lengths - 1).clamp_min(0)
    is_over = (lengths == 0).unsqueeze(1).to(every[0].device)
    pairs = zip(every, before, strict=True)
    return type(before)(*(torch.where(is_over, old, field[rows, last]) for field, old in pairs))
