"""Steps of a search that are recorded once and replayed: on a GPU, as CUDA graphs.

Memory: a room holds for one shape of batch what its recorded steps read and write, in tensors that stay where they are:
`given`, which a search copies in once, and the state before each recording. What a recording computes in between lies
in a pool that all graphs of a model share, since only one of them runs at a time.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from recurra.capturing import Pool, capturing
from recurra.search.rules import Flags
from recurra.search.trees import leaves, mapped, signature

State = TypeVar("State")
Given = TypeVar("Given")
Given_contra = TypeVar("Given_contra", contravariant=True)

MOST_ROOMS = 32
MOST_BYTES = 1 << 30
"""What rooms may hold together; the least recently used is dropped first, the last one never."""

FROM_VISIT = 2
"""A shape of batch is recorded when it comes for the second time: recording takes longer than one search."""

MOST_COUNTED = 4096
"""Shapes of which it is known how often they came."""

MOST_SHAPES = 2
"""A state may have one shape at the start and another from the first steps on; more shapes mean that it grows."""

GROWS = "the model's state grows with every step"
WARM_UPS = 2
PLAIN = frozenset((bool, int, float, str))


class Walk(Protocol[State, Given_contra]):
    """A search as a function of tensors: some steps at a time, without a look at their values."""

    key: Hashable
    """All that the steps depend on besides tensors: equal keys, equal steps."""

    kept: Any
    """Tensors that recorded steps read and that no state or `given` holds; those of an equal key are as good."""

    def stretch(self, state: State, given: Given_contra) -> State:
        """The state after some more steps; parts that are only written to may be changed in place."""

    def alive(self, state: State) -> Tensor:
        """(B,): which sentences still go on."""


class Node:
    """A state of one shape, and the recorded steps that lead from it to the next."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.replay: Callable[[], None] | None = None
        self.after: Node | None = None


class Room:
    """Recorded steps for batches of one shape."""

    def __init__(self) -> None:
        self.refusal: str | None = None  # why nothing is recorded here
        self.given: Any = None
        self.nodes: dict[Hashable, Node] = {}
        self.kept: object = None
        self.alive: Tensor | None = None  # in pinned memory

    @property
    def size(self) -> int:
        """Bytes of its tensors."""
        every = [*leaves(self.given), *(leaf for node in self.nodes.values() for leaf in leaves(node.state))]
        return sum({leaf.data_ptr(): leaf.numel() * leaf.element_size() for leaf in every}.values())


class Marks(NamedTuple):
    """What a model must have in common with the one that was recorded."""

    refusal: str | None  # why its steps are not recorded
    key: Hashable


