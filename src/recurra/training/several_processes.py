"""Several processes that train one model, by torch.distributed: gloo on the CPU, NCCL on GPUs.

The gradients of a step are added up when all of them are there, in one message for each type. Small networks gain
nothing from sending some while others are computed, as DistributedDataParallel does; and what a step may be here
(sparse gradients, parameters without a gradient, a batch in two halves, several batches, a process without a row) needs
no treatment of its own.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from recurra.errors import ConfigError, TrainingError
from recurra.padding import exact
from recurra.tasks.task import Carried
from recurra.training.launching import Place
from recurra.training.processes import LostError, Processes, Sums

PATIENCE = timedelta(minutes=30)
"""So long a process waits in a step for the others: one that was stopped, or whose data do not come, is given up."""

LOOKING_SECONDS = 0.02
"""Whoever waits for the first process looks so often whether it has said something."""

LEAVING_SECONDS = 10.0
"""At the end, so long the first process waits until the others have heard that training is over."""


@final
class SeveralProcesses(Processes):
    """This process among others. What the first one says goes through a store, where nobody's patience ends."""

    def __init__(self, place: Place) -> None:
        if not dist.is_available():
            raise ConfigError(
                "this build of torch cannot train in several processes (torch.distributed is missing): install "
                "another, or leave --processes out."
            )
        self.rank, self.size, self.local_rank, self.local_size, _ = place
        with self._listening():
            given = (place.rank, place.size) if place.url.startswith("file:") else (-1, -1)
            store, _, _ = next(rendezvous(place.url, *given, timeout=PATIENCE))
        self._store = PrefixStore("recurra", store)
        self._said = 0  # what the first process has said so far, counted
        self._device = torch.device("cpu")

    def meet(self, device: torch.device, what: Mapping[str, object]) -> None:
        self._device = device
        backend = "gloo" if device.type == "cpu" else f"cpu:gloo,{device.type}:nccl"
        with self._listening():
            dist.init_process_group(
                backend,
                store=PrefixStore("torch", self._store),
                rank=self.rank,
                world_size=self.size,
                timeout=PATIENCE,
            )
        for rank, theirs in enumerate(self._everyone(dict(what))):
            for name, value in what.items():
                if theirs[name] != value:
                    raise ConfigError(
                        f"process {rank} and process {self.rank} differ in {name}: {theirs[name]} and {value}. Give "
                        f"all processes the same command and the same files."
                    )

    def said_by_writer(self, said: Callable[[], object]) -> Any:
        key = f"said/{self._said}"
        self._said += 1
        if self.is_writer:
            found = said()
            with self._listening():
                self._store.set(key, json.dumps(found, default=float))
            return found
        while not self._is_said(key):
            time.sleep(LOOKING_SECONDS)
        with self._listening():
            return json.loads(self._store.get(key))

    def _is_said(self, key: str) -> bool:
        with self._listening():
            return bool(self._store.check([key]))

    def same_tensors(self, tensors: Sequence[Tensor]) -> None:
        with self._listening():
            for tensor in tensors:
                whole = tensor.contiguous()
                dist.broadcast(whole, 0)
                tensor.copy_(whole)

    def check_same(self, tensors: Sequence[Tensor]) -> None:
        marks = torch.stack([exact(tensor).sum() for tensor in tensors]).cpu()
        if any(not torch.equal(theirs, marks) for theirs in self._gathered(marks)):
            raise TrainingError(
                "the weights of the processes have come to differ, which must not happen; nothing of that is saved. "
                "Continue from the last checkpoint with --resume, in one process if it happens again."
            )

    def summed(self, sums: Sums, parameters: Sequence[Tensor]) -> Sums:
        has = [float(each.grad is not None) for each in parameters]
        is_sparse = [float(each.grad is not None and each.grad.is_sparse) for each in parameters]
        seconds = sums.seconds if self.is_writer else 0.0
        own = [sums.labels, sums.rows, sums.weights, sums.batches, sums.elements, float(sums.is_asked), seconds]
        loss = exact(sums.loss).view(1).clone()  # it is added to in its place
        numbers = torch.tensor([*own, *has, *is_sparse], dtype=torch.float64)
        if self._device.type == "cpu":  # one message in place of two
            numbers = self._added(torch.cat([numbers, loss]))
            loss = numbers[-1]
        else:
            numbers, loss = self._added(numbers), self._added(loss)[0]
        labels, rows, weights, batches, elements, asked, seconds, *rest = numbers[: len(own) + 2 * len(has)].tolist()
        dense, sparse = list[Tensor](), list[Tensor]()
        for number, parameter in enumerate(parameters):
            if rest[number]:
                (sparse if rest[len(has) + number] else dense).append(parameter)
        self._add_dense(dense, sums.first)
        for parameter in sparse:
            self._add_sparse(parameter, sums.first)
        whole = (int(labels), int(rows), weights, int(batches), int(elements))
        return Sums(*whole, first=1, loss=loss, seconds=seconds, is_asked=asked > 0)

    def _add_dense(self, parameters: Sequence[Tensor], factor: int) -> None:
        """Gradients times a factor, added up in one message for each type; 0 where a process has none."""
        for dtype in dict.fromkeys(parameter.dtype for parameter in parameters):
            those = [parameter for parameter in parameters if parameter.dtype == dtype]
            flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in those])
            flat = self._added(flat.mul_(factor))
            for parameter, part in zip(those, flat.split([each.numel() for each in those]), strict=True):
                parameter.grad = part.view_as(parameter)

    def _add_sparse(self, parameter: Tensor, factor: int) -> None:
        """The same for a gradient that names rows: all that some process names."""
        if parameter.grad is None:
            rows, values = torch.zeros(0, dtype=torch.long, device=parameter.device), parameter.detach()[:0]
        else:
            found = parameter.grad.coalesce()
            rows, values = found._indices()[0], found._values() * factor
        counts = [int(count) for count in self._gathered(torch.tensor([len(rows)]))]
        most = max(counts)
        every_row = self._gathered(_longer(rows, most))
        every_value = self._gathered(_longer(values, most))
        parameter.grad = torch.sparse_coo_tensor(
            torch.cat([each[:count] for each, count in zip(every_row, counts, strict=True)]).unsqueeze(0),
            torch.cat([each[:count] for each, count in zip(every_value, counts, strict=True)]),
            parameter.shape,
        ).coalesce()

    def averaged(self, carried: Carried, rows: int) -> Carried:
        every = [(n, those) for n, those in self._everyone((rows, [each.cpu() for each in carried])) if n]
        if not every:
            return carried
        total = sum(n for n, _ in every)
        means = list[Tensor]()
        for column in zip(*(those for _, those in every), strict=True):
            mean = torch.stack([n * each.double() for (n, _), each in zip(every, column, strict=True)]).sum(0) / total
            means.append(mean.to(self._device, column[0].dtype))
        return tuple(means)

    def together(self, carried: Carried) -> Carried:
        every = self._everyone([each.cpu() for each in carried])
        most = max(map(len, every))
        found = list[Tensor]()
        for place in range(most):
            parts = [part[place] for part in every if part]
            whole = parts[0].new_empty((sum(map(len, parts)), *parts[0].shape[1:]))
            for rank, part in enumerate(every):
                if part:
                    whole[rank :: self.size] = part[place]
            found.append(whole)
        return tuple(found)

    def first_said(self, said: str | None) -> str | None:
        return next((each for each in self._everyone(said) if each is not None), None)

    def leave(self) -> None:
        """Training is over, and whatever the first process has written is there."""
        if dist.is_initialized():
            dist.destroy_process_group()
        self.said_by_writer(lambda: "over")
        with contextlib.suppress(LostError), self._listening():
            left = self._store.add("left", 1)
            until = time.monotonic() + LEAVING_SECONDS
            while self.is_writer and left < self.size and time.monotonic() < until:
                time.sleep(LOOKING_SECONDS)
                left = self._store.add("left", 0)

    def _added(self, tensor: Tensor) -> Tensor:
        with self._listening():
            dist.all_reduce(tensor)
        return tensor

    def _gathered(self, tensor: Tensor) -> list[Tensor]:
        """A tensor of every process, all of one shape."""
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        with self._listening():
            dist.all_gather(found, tensor.contiguous())
        return found

    def _everyone(self, what: Any) -> list[Any]:
        """What every process says; seldom, since it takes several messages."""
        found: list[Any] = [None] * self.size
        with self._listening():
            dist.all_gather_object(found, what)
        return found

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Inside, the silence of another process is an error in words."""
        try:
            yield
        except RuntimeError as error:
            raise LostError(
                f"another process of this training has ended, or does not answer ({str(error).splitlines()[0]:.200})."
            ) from error


def _longer(tensor: Tensor, rows: int) -> Tensor:
    return torch.cat([tensor, tensor.new_zeros((rows - len(tensor), *tensor.shape[1:]))])
