"""Runs the steps of a plan by compiled C: all of them in one call (c_steps.py), on torch's own threads."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from recurra.engines.c_library import library
from recurra.engines.c_source import buffers_of, named
from recurra.engines.c_steps import text
from recurra.engines.memory import Buffers
from recurra.engines.plan import Buffer, Phases, Place, RowPass, StepProduct
from recurra.engines.restart import Copy, Restart
from recurra.errors import DataError

Functions: TypeAlias = dict[str, Callable[..., None]]
Arguments: TypeAlias = tuple[ctypes.Array[ctypes.c_int64], ...]
"""Where the buffers of a pass lie, and how far it is from row to row and from step to step in each."""

ROWS_EACH = 8
"""With fewer rows for each thread, the threads share out columns instead: each then reads only its part of a weight.
Measured at two sizes only."""

WORTH_SHARING = 1 << 19
"""Numbers multiplied in a step. With fewer, threads that must meet after every product would mostly wait for each
other; where exactly it begins to pay was not measured."""

POINTERS = ("pass", "base", "row", "step", "operand", "first", "weight", "panels", "out")
NUMBERS = ("operand_row", "operand_step", "first_row", "weight_row", "weight_column", "depth", "width")


class Operation(ctypes.Structure):
    """A product or a row pass: `operation` of c_steps.py."""

    _fields_ = (*((name, ctypes.c_void_p) for name in POINTERS), *((name, ctypes.c_int64) for name in NUMBERS))


class Sequence(ctypes.Structure):
    """What is done at each step, and how often: `sequence` of c_steps.py."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("operations", "lengths")),
        *(
            (name, ctypes.c_int64)
            for name in ("count", "rows", "steps", "is_backward", "parts", "shares_panels", "patience")
        ),
        *((name, ctypes.c_void_p) for name in ("number", "members")),
        *((name, ctypes.c_long) for name in ("arrived", "round")),
        *((name, ctypes.c_void_p) for name in ("resets", "restarts", "cuts")),
        *((name, ctypes.c_int64) for name in ("resets_row", "restart_count", "cut_count")),
    )


class CRestart(ctypes.Structure):
    """`restart` of c_steps.py."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("written", "anew", "read")),
        *(
            (name, ctypes.c_int64)
            for name in ("written_row", "written_step", "anew_row", "read_row", "read_step", "width")
        ),
    )


class CCut(ctypes.Structure):
    """`cut` of c_steps.py."""

    _fields_ = (("base", ctypes.c_void_p), *((name, ctypes.c_int64) for name in ("row", "step", "width")))


def c_restart(copy: Copy) -> CRestart:
    written, anew, read = copy
    return CRestart(
        *(tensor.data_ptr() for tensor in (written, anew, read)),
        *(written.stride(0), written.stride(1), anew.stride(0), read.stride(0), read.stride(1), read.shape[2]),
    )


def c_cut(part: Tensor) -> CCut:
    return CCut(part.data_ptr(), part.stride(-2), part.stride(0) if part.dim() == 3 else 0, part.shape[-1])


class Team(NamedTuple):
    """torch's own threads, for functions of ours: a second set of threads would fight with them for the cores."""

    parallel: int
    number: int
    members: int


@functools.cache
def team() -> Team | None:
    """None where torch's threads are not those of OpenMP as gcc calls it."""
    try:
        process = ctypes.CDLL(None)
        names = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
        return Team(*(address(getattr(process, name)) for name in names))
    except (AttributeError, TypeError, OSError):
        return None


def patience(parts: int) -> int:
    """How often a thread looks for the others before it lets its core go.

    About 50 µs: too early, and a program beside takes the core for a whole turn of its own. With more threads than
    cores, the others wait for just this core.
    """
    return 50_000 if parts <= cores() else 4_000


