"""Programs printed as graphs of ONNX, one for each function; onnx_file.py makes files of them.

A scan is one node of ONNX's RNN, GRU or LSTM where there is such an operator (onnx_recurrent.py), both directions of a
layer together, and else a Scan with the body of the scan inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from numpy.typing import NDArray

from recurra.programs.onnx_graph import Builder, Graph, Node, Writer
from recurra.programs.onnx_layers import directions
from recurra.programs.onnx_operations import written
from recurra.programs.program import Function, Operation, Program, Value
from recurra.programs.sizes import Size

Array: TypeAlias = NDArray[Any]


def graphs(program: Program, weights: Mapping[str, Array]) -> dict[str, Graph]:
    """Every function of a program as a graph."""
    return {name: graph_of(name, function, weights) for name, function in program.functions.items()}


def graph_of(name: str, function: Function, weights: Mapping[str, Array]) -> Graph:
    """A function as a graph; its outputs are in the order of the function's."""
    names = [each.name for each in function.inputs]
    outputs = [f"next_{output}" if output in names else output for output, _ in function.outputs]
    to = Builder(Graph(name), function.inputs, {*names, *outputs, *weights})
    to.graph.inputs += [(each.name, each.value) for each in function.inputs]
    writer = Writer(to, function, weights, names)
    write(writer)
    for output, (_, operand) in zip(outputs, function.outputs, strict=True):
        value = writer.value(operand)
        to.graph.nodes.append(Node("Identity", (writer.operand(operand, value.type),), (output,), {}))
        to.graph.outputs.append((output, value))
    return to.graph.needed()


def write(w: Writer, changing: set[int] | None = None) -> None:
    """All operations of a function. `changing`: in the body of a scan, the inputs that differ between steps; what
    follows from others is computed once, outside."""
    whole = directions(w.function, w.weights) if changing is None else {}
    first = len(w.function.inputs)
    w.known += [""] * (len(w.values) - first)
    for op in w.function.operations:
        if first in whole:
            whole[first].write(w)
        else:
            here = w
            if changing is not None:
                if any(isinstance(each, int) and each in changing for each in op.operands):
                    changing.update(range(first, first + len(op.results)))
                else:
                    here = w.outside()
            w.known[first : first + len(op.results)] = scanned(here, op) if op.kind == "scan" else [written(here, op)]
        first += len(op.results)


def scanned(w: Writer, op: Operation) -> list[str]:
    """A Scan over steps: a row that is over keeps its states and gives 0. Backward, rows are turned round before."""
    x, lengths, *rest = op.operands
    states, body = op.details["states"], op.details["body"]
    begun, given = rest[:states], rest[states:]
    read, counts, steps = w.operand(x), w.operand(lengths), w.value(x).shape[1]
    if op.details["backward"]:
        read = turned(w, read, counts, steps)
    inside = Builder(Graph(w.to.name("step")), (), w.to.taken, w.to)
    names = [inside.name(each.name) for each in body.inputs[: 1 + states]]
    values = [each.value for each in body.inputs]
    real = inside.name("real")
    # The states come first, then what is scanned: one step of x, and which rows have that step.
    inside.graph.inputs += [*zip(names[1:], values[1 : 1 + states], strict=True), (names[0], values[0])]
    inside.graph.inputs.append((real, Value("bool", (values[0].shape[0], Size.of(1)))))
    within = Writer(inside, body, w.weights, [*names, *(w.operand(each) for each in given)])
    write(within, changing=set(range(1 + states)))
    new = [within.operand(operand) for _, operand in body.outputs]
    after = [inside.node("Where", real, now, then) for now, then in zip(new, names[1:], strict=True)]
    shown = inside.node("Where", real, new[0], inside.number(0, values[1].type))
    inside.graph.outputs += [*zip(after, values[1 : 1 + states], strict=True), (shown, values[1])]
    inputs = [*(w.operand(each) for each in begun), read, real_steps(w, counts, steps)]
    settings = {"body": inside.graph, "num_scan_inputs": 2, "scan_input_axes": [1, 1], "scan_output_axes": [1]}
    *last, outputs = w.to.nodes("Scan", inputs, states + 1, settings)
    return [turned(w, outputs, counts, steps) if op.details["backward"] else outputs, *last]


def turned(w: Writer, x: str, counts: str, steps: Size) -> str:
    """Each row from its last real step to the first; padding stays where it is."""
    # onnxruntime before 1.24 writes nothing where a row has no step; one step turned round is itself.
    least = w.to.node("Max", counts, w.to.number(1, "int64"))
    return w.to.node("ReverseSequence", x, w.to.node("Min", least, w.to.scalar(steps)), batch_axis=0, time_axis=1)


def real_steps(w: Writer, counts: str, steps: Size) -> str:
    """(B, T, 1): which steps are real."""
    to, key = w.to, f"real {counts} {steps}"
    if key not in to.shared:
        places = to.node("Range", to.scalar(Size()), to.scalar(steps), to.scalar(Size.of(1)))
        mask = to.node("Less", places, to.node("Unsqueeze", counts, to.whole([1])))
        to.shared[key] = to.node("Unsqueeze", mask, to.whole([2]))
    return to.shared[key]
