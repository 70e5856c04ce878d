"""Graphs of ONNX as files, by the package `onnx`: opset 18, which every onnxruntime since 1.14 reads."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recurra.errors import ConfigError
from recurra.programs.onnx_graph import Graph, Node
from recurra.programs.program import Value
from recurra.programs.solving import NotExportable
from recurra.version import __version__

if TYPE_CHECKING:
    import onnx  # type: ignore[import-not-found,unused-ignore]

OPSET, IR_VERSION = 18, 8

MOST_INSIDE = 1 << 30
"""So many bytes of weights are written into a file of ONNX, which holds 2 GB at most; more go into a file beside it."""

ENDING = ".onnx"
BESIDE = ".onnx.weights"


def package() -> Any:
    """The package `onnx`; a ConfigError says that it must be installed."""
    try:
        import onnx  # type: ignore[import-not-found,unused-ignore]
        import onnx.checker  # type: ignore[import-not-found,unused-ignore]
        import onnx.helper  # type: ignore[import-not-found,unused-ignore]
        import onnx.numpy_helper  # type: ignore[import-not-found,unused-ignore]
        import onnx.shape_inference  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ConfigError(
            f"writing ONNX needs the package {error.name}, which is not installed: pip install 'recurra[onnx]'."
        ) from error
    return onnx


def has_runtime() -> bool:
    """Whether onnxruntime is installed."""
    return importlib.util.find_spec("onnxruntime") is not None


def write_graphs(folder: Path, graphs: Mapping[str, Graph], most_inside: int = MOST_INSIDE) -> None:
    """Each graph as a checked file of its name; a NotExportable where the package finds a graph wrong."""
    onnx = package()
    for name, graph in graphs.items():
        file = folder / f"{name}{ENDING}"
        model = model_of(graph)
        if sum(array.nbytes for array in graph.weights.values()) > most_inside:
            onnx.save_model(model, file, save_as_external_data=True, location=f"{name}{BESIDE}", size_threshold=1024)
        else:
            onnx.save_model(model, file)
        try:
            onnx.checker.check_model(file, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            raise NotExportable(
                f"this model cannot be exported to ONNX: the package onnx {onnx.__version__} refuses the graph of "
                f"`{name}` ({first_line(error)}). Export it to C, by --to c."
            ) from error


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def model_of(graph: Graph) -> onnx.ModelProto:
    """A graph as the package `onnx` has it."""
    helper = package().helper
    return helper.make_model(
        graph_proto(graph),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="recurra",
        producer_version=__version__,
    )


def graph_proto(graph: Graph) -> onnx.GraphProto:
    onnx = package()
    nodes = [node_proto(node) for node in graph.nodes]
    ends = [[described(name, value) for name, value in each] for each in (graph.inputs, graph.outputs)]
    weights = [tensor(name, array) for name, array in graph.weights.items()]
    return onnx.helper.make_graph(nodes, graph.name, *ends, weights)


def node_proto(node: Node) -> onnx.NodeProto:
    attributes = {name: attribute(name, value) for name, value in node.attributes.items()}
    return package().helper.make_node(node.kind, node.inputs, node.outputs, node.outputs[0], **attributes)


def attribute(name: str, value: Any) -> Any:
    if isinstance(value, Graph):
        return graph_proto(value)
    return type_number(value) if name == "to" else value


def type_number(kind: str) -> int:
    return package().helper.np_dtype_to_tensor_dtype(np.dtype(kind))


def described(name: str, value: Value) -> onnx.ValueInfoProto:
    """Type and shape; named sizes stay open."""
    shape = [str(size) if size.constant is None else size.constant for size in value.shape]
    return package().helper.make_tensor_value_info(name, type_number(value.type), shape)


def tensor(name: str, array: NDArray[Any]) -> onnx.TensorProto:
    return package().numpy_helper.from_array(np.asarray(array, order="C"), name)
