"""Scans by kernels of Triton: where scan.py takes many operations of torch, one kernel or two for all steps.

A cell that is linear in its state and whose step has a plan is scanned as it is (scan_source.py): its gates are
computed within the kernels. Of any other, decay and inflow are computed by torch, and scanned as the inputs of `Given`.

Kept for the backward pass are the projected inputs and h, in the type of the batch. Sums are in float32.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from recurra.cells import Cell
from recurra.cells.elman import ElmanState
from recurra.engines.engine import DirectedCell, Reading
from recurra.engines.plan import Plan
from recurra.engines.planned import Run, Steps
from recurra.engines.planning import PLANS, Nodes, row_tensors, split_fixed
from recurra.engines.replay import is_differentiated
from recurra.engines.resets import Resets
from recurra.engines.scan_source import AT_ONCE, ScanKernels, scan_kernels
from recurra.engines.triton_kernels import loaded
from recurra.engines.triton_source import PRELUDE, power_of_two
from recurra.engines.values import NoPlan
from recurra.padding import Padded, beside
from recurra.products.triton_here import KernelsError, kernels_for, why_no_kernels

TYPES = (torch.float32, torch.bfloat16, torch.float16)

BLOCK = 64
"""How many units one program computes: two for each thread of a warp."""

PROGRAMS = 4096
"""So many programs keep a GPU busy: time is cut into chunks until there are as many."""

LEAST_STEPS = 32
"""No chunk is shorter."""


class Given(Cell[ElmanState, tuple[()]]):
    """h' = decay ∘ h + inflow, with both side by side as the inputs."""

    State = ElmanState

    def parts(self, inputs: Tensor, state: ElmanState, fixed: tuple[()]) -> ElmanState:
        decay, inflow = inputs.chunk(2, dim=-1)
        return ElmanState(h=decay * state.h + inflow)


@functools.lru_cache(maxsize=64)
def given_cell(size: int) -> Given:
    return Given(2 * size, size)


def no_kernels(values: Tensor, plan: Plan | None = None) -> str | None:
    """Why a batch cannot be scanned by kernels of Triton, in words; None where it can. plan: by those of a plan."""
    if values.dtype not in TYPES:
        return f"kernels support float32, bfloat16 and float16, but the batch has {values.dtype}"
    return why_no_kernels(values.device, None if plan is None else ("scan", plan))


def launching(run: Run, device: torch.device, how: str = "scan") -> AbstractContextManager[None]:
    """Inside, the kernels of a plan are launched."""
    cell = run.reader.cell
    of = "" if isinstance(cell, Given) else f" with the cell '{cell.name}'"
    return kernels_for(device, (how, run.plan), f"the engine '{how}'{of}")


@functools.lru_cache(maxsize=256)
def kernels_of(plan: Plan) -> ScanKernels | str:
    """The kernels of a plan, or why there are none."""
    try:
        return scan_kernels(plan)
    except NoPlan as reason:
        return str(reason)


def scannable(reader: DirectedCell, values: Tensor) -> tuple[Plan, ScanKernels] | str:
    """The plan of a cell and its kernels, or why there are none."""
    plan = PLANS.plan(reader, values)
    if isinstance(plan, str):
        return plan
    found = kernels_of(plan)
    if isinstance(found, str):
        return found
    if (reason := no_kernels(values, plan)) is not None:
        return reason
    if torch.is_grad_enabled() and any(row.requires_grad for row in row_tensors(plan, reader)):
        return "it needs the gradient of a value in `fixed` that differs between rows"
    return plan, found