class Graphs:
    """The recorded steps of one model.

    Weights are read where they lie: changed in place, they are seen; where they lie elsewhere, steps are recorded anew.
    """

    def __init__(
        self, most_rooms: int = MOST_ROOMS, most_bytes: int = MOST_BYTES, from_visit: int = FROM_VISIT
    ) -> None:
        self.most_rooms, self.most_bytes, self.from_visit = most_rooms, most_bytes, from_visit
        self.rooms: OrderedDict[Hashable, Room] = OrderedDict()
        self.recorded = 0  # how many recordings were made
        self.lock = RLock()  # recorded steps have one set of tensors: one search at a time
        self._visits: Counter[Hashable] = Counter()
        self._pool: Pool | None = None

    @property
    def refusals(self) -> list[str]:
        """Why some shapes are not recorded."""
        return [room.refusal for room in self.rooms.values() if room.refusal is not None]

    def room(self, key: Hashable) -> Room | None:
        """The room for what has this key; None before it pays to record, or where nothing can be recorded."""
        if key not in self.rooms:
            if len(self._visits) > MOST_COUNTED:
                self._visits.clear()
            self._visits[key] += 1
            if self._visits[key] < self.from_visit:
                return None
            self.rooms[key] = Room()
        self.rooms.move_to_end(key)
        while len(self.rooms) > self.most_rooms:
            self.rooms.popitem(last=False)
        room = self.rooms[key]
        return room if room.refusal is None else None

    def forget(self) -> bool:
        """Give the memory of all rooms back; shapes that come again are recorded anew. Whether there was any."""
        if not self.lock.acquire(blocking=False):  # a search is in one of them
            return False
        try:
            had_some = any(room.nodes for room in self.rooms.values())
            self.rooms.clear()
            self._pool = None
            return had_some
        finally:
            self.lock.release()

    def record(self, walk: Walk[Any, Any], room: Room, node: Node) -> None:
        """Records the steps from a node on; where that fails, the room says why. The node's state stays as it is."""
        saved = [leaf.clone() for leaf in leaves(node.state)]

        def restore() -> None:
            for leaf, value in zip(leaves(node.state), saved, strict=True):
                leaf.copy_(value)

        after = walk.stretch(node.state, room.given)
        shape = signature(after)
        if shape not in room.nodes:
            if len(room.nodes) == MOST_SHAPES:
                room.refusal = GROWS
            else:
                # What is handed on as it is, such as what is only written to, need not be copied.
                own = {id(leaf): leaf for leaf in leaves(node.state)}
                room.nodes[shape] = Node(mapped(after, lambda leaf: own.pop(id(leaf), torch.empty_like(leaf))))
        if room.refusal is None:
            target = room.nodes[shape]

            def steps() -> None:
                copy(walk.stretch(node.state, room.given), target.state)

            try:
                node.replay, node.after = self._captured(steps, restore, room), target
                self.recorded += 1
            except RuntimeError as error:  # whatever cannot be captured, torch has a RuntimeError for it
                room.refusal = f"CUDA could not capture its steps: {str(error).strip().splitlines()[0]}"
        restore()
        room.kept = walk.kept
        if room.refusal is not None:
            room.given, room.nodes = None, {}
        self._bounded()

    def _bounded(self) -> None:
        while len(self.rooms) > 1 and sum(room.size for room in self.rooms.values()) > self.most_bytes:
            self.rooms.popitem(last=False)

    def _captured(self, steps: Callable[[], None], restore: Callable[[], None], room: Room) -> Callable[[], None]:
        if not leaves(room.given)[0].is_cuda:
            restore()
            steps()
            return steps  # there is nothing to capture: Python does them again, in the same tensors
        here, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                restore()  # where steps lead back to the same tensors, more of them would go beyond the last one
                steps()
        here.wait_stream(side)
        torch.cuda.synchronize()
        if self._pool is None:
            self._pool = Pool()
        with torch.cuda.stream(side), capturing(self._pool) as graph:
            steps()
        return graph.replay


