"""Less memory for more time: a long sequence is read in chunks whose insides are computed again on the way back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from recurra.cells import AnyState
from recurra.engines.engine import DirectedCell, Engine, Layer, Reading, Work
from recurra.engines.generators import states_of, unnoticed
from recurra.engines.loop import Loop
from recurra.engines.replay import is_differentiated, replayed
from recurra.engines.scan import pulled_back
from recurra.errors import EngineError
from recurra.padding import Padded


class Recomputed:
    """Another engine, so many steps at a time: between chunks only the states are kept for the backward pass."""

    def __init__(self, engine: Engine, steps: int) -> None:
        self.engine = engine
        self.steps = steps
        self.name = engine.name

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        return self.engine.refusal(layer, x, every)

    def cost(self, work: Work) -> float:
        return self.engine.cost(work)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        return [self.read(reader, x, every) for reader in layer]

    def read(self, reader: DirectedCell, x: Padded, every: bool) -> Reading:
        """One reader, chunk after chunk; a backward one is a forward one on reversed rows."""
        turned = x.reversed().values if reader.backward else x.values
        resets = reader.resets
        if resets is not None and resets.is_learned:
            raise EngineError(
                f"recompute does not support the learned start state of '{reader.cell.name}' at every "
                f"reset. Leave recompute out, or the resets."
            )
        if resets is not None:
            resets = resets._replace(mask=resets.in_reading_order(x.lengths, reader.backward))
        forward = reader._replace(backward=False, resets=resets)
        chunked = Chunked(self.engine, forward, x.lengths, self.steps, every)
        count = len(reader.state)
        results = Chunks.apply(chunked, turned, *reader.state, *chunked.sources())  # type: ignore[no-untyped-call]
        sequences, finals = results[:-count], results[-count:]
        if reader.backward:
            sequences = [Padded(sequence, x.lengths).reversed().values for sequence in sequences]
        kind = type(reader.state)
        return Reading(sequences[0], kind(*sequences) if every else kind(*finals))


class Chunked(NamedTuple):
    """How one reader reads a batch, some steps at a time."""

    engine: Engine
    reader: DirectedCell
    lengths: Tensor
    steps: int
    every: bool

    def stretches(self, T: int) -> list[slice]:
        return [slice(start, min(start + self.steps, T)) for start in range(0, T, self.steps)]

    def sources(self) -> list[Tensor]:
        """All that a step may depend on beside inputs and states: where gradients go."""
        found = [leaf for leaf in tree_flatten(self.reader.fixed)[0] if not is_plain(leaf)]
        for leaf in found:
            if not isinstance(leaf, Tensor):
                raise EngineError(
                    f"recompute cannot propagate gradients to the {type(leaf).__name__} that `fixed` of "
                    f"'{self.reader.cell.name}' returns. Let it return tuples of tensors, or leave recompute out."
                )
        return [*found, *self.reader.cell.parameters()]

    def cut_loose(self) -> Chunked:
        """The same, with a `fixed` that has no history: a gradient ends in it."""
        leaves, structure = tree_flatten(self.reader.fixed)
        cut = [
            leaf.detach().requires_grad_(leaf.requires_grad) if isinstance(leaf, Tensor) else leaf for leaf in leaves
        ]
        return self._replace(reader=self.reader._replace(fixed=tree_unflatten(cut, structure)))

    def read(self, values: Tensor, steps: slice, state: AnyState) -> tuple[list[Tensor], AnyState]:
        """What a chunk answers for each of its steps, and the state after it."""
        # A row that has ended reads a chunk of length 0 and keeps its state.
        lengths = (self.lengths - steps.start).clamp(0, values.shape[1])
        resets = self.reader.resets
        resets = None if resets is None else resets._replace(mask=resets.mask[:, steps])
        reader = self.reader._replace(state=state, resets=resets)
        [reading] = self.engine.run([reader], Padded(values, lengths), self.every)
        if not self.every:
            return [reading.outputs], reading.states
        return list(reading.states), last_states(reading.states, lengths, state)


def is_plain(leaf: object) -> bool:
    return leaf is None or isinstance(leaf, bool | int | float | complex | str | torch.dtype)


class Chunks(torch.autograd.Function):
    """A whole sequence, chunk after chunk. Kept for the way back: the batch, and the states between chunks.

    The answers are written into one tensor as they come, and the gradient that comes in is read slice by slice: beside
    what is kept, the insides of a single chunk are in memory at any time. What is kept has its place before the first
    chunk is read: a small tensor made between two large ones that go would stay where they were, and the next large
    ones could not have their room.
    """

    @staticmethod
    def forward(ctx: Any, chunked: Chunked, values: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        kind, count = type(chunked.reader.state), len(chunked.reader.state)
        stretches = chunked.stretches(values.shape[1])
        state: AnyState = kind(*tensors[:count])
        between = [field.new_empty(len(stretches), *field.shape) for field in state]
        ctx.random, ctx.cast = Random(len(stretches), values.device), Autocast.now(values)
        wholes: list[Tensor] = []
        for number, steps in enumerate(stretches):
            for kept, field in zip(between, state, strict=True):
                kept[number] = field
            ctx.random.keep(number)
            parts, state = chunked.read(values[:, steps], steps, state)
            if not wholes:
                wholes = [part.new_empty(*values.shape[:2], part.shape[-1]) for part in parts]
            for whole, part in zip(wholes, parts, strict=True):
                whole[:, steps] = part
            del parts, part
        # Casts of weights that were made here have no history, and nobody else may find them.
        torch.clear_autocast_cache()
        ctx.chunked = chunked
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, *between, *tensors)
        # A state may be one of what was given, and must be an answer of its own.
        return (*wholes, *(field.clone() for field in state))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if is_differentiated(gradients):
            return Chunks.recorded(ctx, *gradients)
        with torch.no_grad():
            return Chunks.again(ctx, *gradients)

    @staticmethod
    def recorded(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients, in operations that can be differentiated in turn: all chunks by the loop, none forgotten."""
        chunked: Chunked = ctx.chunked._replace(engine=Loop())
        kind, count = type(chunked.reader.state), len(chunked.reader.state)
        values, *kept = ctx.saved_tensors

        def results(tensors: list[Tensor], fixed: Any) -> list[Tensor]:
            values, *fields = tensors
            reading = chunked._replace(reader=chunked.reader._replace(fixed=fixed))
            state: AnyState = kind(*fields)
            columns: list[list[Tensor]] = []
            for number, steps in enumerate(chunked.stretches(values.shape[1])):
                with ctx.random.again(number), ctx.cast.again():
                    answers, state = reading.read(values[:, steps], steps, state)
                columns.append(answers)
            return [*(torch.cat(parts, dim=1) for parts in zip(*columns, strict=True)), *state]

        reader, start = chunked.reader, kept[count : 2 * count]
        found = replayed(reader.cell, reader.fixed, [values, *start], results, gradients)
        return None, *found.tensors, *found.fixed, *found.parameters

    @staticmethod
    def again(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        chunked: Chunked = ctx.chunked.cut_loose()
        kind, count = type(chunked.reader.state), len(chunked.reader.state)
        values, *kept = ctx.saved_tensors
        is_wanted = ctx.needs_input_grad[1]
        d_values = torch.empty_like(values) if is_wanted else None
        of_steps, d_state = gradients[:-count], list(gradients[-count:])
        sources = chunked.sources()
        d_sources: list[Tensor | None] = [None] * len(sources)
        for number, steps in reversed(list(enumerate(chunked.stretches(values.shape[1])))):
            part = values[:, steps].detach().requires_grad_(is_wanted)
            before = [field[number].detach().requires_grad_() for field in kept[:count]]
            with torch.enable_grad(), ctx.random.again(number), ctx.cast.again():
                answers, state = chunked.read(part, steps, kind(*before))
            incoming = [*(None if g is None else g[:, steps] for g in of_steps), *d_state]
            pairs = [(a, g) for a, g in zip([*answers, *state], incoming, strict=True) if g is not None]
            d_part, *found = pulled_back(pairs, [part, *before, *sources])
            d_state = found[:count]
            d_sources = [added(*pair) for pair in zip(d_sources, found[count:], strict=True)]
            if d_values is not None:
                d_values[:, steps] = 0 if d_part is None else d_part
            del answers, state, pairs, d_part, found
        return None, d_values, *d_state, *d_sources


def added(total: Tensor | None, more: Tensor | None) -> Tensor | None:
    """A gradient with what one more chunk gives: in place, after the first."""
    if total is None or more is None:
        return total if more is None else more.clone()
    return total.add_(more)


class Random:
    """Where the random numbers of the CPU and of a device stood before each chunk."""

    def __init__(self, chunks: int, device: torch.device) -> None:
        self.device = device
        self.states = [state.new_empty(chunks, *state.shape) for state in states_of(device)]

    def keep(self, chunk: int) -> None:
        for states, state in zip(self.states, states_of(self.device), strict=True):
            states[chunk] = state

    @contextmanager
    def again(self, chunk: int) -> Iterator[None]:
        """What a chunk drew is drawn once more; afterwards the numbers go on as if it had not been."""
        # torch reads a state from where its storage begins, so each needs one of its own.
        cpu, *of_device = (states[chunk].clone() for states in self.states)
        with unnoticed(self.device):
            torch.set_rng_state(cpu)
            for state in of_device:
                torch.get_device_module(self.device).set_rng_state(state, self.device)
            yield


class Autocast(NamedTuple):
    """Whether and to what type torch casts, for the device of a tensor."""

    device_type: str
    dtype: torch.dtype
    is_enabled: bool

    @classmethod
    def now(cls, like: Tensor) -> Autocast:
        kind = like.device.type
        return cls(kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind))

    def again(self) -> torch.autocast:
        return torch.autocast(self.device_type, self.dtype, self.is_enabled)


def last_states(every: AnyState, lengths: Tensor, before: AnyState) -> AnyState:
    """The state after each row's last real step of a chunk, out of those of every step."""
    rows, last = torch.arange(len(lengths)), (lengths - 1).clamp_min(0)
    is_over = (lengths == 0).unsqueeze(1).to(every[0].device)
    pairs = zip(every, before, strict=True)
    return type(before)(*(torch.where(is_over, old, field[rows, last]) for field, old in pairs))
