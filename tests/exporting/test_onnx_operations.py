"""Programs printed as ONNX: sizes, names, files, and what is refused; test_operations.py compares the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import nn

from recurra.errors import CheckpointError, DataError
from recurra.exporting.joining import program_of
from recurra.exporting.recording import record
from recurra.programs.in_onnx import InOnnx
from recurra.programs.onnx_file import write_graphs
from recurra.programs.onnx_functions import graph_of, graphs
from recurra.programs.program import Function, Named, Number, Operand, Operation, Program, Value
from recurra.programs.sizes import Size
from recurra.programs.solving import NotExportable
from tests.exporting.test_operations import ALONG, GROUPS, NORM, OVER, TABLE, WEIGHT, functions

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

MODEL = nn.ModuleList([WEIGHT, NORM, GROUPS, ALONG, OVER, TABLE])


RECORDABLES = {each.name: each for each in functions()}


def loaded(program: Program, weights: Mapping[str, NDArray[Any]], folder: Path) -> InOnnx:
    write_graphs(folder, graphs(program, weights))
    return InOnnx(program, folder)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> InOnnx:
    chosen = ("linear", "embedded", "indexed", "masked")
    program, weights = program_of({name: record(MODEL, RECORDABLES[name]) for name in chosen})
    return loaded(program, weights, tmp_path_factory.mktemp("onnx"))


def test_inputs_that_do_not_fit_are_refused(running: InOnnx) -> None:
    x = np.zeros((1, 3, 6), np.float32)
    with pytest.raises(DataError, match="the program cannot compute indexed from these inputs"):
        running.run("indexed", [x, np.array([[3]])])
    with pytest.raises(DataError, match=r"x has the shape \(1, 3, 5\), but \(1, 3, 6\) is needed"):
        running.run("linear", [x[:, :, :5]])
    with pytest.raises(DataError, match="ids must be between 0 and 5"):
        running.run("embedded", [np.array([[6]])])


def program_with(kind: str, size: Size | None = None, type_: str = "float32") -> Program:
    """A function of an input (B·K, B), whose output is one operation of it."""
    x = Value(type_, (Size.read("B*K"), Size.read("B")))
    operand: Operand = 0 if size is None else Number(size)
    out = Value(type_ if size is None else "int64", x.shape if size is None else ())
    return Program({"f": Function((Named("x", x),), (Operation(kind, (operand,), (out,)),), (("y", 1),))}, {})


@pytest.mark.parametrize("text", ["B*K", "2*K+1", "(K+1)//2", "(K-9)//4", "(B*K)//K", "(3*B)//K", "-2*K+B"])
def test_a_size_is_computed_from_the_shapes_of_inputs(text: str, tmp_path: Path) -> None:
    running = loaded(program_with("full", Size.read(text)), {}, tmp_path)
    for B, K in ((1, 1), (3, 5), (2, 8), (4, 0)):
        [found] = running.run("f", [np.zeros((B * K, B), np.float32)])
        assert found == Size.read(text).at({"B": B, "K": K}), (B, K)


def test_what_onnxruntime_has_no_operator_for_is_refused_in_words() -> None:
    with pytest.raises(NotExportable, match="cannot be exported to ONNX: onnxruntime has no erf of float64"):
        graphs(program_with("erf", type_="float64"), {})
    with pytest.raises(NotExportable, match="cannot be exported to ONNX: it has weights of 8 or 16 bits"):
        graphs(program_with("narrow_take"), {})


def test_an_output_that_is_called_as_an_input_gets_another_name() -> None:
    x = Value("float32", (Size.named("B"),))
    function = Function((Named("h", x),), (Operation("neg", (0,), (x,)),), (("h", 1), ("before", 0)))
    graph = graph_of("step", function, {})
    assert [name for name, _ in graph.outputs] == ["next_h", "before"]


def test_large_weights_lie_in_a_file_beside_the_graph(tmp_path: Path) -> None:
    program, weights = program_of({"embedded": record(MODEL, RECORDABLES["embedded"])})
    large = {name: np.tile(array, (100, 1)) for name, array in weights.items()}
    whole = Program(program.functions, {name: (str(array.dtype), array.shape) for name, array in large.items()})
    write_graphs(tmp_path, graphs(whole, large), most_inside=1000)
    [inside], ids = large.values(), np.array([[1, 5]])
    assert (
        (tmp_path / "embedded.onnx.weights").stat().st_size
        >= inside.nbytes
        > (tmp_path / "embedded.onnx").stat().st_size
    )
    [found] = InOnnx(whole, tmp_path).run("embedded", [ids])
    assert np.array_equal(found, inside[ids])


def test_files_that_every_onnxruntime_since_1_14_reads_name_their_sizes(tmp_path: Path) -> None:
    program, weights = program_of({"masked": record(MODEL, RECORDABLES["masked"])})
    write_graphs(tmp_path, graphs(program, weights))
    model = onnx.load(tmp_path / "masked.onnx")
    assert (model.opset_import[0].version, model.ir_version, model.producer_name) == (18, 8, "recurra")
    shapes = {
        each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in model.graph.input
    }
    assert shapes == {"x": ["B", "T", 6], "lengths": ["B"]}


def test_a_file_of_another_function_is_refused(tmp_path: Path) -> None:
    program, weights = program_of({name: record(MODEL, RECORDABLES[name]) for name in ("linear", "masked")})
    write_graphs(tmp_path, graphs(program, weights))
    (tmp_path / "masked.onnx").write_bytes((tmp_path / "linear.onnx").read_bytes())
    with pytest.raises(CheckpointError, match=r"masked\.onnx does not take what program\.json says"):
        InOnnx(program, tmp_path)
    (tmp_path / "masked.onnx").write_bytes(b"graph")
    with pytest.raises(CheckpointError, match=r"onnxruntime cannot read .*masked\.onnx"):
        InOnnx(program, tmp_path)
