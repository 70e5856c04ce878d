"""A training that is only tried: shapes, parameters, batches, and what the largest batch holds in memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from recurra.data.store import Store
from recurra.padding import fitted
from recurra.tasks.task import Task
from recurra.training.optimisation import optimiser
from recurra.training.trainer import device_of, dtype_of


def rehearsal(task: Task[Any, Any, Any], store: Store) -> str:
    """One step of the largest batch, and all that can be said before training."""
    training = task.settings.training
    device = device_of(training)
    torch.manual_seed(training.seed)
    model = task.build().to(device, dtype_of(training))
    task.initialise(model)
    lengths, batches = task.lengths(store), task.batches(store, 0)
    sizes = [rows * longest for rows, longest in map(batches.shape, range(len(batches)))]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    rows, longest = batches.shape(largest)
    held, shapes = _held(task, model, fitted(task.batch(task.chosen(store, batches[largest])), model))
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
        f"batches  {len(batches):,} an epoch, {int(lengths.sum()) / max(1, sum(sizes)):.0%} of their places filled; "
        f"the largest holds {rows} rows of {longest}",
        f"steps    {steps:,} an epoch" + (f", {limit:,} in all" if limit else ""),
        f"memory   {_mebibytes(copies * weights)} for weights, gradients, optimiser and average; "
        f"{_mebibytes(held)} kept for the backward pass of the largest batch",
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


def _optimiser_copies(part: Any) -> int:
    """Numbers that an optimiser keeps for each weight, seen on a weight of its own."""
    weight = torch.zeros(1, requires_grad=True)
    trial = optimiser(part, [weight], 1e-3)
    weight.grad = torch.ones(1)
    trial.step()
    return sum(isinstance(value, Tensor) and value.shape == weight.shape for value in trial.state[weight].values())


def _mebibytes(number: int) -> str:
    return f"{number / 2**20:,.1f} MiB"
