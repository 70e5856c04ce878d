"""Whole training steps on a GPU, recorded once for each size of a batch as a CUDA graph, and replayed.

A step of a small network launches a thousand kernels and more, and launching them takes the host several times as long
as running them takes the GPU. A graph launches all of them at once. What it computes, and what it draws, is what the
step computes kernel by kernel:

    a size that comes for the first time    is computed kernel by kernel
    for the second time                     also; then it is recorded, replayed, and both are compared
    from then on                            is replayed

and when that went well for a few sizes, others are recorded when they first come.

A task says which batches can be treated so (Task.recurring). Where a step cannot be recorded, or a replayed one gives
other gradients, a sentence says so and all further steps are computed kernel by kernel.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from recurra.capturing import Recorder
from recurra.engines.waiting import check_waiting
from recurra.errors import EngineError, is_lack_of_memory
from recurra.padding import Grid, Padded
from recurra.recording import NotRecordedError, recording
from recurra.tasks.task import Carried, Loss, Recurring

MOST_GRAPHS = 192
"""How many sizes of batches are kept; those used longest ago are dropped."""

MOST_MEMORY = 0.5
"""The share of a GPU's memory that they may hold together; beyond it, those used longest ago are dropped."""

MOST_DIFFERENCE = 0.02
"""How far the gradients of a replayed step may be from those computed before, of their norm: sums in another order."""

ENOUGH = 4
"""When so many sizes have been compared, it is known that the steps of this training can be replayed."""

Computing: TypeAlias = Callable[[Any, Carried, Tensor | None], Loss]
"""The loss of a batch on the device, given what the batch before left and the numbers of the step."""


class Replayed(NamedTuple):
    """What a step found: its gradients are those of the parameters."""

    total: Tensor
    carried: Carried


class Placed(NamedTuple):
    """A batch on the device: the same tensors for all batches of a size."""

    tensors: list[Tensor]  # what changes from batch to batch
    leaves: list[Any]  # of the batch, lengths on the CPU among them
    structure: TreeSpec
    lengths: list[Tensor]  # on the CPU
    copies: list[Tensor]  # of the lengths, on the device: the last of the tensors


