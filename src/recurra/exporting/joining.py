"""Recorded functions as one program, and how far that is from the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from recurra.engines.c_library import NoCompiler
from recurra.errors import CheckpointError
from recurra.exporting.recording import Recorded, names_of, record, samples
from recurra.programs.in_c import InC
from recurra.programs.in_numpy import InNumpy
from recurra.programs.inputs import Recordable, Running
from recurra.programs.program import Program
from recurra.programs.solving import NotExportable
from recurra.programs.weights import weights_content

TOLERANCE = 1e-5
"""How far a recorded function may be from the model, beside the largest number of its outputs, or 1."""

MOST_TOLERANCE, ROUNDED = 1e-3, 8
"""How far it may be where the model changes by more if inputs and weights are rounded: this, and so many times as far.

An example is sLSTM, whose states are drawn here as no sentence gives them: it divides by a sum, which may be near 0."""

TRIED = ((1, 1), (2, 5), (3, 2), (1, 23), (5, 9))
"""The first and all other sizes of inputs on which a recorded function is compared with the model."""

RUN_BY = {"c": "C", "numpy": "NumPy", "onnx": "onnxruntime"}
"""What runs programs, in words."""


def recorded_functions(network: nn.Module, functions: Sequence[Recordable]) -> tuple[Program, dict[str, NDArray[Any]]]:
    """Functions of a network as one program, and its weights."""
    refuse_broken(network)
    found: dict[str, Recorded] = {each.name: record(network, each) for each in functions}
    return program_of(found)


def refuse_broken(network: nn.Module) -> None:
    """A NotExportable for a model whose training went wrong."""
    for name, weight in network.named_parameters():
        if not weight.isfinite().all():
            raise NotExportable(
                f"this model cannot be exported: its weight {name} has a number that is NaN or infinite, so that its "
                "answers mean nothing. Train it again, with a lower training.learning_rate."
            )


def runners(program: Program, weights: Mapping[str, NDArray[Any]]) -> list[Running]:
    """Whatever runs a program here: NumPy, and C where there is a compiler."""
    found: list[Running] = [InNumpy(program, weights)]
    with suppress(NoCompiler):
        found.append(InC(program, weights_content(program, weights)))
    return found


def program_of(recorded: Mapping[str, Recorded]) -> tuple[Program, dict[str, NDArray[Any]]]:
    """Functions as one program; weights of the same name and numbers are one."""
    weights: dict[str, NDArray[Any]] = {}
    functions = {}
    for name, (function, own) in recorded.items():
        names = {}
        for each, array in own.items():
            new = each
            while new in weights and not same(weights[new], array):
                new = f"{new}.{name}"
            names[each], weights[new] = new, array
        functions[name] = renamed(function, names)
    program = Program(functions, {name: (str(array.dtype), array.shape) for name, array in weights.items()})
    try:
        return Program.from_json(program.to_json()), weights
    except CheckpointError as error:
        raise NotExportable(f"this model cannot be exported: {error}") from error


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)


def renamed(function: Any, names: Mapping[str, str]) -> Any:
    """A function whose weights have other names."""
    from dataclasses import replace

    def change(operand: Any) -> Any:
        return names.get(operand, operand) if isinstance(operand, str) else operand

    operations = []
    for op in function.operations:
        details = dict(op.details)
        if "body" in details:
            details["body"] = renamed(details["body"], names)
        operations.append(replace(op, operands=tuple(map(change, op.operands)), details=details))
    outputs = tuple((name, change(operand)) for name, operand in function.outputs)
    return replace(function, operations=tuple(operations), outputs=outputs)


def difference(running: Running, function: Recordable, network: nn.Module) -> float:
    """How far a recorded function is from the model at most, on inputs of other sizes than those recorded."""
    names = names_of(function)
    most = 0.0
    for seed, (first, others) in enumerate(TRIED if names else TRIED[:1], 100):
        sizes = {name: others + 2 * place if place else first for place, name in enumerate(names)}
        sizes = {name: min(size, function.most.get(name, size)) for name, size in sizes.items()}
        given = samples(function.inputs, sizes, seed)
        with torch.no_grad():
            wanted = function.call(*given)
        found = running.run(function.name, [each.numpy() for each in given])
        for (name, tensor), array in zip(wanted.items(), found, strict=True):
            right = tensor.numpy()
            if right.shape != array.shape:
                raise NotExportable(
                    f"this model cannot be exported: `{function.name}` gives {name} of shape {array.shape} for the "
                    f"sizes {sizes}, but the model gives {right.shape}."
                )
            error = relative_error(array, right)
            if not error <= TOLERANCE and not error <= ROUNDED * rounding(function, network, given, wanted)[name]:
                raise NotExportable(
                    f"this model cannot be exported: `{function.name}` gives {name} that is off by {error:.1e} for "
                    f"inputs of the sizes {sizes}, run by {RUN_BY[running.name]}. The model may do "
                    "something else there than for the inputs that were recorded."
                )
            most = max(most, error)
    return most


def rounding(
    function: Recordable, network: nn.Module, given: Sequence[Tensor], wanted: Mapping[str, Tensor]
) -> dict[str, float]:
    """How far each output of the model moves where its inputs and weights are rounded to float32 in another way, cut
    off where no difference is due to rounding any more."""
    most = dict.fromkeys(wanted, 0.0)
    draws = torch.Generator().manual_seed(0)

    def near(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor * (1 + torch.randint(-1, 2, tensor.shape, generator=draws) * torch.finfo(tensor.dtype).eps)

    kept = [weight.detach().clone() for weight in network.parameters()]
    for _ in range(4):
        with torch.no_grad():
            try:
                for weight, own in zip(network.parameters(), kept, strict=True):
                    weight.copy_(near(own))
                found = function.call(*map(near, given))
            finally:
                for weight, own in zip(network.parameters(), kept, strict=True):
                    weight.copy_(own)
        for name, tensor in found.items():
            most[name] = max(most[name], relative_error(tensor.numpy(), wanted[name].numpy()))
    return {name: min(error, MOST_TOLERANCE / ROUNDED) for name, error in most.items()}


def relative_error(found: NDArray[Any], right: NDArray[Any]) -> float:
    """The largest difference beside the largest finite number, or 1; infinite numbers must be the same ones."""
    if not right.size:
        return 0.0
    found, right = found.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(right)
    if not np.array_equal(found[~finite], right[~finite], equal_nan=True):
        return float("inf")
    scale = max(1.0, float(np.abs(right[finite]).max(initial=0.0)))
    return float(np.abs(found[finite] - right[finite]).max(initial=0.0)) / scale
