"""Cells whose units see only themselves, in parallel over time: Newton's method on all steps at once.

On a GPU, float32 batches take kernels that look for the states between chunks of steps alone (newton_on_gpu.py). All
others take operations of torch, on all states:

All states together solve h_t = f(x_t, h_{t-1}). Around states h⁰ that are nearly right this is a linear recurrence,

    h_t = D_t ∘ h_{t-1} + (f_t - D_t ∘ h⁰_{t-1}),       f_t = f(x_t, h⁰_{t-1}),  D_t = ∂f_t/∂h⁰_{t-1}, a diagonal

which a scan solves in a few large operations (Danieli et al. 2023; Lim et al. 2024). Its solution is the next h⁰. After
k times the first k steps are exact, whatever f is; where f forgets, a few times are enough for all.

The gradient needs no iteration: at the solution the recurrence above is the derivative of the step, so that

    dh_t = D_{t+1} ∘ dh_{t+1} + g_t                     g_t: what comes to h_t from outside

is one scan from the end, and all other gradients follow from dh and f as of a single step with T times as many rows.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from recurra.cells import AnyCell, Wrapper
from recurra.cells.elman import ElmanState
from recurra.cells.weights import leaves, replaced
from recurra.engines import newton_on_gpu, scan_on_gpu
from recurra.engines.engine import DirectedCell, Layer, Reading, Work, only_looped
from recurra.engines.planned import Run
from recurra.engines.planning import PLANS, row_tensors
from recurra.engines.replay import is_differentiated
from recurra.engines.scan import Scan, is_plain, pulled_back, scan
from recurra.engines.triton_source import units_of
from recurra.engines.vendor import last_real
from recurra.engines.workspace import products_of
from recurra.errors import EngineError
from recurra.padding import Padded
from recurra.products.triton_here import KernelsError
from recurra.recording import is_graphed

TIMES = 10
"""How often the recurrence is solved, for an estimate."""

MOST_TIMES = 64
"""How often the recurrence is solved at most."""

SMALL = {torch.float64: 1e-9, torch.float32: 1e-5}
"""A change of the states, beside their size, after which the next is below what rounding does: Newton's method doubles
the right digits each time."""


class Newton:
    """Runs cells of one state whose step is the same function of each unit's own past, whatever that function is."""

    name = "newton"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        if (reason := only_looped(x, layer)) is not None:
            return reason
        if x.values.dtype not in SMALL or torch.is_autocast_enabled(x.values.device.type):
            return "Newton's method needs float32 or float64"
        if is_graphed() or (x.values.is_cuda and torch.cuda.is_current_stream_capturing()):
            return "how often it must go over all steps is not known when a graph is recorded"
        reasons = (obstacle(reader, x) for reader in layer)
        return next((reason for reason in reasons if reason is not None), None)

    def cost(self, work: Work) -> float:
        return TIMES * Scan().cost(work)  # as often as it goes over all steps, which depends on the numbers

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        return [read(reader, x, every) for reader in layer]


def obstacle(reader: DirectedCell, x: Padded) -> str | None:
    """Why a cell cannot be run so, in words; None where it can."""
    cell = reader.cell
    if isinstance(cell, Wrapper):
        return f"'{cell.name}' changes the step of a cell"
    if reader.resets is not None:
        return "resets within rows are not supported"
    if len(reader.state) > 1:
        return f"it supports one state, but '{cell.name}' has {len(reader.state)}"
    plan = PLANS.plan(reader, x.values)
    if isinstance(plan, str):
        return f"'{cell.name}' has no plan: {plan}"
    if products_of(plan.forward) or any(units_of(each) is None for each in plan.forward.passes):
        return f"units of '{cell.name}' see the states of others"
    if row_tensors(plan, reader):
        return f"`fixed` of '{cell.name}' differs between rows"
    if not is_plain(reader.fixed):
        return f"`fixed` of '{cell.name}' returns more than tuples of tensors"
    return None


def read(reader: DirectedCell, x: Padded, every: bool) -> Reading:
    """One cell over one batch. A backward reader is a forward one on reversed rows."""
    if (reading := newton_on_gpu.read(reader, x, every)) is not None:
        return reading
    cell, (start,), fixed, backward, _ = reader
    inputs = cell.project(x.values, fixed)
    inputs = Padded(inputs, x.lengths).reversed().values if backward else inputs
    sources = [*leaves(fixed, Tensor), *cell.parameters()]  # type: ignore[type-var]
    h = Solved.apply(cell, fixed, inputs, start, *sources)  # type: ignore[no-untyped-call]
    h = h if x.is_full else h.masked_fill(~x.mask.unsqueeze(-1), 0.0)
    outputs = Padded(h, x.lengths).reversed().values if backward else h
    return Reading(outputs, cell.State(outputs if every else last_real(h, x.lengths, start)))