@functools.cache
def cores() -> int:
    """On which this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def address(function: object) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert found is not None
    return found


@functools.cache
def steps_library(is_double: bool) -> ctypes.CDLL:
    found = library(text(is_double))
    found.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    found.run.restype = None
    found.panel_width.restype = ctypes.c_long
    return found


def threads(rows: int, phases: Phases) -> int:
    """How many threads are of use for a step."""
    if team() is None:
        return 1
    most = torch.get_num_threads()
    products = [*phases.before, *(product for slot in phases.after_pass for product in slot)]
    if not products:
        return min(most, rows)
    work = rows * max(product.operand.width * product.out.width for product in products)
    return most if rows >= ROWS_EACH * most or work >= WORTH_SHARING else 1


class CPasses:
    """The compiled passes of a plan, on the buffers of one run."""

    def __init__(self, functions: Functions, memory: Buffers, lengths: Tensor | None) -> None:
        self.functions = functions
        self.memory = memory
        self.lengths = None if lengths is None else lengths.to(torch.int64).contiguous()

    def arguments(self, row_pass: RowPass) -> Arguments:
        buffers = [buffer for buffer, _ in buffers_of(row_pass)]
        count = len(buffers)
        base, row, step = ((ctypes.c_int64 * (2 * count))() for _ in range(3))
        for number, buffer in enumerate(buffers):
            tensor = self.memory.tensors[buffer.name] if buffer.place is Place.PREVIOUS else self.memory.tensor(buffer)
            check_size(buffer, tensor, self.memory)
            base[number] = tensor.data_ptr()
            if buffer.place in (Place.SEQUENCE, Place.PREVIOUS):
                row[number], step[number] = tensor.stride(0), tensor.stride(1)
            elif buffer.place is Place.TURNS:
                step[number], row[number] = tensor.stride(0), tensor.stride(1)
            elif buffer.place is Place.ROWS:
                row[number] = tensor.stride(0)
            elif buffer.place is Place.SUMS:
                step[number] = tensor.stride(0)
            if buffer.place is Place.PREVIOUS:
                first = self.memory.first[buffer.name]
                check_numbers(buffer, first, self.memory.rows * buffer.width)
                base[count + number], row[count + number] = first.data_ptr(), first.stride(0)
        return base, row, step

    def run(self, row_pass: RowPass, name: str, t: int) -> None:
        """One pass over all rows of one step."""
        lengths = None if self.lengths is None else self.lengths.data_ptr()
        arguments = self.arguments(row_pass)
        addresses = (ctypes.addressof(array) for array in arguments)
        self.functions[name](0, self.memory.rows, 0, t, lengths, *addresses)


def check_size(buffer: Buffer, tensor: Tensor, memory: Buffers) -> None:
    """C goes through a buffer without asking how large it is."""
    row = {
        Place.SEQUENCE: memory.rows * memory.steps,
        Place.PREVIOUS: memory.rows * memory.steps,
        Place.ROWS: memory.rows,
        Place.TURNS: 2 * memory.rows,
        Place.SUMS: memory.parts,
    }
    check_numbers(buffer, tensor, row.get(buffer.place, 1) * buffer.width)


def check_numbers(buffer: Buffer, tensor: Tensor, expected: int) -> None:
    if tensor.numel() != expected:
        raise DataError(
            f"a cell reads {expected} numbers as {buffer.name!r}, but was given {tensor.numel()}, of shape "
            f"{tuple(tensor.shape)}: a weight, a state or `fixed` belongs to a cell of another size."
        )


class CSteps:
    """The steps of a plan with everything in its place."""

    def __init__(self, passes: CPasses, memory: Buffers, phases: Phases, direction: str) -> None:
        self.memory = memory
        self.lengths = passes.lengths
        self.library = steps_library(memory.like.dtype == torch.float64)
        self.held: list[Tensor | Arguments] = []  # what the operations point to must live as long as they do
        names = named(direction, phases.passes)
        found = [self.product(product) for product in phases.before]
        for row_pass, name, products in zip(phases.passes, names, phases.after_pass, strict=True):
            arguments = passes.arguments(row_pass)
            self.held.append(arguments)
            function = address(passes.functions[name])
            found.append(Operation(function, *(ctypes.addressof(array) for array in arguments)))
            found += [self.product(product) for product in products]
        self.operations = (Operation * len(found))(*found)

    def product(self, product: StepProduct) -> Operation:
        memory, buffer = self.memory, product.operand
        weight, out = memory.products[product], memory.tensor(product.out)
        depth, width = weight.shape
        if (depth, width) != (buffer.width, product.out.width):
            raise DataError(
                f"a cell multiplies {buffer.width} numbers by a matrix and expects {product.out.width}, but the matrix "
                f"has the shape {(depth, width)}: a weight, or `fixed`, belongs to a cell of another size."
            )
        panel = self.library.panel_width()
        is_direct = memory.rows == 1 and weight.stride(0) == 1
        panels = None if is_direct else weight.new_empty(-(-width // panel) * panel * depth)
        operand = memory.tensors[buffer.name] if buffer.place is Place.PREVIOUS else memory.tensor(buffer)
        first = memory.first[buffer.name] if buffer.place is Place.PREVIOUS else None
        self.held += [tensor for tensor in (weight, panels, operand, out, first) if tensor is not None]
        return Operation(
            operand=operand.data_ptr(),
            operand_row=operand.stride(0),
            operand_step=0 if buffer.place is Place.ROWS else operand.stride(1),
            first=None if first is None else first.data_ptr(),
            first_row=0 if first is None else first.stride(0),
            weight=weight.data_ptr(),
            weight_row=weight.stride(0),
            weight_column=weight.stride(1),
            panels=None if panels is None else panels.data_ptr(),
            out=out.data_ptr(),
            depth=depth,
            width=width,
        )

    def run(self, *, backward: bool, restart: Restart | None = None) -> None:
        memory, found = self.memory, team() if self.memory.parts > 1 else None
        restarts = (CRestart * len(restart.copies))(*map(c_restart, restart.copies)) if restart else None
        cuts = (CCut * len(restart.cuts))(*map(c_cut, restart.cuts)) if restart else None
        sequence = Sequence(
            operations=ctypes.addressof(self.operations),
            lengths=None if self.lengths is None else self.lengths.data_ptr(),
            count=len(self.operations),
            rows=memory.rows,
            steps=memory.steps,
            is_backward=backward,
            parts=memory.parts,
            shares_panels=bool(memory.products) and memory.rows < ROWS_EACH * memory.parts,
            patience=patience(memory.parts),
            number=found and found.number,
            members=found and found.members,
            resets=restart.mask.data_ptr() if restart else None,
            restarts=None if restarts is None else ctypes.addressof(restarts),
            cuts=None if cuts is None else ctypes.addressof(cuts),
            resets_row=memory.steps,
            restart_count=0 if restarts is None else len(restarts),
            cut_count=0 if cuts is None else len(cuts),
        )
        self.library.run(ctypes.addressof(sequence), found and found.parallel)
