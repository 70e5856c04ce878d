"""A layer of cells of which ONNX has an operator: its scans, forward and backward, as one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recurra.programs.onnx_graph import Writer
from recurra.programs.onnx_recurrent import Native, native
from recurra.programs.program import Function, Number, Operand, Operation
from recurra.programs.sizes import Size

Array: TypeAlias = NDArray[Any]


class Directions:
    """One or both directions of a layer as one operator."""

    def __init__(self, places: Sequence[int], scans: Sequence[Operation], parts: Sequence[Native]) -> None:
        self.places, self.scans, self.parts = places, scans, parts
        self.is_written = False

    def write(self, writer: Writer) -> None:
        if self.is_written:
            return
        self.is_written = True
        part, scan, count = self.parts[0], self.scans[0], len(self.parts)
        name = part.operator
        B, T, _ = writer.value(scan.operands[0]).shape
        states = scan.details["states"]
        source, units = writer.operand(part.source), scan.results[1].shape[1].constant
        if len(writer.value(part.source).shape) != 3:
            source = writer.to.node("Reshape", source, writer.to.shape((B, T, Size.of(part.W.shape[1]))), allowzero=1)
        inputs = [writer.to.node("Transpose", source, perm=[1, 0, 2])]
        inputs += [writer.to.weight(f"{name}_{each}", self.together(each)) for each in ("W", "R", "B")]
        inputs.append(writer.to.node("Cast", writer.operand(scan.operands[1]), to="int32"))
        begun = [self.begun(writer, number) for number in range(states)]
        inputs += begun
        if any(each.P is not None for each in self.parts):
            inputs.append(writer.to.weight(f"{name}_P", self.together("P")))
        while not inputs[-1]:
            inputs.pop()
        activations = [each for part in self.parts for each in part.activations]
        attributes: dict[str, Any] = {"hidden_size": units, "direction": self.direction, "activations": activations}
        if "Affine" in activations:  # a x + b
            attributes |= {"activation_alpha": [1.0] * len(activations), "activation_beta": [0.0] * len(activations)}
        outputs, *last = writer.to.nodes(name, inputs, 1 + states, attributes | dict(part.settings))
        last = [self.kept(writer, *each) for each in zip(begun, last, strict=True)]
        for number, place in enumerate(self.places):
            one = writer.to.number(number, "int64")
            every = writer.to.node("Gather", outputs, one, axis=1) if count > 1 else None
            every = writer.to.node("Squeeze", outputs, writer.to.whole([1])) if every is None else every
            writer.known[place] = writer.to.node("Transpose", every, perm=[1, 0, 2])
            for state, each in enumerate(last, 1):
                writer.known[place + state] = writer.to.node("Gather", each, one, axis=0)

    @property
    def direction(self) -> str:
        if len(self.scans) > 1:
            return "bidirectional"
        return "reverse" if self.scans[0].details["backward"] else "forward"

    def together(self, name: str) -> Array:
        """A weight of both directions; peepholes that one lacks are zeros."""
        parts = [getattr(each, name) for each in self.parts]
        [shape, *_] = [part.shape for part in parts if part is not None]
        return np.stack([np.zeros(shape, np.float32) if part is None else part for part in parts])

    def begun(self, writer: Writer, number: int) -> str:
        """The states before the first step; "" where all are 0, which is what ONNX begins with."""
        operands = [scan.operands[2 + number] for scan in self.scans]
        if all(is_zero(writer.function, each) for each in operands):
            return ""
        parts = [writer.to.node("Unsqueeze", writer.operand(each), writer.to.whole([0])) for each in operands]
        return parts[0] if len(parts) == 1 else writer.to.node("Concat", *parts, axis=0)

    def kept(self, writer: Writer, begun: str, last: str) -> str:
        """The states after the last step: rows without one keep theirs, of which onnxruntime makes 0, or anything."""
        counts = writer.operand(self.scans[0].operands[1])
        is_empty = writer.to.node("Equal", counts, writer.to.number(0, "int64"))
        kept = begun or writer.to.number(0, "float32")
        return writer.to.node("Where", writer.to.node("Unsqueeze", is_empty, writer.to.whole([1])), kept, last)


def is_zero(function: Function, operand: Operand) -> bool:
    """Whether it is an array that is filled with 0."""
    count = len(function.inputs)
    for op in function.operations:
        if operand == count:
            return op.kind == "full" and isinstance(op.operands[0], Number) and op.operands[0].value == 0
        count += len(op.results)
    return False


def directions(function: Function, weights: Mapping[str, Array]) -> dict[int, Directions]:
    """The scans of a function that are operators of ONNX, by the first value that each makes."""
    found: dict[int, Directions] = {}
    alone: list[tuple[int, Operation, Native]] = []  # forward, without a partner yet
    count = len(function.inputs)
    for op in function.operations:
        part = native(function, op, weights) if op.kind == "scan" else None
        if part is not None:
            partner = next((each for each in alone if is_pair(function, each, (count, op, part))), None)
            if partner is not None:
                alone.remove(partner)
                both = Directions((partner[0], count), (partner[1], op), (partner[2], part))
                found |= {partner[0]: both, count: both}
            else:
                found[count] = Directions((count,), (op,), (part,))
                if not op.details["backward"]:
                    alone.append((count, op, part))
        count += len(op.results)
    return found


def is_pair(function: Function, one: tuple[int, Operation, Native], other: tuple[int, Operation, Native]) -> bool:
    """Whether the second is the way back of the first, and all that it needs is there before the first."""
    (place, first, forward), (_, second, backward) = one, other
    begun = second.operands[2 : 2 + second.details["states"]]
    is_there = all(is_zero(function, each) or not isinstance(each, int) or each < place for each in begun)
    return (
        second.details["backward"] and first.operands[1] == second.operands[1] and is_there and forward.joins(backward)
    )