def stepped(cell: AnyCell, fixed: Any, inputs: Tensor, before: Tensor) -> Tensor:
    """f of all steps, (B, T, H): they are the rows of one."""
    found: Tensor = cell.step(inputs.flatten(0, 1), cell.State(before.flatten(0, 1)), fixed)[0]
    return found.unflatten(0, inputs.shape[:2])


def slope_of(after: Tensor, before: Tensor) -> Tensor:
    """D: where units see only themselves, a step's product with ones is its diagonal."""
    if not after.requires_grad:
        return torch.zeros_like(before)
    [found] = torch.autograd.grad(after, before, torch.ones_like(after), retain_graph=True, allow_unused=True)
    return torch.zeros_like(before) if found is None else found


def shifted(start: Tensor, h: Tensor) -> Tensor:
    """(B, T, H): the state before each step."""
    return torch.cat([start.unsqueeze(1), h[:, :-1]], dim=1)


class Solved(torch.autograd.Function):
    """h after every step, and the way back."""

    @staticmethod
    def forward(ctx: Any, cell: AnyCell, fixed: Any, inputs: Tensor, start: Tensor, *sources: Tensor) -> Tensor:
        h = solution(cell, fixed, inputs, start)
        ctx.cell, ctx.fixed = cell, fixed
        ctx.save_for_backward(inputs, start, h, *sources)
        return h

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if is_differentiated(gradients):
            raise newton_on_gpu.second_derivatives()
        (g,), (inputs, start, h, *_) = gradients, ctx.saved_tensors
        cell: AnyCell = ctx.cell
        fixed = replaced(ctx.fixed, Tensor, lambda leaf: leaf.detach().requires_grad_(leaf.requires_grad))  # type: ignore[type-var]
        sources = [*leaves(fixed, Tensor), *cell.parameters()]  # type: ignore[type-var]
        with torch.enable_grad():
            before = shifted(start, h).detach().requires_grad_()
            given = inputs.detach().requires_grad_(inputs.requires_grad)
            after = stepped(cell, fixed, given, before)
            D = slope_of(after, before)
        # dh_t = D_{t+1} ∘ dh_{t+1} + g_t, read from the end; there is nothing after the last step.
        later = torch.cat([D[:, 1:], torch.zeros_like(D[:, :1])], dim=1)
        dh = linear(later.flip(1), g.flip(1), torch.zeros_like(start)).flip(1)
        found = pulled_back([(after, dh)], [given, *sources])
        return None, None, found[0], D[:, 0] * dh[:, 0], *found[1:]


def solution(cell: AnyCell, fixed: Any, inputs: Tensor, start: Tensor) -> Tensor:
    """All states, or an EngineError where they are not found in time."""
    fixed = replaced(fixed, Tensor, Tensor.detach)  # type: ignore[type-var]
    h = stepped(cell, fixed, inputs, torch.zeros_like(start).unsqueeze(1).expand(-1, inputs.shape[1], -1))
    for _ in range(MOST_TIMES):
        with torch.enable_grad():
            before = shifted(start, h).detach().requires_grad_()
            after = stepped(cell, fixed, inputs, before)
            D = slope_of(after, before)
        after = after.detach()
        found = linear(D, torch.addcmul(after, D, before.detach(), value=-1), start)
        change, size = torch.stack([(found - h).abs_().amax(), found.abs().amax()]).tolist()
        if not math.isfinite(size):  # far from the solution, D may be anything
            h = torch.where(found.isfinite(), found, after)
            continue
        h = found
        if change <= SMALL[h.dtype] * (1 + size):
            return h
    raise EngineError(
        f"Newton's method has not found the states of '{cell.name}' over {inputs.shape[1]:,} steps after going over "
        f"them {MOST_TIMES} times: its units forget too little of what they were. Use engine = 'auto'."
    )


def linear(decay: Tensor, inflow: Tensor, start: Tensor) -> Tensor:
    """h_t = decay_t ∘ h_{t-1} + inflow_t, all (B, T, H)."""
    if (found := linear_by_kernels(decay, inflow, start)) is not None:
        return found
    h = torch.empty_like(inflow, memory_format=torch.contiguous_format)
    scan(decay, inflow, start, out=h)
    return h


def linear_by_kernels(decay: Tensor, inflow: Tensor, start: Tensor) -> Tensor | None:
    """The same by kernels; None where there are none."""
    if scan_on_gpu.no_kernels(decay) is None:
        reader = DirectedCell(scan_on_gpu.given_cell(start.shape[1]), ElmanState(start), ())
        both = torch.cat([decay, inflow], dim=-1)
        found = scan_on_gpu.scannable(reader, both)
        if not isinstance(found, str):
            run = Run(found[0], reader, None, False, 0, False, None, keeps_inputs=True)
            settings = scan_on_gpu.Settings(found[1], decay.dtype)
            with suppress(KernelsError), scan_on_gpu.launching(run, decay.device):
                return scan_on_gpu.Scanned(run, settings, both, start, ()).forward(decay.dtype)[0]
    return None
