"""A device without float64, as Apple's GPUs are, simulated on the CPU.

Its tensors lie in the memory of the CPU, which computes; but a float64 among them is an error, and so is an operation
on tensors of both devices. A process that has begun the simulation keeps the device: begin it in one of its own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from recurra import padding

NAME = "apple"

CAN_BE_SIMULATED = hasattr(backend_registration, "_setup_privateuseone_for_python_backend")


class There(Tensor):
    """A tensor of the device."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> There:
        if here.dtype == torch.float64:
            raise TypeError("Cannot convert a tensor to float64 dtype as the device doesn't support float64.")
        found = torch.Tensor._make_wrapper_subclass(
            cls, here.shape, strides=here.stride(), dtype=here.dtype, device=torch.device(NAME, 0)
        )
        found.here = here
        return found

    def __repr__(self) -> str:  # type: ignore[override]
        return f"There({self.here!r})"

    def data_ptr(self) -> int:
        return self.here.data_ptr()

    def tolist(self) -> Any:
        return self.here.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        return computed(func, args, kwargs or {})


class Simulated(TorchDispatchMode):
    """Inside, tensors can be made on the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What an operation gives, on the device that its tensors or its argument `device` say."""
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    is_there = any(isinstance(each, There) for each in tensors)
    is_copy = "copy" in func._schema.name or "index" in func._schema.name  # which cross from one device to the other
    if is_there and not is_copy and any(each.dim() and not isinstance(each, There) for each in tensors):
        raise RuntimeError(f"Expected all tensors to be on the same device, but {func} has those of two")
    wanted = None if kwargs.get("device") is None else torch.device(kwargs["device"]).type
    here = tree_map_only(There, lambda each: each.here, (args, kwargs))
    if wanted == NAME:
        here[1]["device"] = torch.device("cpu")
    found = func(*here[0], **here[1])
    if wanted == "cpu" or (wanted is None and not is_there):
        return found
    if func._schema.is_mutable and any(found is each.here for each in tensors if isinstance(each, There)):
        return next(each for each in tensors if isinstance(each, There) and found is each.here)
    return tree_map_only(Tensor, There, found)


def begin() -> None:
    """From here on, this process has the device."""
    backend_registration._setup_privateuseone_for_python_backend(NAME)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    padding.WITHOUT_FLOAT64 |= {NAME}