@final
class Replaying:
    """The recorded steps of a training."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        device: torch.device,
        dtype: torch.dtype,
        say: Callable[[str], None],
        *,
        most_graphs: int = MOST_GRAPHS,
        most_bytes: float | None = None,
    ) -> None:
        """most_bytes: None for a share of the GPU's memory. On a CPU, steps are computed again by Python."""
        self.parameters = list(parameters)
        self.device, self.dtype = device, dtype
        self.say = say
        self.most_graphs = most_graphs
        if most_bytes is None and device.type == "cuda":
            most_bytes = MOST_MEMORY * torch.cuda.get_device_properties(device).total_memory
        self.most_bytes = float("inf") if most_bytes is None else most_bytes
        self.is_on = True
        self.is_told = False  # what recording took
        self.factor = torch.ones((), device=device)  # what the loss is multiplied by
        self.varying = torch.zeros(0, device=device)  # the numbers of the step
        self.known: OrderedDict[Hashable, Graph | None] = OrderedDict()
        self.gradients: list[Tensor] = []  # of all graphs
        self.recorder = Recorder(device)
        self.seconds = 0.0  # that recording took
        self.compared = 0  # sizes

    def step(
        self,
        recurring: Recurring,
        carried: Carried,
        factor: Tensor,
        varying: Sequence[float],
        seeded: Callable[[], None],
        loss: Computing,
    ) -> Replayed:
        """The loss of a batch; the gradients of factor × loss become those of the parameters.

        varying   the numbers of the step on which the loss depends, always as many
        seeded    sets the generators of random numbers, from which the loss draws
        """
        self.factor.copy_(factor)
        if len(varying) > len(self.varying):
            self.varying = torch.zeros(len(varying), device=self.device)
        for number, value in enumerate(varying):
            self.varying[number].fill_(value)  # to assign it would be a copy, for which Python waits
        key = key_of(recurring.batch, carried)
        if key not in self.known:
            self.known[key] = None
            found = self.at_once(recurring, carried, loss) if self.compared >= ENOUGH else None
            if found is None:
                seeded()
                return self.computed(self.placed(recurring.batch), carried, loss)
            self.keep(key, found)
            if not self.is_on:
                seeded()
                return self.computed(self.placed(recurring.batch), carried, loss)
        graph = self.known[key]
        self.known.move_to_end(key)
        if graph is None:
            return self.recorded(key, recurring, carried, seeded, loss)
        graph.load(recurring.batch, carried)
        seeded()
        graph.replay()
        check_waiting(self.device.type)  # of what has ended so far
        for parameter, gradient, is_used in zip(self.parameters, self.gradients, graph.used, strict=True):
            parameter.grad = gradient if is_used else None
        return Replayed(graph.total, graph.carried)

    @property
    def held(self) -> int:
        """Bytes of the GPU that the graphs hold: they share what they compute with, and each has its own batch."""
        own = sum(graph.size for graph in self.known.values() if graph is not None)
        return self.recorder.held + own + bytes_of(self.gradients)

    def __str__(self) -> str:
        count = sum(graph is not None for graph in self.known.values())
        if not count:
            return "no step was recorded"
        return (
            f"graphs of {count} sizes of batches, recorded in {self.seconds:.1f} s, hold {self.held / 2**20:,.0f} MiB"
        )

    @property
    def numbers(self) -> Tensor | None:
        return self.varying if len(self.varying) else None

    def computed(self, placed: Placed, carried: Carried, loss: Computing) -> Replayed:
        """The step kernel by kernel, as it is recorded."""
        with recording(zip(placed.lengths, placed.copies, strict=True)):
            found = loss(tree_unflatten(placed.leaves, placed.structure), carried, self.numbers)
            gradients = torch.autograd.grad(found.total, self.parameters, self.factor, allow_unused=True)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            # In the order of the parameter's numbers, which the optimiser expects.
            parameter.grad = None if gradient is None else torch.empty_like(parameter).copy_(gradient)
        return Replayed(found.total.detach(), found.carried)

    def placed(self, batch: Any) -> Placed:
        """A batch on the device."""
        lengths = lengths_of(batch)
        own = {id(each) for each in lengths}
        leaves, structure = tree_flatten(batch)
        tensors: list[Tensor] = []
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor) and id(leaf) not in own:
                dtype = self.dtype if leaf.is_floating_point() else leaf.dtype
                leaves[number] = leaf.to(self.device, dtype, non_blocking=True)
                tensors.append(leaves[number])
        copies = [each.to(self.device, non_blocking=True) for each in lengths]
        return Placed([*tensors, *copies], leaves, structure, lengths, copies)

    def recorded(
        self, key: Hashable, recurring: Recurring, carried: Carried, seeded: Callable[[], None], loss: Computing
    ) -> Replayed:
        """The step kernel by kernel, and its graph for the batches to come."""
        began = time.monotonic()
        placed = self.placed(recurring.batch)
        before = [each.clone() for each in carried]
        with self.recorder.aside():  # where libraries set themselves up for the graph too
            seeded()
            found = self.computed(placed, tuple(before), loss)
        truth = [parameter.grad for parameter in self.parameters]
        found = Replayed(found.total, tuple(each.clone() for each in found.carried))
        try:
            graph = self.graph(placed, before, loss)
            seeded()
            graph.replay()
            check_waiting(self.device.type)
            apart = difference(truth, self.gradients, graph.used)
            if not apart <= MOST_DIFFERENCE:
                raise NotRecordedError(
                    f"a replayed step gave other gradients, {apart:.1%} of their norm apart: its loss depends on "
                    f"numbers that are not in the tensors of a batch"
                )
            self.keep(key, graph)
            self.compared += 1
        except (RuntimeError, EngineError) as reason:
            self.off(reason)
        for parameter, gradient in zip(self.parameters, truth, strict=True):
            parameter.grad = gradient
        self.seconds += time.monotonic() - began
        if not self.is_told and self.is_on:
            self.is_told = True
            self.say(
                f"training steps are recorded as CUDA graphs, one for each size of batch that comes again, at most "
                f"{self.most_graphs}: the first took {self.seconds:.1f} s, and they hold {self.held / 2**20:,.0f} MiB "
                "of the GPU"
            )
        return found

    def graph(self, placed: Placed, carried: Sequence[Tensor], loss: Computing) -> Graph:
        """What a step launches. Python sees the lengths of other rows, so that none of them gets into the graph."""
        mirrored = {id(each): each.flip(0) for each in placed.lengths}
        leaves = [mirrored.get(id(leaf), leaf) for leaf in placed.leaves]
        twins = list(zip(mirrored.values(), placed.copies, strict=True))
        if not self.gradients:
            self.gradients = [torch.zeros_like(parameter) for parameter in self.parameters]

        def step() -> tuple[Tensor, Carried, list[bool]]:
            with recording(twins):
                found = loss(tree_unflatten(leaves, placed.structure), tuple(carried), self.numbers)
                gradients = torch.autograd.grad(found.total, self.parameters, self.factor, allow_unused=True)
            pairs = [(own, new) for own, new in zip(self.gradients, gradients, strict=True) if new is not None]
            torch._foreach_copy_([own for own, _ in pairs], [new for _, new in pairs])
            return found.total.detach(), found.carried, [gradient is not None for gradient in gradients]

        # What a step computes with is given back as it ends, so that the next that is recorded computes there as well.
        replay, (total, left, used) = self.recorder.record(step)
        return Graph(replay, placed, list(carried), total, left, used)

    def at_once(self, recurring: Recurring, carried: Carried, loss: Computing) -> Graph | None:
        """The graph of a size that was never computed; None where it cannot be recorded before it was."""
        began = time.monotonic()
        try:
            return self.graph(self.placed(recurring.batch), [each.clone() for each in carried], loss)
        except (RuntimeError, EngineError):
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            return None
        finally:
            self.seconds += time.monotonic() - began

    def keep(self, key: Hashable, graph: Graph) -> None:
        """Have a graph for the batches to come; those used longest ago are dropped."""
        self.known[key] = graph
        self.known.move_to_end(key)
        while len(self.known) > self.most_graphs or (len(self.known) > 1 and self.held > self.most_bytes):
            self.known.popitem(last=False)
        if (held := self.held) > self.most_bytes:
            most = self.most_bytes / 2**20
            self.off(EngineError(f"one alone would hold {held / 2**20:,.0f} MiB, and {most:,.0f} MiB are the most"))

    def forget(self) -> bool:
        """Give all memory back; sizes that come again are recorded anew. Whether there was any."""
        had_some = bool(self.gradients)
        self.known.clear()
        self.gradients = []
        self.recorder = Recorder(self.device)
        return had_some

    def off(self, reason: Exception) -> None:
        """From now on all steps are computed kernel by kernel."""
        self.is_on = False
        self.forget()
        why = "the memory of the GPU is too small" if is_lack_of_memory(reason) else str(reason).splitlines()[0]
        self.say(f"training steps are launched kernel by kernel, which is slower: they cannot be recorded ({why})")


