"""Every operation in every type that programs have of it, printed as ONNX: the numbers that NumPy computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recurra.programs.in_numpy import InNumpy
from recurra.programs.in_onnx import InOnnx
from recurra.programs.onnx_file import write_graphs
from recurra.programs.onnx_functions import graphs
from recurra.programs.onnx_operations import IN_SINGLE
from recurra.programs.program import POINTWISE, REDUCTIONS, TYPES, Function, Named, Operation, Program, Value, check
from recurra.programs.sizes import Size

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

SHAPE = (Size.named("B"), Size.of(4))
AT_LEAST_0 = ("log", "log1p", "log2", "log10", "sqrt", "rsqrt", "pow", "asin", "acos")
ALONG: dict[str, dict[str, Any]] = {
    **{kind: {"dims": (1,)} for kind in REDUCTIONS},
    "cumsum": {"dim": 1},
    "cumprod": {"dim": 1},
    "argsort": {"dim": 1, "falls": True},
    "flip": {"dims": (1,)},
}
GROUPS = {
    "of one": [kind for kind, count in POINTWISE.items() if count == 1 and kind != "cast"],
    "of more": [kind for kind, count in POINTWISE.items() if count > 1],
    "casts": ["cast"],
    "along a dimension": [*ALONG],
}


def drawn(kind: str, seed: int) -> NDArray[Any]:
    draw = np.random.default_rng(seed)
    if kind == "bool":
        return draw.random((3, 4)) < 0.5
    if kind.startswith("float"):
        return draw.uniform(-0.9, 0.9, (3, 4)).astype(kind)
    signs = 1 if kind == "uint8" else draw.choice([-1, 1], (3, 4))
    found: NDArray[Any] = (draw.integers(1, 9, (3, 4)) * signs).astype(kind)
    return found


def functions(kinds: list[str]) -> Iterator[tuple[str, Function, list[NDArray[Any]]]]:
    """Every function of one operation that programs have, by the types of what it takes and gives, and its inputs."""
    for kind in kinds:
        for given in TYPES:
            for gives in TYPES:
                types = ["bool", given, given] if kind == "where" else [given] * POINTWISE.get(kind, 1)
                inputs = tuple(Named(f"x{place}", Value(each, SHAPE)) for place, each in enumerate(types))
                shape = SHAPE[:1] if kind in REDUCTIONS else SHAPE
                operation = Operation(kind, tuple(range(len(types))), (Value(gives, shape),), ALONG.get(kind, {}))
                function = Function(inputs, (operation,), (("y", len(types)),))
                try:
                    check(function, {})
                except ValueError:
                    continue
                if kind in IN_SINGLE and gives == "float64":
                    continue
                arrays = [drawn(each, seed) for seed, each in enumerate(types)]
                if kind in AT_LEAST_0:
                    arrays[0] = np.abs(arrays[0])
                if kind == "acosh":
                    arrays[0] = np.abs(arrays[0]) + np.ones(1, given)
                if kind == "cast" and given.startswith("float") and gives == "uint8":
                    arrays[0] = np.abs(arrays[0])  # what a cast makes of a number out of range is nobody's rule
                yield f"{kind}_{given}_{gives}", function, arrays


@pytest.mark.parametrize("group", GROUPS)
def test_an_operation_gives_in_every_type_what_numpy_gives(tmp_path: Path, group: str) -> None:
    every = {name: (function, arrays) for name, function, arrays in functions(GROUPS[group])}
    program = Program({name: function for name, (function, _) in every.items()}, {})
    write_graphs(tmp_path, graphs(program, {}))
    plain, onnx = InNumpy(program, {}), InOnnx(program, tmp_path)
    for name, (_, arrays) in every.items():
        [right], [found] = plain.run(name, arrays), onnx.run(name, arrays)
        assert (found.dtype, found.shape) == (right.dtype, right.shape), name
        assert np.allclose(found.astype(float), right.astype(float), rtol=1e-5, atol=1e-6), name
    kinds = {operation.kind for function, _ in every.values() for operation in function.operations}
    assert kinds == set(GROUPS[group])
