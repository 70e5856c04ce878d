"""Loops of decoders on a GPU: recorded once for each size of a batch as CUDA graphs, both ways, and replayed.

A decoder whose every step needs the attention of the one before it launches dozens of small kernels a step; launching
them takes the host far longer than running them takes the GPU. A graph launches all steps at once. It is recorded of
the very loop that a wiring's `loop` is, so it computes the same numbers with the same weights.

Batches are padded to sizes that occur again: rows and places that no mask allows, steps whose features are not used. A
size is recorded when it comes for the second time. Graphs share their memory, since one sequence at a time is between
its forward and its backward pass; where a second one comes before that, it has graphs of its own, and a third one runs
in the loop.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from recurra.attention import Memory
from recurra.capturing import Pool, capturing
from recurra.cells.weights import replaced
from recurra.engines.replay import is_differentiated
from recurra.engines.vendor import autocast_type
from recurra.engines.waiting import check_waiting
from recurra.engines.workspace import copy_all
from recurra.errors import EngineError
from recurra.padding import coarser
from recurra.recording import graphed, is_recording
from recurra.wirings.wiring import Shape, Source, WiringState

MOST_GRAPHS = 64
"""How many sizes of batches one wiring keeps graphs for; those used longest ago are dropped."""

MOST_MEMORY = 0.125
"""The share of a GPU's memory that what the graphs of a room read and write may take."""

MOST_AT_ONCE = 2
"""How many sequences may be between their forward and backward passes with graphs; R-Drop has two."""

Size: TypeAlias = tuple[Any, ...]


class Looping(Protocol):
    """A wiring with a loop over steps."""

    training: bool
    shape: Shape

    def loop(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...]:
        """What the steps make of (B, T, input_size): tensors (B, T, ...), and at last where they looked, (B, T, S).

        What is drawn on the way comes from torch's own generator, which a graph draws from anew at each replay.
        """

    def fused(self, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...] | None:
        """The same by few kernels; None where there are none for it."""


def looped(wiring: Looping, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...]:
    """What a wiring's loop computes, replayed from graphs where it can be."""
    if x.numel() == 0 or wiring.shape.engine == "loop":
        return wiring.loop(x, state, source)
    if not is_replayed(wiring, x):
        return stepped(wiring, x, state, source)
    return LOOPS.run(wiring, x, state, source)


def is_replayed(wiring: Looping, x: Tensor) -> bool:
    """Whether graphs are used for such a batch: on a GPU, if no larger graph is being recorded."""
    if x.numel() == 0 or wiring.shape.engine == "loop" or not x.is_cuda:
        return False
    return not is_recording() and not torch.cuda.is_current_stream_capturing()


def stepped(wiring: Looping, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...]:
    """What a wiring's loop computes, launched step by step: by few kernels where there are some for it."""
    found = wiring.fused(x, state, source)
    return tuple(wiring.loop(x, state, source) if found is None else found)


class Sizes(NamedTuple):
    """How large a batch is."""

    rows: int
    steps: int
    places: int


class Call(NamedTuple):
    """One call of a loop, as a list of tensors."""

    tensors: list[Tensor]  # each once: keys are often the values themselves
    numbers: tuple[int, ...]  # of each tensor among the leaves, which of the tensors it is
    given: tuple[Tensor, WiringState, Source]
    form: Hashable  # what it has in common with calls that differ in the numbers of tensors alone
    sizes: Sizes

    def filled(self, tensors: Sequence[Tensor]) -> Any:
        """The arguments of such a call with other tensors."""
        others = iter([tensors[number] for number in self.numbers])
        return replaced(self.given, Tensor, lambda _: next(others))  # type: ignore[type-var]


def call_of(x: Tensor, state: WiringState, source: Source) -> Call:
    every: list[Tensor] = []
    form = form_of((x, state, source), every)
    places = source.memory.mask.shape[1] if isinstance(source.memory, Memory) else 0
    tensors, numbers = [x], [0]  # x by itself in any case: it is padded to other sizes than a memory
    for tensor in every[1:]:
        known = (n for n, other in enumerate(tensors) if n and other is tensor)
        numbers.append(next(known, len(tensors)))
        tensors += [tensor] if numbers[-1] == len(tensors) else []
    return Call(tensors, tuple(numbers), (x, state, source), form, Sizes(len(x), x.shape[1], places))


def form_of(part: object, found: list[Tensor]) -> Hashable:
    """The types of nested tuples and what they hold but for tensors, which are found on the way."""
    if isinstance(part, Tensor):
        found.append(part)
        return Tensor
    if isinstance(part, tuple):
        return (type(part), *[form_of(each, found) for each in part])
    return part


