"""Programs that were printed as ONNX, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.errors import CheckpointError, ConfigError, DataError
from recurra.programs.inputs import typed
from recurra.programs.onnx_file import ENDING, first_line
from recurra.programs.program import Function, Program

TYPES = {
    "float32": "tensor(float)",
    "float64": "tensor(double)",
    "bool": "tensor(bool)",
    **{name: f"tensor({name})" for name in ("int64", "int32", "uint8")},
}
"""What onnxruntime calls the types of a program."""

MOST_SHAPES = 4096
"""Shapes of inputs of which it is remembered that they fit."""


def package() -> Any:
    """The package `onnxruntime`; a ConfigError says that it must be installed."""
    try:
        import onnxruntime  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise ConfigError(
            f"a model that was exported to ONNX is run by onnxruntime, but {error.name} is not installed: "
            "pip install 'recurra[onnx]'."
        ) from error
    return onnxruntime


class InOnnx:
    """The functions of a program, each a file of ONNX in a folder, on one thread."""

    name = "onnx"

    def __init__(self, program: Program, folder: Path) -> None:
        runtime = package()
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 4  # what fails is raised as well
        self.program = program
        self.sessions: dict[str, Any] = {}
        self._fitting: set[tuple[Any, ...]] = set()  # functions and shapes of inputs that fit each other
        for name, function in program.functions.items():
            file = folder / f"{name}{ENDING}"
            try:
                session = runtime.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
            except Exception as error:  # what it raises depends on its version
                raise CheckpointError(f"onnxruntime cannot read {file} ({first_line(error)}).") from error
            if not takes(session, function):
                raise CheckpointError(f"{file} does not take what program.json says: export the run again.")
            self.sessions[name] = session

    def run(self, name: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The outputs of a function, from inputs of the right types."""
        function, session = self.program.functions[name], self.sessions[name]
        given = typed(function, inputs)
        key = (name, *(each.shape for each in given))
        if key not in self._fitting:
            try:
                function.sizes(key[1:])
            except ValueError as error:
                raise DataError(f"the program cannot compute {name} from these inputs ({error}).") from error
            if len(self._fitting) >= MOST_SHAPES:
                self._fitting.clear()
            self._fitting.add(key)
        named = {each.name: array for each, array in zip(function.inputs, given, strict=True)}
        try:
            found: list[NDArray[Any]] = session.run(None, named)
        except Exception as error:  # what it raises depends on its version
            raise DataError(f"the program cannot compute {name} from these inputs ({first_line(error)}).") from error
        return [np.asarray(each) for each in found]


def takes(session: Any, function: Function) -> bool:
    """Whether a session has the inputs of a function, and as many outputs."""
    wanted = [(each.name, TYPES[each.value.type], len(each.value.shape)) for each in function.inputs]
    there = [(each.name, each.type, len(each.shape)) for each in session.get_inputs()]
    return wanted == there and len(session.get_outputs()) == len(function.outputs)
