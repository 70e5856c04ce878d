"""Weights that every step of a loop multiplies with: their gradient is one product after the loop, not one a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

Waiting: TypeAlias = list[tuple[Tensor, Tensor]]
"""Of each product that was gone back through: the gradient of its result (N, O), and what was multiplied (N, I)."""


class Deferred(torch.Tensor):
    """A matrix whose products by functional.linear leave their share of its gradient to the end."""

    waiting: Waiting
    lowered: dict[torch.dtype, Tensor]  # the same matrix in the types of autocast, cast once for all steps

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            x, weight, bias = (*args, None, None, None)[:3]
            if function is not functional.linear or type(weight) is not Deferred or x.dim() != 2:
                return function(*args, **(kwargs or {}))
            bias = (kwargs or {}).get("bias") if bias is None else bias
            numbers: Tensor = weight
            if (dtype := autocast_type(x, weight)) is not None:
                x, bias = x.to(dtype), None if bias is None else bias.to(dtype)
                if dtype not in weight.lowered:
                    weight.lowered[dtype] = weight.detach().to(dtype)
                numbers = weight.lowered[dtype]
            y: Tensor = Multiplied.apply(x, weight, numbers, weight.waiting)  # type: ignore[no-untyped-call]
            return y if bias is None else y + bias


def autocast_type(x: Tensor, weight: Tensor) -> torch.dtype | None:
    """The type to which autocast would cast both before their product; None where it would not."""
    device = x.device.type
    if not torch.is_autocast_enabled(device) or torch.float64 in (x.dtype, weight.dtype):
        return None
    return torch.get_autocast_dtype(device)


class Multiplied(torch.autograd.Function):
    """x Wᵀ; on the way back, the gradient of W waits. `numbers` is W in the type of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, numbers: Tensor, waiting: Waiting) -> Tensor:
        ctx.save_for_backward(x, weight, numbers)
        ctx.waiting, ctx.gathers = waiting, weight.grad_fn
        with torch.autocast(x.device.type, enabled=False):
            return x @ numbers.t()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        x, weight, numbers = ctx.saved_tensors
        if torch.is_grad_enabled():
            # This gradient will itself be differentiated, so that nothing may wait where autograd does not see it.
            return gradient @ weight.to(x.dtype), (gradient.t() @ x).to(weight.dtype), None, None
        if torch._C._will_engine_execute_node(ctx.gathers):  # else nobody would take away what waits
            ctx.waiting.append((gradient, x))
        return gradient @ numbers, None, None, None


class Gathered(torch.autograd.Function):
    """W itself; on the way back, when all that used it has been gone through, what has waited is multiplied at once."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, waiting: Waiting) -> Tensor:
        ctx.waiting, ctx.dtype = waiting, weight.dtype
        ctx.set_materialize_grads(False)
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, None]:
        waiting = ctx.waiting
        if not waiting:
            return gradient, None
        results, inputs = (torch.cat(each) for each in zip(*waiting, strict=True))
        waiting.clear()
        found = (results.t() @ inputs).to(ctx.dtype)
        return found if gradient is None else found + gradient, None


@contextmanager
def deferring(*modules: nn.Module | None) -> Iterator[None]:
    """Within, the matrices of some modules are multiplied step by step and differentiated once.

    >>> layer, x = nn.Linear(3, 2), torch.randn(4, 3)
    >>> plain = torch.autograd.grad((layer(x) + layer(2 * x)).sum(), layer.weight)[0]
    >>> with deferring(layer):
    ...     y = layer(x) + layer(2 * x)
    >>> torch.allclose(torch.autograd.grad(y.sum(), layer.weight)[0], plain)
    True
    """
    if not torch.is_grad_enabled() or torch._C._functorch.peek_interpreter_stack() is not None:
        yield
        return
    changed: list[tuple[nn.Module, str, nn.Parameter]] = []
    stand_ins: dict[int, Tensor] = {}
    try:
        for part in (each for module in modules if module is not None for each in module.modules()):
            for name, weight in list(part._parameters.items()):
                if weight is not None and weight.dim() == 2 and weight.requires_grad:
                    if id(weight) not in stand_ins:
                        stand_ins[id(weight)] = stand_in_for(weight)
                    changed.append((part, name, weight))
                    part._parameters[name] = stand_ins[id(weight)]  # type: ignore[assignment]  # for a while
        yield
    finally:
        for part, name, weight in changed:
            part._parameters[name] = weight


def stand_in_for(weight: Tensor) -> Tensor:
    """A matrix in place of another, whose gradient it gathers."""
    waiting: Waiting = []
    alias: Tensor = Gathered.apply(weight, waiting)  # type: ignore[no-untyped-call]
    found = alias.as_subclass(Deferred)
    found.waiting, found.lowered = waiting, {}
    return found
