"""Programs run by C: the text is printed from the program, compiled and loaded; no code comes from anywhere else."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recurra.errors import CheckpointError, DataError
from recurra.programs.inputs import typed
from recurra.programs.program import Program, output_values
from recurra.programs.searchable import searchable
from recurra.version import __version__

WRONG = {
    1: "their sizes do not fit each other",
    2: "there is not enough memory",
    3: "an id is out of range",
    4: "the weights are damaged",
}


def _printers() -> str:
    """What tells the modules that print from those of another version: their names, sizes and times of change."""
    here = Path(__file__).parent
    names = sorted(name for name in os.listdir(here) if name.endswith(".py"))
    found = [(name, os.stat(here / name)) for name in (*names, "../engines/c_prelude.py")]
    about = [(name, each.st_size, each.st_mtime_ns) for name, each in found]
    return hashlib.sha256(repr((__version__, about)).encode()).hexdigest()


PRINTERS = _printers()
"""Of the modules that print, as they were imported: what they print otherwise has another library."""

MOST_SHAPES = 4096
"""Shapes of inputs for which it is remembered what is called."""


def threads() -> int:
    """How many threads this process may use: as torch does, where it is imported, as OMP_NUM_THREADS says, or all.

    >>> threads() >= 1
    True
    """
    if (torch := sys.modules.get("torch")) is not None:
        return int(torch.get_num_threads())
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiled(program: Program, *, is_threaded: bool) -> ctypes.CDLL:
    """The library of a program, which is printed only where the cache has none: that takes longer than to load it."""
    from recurra.engines.c_library import library_of

    start = "#define RECURRA_THREADS\n" if is_threaded else ""

    def printed() -> str:
        from recurra.programs.c_text import Printed

        return start + Printed(program).text

    return library_of(f"{start}{program.to_json()}\n{PRINTERS}", printed)


def threaded(program: Program) -> ctypes.CDLL:
    """A program compiled for several threads, where there are any to be had."""
    from recurra.engines.c_library import NoCompiler

    try:
        return compiled(program, is_threaded=True)
    except NoCompiler:
        return compiled(program, is_threaded=False)


class InC:
    """A program with its weights, compiled. `NoCompiler` says why it cannot be.

    Weights that are not sealed have no checksum yet: C writes it, many times as fast as Python.
    """

    name = "c"

    def __init__(self, program: Program, content: NDArray[np.uint8], *, is_sealed: bool = True) -> None:
        self.program, self.content = program, content
        self.searched_sizes: dict[tuple[tuple[int, ...], ...], dict[str, int]] = {}  # by shapes of arrays
        self.searchable = searchable(program)
        self.code = threaded(program) if threads() > 1 else compiled(program, is_threaded=False)
        self.code.recurra_threads(threads())
        self.model = ctypes.c_void_p()
        if not is_sealed:
            self.code.recurra_seal.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
            self.code.recurra_seal(content.ctypes.data, content.nbytes)
        self.code.recurra_open.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        status = self.code.recurra_open(content.ctypes.data, content.nbytes, ctypes.byref(self.model))
        if status:
            raise CheckpointError(f"the program cannot be loaded: {WRONG.get(status, status)}.")
        self._fitted: dict[tuple[Any, ...], tuple[Any, list[int], list[tuple[tuple[int, ...], str]]]] = {}
        for name, function in program.functions.items():
            pointers = len(function.inputs) + len(function.outputs)
            kinds: list[Any] = [ctypes.c_void_p, *[ctypes.c_int64] * len(function.names), *[ctypes.c_void_p] * pointers]
            getattr(self.code, f"recurra_{name}").argtypes = kinds
            counts = [*[ctypes.c_int64] * len(function.names), ctypes.c_void_p]
            getattr(self.code, f"recurra_sizes_of_{name}").argtypes = counts

    def __del__(self) -> None:
        if getattr(self, "model", None):
            self.code.recurra_close.argtypes = [ctypes.c_void_p]
            self.code.recurra_close(self.model)

    def run(self, name: str, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The outputs of a function, from inputs of the right types."""
        given = typed(self.program.functions[name], inputs)
        key = (name, *(each.shape for each in given))
        fitted = self._fitted.get(key)
        if fitted is None:
            fitted = self._fit(name, key[1:])
            if len(self._fitted) >= MOST_SHAPES:
                self._fitted.clear()  # another thread may do so at any time
            self._fitted[key] = fitted
        call, sizes, outputs = fitted
        found = [np.empty(shape, kind) for shape, kind in outputs]
        status = call(self.model, *sizes, *(each.ctypes.data for each in given), *(each.ctypes.data for each in found))
        if status:
            raise DataError(f"the program cannot compute {name} from these inputs: {WRONG.get(status, status)}.")
        return found

    def _fit(self, name: str, shapes: Sequence[Any]) -> tuple[Any, list[int], list[tuple[tuple[int, ...], str]]]:
        """What is called for inputs of these shapes: the function, its sizes, and what its outputs look like."""
        function = self.program.functions[name]
        try:
            sizes = function.sizes(shapes)
        except ValueError as error:
            raise DataError(f"the program cannot compute {name} from these inputs ({error}).") from error
        values = output_values(function, self.program)
        outputs = [(tuple(size.at(sizes) for size in value.shape), value.type) for value in values]
        given, counts = [sizes[each] for each in function.names], (ctypes.c_int64 * max(1, len(values)))()
        status = getattr(self.code, f"recurra_sizes_of_{name}")(*given, counts)
        # C computes its sizes itself: it must find the arrays as large as they are made here.
        agrees = [*counts][: len(values)] == [math.prod(shape) for shape, _ in outputs]
        if status or not agrees or any(size < 0 for shape, _ in outputs for size in shape):
            raise DataError(f"the program cannot compute {name} from these inputs: {WRONG[1]}.")
        return getattr(self.code, f"recurra_{name}"), given, outputs