@final
class Graph:
    """The recorded step of one size of batch: where it reads and where it writes."""

    def __init__(
        self,
        replay: Callable[[], None],
        placed: Placed,
        before: list[Tensor],
        total: Tensor,
        carried: Carried,
        used: list[bool],
    ) -> None:
        self.replay, self.placed, self.before = replay, placed, before
        self.total, self.carried, self.used = total, carried, used
        self.size = bytes_of([*placed.tensors, *before])

    def load(self, batch: Any, carried: Carried) -> None:
        """Put a batch where the step reads it."""
        lengths = lengths_of(batch)
        own = {id(each) for each in lengths}
        given = [leaf for leaf in tree_flatten(batch)[0] if isinstance(leaf, Tensor) and id(leaf) not in own]
        for target, tensor in zip(self.placed.tensors, [*given, *lengths], strict=True):
            target.copy_(tensor, non_blocking=True)
        if carried:
            torch._foreach_copy_(self.before, list(carried))


def bytes_of(tensors: Sequence[Tensor]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


def lengths_of(batch: Any) -> list[Tensor]:
    """The lengths and sizes of a batch, which stay on the CPU, each once."""
    found: dict[int, Tensor] = {}

    def look(part: Any) -> None:
        if isinstance(part, Padded | Grid):
            found[id(part[1])] = part[1]
        elif isinstance(part, tuple):
            for each in part:
                look(each)

    look(batch)
    return list(found.values())


def key_of(batch: Any, carried: Carried) -> Hashable:
    """What the batches of a graph have in common: sizes and types of tensors, other values, whether rows are full."""
    leaves, structure = tree_flatten(batch)
    parts = tuple((tuple(leaf.shape), leaf.dtype) if isinstance(leaf, Tensor) else leaf for leaf in leaves)
    before = tuple((tuple(each.shape), each.dtype) for each in carried)
    return (str(structure), parts, before, fullness(batch))


def fullness(batch: Any) -> tuple[bool, ...]:
    """Of each part of a batch whether it has no padding: networks take other ways then."""
    if isinstance(batch, Padded | Grid):
        return (batch.is_full,)
    return tuple(each for part in batch for each in fullness(part)) if isinstance(batch, tuple) else ()


def difference(one: Sequence[Tensor | None], other: Sequence[Tensor], used: Sequence[bool]) -> float:
    """The norm of the difference of gradients beside the norm of the first; infinite where only one has some."""
    pairs = zip(one, other, used, strict=True)
    known = [(a, b) for a, b, is_used in pairs if a is not None and is_used]
    if len(known) < sum(a is not None or is_used for a, is_used in zip(one, used, strict=True)):
        return float("inf")
    apart = torch.nn.utils.get_total_norm([a - b for a, b in known])
    return float(apart / torch.nn.utils.get_total_norm([a for a, _ in known]).clamp_min(1e-30))
