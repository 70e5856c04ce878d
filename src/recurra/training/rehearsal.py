"""A training that is only tried: shapes, parameters, batches, time, and what the largest batch holds in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from recurra.data.store import Encoded, Store
from recurra.padding import fitted
from recurra.tasks.task import Task
from recurra.training.device import device_of, dtype_of
from recurra.training.model_size import bounded_parameters
from recurra.training.optimisation import optimiser
from recurra.training.pace import duration

PROGRAM_BYTES = 350 * 2**20
"""About what Python with torch holds on the CPU."""


LONG_SECONDS = 5.0
LARGE_BYTES = 2**30
"""A batch that would take longer, or keep more for its backward pass, is estimated from a few of its rows."""

PARTS = 16
"""Such a part of a batch is computed first, and then twice as much."""


def rehearsal(task: Task[Any, Any, Any], store: Store, say: Callable[[str], None] = lambda _: None) -> str:
    """One step of the largest batch, and all that can be said before training."""
    training = task.settings.training
    device = device_of(training)
    torch.manual_seed(training.seed)
    with bounded_parameters():
        model = task.build()
    model = model.to(device, dtype_of(training))
    task.initialise(model)
    lengths, batches = task.lengths(store), task.batches(store, 0)
    sizes = [rows * longest for rows, longest in map(batches.shape, range(len(batches)))]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    rows, longest = batches.shape(largest)
    say(f"computing the largest batch, {rows} rows of {longest}, or a part of it, to measure time and memory")
    taken = task.chosen(store, batches[largest])
    found = _estimated(task, model, taken)
    if found is None:
        held, shapes = _held(task, model, fitted(task.batch(taken), model))
        smallest = min(range(len(sizes)), key=sizes.__getitem__)
        slowest = _step_seconds(task, model, taken)
        small = (sizes[smallest], _step_seconds(task, model, task.chosen(store, batches[smallest])))
        each = Line.through(small, (sizes[largest], slowest))
        aside = ""
    else:
        held, slowest, shapes, few = found
        each = Line(0.0, slowest / sizes[largest])
        aside = f" (estimated from {few} of its {rows} rows)"
    epoch = sum(each.at(size) for size in sizes)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    copies = 2 + _optimiser_copies(training.optimizer) + (training.average is not None)
    steps = -(-len(batches) // training.accumulate)
    total = steps * training.epochs if training.epochs is not None else None
    limit = min(n for n in (total, training.steps) if n is not None) if total or training.steps else None
    lines = [
        f"{task.name}: {task.described()}",
        "",
        f"data     {len(store):,} examples of {int(lengths.min())} to {int(lengths.max())} elements, "
        f"{int(lengths.sum()):,} in all",
        f"batches  {len(batches):,} an epoch, {int(lengths.sum()) / max(1, sum(sizes)):.0%} of their positions "
        f"filled (the rest is padding); the largest has {rows} rows of {longest}",
        f"steps    {steps:,} an epoch" + (f", {limit:,} in all" if limit else ""),
        f"time     about {_seconds(epoch)} an epoch on this machine, validation not counted; "
        f"{_seconds(slowest)} for the largest batch{aside}",
        f"memory   about {_mebibytes(copies * weights + held + _program_bytes(device))} in all: "
        f"{_mebibytes(copies * weights)} for weights, gradients, optimiser and average; "
        f"{_mebibytes(held)} kept for the backward pass of the largest batch; the rest is the program itself",
        f"device   {device}",
        "",
    ]
    wide = max(44, *(len(name) + 2 for name, _ in model.named_parameters()))
    lines.append(f"{'parameter':{wide}}{'shape':>16}{'numbers':>12}")
    for name, parameter in model.named_parameters():
        lines.append(f"{name:{wide}}{'x'.join(map(str, parameter.shape)):>16}{parameter.numel():12,}")
    lines += [f"{'':{wide}}{'in all':>16}{sum(p.numel() for p in model.parameters()):12,}", ""]
    lines += [f"{'layer':44}output for the largest batch", *dict.fromkeys(shapes)]
    return "\n".join(lines)


class Estimate(NamedTuple):
    """What a batch needs, as far as a part of it tells."""

    held: int
    seconds: float
    shapes: list[str]  # of the part
    rows: int  # of the part


def _estimated(task: Task[Any, Any, Any], model: torch.nn.Module, taken: Sequence[Encoded]) -> Estimate | None:
    """What a large batch needs, from its largest rows; None where the whole batch can be computed."""
    few = len(taken) // PARTS
    if few == 0:
        return None
    by_size = sorted(taken, key=lambda row: sum(values.nbytes for values in row.values()), reverse=True)
    measured: list[tuple[int, float]] = []
    shapes: list[str] = []
    for count in (few, 2 * few):
        held, shapes = _held(task, model, fitted(task.batch(by_size[:count]), model))
        measured.append((held, _step_seconds(task, model, by_size[:count])))
    (less, quick), (more, slow) = measured
    whole = [
        Line.through((few, small), (2 * few, large)).at(len(taken)) for small, large in ((less, more), (quick, slow))
    ]
    if whole[0] <= LARGE_BYTES and whole[1] <= LONG_SECONDS:
        return None
    return Estimate(int(whole[0]), whole[1], shapes, 2 * few)


def _held(task: Task[Any, Any, Any], model: torch.nn.Module, batch: Any) -> tuple[int, list[str]]:
    """Bytes that autograd keeps for the batch, and what each part of the model gives."""
    seen: dict[int, int] = {}
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    shapes: list[str] = []

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    def look(name: str) -> Any:
        def hook(_module: Any, _inputs: Any, outputs: Any) -> None:
            first = outputs
            while isinstance(first, tuple) and first:
                first = first[0]
            if isinstance(first, Tensor):
                shapes.append(f"{name:44}{' x '.join(map(str, first.shape))}")

        return hook

    parts = []
    for name, module in model.named_children():
        several = module.named_children() if isinstance(module, torch.nn.ModuleList) else None
        parts += [(name, module)] if several is None else [(f"{name}.{number}", each) for number, each in several]
    hooks = [module.register_forward_hook(look(name)) for name, module in parts]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = task.loss(model, batch).total
    for hook in hooks:
        hook.remove()
    loss.backward()
    return sum(seen.values()), shapes


class Line(NamedTuple):
    """Seconds of a step by the places of its batch: so many for each step, and more for each place."""

    fixed: float
    each: float

    @classmethod
    def through(cls, small: tuple[int, float], large: tuple[int, float]) -> Line:
        """The line through two measurements; nothing gets quicker by being larger.

        >>> Line.through((10, 2.0), (30, 4.0))
        Line(fixed=1.0, each=0.1)
        """
        if large[0] == small[0] or large[1] <= small[1]:
            return cls(large[1], 0.0)
        each = (large[1] - small[1]) / (large[0] - small[0])
        return cls(max(0.0, small[1] - each * small[0]), each)

    def at(self, size: int) -> float:
        return self.fixed + self.each * size


def _step_seconds(task: Task[Any, Any, Any], model: torch.nn.Module, rows: Sequence[Encoded]) -> float:
    """The time of one forward and backward pass; another batch was run before, so everything is compiled."""
    began = time.monotonic()
    loss = task.loss(model, fitted(task.batch(rows), model)).total
    loss.backward()
    if loss.is_cuda:  # a GPU has only been told what to do until now
        torch.cuda.synchronize(loss.device)
    return time.monotonic() - began


def _program_bytes(device: torch.device) -> int:
    """What Python and torch hold in the same memory before there is a model: nothing of a GPU's."""
    return 0 if device.type == "cuda" else PROGRAM_BYTES


def _seconds(number: float) -> str:
    """
    >>> _seconds(0.04), _seconds(8.2), _seconds(75)
    ('0.04 s', '8.2 s', '1:15')
    """
    return duration(number) if number >= 60 else f"{number:.2g} s"


def _optimiser_copies(part: Any) -> int:
    """Numbers that an optimiser keeps for each weight, seen on a weight of its own."""
    weight = torch.zeros(1, requires_grad=True)
    trial = optimiser(part, [weight], 1e-3)
    weight.grad = torch.ones(1)
    trial.step()
    return sum(isinstance(value, Tensor) and value.shape == weight.shape for value in trial.state[weight].values())


def _mebibytes(number: int) -> str:
    return f"{number / 2**20:,.1f} MiB"