class Track(Generic[State, Given]):
    """A search on its way: step by step, or replayed."""

    def __init__(self, walk: Walk[State, Given], state: State, given: Given, graphs: Graphs | None) -> None:
        self.walk, self.given, self.graphs = walk, given, graphs
        self._state = state
        self._room = None if graphs is None else graphs.room((walk.key, signature(given)))
        self._node: Node | None = None
        if self._room is not None:
            self._enter(self._room)

    @property
    def state(self) -> State:
        """Where the search stands. What is recorded writes over it with the next steps, or in the next search."""
        return self._state if self._node is None else self._node.state

    def go(self) -> None:
        """Some more steps."""
        if self._room is not None and self._node is not None and self._node.replay is None:
            assert self.graphs is not None
            self.graphs.record(self.walk, self._room, self._node)
            if self._room.refusal is not None:
                self._state, self._node, self._room = self._node.state, None, None
        if self._node is None:
            self._state = self.walk.stretch(self._state, self.given)
            return
        assert self._node.replay is not None
        assert self._node.after is not None
        self._node.replay()
        self._node = self._node.after

    def alive(self) -> Flags:
        """(B,): which sentences still go on; the device is waited for."""
        found = self.walk.alive(self.state)
        if not found.is_cuda:
            return found.numpy().copy()
        if self._room is None:
            return found.cpu().numpy()
        if self._room.alive is None:
            self._room.alive = torch.empty(found.shape, dtype=found.dtype, device="cpu", pin_memory=True)
        self._room.alive.copy_(found, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record()
        arrived.synchronize()
        return self._room.alive.numpy().copy()

    def _enter(self, room: Room) -> None:
        """Copies what is given, and the state, to where recorded steps read them."""
        shape = signature(self._state)
        if shape not in room.nodes and len(room.nodes) == MOST_SHAPES:
            self._room, room.refusal, room.given, room.nodes = None, GROWS, None, {}
            return
        if room.given is None:
            room.given = mapped(self.given, Tensor.clone)
        else:
            copy(self.given, room.given)
        if room.kept is not None:
            self.walk.kept = room.kept
        if shape in room.nodes:
            copy(self._state, room.nodes[shape].state)
        else:
            room.nodes[shape] = Node(mapped(self._state, Tensor.clone))
        self._node = room.nodes[shape]


def copy(source: Any, target: Any) -> None:
    """Every tensor of one tree into that of another of the same signature."""
    pairs = [(each, into) for each, into in zip(leaves(source), leaves(target), strict=True) if each is not into]
    written = {into.untyped_storage().data_ptr() for _, into in pairs}
    # What is read from where something is written must be read first.
    found = [each.clone() if each.untyped_storage().data_ptr() in written else each for each, _ in pairs]
    by_type: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
    for each, (_, into) in zip(found, pairs, strict=True):
        targets, sources = by_type.setdefault(into.dtype, ([], []))
        targets.append(into)
        sources.append(each)
    for targets, sources in by_type.values():
        torch._foreach_copy_(targets, sources)  # on a GPU by one kernel


GRAPHS: WeakKeyDictionary[nn.Module, Graphs] = WeakKeyDictionary()
"""Of each model, as long as there is one."""


def graphs_of(model: nn.Module) -> Graphs:
    """The recorded steps of a model."""
    return GRAPHS.setdefault(model, Graphs())


def marks_of(model: nn.Module) -> Marks:
    """Where the weights of a model lie, and its plain attributes: recorded steps do not see if those change."""
    if model.training:
        return Marks("the model is in training mode, in which steps may draw random numbers", None)
    if any(torch.is_autocast_enabled(device) for device in ("cpu", "cuda")):
        return Marks("autocast keeps copies of the weights, which would not follow them", None)
    found: list[Hashable] = []
    for module in modules_of(model):
        if module._forward_hooks or module._forward_pre_hooks:
            return Marks(f"{type(module).__name__} has forward hooks, which replayed steps would not call", None)
        found += [each for each in module.__dict__.values() if each.__class__ in PLAIN]
        found += [each.data_ptr() for each in module._parameters.values() if each is not None]
        found += [each.data_ptr() for each in module._buffers.values() if each is not None]
    return Marks(None, tuple(found))


def modules_of(model: nn.Module) -> list[nn.Module]:
    """A model and all in it, each once; torch's own way makes a name for each, which takes most of its time."""
    found = {id(model): model}
    waiting = [model]
    while waiting:
        for module in waiting.pop()._modules.values():
            if module is not None and id(module) not in found:
                found[id(module)] = module
                waiting.append(module)
    return list(found.values())


def rounded(count: int) -> int:
    """The least of 1 … 8, 10, 12, 14, 16, 20, 24, 28, 32, … that is no less: few shapes, at most a quarter more rows.

    >>> [rounded(count) for count in (1, 7, 9, 17, 100)]
    [1, 7, 10, 20, 112]
    """
    quarter = max(1, 1 << max(0, (count - 1).bit_length() - 3))
    return -(-count // quarter) * quarter
