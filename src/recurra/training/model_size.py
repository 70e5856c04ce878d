"""A model that cannot fit into this machine's memory is refused before its weights are drawn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from recurra.errors import ConfigError


def physical_memory() -> int | None:
    """Bytes of memory that this machine has; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


@contextmanager
def bounded_parameters() -> Iterator[None]:
    """While modules are made here, a ConfigError as soon as their parameters take more than all of the memory."""
    most = physical_memory()
    size = 0

    def count(_module: nn.Module, _name: str, parameter: nn.Parameter | None) -> None:
        nonlocal size
        if parameter is not None and parameter.device.type == "cpu":
            size += parameter.numel() * parameter.element_size()
        if most is not None and size > most:
            raise ConfigError(
                f"the weights of this model take more than {size / 2**30:,.0f} GiB, but this machine has "
                f"{most / 2**30:,.0f} GiB of memory. Reduce the sizes of the model, such as model.hidden."
            )

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()
