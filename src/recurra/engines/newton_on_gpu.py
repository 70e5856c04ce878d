"""Newton's method between chunks of steps, by kernels of Triton (newton_source.py): a few launches for all steps.

The host launches the kernels a few times over before it reads how far the last guesses moved, one number. Where they
still move after all that is allowed, as in a chaotic cell, one chunk holds all steps: they are then computed one after
the other, in a single kernel, and a warning says so.

Kept for the backward pass are the projected inputs and h, as for a scan, whose backward kernels are used.
"""

from __future__ import annotations

import functools
import warnings
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from recurra.engines.engine import DirectedCell, Reading
from recurra.engines.newton_source import newton_kernels
from recurra.engines.plan import Plan
from recurra.engines.planned import Run, Steps
from recurra.engines.planning import PLANS, split_fixed
from recurra.engines.replay import is_differentiated
from recurra.engines.scan_on_gpu import (
    PROGRAMS,
    Cut,
    Scanned,
    ScanSteps,
    Settings,
    keep,
    launching,
    no_kernels,
    placed,
)
from recurra.engines.scan_source import AT_ONCE, ScanKernels
from recurra.engines.triton_source import power_of_two
from recurra.engines.values import NoPlan
from recurra.errors import EngineError
from recurra.padding import Padded
from recurra.products.triton_here import KernelsError, why_no_kernels

ENGINE = "newton"

LEAST_STEPS = 64
"""No chunk is shorter; of long sequences a chunk has 2 √T steps, so that few states are to be found."""

BLOCK = 64
"""How many units one program computes."""

TOGETHER = 4
"""How often the kernels are launched before the host asks whether that was enough."""

MOST_TIMES = 32
"""How often guesses are improved at most: steps one after the other in one kernel take no longer than more would."""

SMALL = 1e-5
"""A change of the guesses, beside their size, after which the next is below what rounding does."""


@functools.lru_cache(maxsize=256)
def kernels_of(plan: Plan) -> ScanKernels | str:
    """The kernels of a plan, or why there are none."""
    try:
        return newton_kernels(plan)
    except NoPlan as reason:
        return str(reason)


def kernels_for(reader: DirectedCell, values: Tensor) -> ScanKernels | str:
    """The kernels for a cell that Newton's method can run, or why torch's operations must do."""
    if (reason := no_kernels(values)) is not None:
        return reason
    if values.dtype != torch.float32 or any(field.dtype != torch.float32 for field in reader.state):
        return "Newton's kernels need float32"
    plan = PLANS.plan(reader, values)
    if isinstance(plan, str):
        return plan
    reason = why_no_kernels(values.device, (ENGINE, plan))
    return kernels_of(plan) if reason is None else reason


def read(reader: DirectedCell, x: Padded, every: bool) -> Reading | None:
    """One cell over one batch; None where there are no kernels for it. A backward reader is one on reversed rows."""
    kernels = kernels_for(reader, x.values)
    if isinstance(kernels, str):
        return None
    cell, (start,), fixed, backward, _ = reader
    plan = PLANS.plan(reader, x.values)
    assert isinstance(plan, Plan)
    inputs = cell.project(x.values, fixed)
    inputs = Padded(inputs, x.lengths).reversed().values if backward else inputs
    rows, weights = split_fixed(plan, reader)
    tensors = (inputs, start, *rows, *weights)
    training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    lengths = None if x.is_full else x.lengths
    run = Run(plan, reader, lengths, False, len(rows), training, None, keeps_inputs=True)
    try:
        h, final = NewtonSteps.apply(run, Settings(kernels, inputs.dtype, ENGINE), *tensors)  # type: ignore[no-untyped-call]
    except KernelsError:  # a warning has said so
        return None
    outputs = Padded(h, x.lengths).reversed().values if backward else h
    return Reading(outputs, cell.State(outputs if every else final))


class NewtonSteps(torch.autograd.Function):
    """All steps of a cell whose units see only themselves, forward and back."""

    @staticmethod
    def forward(
        ctx: Any, run: Run, settings: Settings, inputs: Tensor, start: Tensor, *others: Tensor
    ) -> tuple[Tensor, Tensor]:
        scanned = Scanned(run, settings, inputs, start, others)
        scanned.cut = cut_of(scanned.B, scanned.T, scanned.H)
        with launching(run, inputs.device, ENGINE):
            h, final = solved(scanned)
        keep(ctx, run, settings, inputs, start, *others, h)
        return h, final

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if is_differentiated(gradients):
            raise second_derivatives()
        try:
            with torch.no_grad():
                return ScanSteps.fast(ctx, *gradients)
        except KernelsError:  # a warning has said so
            return Steps.recorded(ctx, *gradients)


def second_derivatives() -> EngineError:
    return EngineError("second derivatives are not supported by the engine 'newton'. Use engine = 'loop'.")


def cut_of(rows: int, steps: int, units: int) -> Cut:
    """How rows, units and steps are shared out among programs.

    >>> cut_of(1, 16384, 256)
    Cut(block=64, size=256, grid=(4, 64))
    >>> cut_of(1, 100, 5)
    Cut(block=8, size=56, grid=(1, 2))
    >>> cut_of(2048, 1000, 512).grid
    (16384, 1)
    """
    block = min(BLOCK, power_of_two(units))
    programs = rows * -(-units // block)
    chunks = max(1, min(PROGRAMS // programs, round(steps / max(LEAST_STEPS, 2 * isqrt(steps)))))
    size = whole(-(-steps // chunks))
    return Cut(block, size, (programs, -(-steps // size)))


def solved(scanned: Scanned) -> tuple[Tensor, Tensor]:
    """h after every step, and after the last."""
    chunks, device = scanned.cut.grid[1], scanned.inputs.device
    # P, F and g of every chunk, and the same again: one half is read while the other is written.
    halves = torch.empty(2, 3 if chunks > 1 else 0, chunks, scanned.B, scanned.H, dtype=torch.float32, device=device)
    changes = torch.empty(scanned.cut.grid, dtype=torch.float32, device=device)
    h = torch.empty(scanned.B, scanned.T, scanned.H, dtype=torch.float32, device=device)
    final = h.new_empty(scanned.B, scanned.H)
    results = (changes, scanned.start, final, *placed(h))
    if chunks > 1:
        for first in range(0, MOST_TIMES, TOGETHER):
            for n in range(first, first + TOGETHER):
                scanned.launch("newton_ends", halves[n % 2], halves[1 - n % 2], changes, scanned.start, given=n > 0)
            scanned.launch("newton_steps", halves[(first + TOGETHER) % 2], *results, given=True)
            if changes.amax().item() <= SMALL:
                return h, final
        warnings.warn(in_turn(scanned), RuntimeWarning, stacklevel=2)
        scanned.cut = Cut(scanned.cut.block, whole(scanned.T), (scanned.cut.grid[0], 1))
    scanned.launch("newton_steps", halves[0], *results)
    return h, final


def in_turn(scanned: Scanned) -> str:
    return (
        f"Newton's method has not found the states of '{scanned.run.reader.cell.name}' over {scanned.T:,} steps after "
        f"going over them {MOST_TIMES} times: its units forget too little of what they were. The steps are computed "
        "one after the other, which is slower. Use engine = 'auto'."
    )


def whole(steps: int) -> int:
    """So many steps or a few more, in groups of those that are read ahead."""
    return -(-steps // AT_ONCE) * AT_ONCE
