"""The Triton functions of a plan's row passes: made from printed source without a file, and launched step by step."""

from __future__ import annotations

import functools
import hashlib
import linecache
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from recurra.engines.persistent_source import PRELUDE as WAITING
from recurra.engines.persistent_source import Persistent
from recurra.engines.triton_source import PRELUDE, Kernel, power_of_two
from recurra.products.triton_here import is_interpreted as is_interpreted

BLOCK = 256
"""How many units one program computes where units are shared out."""

OF_UNITS = 4
"""How many numbers of a block of units a thread computes: 16 bytes of float32."""

A_THREAD = 4
"""The same of a whole row."""


def functions(kernels: Sequence[Kernel | Persistent]) -> dict[str, Any]:
    """Kernels as functions of Triton, by name."""
    return loaded("\n\n".join([PRELUDE, WAITING, *(kernel.source for kernel in kernels)]))


@functools.lru_cache(maxsize=256)
def loaded(source: str) -> dict[str, Any]:
    """The names that a source defines. Triton asks for the lines of a function, which Python's linecache keeps."""
    name = f"<recurra: Triton of {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    found: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), found)
    return found


class Address(NamedTuple):
    """Where a buffer lies: its first number, and how far the next row and the next step are."""

    first: Tensor
    row: int
    step: int


class Launch(NamedTuple):
    """A row pass that only lacks the step."""

    call: Callable[..., Any]
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def __call__(self, t: int) -> None:
        self.call[self.grid](t, *self.arguments, **self.options)  # type: ignore[index]  # Triton's way to launch


def launch(
    kernel: Kernel, call: Any, addresses: Sequence[Address], lengths: Tensor | None, scratch: Tensor, rows: int
) -> Launch:
    """Everything about a row pass that is the same at all steps."""
    grid: tuple[int, ...]
    if kernel.units:
        block = min(BLOCK, power_of_two(kernel.units))
        grid = (rows, -(-kernel.units // block))
    else:
        block, grid = 1, (rows,)
    numbers, a_thread = (block, OF_UNITS) if kernel.units else (kernel.widest, A_THREAD)
    warps = min(16, max(1, min(numbers, 4096) // (32 * a_thread)))
    arguments = [part for address in addresses for part in address]
    options = {"RAGGED": lengths is not None, "BLOCK": block, "num_warps": power_of_two(warps)}
    return Launch(call, grid, (scratch if lengths is None else lengths, scratch, *arguments), options)