def read(reader: DirectedCell, x: Padded, every: bool) -> Reading | None:
    """One cell over one batch; None where there are no kernels for it. A backward reader is one on reversed rows."""
    cell, (start,), fixed, backward, resets = reader
    if no_kernels(x.values) is not None or start.dtype not in TYPES:
        return None
    found = scannable(reader, x.values)
    is_whole = not isinstance(found, str)
    if isinstance(found, str):
        reader = DirectedCell(given_cell(cell.hidden_size), ElmanState(start), ())
        found = scannable(reader, x.values)
    if isinstance(found, str):
        return None
    inputs = cell.project(x.values, fixed)
    dtype = torch.promote_types(inputs.dtype, start.dtype)
    if not is_whole:
        coefficients = cell.coefficients(inputs, fixed)
        assert coefficients is not None
        shape = (*inputs.shape[:2], cell.hidden_size)
        inputs = torch.cat([each.to(torch.float32).expand(shape) for each in coefficients], dim=-1)
    plan, kernels = found
    inputs = Padded(inputs, x.lengths).reversed().values if backward else inputs
    if resets is not None:
        resets = resets._replace(mask=resets.in_reading_order(x.lengths, backward).contiguous())
    rows, weights = split_fixed(plan, reader)
    tensors = (inputs, start, *rows, *weights)
    training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    lengths = None if x.is_full else x.lengths
    run = Run(plan, reader, lengths, False, len(rows), training, resets, keeps_inputs=True)
    try:
        with torch.autocast(x.values.device.type, enabled=False):
            h, final = ScanSteps.apply(run, Settings(kernels, dtype), *tensors)  # type: ignore[no-untyped-call]
    except KernelsError:  # a warning has said so
        return None
    outputs = Padded(h, x.lengths).reversed().values if backward else h
    return Reading(outputs, cell.State(outputs if every else final))


class Settings(NamedTuple):
    """What a scan needs beside a run."""

    kernels: ScanKernels
    dtype: torch.dtype  # of the answers
    engine: str = "scan"


