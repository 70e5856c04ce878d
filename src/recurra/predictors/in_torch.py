"""Functions of a model as they are recorded for a program, run by torch itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from recurra.programs.inputs import Input, Recordable
from recurra.programs.program import Function, Named, Program, Value
from recurra.programs.sizes import Size


class InTorch:
    """A model in the place of its program: the same functions, by name.

    >>> double = Recordable("double", [Input("x", ("B",))], lambda x: {"y": 2 * x})
    >>> InTorch([double]).run("double", [np.ones(3, np.float32)])[0].tolist()
    [2.0, 2.0, 2.0]
    """

    name = "torch"

    def __init__(self, functions: Sequence[Recordable], device: str | torch.device = "cpu") -> None:
        self._functions, self._device = {each.name: each for each in functions}, device
        self.program = Program({each.name: self._described(each) for each in functions}, {})

    def run(self, name: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        function = self._functions[name]
        given = [
            torch.from_numpy(np.ascontiguousarray(array, each.type)).to(self._device)
            for each, array in zip(function.inputs, inputs, strict=True)
        ]
        with torch.no_grad():
            return [tensor.cpu().numpy() for tensor in function.call(*given).values()]

    def _described(self, function: Recordable) -> Function:
        """Inputs and outputs of a function, without operations: a call tells the names of what comes out."""
        inputs = tuple(
            Named(each.name, Value(each.type, tuple(map(Size.read, each.shape))), each.below)
            for each in function.inputs
        )
        with torch.no_grad():
            names = function.call(*(smallest(each).to(self._device) for each in function.inputs))
        return Function(inputs, (), tuple((name, number) for number, name in enumerate(names)))


def smallest(given: Input) -> torch.Tensor:
    """An input all of whose sizes are 1: one row of one step."""
    sizes = (Size.read(size) for size in given.shape)
    shape = tuple(size.at(dict.fromkeys(size.names, 1)) for size in sizes)
    array = np.ones(shape) if given.kind in ("lengths", "flags") else np.zeros(shape)
    return torch.from_numpy(array.astype(given.type))
