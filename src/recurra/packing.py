"""Weights laid out for the CPU: a product with few rows is several times as fast with a matrix that was packed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

ROWS = 5
"""oneDNN packs for a number of rows; with this one, 1 to 160 rows were all fast."""

FEWEST = 1 << 14
"""A matrix with fewer numbers is not worth it."""


class Packed(torch.Tensor):
    """A matrix that functional.linear multiplies in oneDNN's own layout; for all else it is what it was.

    It is packed at its first use, and again after it was changed in place.

    >>> weight = torch.randn(200, 100)
    >>> x = torch.randn(3, 100)
    >>> with torch.no_grad():
    ...     torch.allclose(functional.linear(x, packed_matrix(weight)), functional.linear(x, weight), atol=1e-4)
    True
    """

    of: Tensor
    blocks: Tensor | None
    version: int

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if function is functional.linear and isinstance(args[1], Packed) and not torch.is_grad_enabled():
                x, weight = args[0], args[1]
                bias = args[2] if len(args) > 2 else (kwargs or {}).get("bias")
                if x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu"):
                    return torch.ops.mkldnn._linear_pointwise(x, laid_out(weight), bias, "none", [], "")
            return function(*args, **(kwargs or {}))


def packed_matrix(weight: Tensor) -> Tensor:
    """The matrix (O, I), to be multiplied by functional.linear."""
    found: Packed = torch.Tensor._make_subclass(Packed, weight.detach())
    found.of, found.blocks, found.version = weight, None, -1
    return found


def laid_out(weight: Packed) -> Tensor:
    """What oneDNN made of a matrix."""
    if weight.blocks is None or weight.version != weight.of._version:
        weight.version = weight.of._version
        weight.blocks = torch.ops.mkldnn._reorder_linear_weight(weight.of.detach(), ROWS)
    return weight.blocks


def packed(model: nn.Module, *parts: str) -> nn.Module:
    """The same network, to be asked often and with few rows on the CPU: matrices in the parts of these names are packed.

    All weights are shared with the original, which does not change. Elsewhere than on the CPU, with other numbers than
    float32 or without oneDNN it is the original.
    """
    some = next(model.parameters(), None)
    if some is None or some.device.type != "cpu" or some.dtype != torch.float32 or not can_pack():
        return model
    shared: dict[int, Any] = {id(each): each for each in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, shared)
    for name, module in twin.named_modules():
        if not name.startswith(parts):
            continue
        for own, weight in list(module._parameters.items()):
            is_matrix = own == "from_state" or (own == "weight" and isinstance(module, nn.Linear))
            if weight is not None and is_matrix and weight.dim() == 2 and weight.numel() >= FEWEST:
                del module._parameters[own]
                setattr(module, own, packed_matrix(weight))
    return twin


def can_pack() -> bool:
    """Whether this torch has oneDNN's products."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
