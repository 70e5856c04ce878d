"""Weights laid out for the CPU: a product with few rows is several times as fast with a matrix that was packed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

ROWS = 5
"""oneDNN packs for a number of rows; with this one, 1 to 160 rows were all fast."""

FEWEST = 1 << 14
"""A matrix with fewer numbers is not worth it."""


class Packed(torch.Tensor):
    """A matrix that functional.linear multiplies in oneDNN's own layout; for all else, gradients among it, it is the
    one that it was made of.

    It is packed at its first use, and again after it was changed in place or got other data.

    >>> weight = torch.randn(200, 100)
    >>> x = torch.randn(3, 100)
    >>> with torch.no_grad():
    ...     torch.allclose(functional.linear(x, packed_matrix(weight)), functional.linear(x, weight), atol=1e-4)
    True
    """

    of: Tensor
    laid_out: LaidOut | None

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        named: dict[str, Any] = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            if function is functional.linear and not torch.is_grad_enabled() and len(args) > 1:
                x, weight = args[0], args[1]
                bias = args[2] if len(args) > 2 else named.get("bias")
                if isinstance(weight, Packed) and is_packable(x) and is_packable(weight.of):
                    return torch.ops.mkldnn._linear_pointwise(x, blocks(weight), bias, "none", [], "")
            return function(*map(original, args), **{name: original(value) for name, value in named.items()})

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return packed_matrix(copy.deepcopy(self.of, memo))


class LaidOut(NamedTuple):
    """What oneDNN made of a matrix, and by what a change of that is known."""

    blocks: Tensor
    version: int
    address: int


def packed_matrix(weight: Tensor) -> Tensor:
    """The matrix (O, I), to be multiplied by functional.linear."""
    found: Packed = torch.Tensor._make_subclass(Packed, weight.detach())
    found.of, found.laid_out = weight, None
    return found


def blocks(weight: Packed) -> Tensor:
    """The matrix as oneDNN lays it out."""
    of, found = weight.of, weight.laid_out
    if found is None or found.version != of._version or found.address != of.data_ptr():
        found = LaidOut(torch.ops.mkldnn._reorder_linear_weight(of.detach(), ROWS), of._version, of.data_ptr())
        weight.laid_out = found  # at once, so that a thread sees all of it or nothing
    return found.blocks


def original(value: Any) -> Any:
    """The matrix that a packed one was made of; a list of them likewise; all else as it is."""
    if isinstance(value, Packed):
        return value.of
    return type(value)(map(original, value)) if type(value) in (list, tuple) else value


def is_packable(tensor: Tensor) -> bool:
    """Whether oneDNN's products are for these numbers."""
    return tensor.dtype == torch.float32 and tensor.device.type == "cpu" and not torch.is_autocast_enabled("cpu")


def packed(model: nn.Module, *parts: str) -> nn.Module:
    """The same network, to be asked often and with few rows on the CPU: the matrices in parts of these names packed.

    All weights are shared with the original, which does not change. Elsewhere than on the CPU, with other numbers than
    float32 or without oneDNN it is the original.
    """
    some = next(model.parameters(), None)
    if some is None or not is_packable(some) or not can_pack():
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
