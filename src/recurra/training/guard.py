"""When a loss is not a number: which layer began it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

NOT_AGAIN = "it was finite when the step was run again"


def culprit(model: nn.Module, run: Callable[[], Tensor]) -> str:
    """Where the first value that is not finite comes from, found by running the step once more.

    >>> model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    >>> _ = model[1].weight.data.fill_(float("nan"))
    >>> culprit(model, lambda: model(torch.ones(1, 1)).sum())
    "the weights of '1' are not finite"
    """
    for name, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            return f"the weights of '{name.rpartition('.')[0] or name}' are not finite"
    first: list[str] = []

    def look(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(_module: nn.Module, _inputs: Any, outputs: Any) -> None:
            if not first and not all(bool(torch.isfinite(tensor).all()) for tensor in tensors(outputs)):
                first.append(name)

        return hook

    hooks = [module.register_forward_hook(look(name)) for name, module in model.named_modules() if name]
    try:
        loss = run()
        if first:
            return f"the first non-finite value is in the output of layer '{first[0]}'"
        if not bool(torch.isfinite(loss)):
            return "the outputs of all layers are finite, but the loss is not"
        model.zero_grad()
        loss.backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None and not bool(torch.isfinite(parameter.grad).all()):
                return f"the loss is finite, but the gradient of layer '{name.rpartition('.')[0] or name}' is not"
        return NOT_AGAIN
    finally:
        for hook in hooks:
            hook.remove()


def tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors(part)
