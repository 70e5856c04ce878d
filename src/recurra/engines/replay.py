"""Derivatives of a fast engine's backward pass: its steps are taken again in plain torch operations.

A fast backward pass is not recorded by autograd, and cannot be batched. Where one of the two is asked for
(create_graph=True, is_grads_batched=True), the engine runs the forward pass once more as the loop would, and lets
autograd differentiate that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from recurra.cells import AnyCell
from recurra.engines.engine import DirectedCell, Reading, is_transformed
from recurra.engines.loop import read
from recurra.padding import Padded

Results: TypeAlias = Callable[[list[Tensor], Any], Sequence[Tensor]]
"""What an engine answers, from some tensors and `fixed`, in operations that autograd records."""


def is_differentiated(gradients: Sequence[Tensor | None]) -> bool:
    """Asked within a backward pass: whether it must be made of operations that can be differentiated or batched."""
    if torch.is_grad_enabled() or is_transformed():
        return True
    return any(g is not None and torch._C._functorch.is_legacy_batchedtensor(g) for g in gradients)


class Gradients(NamedTuple):
    """Of everything that the results depend on; None where nothing reaches a tensor."""

    tensors: list[Tensor | None]
    fixed: list[Tensor | None]  # of each tensor in `fixed`, in the order of its leaves
    parameters: list[Tensor | None]  # of each parameter of the cell


def replayed(
    cell: AnyCell, fixed: Any, tensors: Sequence[Tensor], results: Results, gradients: Sequence[Tensor | None]
) -> Gradients:
    """The gradients that a backward pass must return, by differentiating the results once more computed."""
    is_recorded = torch.is_grad_enabled()
    with torch.enable_grad():
        # Aliases: a weight may stand in `fixed` and among the parameters, and each place has a gradient of its own.
        own = [alias(tensor) for tensor in tensors]
        leaves, structure = tree_flatten(fixed)
        leaves = [alias(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        parameters = {f"cell.{name}": alias(parameter) for name, parameter in cell.named_parameters()}
        found = torch.func.functional_call(Called(cell, results), parameters, (own, tree_unflatten(leaves, structure)))
        pairs = [(a, g) for a, g in zip(found, gradients, strict=True) if g is not None and a.requires_grad]
        groups = [own, [leaf for leaf in leaves if isinstance(leaf, Tensor)], list(parameters.values())]
        sources = [tensor for group in groups for tensor in group if tensor.requires_grad]
        answers, incoming = [answer for answer, _ in pairs], [gradient for _, gradient in pairs]
        pulled = iter(
            torch.autograd.grad(answers, sources, incoming, create_graph=is_recorded, allow_unused=True)
            if pairs
            else [None] * len(sources)
        )
    return Gradients(*([next(pulled) if tensor.requires_grad else None for tensor in group] for group in groups))


def alias(tensor: Tensor) -> Tensor:
    return tensor.view_as(tensor)


class Called(nn.Module):
    """A function of a cell as a module, so that the cell's parameters can be given from outside."""

    def __init__(self, cell: AnyCell, results: Results) -> None:
        super().__init__()
        self.cell = cell
        self.results = results

    def forward(self, tensors: list[Tensor], fixed: Any) -> Sequence[Tensor]:
        return self.results(tensors, fixed)


def replayable(reading: Reading, reader: DirectedCell, x: Padded, every: bool) -> Reading:
    """A reading by kernels without second derivatives, to which the loop lends its own."""
    leaves = [leaf for leaf in tree_flatten(reader.fixed)[0] if isinstance(leaf, Tensor)]
    results = [reading.outputs, *reading.states]
    sources = [x.values, *reader.state, *leaves, *reader.cell.parameters()]
    outputs, *states = Lent.apply(reader, x.lengths, every, len(results), *results, *sources)  # type: ignore[no-untyped-call]
    return Reading(outputs, type(reading.states)(*states))


class Lent(torch.autograd.Function):
    """Passes results on as they are. On the way back a gradient goes to the kernels that made them; or, where it must
    be differentiated in turn, past those kernels to what the results were computed from."""

    @staticmethod
    def forward(
        ctx: Any, reader: DirectedCell, lengths: Tensor, every: bool, count: int, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.reader, ctx.lengths, ctx.every, ctx.count = reader, lengths, every, count
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors[count : count + 1 + len(reader.state)])
        ctx.sources = len(tensors) - count
        return tuple(alias(result) for result in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        reader: DirectedCell = ctx.reader
        settings = (None,) * 4
        if not is_differentiated(gradients):
            return (*settings, *gradients, *(None,) * ctx.sources)

        def results(tensors: list[Tensor], fixed: Any) -> list[Tensor]:
            values, *state = tensors
            again = reader._replace(state=reader.cell.State(*state), fixed=fixed)
            outputs, states = read(again, Padded(values, ctx.lengths), ctx.every)
            return [outputs, *states]

        found = replayed(reader.cell, reader.fixed, ctx.saved_tensors, results, gradients)
        return (*settings, *(None,) * ctx.count, *found.tensors, *found.fixed, *found.parameters)