class Cut(NamedTuple):
    """How rows, units and steps are shared out among programs."""

    block: int
    size: int  # steps of a chunk
    grid: tuple[int, int]

    @classmethod
    def of(cls, rows: int, steps: int, units: int) -> Cut:
        """
        >>> Cut.of(16, 4096, 256)
        Cut(block=64, size=64, grid=(64, 64))
        >>> Cut.of(512, 100, 512).grid
        (4096, 1)
        """
        block = min(BLOCK, power_of_two(units))
        programs = rows * -(-units // block)
        chunks = max(1, min(PROGRAMS // programs, steps // LEAST_STEPS))
        size = -(-steps // (chunks * AT_ONCE)) * AT_ONCE
        return cls(block, size, (programs, -(-steps // size)))


class Scanned:
    """One sequence before its kernels: where everything lies."""

    def __init__(self, run: Run, settings: Settings, inputs: Tensor, start: Tensor, others: tuple[Tensor, ...]) -> None:
        self.run = run
        self.kernels = settings.kernels
        self.inputs = in_rows(inputs)
        self.B, self.T, _ = inputs.shape
        self.H = settings.kernels.units
        self.cut = Cut.of(self.B, self.T, self.H)
        self.start = start.contiguous()
        rows, weights = others[: run.row_count], others[run.row_count :]
        self.weights = weights
        self.vectors = [vector.contiguous().flatten() for vector in vectors_of(run.plan, settings.kernels)(weights)]
        self.rows = [in_rows(row.flatten(1)) for row in rows]
        self.lengths = None if run.lengths is None else beside(run.lengths.to(torch.int32), inputs)
        resets: Resets | None = run.resets
        self.anew = None if resets is None else resets.mask.view(torch.uint8)
        self.first = None if resets is None else resets.state[0].detach().contiguous()
        self.functions = loaded("\n\n".join([PRELUDE, settings.kernels.source]))

    def ends(self) -> tuple[Tensor, Tensor]:
        """Memory for P and e of every chunk."""
        shape = (self.cut.grid[1] if self.cut.grid[1] > 1 else 0, self.B, self.H)
        return tuple(torch.empty(2, *shape, device=self.inputs.device).unbind(0))  # type: ignore[return-value]

    def launch(self, name: str, *arguments: Any, given: bool = False, last: bool = False) -> None:
        nothing = self.inputs
        self.functions[name][self.cut.grid](
            self.T,
            self.cut.size,
            nothing if self.lengths is None else self.lengths,
            nothing if self.anew is None else self.anew,
            0 if self.anew is None else self.anew.stride(0),
            nothing if self.first is None else self.first,
            *placed(self.inputs),
            *self.vectors,
            *(part for row in self.rows for part in (row, row.stride(0))),
            *arguments,
            RAGGED=self.lengths is not None,
            RESETS=self.anew is not None,
            GIVEN=given,
            LAST=last,
            BLOCK=self.cut.block,
            num_warps=1,
        )

    def forward(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """h after every step, and after the last."""
        h = torch.empty(self.B, self.T, self.H, dtype=dtype, device=self.inputs.device)
        final = h.new_empty(self.B, self.H)
        ends = self.ends()
        if self.cut.grid[1] > 1:
            self.launch("scan_forward_ends", *ends)
        self.launch("scan_forward_steps", *ends, self.start, final, *placed(h))
        return h, final

    def backward(self, h: Tensor, given: Tensor | None, last: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of the inputs and of the start state, and sums for those of the weights."""
        given = None if given is None else in_rows(given)
        last = None if last is None else last.contiguous()
        d_inputs = torch.empty_like(self.inputs, memory_format=torch.contiguous_format)
        d_start = torch.empty_like(self.start)
        sums = torch.empty(self.cut.grid[1], self.B, self.kernels.sums, device=h.device)
        ends = self.ends()
        states = (*placed(h), self.start, *placed(h if given is None else given))
        if self.cut.grid[1] > 1:
            self.launch("scan_backward_ends", *ends, *states, given=given is not None)
        self.launch(
            "scan_backward_steps",
            *ends,
            *states,
            h if last is None else last,
            d_start,
            sums,
            *placed(d_inputs),
            given=given is not None,
            last=last is not None,
        )
        return d_inputs, d_start, sums.sum((0, 1))


class ScanSteps(torch.autograd.Function):
    """All steps of a linear cell, forward and back."""

    @staticmethod
    def forward(
        ctx: Any, run: Run, settings: Settings, inputs: Tensor, start: Tensor, *others: Tensor
    ) -> tuple[Tensor, Tensor]:
        with launching(run, inputs.device):
            h, final = Scanned(run, settings, inputs, start, others).forward(settings.dtype)
        keep(ctx, run, settings, inputs, start, *others, h)
        return h, final

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if is_differentiated(gradients):
            return Steps.recorded(ctx, *gradients)
        try:
            with torch.no_grad(), torch.autocast(ctx.saved_tensors[0].device.type, enabled=False):
                return ScanSteps.fast(ctx, *gradients)
        except KernelsError:  # a warning has said so
            return Steps.recorded(ctx, *gradients)

    @staticmethod
    def fast(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        inputs, start, *others, h = ctx.saved_tensors
        run: Run = ctx.run
        scanned = Scanned(run, ctx.settings, inputs, start, tuple(others))
        with launching(run, inputs.device, ctx.settings.engine):
            d_inputs, d_start, sums = scanned.backward(h, *gradients)
        needed = ctx.needs_input_grad[4 + run.row_count :]
        of_weights = weight_gradients(run.plan, scanned.weights, sums, needed)
        return None, None, d_inputs, d_start, *(None for _ in range(run.row_count)), *of_weights


def keep(ctx: Any, run: Run, settings: Settings, *tensors: Tensor) -> None:
    """Keep what ScanSteps.fast reads on the way back, in training."""
    if run.training:
        ctx.set_materialize_grads(False)
        ctx.run, ctx.settings = run, settings
        ctx.save_for_backward(*tensors)


@functools.lru_cache(maxsize=256)
def vectors_of(plan: Plan, kernels: ScanKernels) -> Nodes:
    """The weights that kernels read, from those that are given."""
    return Nodes(plan, plan.trace.weight_inputs, [weight.node for weight in kernels.vectors])


def weight_gradients(
    plan: Plan, weights: tuple[Tensor, ...], sums: Tensor, needed: tuple[bool, ...]
) -> list[Tensor | None]:
    """Every weight's gradient, from what was summed up over rows and steps."""
    wanted = tuple(
        number
        for number, (node, is_needed) in enumerate(zip(plan.trace.weight_gradients, needed, strict=True))
        if node is not None and is_needed
    )
    if not wanted:
        return [None] * len(weights)
    parts = sums.split([buffer.width for _, buffer in plan.sums])
    results = iter(gradient_nodes(plan, wanted)([*weights, *parts]))
    return [next(results).to(weight.dtype) if n in wanted else None for n, weight in enumerate(weights)]


@functools.lru_cache(maxsize=256)
def gradient_nodes(plan: Plan, wanted: tuple[int, ...]) -> Nodes:
    given = [*plan.trace.weight_inputs, *(contraction.node for contraction, _ in plan.sums)]
    nodes = [plan.trace.weight_gradients[number] for number in wanted]
    return Nodes(plan, given, [node for node in nodes if node is not None])


def in_rows(tensor: Tensor) -> Tensor:
    """The same tensor, with the numbers of a row and step side by side."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def placed(tensor: Tensor) -> tuple[Tensor, int, int]:
    """Where a sequence (B, T, w) lies: its first number, and how far the next row and the next step are."""
    return tensor, tensor.stride(0), tensor.stride(1)
