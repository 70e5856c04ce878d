"""The graph engine: any cell on a GPU, by the plan that its own step gives, replayed from CUDA graphs.

At each step the vendor's product and one generated kernel run after each other, for all rows at once; gradients of
matrices are one product each after the last step. See workspace.py for where things lie and how steps are replayed.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import torch
from torch import Tensor

from recurra.engines.cost import Estimate, Rates, in_graph
from recurra.engines.engine import Layer, Reading, Work, only_looped
from recurra.engines.pieces import pieces_of
from recurra.engines.plan import Plan
from recurra.engines.planned import Run, Steps
from recurra.engines.planning import PLANS, inputs_of, row_tensors, split_fixed
from recurra.engines.replay import is_differentiated
from recurra.engines.tiles import Direction
from recurra.engines.values import NoPlan
from recurra.engines.workspace import Workspace, in_one_piece, kernels_of, nothing_carried
from recurra.padding import Padded
from recurra.products.triton_here import KernelsError, kernels_for, why_no_kernels
from recurra.recording import is_graphed

TYPES = (torch.float32, torch.bfloat16, torch.float16)

# The cost of a call is that of the host, and some of what a new size of batch costs before its graphs are recorded.
HALF = Estimate(
    training=Rates(call=2.0e-3, gate=1e-6, product=2e-15), inference=Rates(call=700e-6, gate=0.5e-6, product=1e-15)
)
SINGLE = Estimate(  # products without the matrix units, where cuDNN has tf32
    training=Rates(call=2.2e-3, gate=6e-6, product=2e-14), inference=Rates(call=800e-6, gate=3e-6, product=1e-14)
)

# Inside a graph of somebody else's: of an LSTM in bfloat16 at the seven shapes of benchmarks/results/cells_on_gpu.txt,
# each within 9 %. In float32 without the time of a call; that was not measured.
HALF_IN_GRAPH = in_graph(Rates(call=20e-6, gate=1.67e-6, weight=7.6e-13, number=2.18e-11))
SINGLE_IN_GRAPH = in_graph(SINGLE.training._replace(call=20e-6))

MOST_MEMORY = 0.25
"""The share of a GPU's memory that idle workspaces may keep."""


class Graph:
    """Runs every cell that has a plan, on a GPU."""

    name = "graph"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        if (reason := only_looped(x, layer)) is not None:
            return reason
        if (reason := why_no_kernels(x.values.device)) is not None:
            return reason
        if x.values.dtype not in TYPES:
            return f"it supports float32, bfloat16 and float16, but the batch has {x.values.dtype}"
        for reader in layer:
            if any(field.dtype not in TYPES for field in reader.state):
                return "its start state is not float32, bfloat16 or float16"
            plan = PLANS.plan(reader, x.values)
            if isinstance(plan, str):
                return f"'{reader.cell.name}' has no plan: {plan}"
            if (reason := why_no_kernels(x.values.device, plan)) is not None:
                return reason
            of_rows = row_tensors(plan, reader)
            if torch.is_grad_enabled() and any(row.requires_grad for row in of_rows):
                return f"'{reader.cell.name}' needs the gradient of a value in `fixed` that differs between rows"
            if of_rows and reader.resets is not None:
                return f"'{reader.cell.name}' has a value in `fixed` that differs between rows, and there are resets"
            try:
                for direction in ("forward", "inference", "backward"):
                    kernels_of(plan, direction, ())
            except NoPlan as reason:
                return f"'{reader.cell.name}' has no kernels: {reason}"
        return None

    def cost(self, work: Work) -> float:
        if work.autocast or work.dtype != torch.float32:
            return (HALF_IN_GRAPH if work.graphed else HALF).seconds(work)
        return (SINGLE_IN_GRAPH if work.graphed else SINGLE).seconds(work)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        readings = []
        for reader in layer:
            plan, draws = PLANS.planning(reader, x.values)
            assert isinstance(plan, Plan)
            inputs = inputs_of(reader, x)
            rows, weights = split_fixed(plan, reader)
            state, lengths, pieces = reader.state, None if x.is_full else x.lengths, None
            if reader.resets is not None:
                pieces = pieces_of(reader.resets.in_reading_order(x.lengths, reader.backward), x.lengths)
                inputs, lengths = pieces.cut(inputs), pieces.lengths
                state = tuple(map(pieces.start, state, reader.resets.state))
            tensors = (inputs, *state, *rows, *weights)
            training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
            keeps = draws or pieces is not None
            run = Run(plan, reader._replace(resets=None), lengths, every, len(rows), training, None, keeps_inputs=keeps)
            with torch.autocast(x.values.device.type, enabled=False):
                dtype = inputs.dtype if inputs.dtype in TYPES else x.values.dtype
                results = GraphSteps.apply(run, dtype, x.values, *tensors)  # type: ignore[no-untyped-call]
            sequences, finals = results[: -len(state)], results[-len(state) :]
            if pieces is not None:
                sequences = [pieces.joined(sequence, x.lengths) for sequence in sequences]
                finals = [final.index_select(0, pieces.lasts) for final in finals]
            if reader.backward:
                sequences = [Padded(sequence, x.lengths).reversed().values for sequence in sequences]
            State = reader.cell.State
            readings.append(Reading(sequences[0], State(*sequences) if every else State(*finals)))
        return readings


