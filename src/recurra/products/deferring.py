"""Weights that every step of a loop multiplies with: their gradient is one product after the loop, not one a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

Waiting: TypeAlias = list[tuple[Tensor, Tensor]]
"""Of each product that was gone back through: the gradient of its result (N, O), and what was multiplied (N, I)."""


class Deferred(torch.Tensor):
    """A matrix whose products by functional.linear leave their share of its gradient to the end."""

    waiting: Waiting

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            x, weight, bias = (*args, None, None, None)[:3]
            if function is not functional.linear or type(weight) is not Deferred or x.dim() != 2:
                return function(*args, **(kwargs or {}))
            y: Tensor = Multiplied.apply(x, weight, weight.waiting)  # type: ignore[no-untyped-call]
            bias = (kwargs or {}).get("bias") if bias is None else bias
            return y if bias is None else y + bias


class Multiplied(torch.autograd.Function):
    """x Wᵀ; on the way back, the gradient of W waits."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, waiting: Waiting) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.waiting, ctx.gathers = waiting, weight.grad_fn
        return x @ weight.t()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        x, weight = ctx.saved_tensors
        if torch._C._will_engine_execute_node(ctx.gathers):  # else nobody would take away what waits
            ctx.waiting.append((gradient, x))
        return gradient @ weight, None, None


class Gathered(torch.autograd.Function):
    """W itself; on the way back, when all that used it has been gone through, what has waited is multiplied at once."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, waiting: Waiting) -> Tensor:
        ctx.waiting = waiting
        ctx.set_materialize_grads(False)
        return weight.view_as(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, None]:
        waiting = ctx.waiting
        if not waiting:
            return gradient, None
        results, inputs = (torch.cat(each) for each in zip(*waiting, strict=True))
        waiting.clear()
        found = results.t() @ inputs
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
    if not torch.is_grad_enabled() or any(torch.is_autocast_enabled(device) for device in ("cpu", "cuda")):
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
    found.waiting = waiting
    return found
