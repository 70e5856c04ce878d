"""Row passes by compiled C: one call a pass and step."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from recurra.engines.c_library import NoCompiler, library, notice
from recurra.engines.c_source import buffers_of, named, source
from recurra.engines.memory import Memory, TorchPasses
from recurra.engines.plan import Phases, Place, Plan, RowPass

Call = Callable[[int], None]
"""Runs a pass at a step."""


class CPasses:
    """The compiled passes of a plan, bound to the buffers of one run."""

    def __init__(self, functions: dict[str, Callable[..., None]], memory: Memory, lengths: Tensor | None) -> None:
        self.functions = functions
        self.memory = memory
        self.lengths = None if lengths is None else lengths.to(torch.int64).contiguous()

    def bind(self, phases: Phases, direction: str) -> list[Call]:
        names = named(direction, phases.passes)
        return [self.bound(row_pass, name) for row_pass, name in zip(phases.passes, names, strict=True)]

    def bound(self, row_pass: RowPass, name: str) -> Call:
        """A pass with all its pointers and strides in place: only the step is left to say."""
        buffers = [buffer for buffer, _ in buffers_of(row_pass)]
        count = len(buffers)
        base, row, step = ((ctypes.c_int64 * (2 * count))() for _ in range(3))
        for number, buffer in enumerate(buffers):
            tensor = self.memory.tensors[buffer.name] if buffer.place is Place.PREVIOUS else self.memory.tensor(buffer)
            base[number] = tensor.data_ptr()
            if buffer.place in (Place.SEQUENCE, Place.PREVIOUS):
                row[number], step[number] = tensor.stride(0), tensor.stride(1)
            elif buffer.place is Place.TURNS:
                step[number], row[number] = tensor.stride(0), tensor.stride(1)
            elif buffer.place is Place.ROWS:
                row[number] = tensor.stride(0)
            if buffer.place is Place.PREVIOUS:
                first = self.memory.first[buffer.name]
                base[count + number], row[count + number] = first.data_ptr(), first.stride(0)
        function, rows = self.functions[name], self.memory.rows
        lengths = None if self.lengths is None else self.lengths.data_ptr()
        arrays = (base, row, step)  # held by the call, so that they live as long as it does
        addresses = tuple(ctypes.addressof(array) for array in arrays)

        def call(t: int, _alive: object = arrays) -> None:
            function(rows, t, lengths, *addresses)

        return call


class BoundTorchPasses:
    """The same face for the passes that torch runs."""

    def __init__(self, memory: Memory, lengths: Tensor | None) -> None:
        self.passes = TorchPasses(memory, lengths)

    def bind(self, phases: Phases, direction: str) -> list[Call]:
        return [functools.partial(self.passes.run, row_pass) for row_pass in phases.passes]


class Compiled:
    """Compiles plans, once each; where there is no compiler, torch runs the passes and a notice says so once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: WeakKeyDictionary[Plan, dict[str, Callable[..., None]] | None] = WeakKeyDictionary()
        self.was_said = False

    def passes(self, plan: Plan, memory: Memory, lengths: Tensor | None) -> CPasses | BoundTorchPasses:
        functions = self.functions(plan, memory.like.dtype)
        return BoundTorchPasses(memory, lengths) if functions is None else CPasses(functions, memory, lengths)

    def functions(self, plan: Plan, dtype: torch.dtype) -> dict[str, Callable[..., None]] | None:
        """A plan is made for one type of number, so it is compiled for one."""
        with self.lock:
            if plan not in self.found:
                self.found[plan] = self.compile(plan, dtype)
            return self.found[plan]

    def compile(self, plan: Plan, dtype: torch.dtype) -> dict[str, Callable[..., None]] | None:
        try:
            loaded = library(source(plan, dtype == torch.float64))
        except NoCompiler as reason:
            if not self.was_said:
                self.was_said = True
                notice(f"recurra: {reason}; the planned engine computes its row passes with torch, which is slower.")
            return None
        functions: dict[str, Callable[..., None]] = {}
        for direction, phases in (
            ("forward", plan.forward),
            ("inference", plan.inference),
            ("backward", plan.backward),
        ):
            for name in named(direction, phases.passes):
                function = getattr(loaded, name)
                function.argtypes = [ctypes.c_long, ctypes.c_long, *[ctypes.c_void_p] * 4]
                function.restype = None
                functions[name] = function
        difference = largest_difference(plan, functions, dtype)
        if difference is not None:
            notice(f"recurra: a compiled row pass differs from torch ({difference}); torch computes it instead.")
            return None
        return functions


def largest_difference(plan: Plan, functions: dict[str, Callable[..., None]], dtype: torch.dtype) -> str | None:
    """Run every pass once in C and once by torch, on random numbers with a padded row; None where they agree."""
    lengths = torch.tensor([2, 1, 2])
    tolerance = {"rtol": 1e-8, "atol": 1e-10} if dtype == torch.float64 else {"rtol": 2e-3, "atol": 1e-4}
    for direction, phases in (("forward", plan.forward), ("inference", plan.inference), ("backward", plan.backward)):
        for row_pass, name in zip(phases.passes, named(direction, phases.passes), strict=True):
            ours, theirs = random_memory(row_pass, dtype), random_memory(row_pass, dtype)
            CPasses(functions, ours, lengths).bound(row_pass, name)(1)
            TorchPasses(theirs, lengths).run(row_pass, 1)
            for buffer, is_written in buffers_of(row_pass):
                found, expected = ours.tensors[buffer.name], theirs.tensors[buffer.name]
                # What is saved of a padded row is never read, and need not agree.
                if buffer.name == "saved":
                    found, expected = found[::2], expected[::2]
                if is_written and not torch.allclose(found, expected, equal_nan=True, **tolerance):
                    return f"{name}, {buffer.name}, by up to {(found - expected).abs().max().item():.1e}"
    return None


def random_memory(row_pass: RowPass, dtype: torch.dtype) -> Memory:
    """Buffers full of numbers between 0 and 1, the same each time."""
    generator = torch.Generator().manual_seed(0)
    memory = Memory(3, 2, torch.zeros((), dtype=dtype))

    def numbers(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator).mul(0.8).add(0.1).to(dtype)

    shapes = {Place.ROWS: (3,), Place.TURNS: (2, 3), Place.SHARED: (), Place.SUMS: ()}
    for buffer, _ in buffers_of(row_pass):
        if buffer.name not in memory.tensors:
            memory.tensors[buffer.name] = numbers(*shapes.get(buffer.place, (3, 2)), buffer.width)
            memory.first[buffer.name] = numbers(3, buffer.width)
    return memory