def launching(run: Run, device: torch.device) -> AbstractContextManager[None]:
    """Inside, the kernels of a plan are launched."""
    return kernels_for(device, run.plan, f"the engine 'graph' with the cell '{run.reader.cell.name}'")


class GraphSteps(torch.autograd.Function):
    """All steps of a plan, forward and back."""

    @staticmethod
    def forward(
        ctx: Any, run: Run, dtype: torch.dtype, values: Tensor, given: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        plan = run.plan
        count = len(plan.states)
        start, rows = tensors[:count], tensors[count : count + run.row_count]
        B, T, _ = given.shape
        kinds = tuple({tensor.dtype: None for tensor in tensors[count + run.row_count :]})
        lease = WORKSPACES.take(plan, B, T, dtype, given.device, is_full=run.lengths is None, kinds=kinds)
        workspace = lease.workspace
        workspace.check()
        is_ragged = run.lengths is not None or workspace.rows != B
        if is_ragged:
            workspace.set_lengths(run.lengths, B, T)
        direction: Direction = "forward" if run.training else "inference"
        workspace.load(direction, tensors[count + run.row_count :], start, rows)
        with launching(run, given.device):
            workspace.run_forward(direction, given, is_ragged)
        sequences = [
            in_one_piece(workspace.sequence(buffer, B, T), always=True).to(dtype)
            for buffer in (plan.states if run.every else plan.states[:1])
        ]
        finals = [
            workspace.last(buffer, B, T, is_ragged).to(before.dtype, copy=True)
            for buffer, before in zip(plan.states, start, strict=True)
        ]
        if run.training:
            ctx.set_materialize_grads(False)
            ctx.run, ctx.lease, ctx.size, ctx.is_ragged = run, lease, (B, T), is_ragged
            ctx.save_for_backward(given if run.keeps_inputs else values, *tensors)
        else:
            lease.release()
        return (*sequences, *finals)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if is_differentiated(gradients) or not ctx.lease.is_valid():
            # Second derivatives, or a second backward pass whose workspace has been used again since.
            none, *found = Steps.recorded(ctx, *gradients)
            return none, None, *found
        try:
            with torch.no_grad(), torch.autocast(ctx.lease.workspace.device.type, enabled=False):
                found = GraphSteps.fast(ctx, *gradients)
        except KernelsError:  # a warning has said so
            none, *found = Steps.recorded(ctx, *gradients)
            return none, None, *found
        ctx.lease.release()
        return None, None, None, *found

    @staticmethod
    def fast(ctx: Any, *gradients: Tensor | None) -> list[Tensor | None]:
        run: Run = ctx.run
        plan, workspace = run.plan, ctx.lease.workspace
        workspace.check()
        B, T = ctx.size
        count = len(plan.states)
        _, *tensors = ctx.saved_tensors
        start, weights = tensors[:count], tensors[count + run.row_count :]
        needed = ctx.needs_input_grad[4:]
        of_sequences = gradients[:-count] + (None,) * (count - len(gradients[:-count]))
        workspace.load_gradients(of_sequences, gradients[-count:], B, T)
        absent = tuple(buffer for buffer, g in zip(plan.d_outputs, of_sequences, strict=True) if g is None)
        of_finals = zip(nothing_carried(plan), gradients[-count:], strict=True)
        absent += tuple(buffer for buffer, g in of_finals if buffer is not None and g is None)
        with launching(run, workspace.device):
            workspace.run_backward(T, ctx.is_ragged, absent)
        d_start = [
            workspace.start_gradient(parts, B).to(before.dtype) if is_needed else None
            for parts, before, is_needed in zip(plan.d_states, start, needed, strict=False)
        ]
        d_weights = workspace.weight_gradients(T, weights, needed[count + run.row_count :])
        nothing = (None for _ in range(run.row_count))
        return [workspace.input_gradient(B, T), *d_start, *nothing, *d_weights]


Key: TypeAlias = tuple[Plan, int, torch.dtype, torch.device, int, tuple[torch.dtype, ...]]


class Lease:
    """A workspace while a sequence is in it: from its forward pass to the end of its backward pass."""

    def __init__(self, workspace: Workspace, turn: int) -> None:
        self.workspace = workspace
        self.turn = turn

    def is_valid(self) -> bool:
        """Whether the workspace still holds this sequence."""
        return WORKSPACES.turns.get(id(self.workspace), self.turn) == self.turn

    def release(self) -> None:
        WORKSPACES.give_back(self)

    def __del__(self) -> None:
        # A forward pass whose backward pass never came.
        self.release()


class Workspaces:
    """Workspaces by plan and number of rows; what is not in use may be used again, or dropped."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.idle: dict[Key, list[Workspace]] = {}  # the one used last stands last
        self.busy: dict[int, tuple[Key, Workspace]] = {}
        self.turns: dict[int, int] = {}  # how often each has been lent
        self.count = 0

    def take(
        self,
        plan: Plan,
        rows: int,
        steps: int,
        dtype: torch.dtype,
        device: torch.device,
        *,
        is_full: bool,
        kinds: tuple[torch.dtype, ...] = (),
    ) -> Lease:
        """kinds: the types of the weights, of which a workspace holds copies."""
        if is_graphed() or (device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
            # Somebody records a graph of their own: memory that belongs to it, used by nobody else.
            return Lease(Workspace(plan, rows, steps, dtype, device, is_for_one=True), 0)
        rows = rows if is_full else rows_like(rows)
        stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
        key = (plan, rows, dtype, device, stream, kinds)
        with self.lock:
            found = self.idle.pop(key, [])
            fitting = next((each for each in reversed(found) if each.steps >= steps), None)
            rest = [each for each in found if each is not fitting and each.steps >= steps]
            if rest:
                self.idle[key] = rest
            workspace = fitting or Workspace(plan, rows, steps_like(steps, is_full=is_full), dtype, device)
            self.count += 1
            self.turns[id(workspace)] = self.count
            self.busy[id(workspace)] = (key, workspace)
            return Lease(workspace, self.count)

    def give_back(self, lease: Lease) -> None:
        with self.lock:
            if lease.turn and self.turns.get(id(lease.workspace)) == lease.turn:
                found = self.busy.pop(id(lease.workspace), None)
                if found is not None:
                    key, workspace = found
                    self.idle.setdefault(key, []).append(workspace)
                    self.idle[key] = self.idle.pop(key)  # the key used last stands last
                    self.drop(workspace.device)

    def forget(self, device: torch.device) -> bool:
        """Drop all of a device that are not in use. Whether there were some."""
        with self.lock:
            gone = [each for of_key in self.idle.values() for each in of_key if each.device == device]
            for each in gone:
                self.turns.pop(id(each), None)
            kept = {key: [each for each in of_key if each.device != device] for key, of_key in self.idle.items()}
            self.idle = {key: of_key for key, of_key in kept.items() if of_key}
            return bool(gone)

    def drop(self, device: torch.device) -> None:
        """Drop those that were used longest ago while all together hold too much."""
        if device.type != "cuda":
            return
        limit = MOST_MEMORY * torch.cuda.get_device_properties(device).total_memory
        held = [(key, each) for key, of_key in self.idle.items() for each in of_key if each.device == device]
        total = sum(each.size() for _, each in held)
        for key, each in held[:-1]:
            if total <= limit:
                break
            total -= each.size()
            self.idle[key] = [other for other in self.idle[key] if other is not each]
            self.turns.pop(id(each), None)
            if not self.idle[key]:
                del self.idle[key]


def rows_like(rows: int) -> int:
    """So many rows that few different workspaces serve all batches: at most an eighth more.

    >>> [rows_like(rows) for rows in (3, 9, 40, 70, 200)]
    [3, 9, 40, 72, 208]
    """
    step = max(1, 1 << max(0, rows.bit_length() - 4))
    return -(-rows // step) * step


def steps_like(steps: int, *, is_full: bool) -> int:
    """How many steps a new workspace holds: some more than asked for where batches differ."""
    return steps if is_full else -(-steps * 5 // 4 // 16) * 16


WORKSPACES = Workspaces()
