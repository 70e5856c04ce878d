"""What the functions of a program are called with, and what a model gives to be recorded as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.errors import CheckpointError, DataError
from recurra.frozen import NamedTuple
from recurra.programs.program import Function, Program

KINDS = {
    "numbers": "float32",
    "exact": "float64",
    "chances": "float64",  # from 0 to 1
    "flags": "bool",
    "bytes": "uint8",
    "ids": "int64",  # up to `below`
    "copies": "int64",  # ids, and then as many more as the size `along`
    "counts": "int64",  # of what was read before, any number of it
    "lengths": "int64",  # of the size `along`
    "places": "int64",  # along it
}
"""The kinds of inputs, and their types of numbers."""


class Input(NamedTuple):
    """An input of a function."""

    name: str
    shape: tuple[str | int, ...]  # sizes, as `Size.read` reads them
    kind: str = "numbers"  # see KINDS
    below: int | None = None
    along: str = ""

    @property
    def type(self) -> str:
        return KINDS[self.kind]


Call: TypeAlias = Callable[..., Mapping[str, Any]]
"""Tensors, one for each input -> tensors by name."""


class Recordable(NamedTuple):
    """A function of a model that is to be one of a program."""

    name: str
    inputs: Sequence[Input]
    call: Call
    most: Mapping[str, int] = MappingProxyType({})  # how large a size may be, by its name
    least: Mapping[str, int] = MappingProxyType(
        {}
    )  # how large it must be for rows of length 1 to stay the shorter ones


class Running(Protocol):
    """A program that is ready to be run."""

    name: str  # c, numpy or torch
    program: Program

    def run(self, name: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]: ...


def called(running: Running, name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The outputs of a function by their names, from arrays by theirs; those that it does not take are left out."""
    function = running.program.functions.get(name)
    if function is None:
        raise CheckpointError(f"the program has no function `{name}`: export the run again.")
    missing = [each.name for each in function.inputs if each.name not in arrays]
    if missing:
        raise CheckpointError(f"the program's `{name}` takes {missing[0]}, which there is not: export the run again.")
    found = running.run(name, [arrays[each.name] for each in function.inputs])
    return dict(zip((output for output, _ in function.outputs), found, strict=True))


def typed(function: Function, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The inputs as the function reads them; a DataError where ids are out of range."""
    if len(inputs) != len(function.inputs):
        raise DataError(f"the program takes {len(function.inputs)} inputs, but there are {len(inputs)}.")
    found = [np.ascontiguousarray(array, each.value.type) for array, each in zip(inputs, function.inputs, strict=True)]
    for array, each in zip(found, function.inputs, strict=True):
        if each.below is not None and array.size and not 0 <= array.min() <= array.max() < each.below:
            raise DataError(
                f"{each.name} must be between 0 and {each.below - 1}, but has {array.min()} to {array.max()}."
            )
    return found