def padded_sizes(call: Call, state: WiringState, source: Source) -> Sizes:
    """Sizes that occur again, a little larger than those of a batch."""
    S = call.sizes.places
    # What terms keep, and the rows of a grid, depend on the number of places.
    is_exact = bool(state.past) or (isinstance(source.memory, Memory) and source.memory.columns is not None)
    B, T, near = (coarser(size, parts=16, least=2) for size in call.sizes)
    return Sizes(B, T, S if is_exact else near)


class Loops:
    """The recorded loops of all wirings."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.known: WeakKeyDictionary[Any, list[Room]] = WeakKeyDictionary()

    def run(self, wiring: Any, x: Tensor, state: WiringState, source: Source) -> tuple[Tensor, ...]:
        call = call_of(x, state, source)
        sizes = padded_sizes(call, state, source)
        weights = parameters_of(wiring)
        parameters = [parameter for parameter in weights if parameter.requires_grad]
        is_recorded = torch.is_grad_enabled() and any(t.requires_grad for t in [*call.tensors, *parameters])
        key = (
            sizes,
            wiring.training,
            is_recorded,
            torch.is_autocast_enabled("cuda"),
            torch.get_autocast_dtype("cuda"),
            call.form,
            call.numbers,
            tuple((t.dtype, t.requires_grad, tuple(t.shape[2:] if t.dim() > 2 else ())) for t in call.tensors),
            tuple([parameter.data_ptr() for parameter in weights]),
        )
        with self.lock:
            rooms = self.known.setdefault(wiring, [])
            room = next((each for each in rooms if not each.is_busy), None)
            if room is None and len(rooms) < MOST_AT_ONCE:
                room = Room()
                rooms.append(room)
            if room is None:
                return stepped(wiring, x, state, source)
            pool = room.pool
            most_bytes = MOST_MEMORY * torch.cuda.get_device_properties(x.device).total_memory
            graphs = room.found(
                key, lambda: graphs_or_reason(wiring, call, sizes, parameters, is_recorded, pool), most_bytes
            )
            if graphs is None:
                return stepped(wiring, x, state, source)
            room.is_busy = is_recorded
        results = Replay.apply(graphs, Use(room), call.sizes, *call.tensors, *parameters)  # type: ignore[no-untyped-call]
        return tuple(results)

    def forget(self) -> bool:
        """Give the memory of all graphs back that no sequence is in; what comes again is recorded anew. Whether there
        was any."""
        with self.lock:
            had_some = any(room.graphs for rooms in self.known.values() for room in rooms)
            self.known.clear()
            return had_some


def parameters_of(module: nn.Module) -> list[nn.Parameter]:
    """All parameters, each once; without their names, which take torch several times as long to put together.

    >>> layer = nn.Linear(2, 3)
    >>> [each.shape for each in parameters_of(nn.Sequential(layer, layer))]
    [torch.Size([3, 2]), torch.Size([3])]
    """
    found: dict[int, nn.Parameter] = {}
    seen = {id(module)}
    waiting = [module]
    while waiting:
        each = waiting.pop()
        for own in each._parameters.values():
            if own is not None:
                found[id(own)] = own
        for part in each._modules.values():
            if part is not None and id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)
    return list(found.values())


class Room:
    """Memory for one sequence at a time, which the graphs of all sizes share."""

    def __init__(self, most_graphs: int = MOST_GRAPHS) -> None:
        self.most_graphs = most_graphs
        self.graphs: OrderedDict[Size, Graphs | str | None] = OrderedDict()  # a str: why there are none
        self.is_busy = False
        self.turn = 0

    @functools.cached_property
    def pool(self) -> Pool:
        return Pool()

    def found(self, key: Size, make: Callable[[], Graphs | str], most_bytes: float) -> Graphs | None:
        """The graphs of a size, made when it comes for the second time; None before, or where they cannot be made.
        Those used longest ago are dropped where there are too many, or what they read and write takes too much."""
        if key not in self.graphs:
            self.graphs[key] = None
            return None
        self.graphs.move_to_end(key)
        found = self.graphs[key]
        if found is None:
            found = self.graphs[key] = make()
            while len(self.graphs) > self.most_graphs or (len(self.graphs) > 1 and self.size > most_bytes):
                self.graphs.popitem(last=False)
        return None if isinstance(found, str) else found

    @property
    def size(self) -> int:
        """Bytes of what its graphs read and write."""
        return sum(each.size for each in self.graphs.values() if each is not None and not isinstance(each, str))


class Use:
    """A room while a sequence is in it."""

    def __init__(self, room: Room) -> None:
        room.turn += 1
        self.room = room
        self.turn = room.turn

    def is_valid(self) -> bool:
        return self.room.turn == self.turn

    def end(self) -> None:
        if self.is_valid():
            self.room.is_busy = False

    def __del__(self) -> None:
        self.end()


def graphs_or_reason(
    wiring: Any, call: Call, sizes: Sizes, parameters: Sequence[nn.Parameter], is_recorded: bool, pool: Pool
) -> Graphs | str:
    """Graphs of a loop; or, where its steps cannot be recorded, why, and a warning that says so."""
    try:
        with own_parameters(wiring) as aliases:
            return Graphs(wiring, call, sizes, [aliases[parameter] for parameter in parameters], is_recorded, pool)
    except RuntimeError as reason:
        warnings.warn(
            f"the steps of '{type(wiring).__name__}' run one by one, which is slower: they cannot be recorded as a "
            f"CUDA graph ({str(reason).splitlines()[0]})",
            stacklevel=2,
        )
        return str(reason)


@contextmanager
def own_parameters(wiring: nn.Module) -> Iterator[dict[nn.Parameter, nn.Parameter]]:
    """Give a module parameters with the same memory that no other graph of autograd knows.

    A parameter that is part of a graph of autograd belongs to the stream in which that graph was made, and what another
    stream does must not wait for it while that one is recorded.
    """
    aliases: dict[nn.Parameter, nn.Parameter] = {}
    places = [
        (module, name, parameter)
        for module in wiring.modules()
        for name, parameter in module._parameters.items()
        if parameter is not None
    ]
    for module, name, parameter in places:
        if parameter not in aliases:
            aliases[parameter] = nn.Parameter(parameter.detach(), requires_grad=parameter.requires_grad)
        module._parameters[name] = aliases[parameter]
    try:
        yield aliases
    finally:
        for module, name, parameter in places:
            module._parameters[name] = parameter


class Graphs:
    """A loop for one size: its inputs and results, and the graphs between them."""

    def __init__(
        self,
        wiring: Looping,
        call: Call,
        sizes: Sizes,
        parameters: Sequence[nn.Parameter],
        is_recorded: bool,
        pool: Pool,
    ) -> None:
        x, *others = call.tensors
        self.inputs = [x.new_zeros(larger(x, sizes, has_steps=True))]
        self.inputs += [each.new_zeros(larger(each, sizes, has_steps=False), dtype=type_of(each)) for each in others]
        for own, given in zip(self.inputs, call.tensors, strict=True):
            own.requires_grad_(given.requires_grad)
        self.is_zero: list[bool] = []  # of each gradient that comes in, whether it is known to hold zeros
        self.parameters = list(parameters)
        self.gradients: list[Tensor] = []
        self.found: list[Tensor | None] = []
        self.backward: torch.cuda.CUDAGraph | None = None

        def run() -> tuple[Tensor, ...]:
            # What autocast has cast before is not cast again in the graph, which would never see another batch.
            dtype, is_on = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
            with torch.autocast("cuda", dtype, enabled=is_on, cache_enabled=False), graphed():
                return stepped(wiring, *call.filled(self.inputs))

        def back(results: Sequence[Tensor], gradients: Sequence[Tensor]) -> list[Tensor | None]:
            sources = [*(each for each in self.inputs if each.requires_grad), *self.parameters]
            pairs = [(a, g) for a, g in zip(results, gradients, strict=True) if a.requires_grad]
            found = torch.autograd.grad([a for a, _ in pairs], sources, [g for _, g in pairs], allow_unused=True)
            return list(found)

        state = torch.cuda.get_rng_state()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            results = run()  # once outside of a graph: libraries set themselves up
            if is_recorded:
                back(results, [torch.zeros_like(each) for each in results])
            del results
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.set_rng_state(state)  # what was drawn just now does not count
        self.forward, self.results = recorded(run, stream, pool)
        if is_recorded:
            self.gradients = [torch.zeros(each.shape, dtype=each.dtype, device=each.device) for each in self.results]
            self.is_zero = [True] * len(self.gradients)
            self.backward, self.found = recorded(lambda: back(self.results, self.gradients), stream, pool)
        self.results = [each.detach() for each in self.results]
        held = [*self.inputs, *self.results, *self.gradients, *(each for each in self.found if each is not None)]
        self.size = sum({each.data_ptr(): each.numel() * each.element_size() for each in held}.values())


def recorded(run: Callable[[], Any], stream: torch.cuda.Stream, pool: Pool) -> tuple[torch.cuda.CUDAGraph, Any]:
    """What a function launches as a graph, and what it returns."""
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), capturing(pool) as graph:
        results = run()
    torch.cuda.current_stream().wait_stream(stream)
    return graph, results


def larger(tensor: Tensor, sizes: Sizes, *, has_steps: bool) -> tuple[int, ...]:
    """The shape of a tensor in a larger batch: (B, T, ·), (B, ·), a mask (B, S), keys and values (B, [heads,] S, ·)."""
    shape = [sizes.rows, *tensor.shape[1:]]
    if has_steps:
        shape[1] = sizes.steps
    elif tensor.dtype == torch.bool:
        shape[1] = sizes.places
    elif tensor.dim() >= 3:
        shape[-2] = sizes.places
    return tuple(shape)


class Replay(torch.autograd.Function):
    """A loop by its graphs."""

    @staticmethod
    def forward(ctx: Any, graphs: Graphs, use: Use, sizes: Sizes, *tensors: Tensor) -> tuple[Tensor, ...]:
        given = tensors[: len(graphs.inputs)]
        check_waiting("cuda")  # of replays before this one: nothing waits for the GPU
        with torch.no_grad():
            fill_all(graphs.inputs, given)
            graphs.forward.replay()
            *others, weights = [each[: sizes.rows, : sizes.steps] for each in graphs.results]
            results = tuple(
                each.clone(memory_format=torch.contiguous_format) for each in (*others, weights[:, :, : sizes.places])
            )
        ctx.set_materialize_grads(False)
        ctx.graphs, ctx.use, ctx.given = graphs, use, [(tensor.shape, tensor.dtype) for tensor in given]
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        graphs: Graphs = ctx.graphs
        if is_differentiated(gradients) or graphs.backward is None:
            raise EngineError(
                "second derivatives of a decoder that is replayed from CUDA graphs are not supported. "
                "Set model.engine = 'loop'."
            )
        if not ctx.use.is_valid():
            raise EngineError(
                "a decoder's backward pass came a second time, after its memory was used for another batch. "
                "Set model.engine = 'loop' to go back through a graph more than once."
            )
        with torch.no_grad():
            for number, (target, gradient) in enumerate(zip(graphs.gradients, gradients, strict=True)):
                if gradient is not None:
                    fill(target, gradient)
                elif not graphs.is_zero[number]:
                    target.zero_()
                graphs.is_zero[number] = gradient is None
            graphs.backward.replay()
            found = iter(graphs.found)
            results: list[Tensor | None] = []
            sources: list[Tensor] = []
            for target, (shape, dtype) in zip(graphs.inputs, ctx.given, strict=True):
                gradient = next(found) if target.requires_grad else None
                if gradient is not None:
                    sources.append(gradient[tuple(slice(n) for n in shape)])
                    results.append(torch.empty(shape, dtype=dtype, device=gradient.device))
                else:
                    results.append(None)
            for gradient in found:
                sources += [] if gradient is None else [gradient]
                results.append(None if gradient is None else torch.empty_like(gradient))
            copy_all([each for each in results if each is not None], sources)
        ctx.use.end()
        return None, None, None, *results


def type_of(tensor: Tensor) -> torch.dtype:
    """The type in which a graph reads what is not the sequence itself: keys and values, which products alone read, have
    that of autocast, so that they are cast as they are copied there. States keep the type of the sequence."""
    half = autocast_type(tensor.device.type)
    return tensor.dtype if half is None or tensor.dtype != torch.float32 or tensor.dim() < 3 else half


def fill_all(targets: Sequence[Tensor], tensors: Sequence[Tensor]) -> None:
    """Tensors in the corners of others: of one size, all pairs of the same types at once."""
    pairs = list(zip(targets, tensors, strict=True))
    exact = [(target, tensor) for target, tensor in pairs if target.shape == tensor.shape]
    copy_all([target for target, _ in exact], [tensor for _, tensor in exact])
    for target, tensor in pairs:
        if target.shape != tensor.shape:
            fill(target, tensor)


def fill(target: Tensor, tensor: Tensor) -> None:
    """A tensor in the corner of a larger one, zeros around it."""
    if target.shape == tensor.shape:
        target.copy_(tensor)
    else:
        target.zero_()
        target[tuple(slice(n) for n in tensor.shape)].copy_(tensor)


LOOPS = Loops()
