"""The graph engine: any cell on a GPU, by the plan that its own step gives, replayed from CUDA graphs.

At each step the vendor's product and one generated kernel run after each other, for all rows at once; gradients of
matrices are one product each after the last step. See workspace.py for where things lie and how steps are replayed.
"""

from __future__ import annotations

import threading
from typing import Any, TypeAlias

import torch
from torch import Tensor, fx

from recurra.engines.cost import Estimate, Rates
from recurra.engines.engine import Layer, Reading, Work, only_looped
from recurra.engines.plan import Buffer, Place, Plan
from recurra.engines.planned import Run, Steps
from recurra.engines.planning import PLANS, computed, inputs_of, row_tensors, split_fixed
from recurra.engines.replay import is_differentiated
from recurra.engines.triton_kernels import is_installed, is_interpreted
from recurra.engines.values import NoPlan
from recurra.engines.workspace import Direction, Workspace, cast_like, kernels_of, products_of
from recurra.padding import Padded

TYPES = (torch.float32, torch.bfloat16, torch.float16)

ON_GPU = Estimate(
    training=Rates(call=400e-6, gate=3e-6, product=2e-15), inference=Rates(call=150e-6, gate=1.5e-6, product=1e-15)
)

MOST_MEMORY = 0.25
"""The share of a GPU's memory that idle workspaces may keep."""


class Graph:
    """Runs every cell that has a plan, on a GPU."""

    name = "graph"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        if (reason := only_looped(x, layer)) is not None:
            return reason
        if (reason := no_kernels(x.values)) is not None:
            return reason
        if x.values.dtype not in TYPES:
            return f"it supports float32, bfloat16 and float16, but the batch has {x.values.dtype}"
        for reader in layer:
            if reader.resets is not None:
                return "it does not support resets"
            if any(field.dtype not in TYPES for field in reader.state):
                return "its start state is not float32, bfloat16 or float16"
            plan = PLANS.plan(reader, x.values)
            if isinstance(plan, str):
                return f"'{reader.cell.name}' has no plan: {plan}"
            if torch.is_grad_enabled() and any(row.requires_grad for row in row_tensors(plan, reader)):
                return f"'{reader.cell.name}' needs the gradient of a value in `fixed` that differs between rows"
            try:
                for direction in ("forward", "inference", "backward"):
                    kernels_of(plan, direction, ())
            except NoPlan as reason:
                return f"'{reader.cell.name}' has no kernels: {reason}"
        return None

    def cost(self, work: Work) -> float:
        return ON_GPU.seconds(work)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        readings = []
        for reader in layer:
            plan, draws = PLANS.planning(reader, x.values)
            assert isinstance(plan, Plan)
            inputs = inputs_of(reader, x)
            rows, weights = split_fixed(plan, reader)
            tensors = (inputs, *reader.state, *rows, *weights)
            training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
            lengths = None if x.is_full else x.lengths
            run = Run(plan, reader, lengths, every, len(rows), training, None, keeps_inputs=draws)
            with torch.autocast(x.values.device.type, enabled=False):
                dtype = inputs.dtype if inputs.dtype in TYPES else x.values.dtype
                results = GraphSteps.apply(run, dtype, x.values, *tensors)  # type: ignore[no-untyped-call]
            sequences, finals = results[: -len(reader.state)], results[-len(reader.state) :]
            if reader.backward:
                sequences = [Padded(sequence, x.lengths).reversed().values for sequence in sequences]
            state = reader.cell.State
            readings.append(Reading(sequences[0], state(*sequences) if every else state(*finals)))
        return readings


def no_kernels(values: Tensor) -> str | None:
    """Why no kernel of Triton can run on a batch, in words; None where they can."""
    if not is_installed():
        return "its kernels are compiled by Triton, which is not installed (pip install triton)"
    if is_interpreted() and values.device.type == "cpu":
        return None
    if values.device.type != "cuda":
        return f"it runs on a GPU, but the batch is on {values.device.type}"
    if torch.cuda.get_device_capability(values.device) < (7, 0):
        return "Triton needs a GPU of compute capability 7.0 or newer"
    return None


class GraphSteps(torch.autograd.Function):
    """All steps of a plan, forward and back."""

    @staticmethod
    def forward(
        ctx: Any, run: Run, dtype: torch.dtype, values: Tensor, given: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        plan = run.plan
        count = len(plan.states)
        start, rows = tensors[:count], tensors[count : count + run.row_count]
        weights = tensors[count + run.row_count :]
        B, T, _ = given.shape
        lease = WORKSPACES.take(plan, B, T, dtype, given.device, is_full=run.lengths is None)
        workspace = lease.workspace
        is_ragged = run.lengths is not None or workspace.rows != B
        if is_ragged:
            workspace.lengths[B:].zero_()
            lengths = torch.full((B,), T, dtype=torch.int32) if run.lengths is None else run.lengths.int()
            workspace.lengths[:B].copy_(lengths, non_blocking=True)
        direction: Direction = "forward" if run.training else "inference"
        set_weights(workspace, direction, weights)
        named = {buffer.name: buffer for buffer in buffers_read(workspace, direction)}
        for name, row in zip(plan.trace.row_inputs, rows, strict=True):
            if name in named:
                workspace.tensor(named[name])[0, :B].copy_(row.flatten(1))
        for buffer, before in zip(plan.states, start, strict=True):
            workspace.tensor(buffer)[0, :B].copy_(before)
        workspace.run_forward(direction, given, is_ragged)
        sequences = [
            steps_first(workspace.steps_of(buffer), T, B).to(dtype, memory_format=torch.contiguous_format, copy=True)
            for buffer in (plan.states if run.every else plan.states[:1])
        ]
        finals = [
            last_of(workspace, buffer, T, B, is_ragged).to(before.dtype, copy=True)
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
        with torch.no_grad(), torch.autocast(ctx.lease.workspace.device.type, enabled=False):
            found = GraphSteps.fast(ctx, *gradients)
        ctx.lease.release()
        return None, None, None, *found

    @staticmethod
    def fast(ctx: Any, *gradients: Tensor | None) -> list[Tensor | None]:
        run: Run = ctx.run
        plan, workspace = run.plan, ctx.lease.workspace
        B, T = ctx.size
        count = len(plan.states)
        _, *tensors = ctx.saved_tensors
        start, weights = tensors[:count], tensors[count + run.row_count :]
        of_sequences = gradients[:-count] + (None,) * (count - len(gradients[:-count]))
        set_weights(workspace, "backward", weights)
        for buffer, gradient in zip(plan.d_outputs, of_sequences, strict=True):
            if gradient is not None:
                steps_first(workspace.tensor(buffer), T, B).copy_(gradient)
        for parts, gradient in zip(plan.d_states, gradients[-count:], strict=True):
            for buffer, _ in parts:
                tensor = workspace.tensor(buffer).zero_()
                if buffer.place is Place.TURNS and gradient is not None:
                    tensor[T % 2, :B].copy_(gradient)
        absent = tuple(buffer for buffer, g in zip(plan.d_outputs, of_sequences, strict=True) if g is None)
        workspace.run("backward", T, ctx.is_ragged, absent)
        d_inputs = steps_first(workspace.tensor(plan.d_inputs), T, B)
        d_start = [
            start_gradient(workspace, parts, B).to(before.dtype)
            for parts, before in zip(plan.d_states, start, strict=True)
        ]
        needed = ctx.needs_input_grad[len(ctx.needs_input_grad) - len(weights) :]
        d_weights = weight_gradients(workspace, T, weights, needed)
        return [
            d_inputs.clone(memory_format=torch.contiguous_format),
            *d_start,
            *(None for _ in range(run.row_count)),
            *d_weights,
        ]


def steps_first(sequence: Tensor, T: int, B: int) -> Tensor:
    """(T, B, w) of a workspace as the (B, T, w) of a batch."""
    return sequence[:T, :B].transpose(0, 1)


def last_of(workspace: Workspace, buffer: Buffer, T: int, B: int, is_ragged: bool) -> Tensor:
    """The state after each row's last real step; a row without any keeps the state it started with."""
    tensor = workspace.tensor(buffer)
    if not is_ragged:
        return tensor[T, :B]
    return tensor[workspace.lengths[:B].long(), torch.arange(B, device=tensor.device)]


def buffers_read(workspace: Workspace, direction: str) -> list[Buffer]:
    """All buffers that the passes and products of a direction read."""
    phases = getattr(workspace.plan, direction)
    found = {buffer: None for p in phases.passes for parts in p.reads.values() for buffer, _ in parts}
    found.update({product.operand: None for product in products_of(phases)})
    return list(found)


def set_weights(workspace: Workspace, direction: str, weights: tuple[Tensor, ...] | list[Tensor]) -> None:
    """Copy the weights of a direction into the workspace, matrices in the type that products multiply."""
    plan = workspace.plan
    known: dict[fx.Node, Tensor] = dict(zip(plan.trace.weight_inputs, weights, strict=True))
    for product in products_of(getattr(plan, direction)):
        matrices = [computed(weight.node, known, plan) for weight in product.weights]
        matrix = matrices[0] if len(matrices) == 1 else torch.cat(matrices, dim=1)
        if product in workspace.matrices:
            workspace.matrices[product].copy_(matrix)
        else:
            workspace.matrices[product] = cast_like(matrix.detach(), workspace.dtype)
    for buffer in buffers_read(workspace, direction):
        if buffer.weight is not None:
            workspace.tensor(buffer).copy_(computed(buffer.weight.node, known, plan).flatten())


def start_gradient(workspace: Workspace, parts: list[tuple[Buffer, int]], B: int) -> Tensor:
    """The gradient of a start state: what step 0 left, and its products."""
    width = parts[0][0].width
    total = workspace.tensor(parts[0][0])[0, :B]  # step 0 wrote turn 0
    for buffer, column in parts[1:]:
        total = total + workspace.tensor(buffer)[:, :B, column : column + width].sum(0, dtype=torch.float32)
    return total


def weight_gradients(
    workspace: Workspace, T: int, weights: list[Tensor], needed: tuple[bool, ...]
) -> list[Tensor | None]:
    """Every weight's gradient, from one product over all steps or a sum of what the row passes wrote."""
    plan = workspace.plan
    known: dict[fx.Node, Tensor] = dict(zip(plan.trace.weight_inputs, weights, strict=True))
    for contraction, left, right in plan.matrices:
        rows, factors = history(workspace, left, T), history(workspace, right, T)
        known[contraction.node] = summed_product(rows, factors)
    if plan.sums:
        totals = total_of(workspace.tensors["sums"][:T].flatten(0, 1))
        widths = [buffer.width for _, buffer in plan.sums]
        for (contraction, _), total in zip(plan.sums, totals.split(widths), strict=True):
            known[contraction.node] = total
    found: list[Tensor | None] = []
    for node, weight, is_needed in zip(plan.trace.weight_gradients, weights, needed, strict=True):
        found.append(computed(node, known, plan).to(weight.dtype) if node is not None and is_needed else None)
    return found


def history(workspace: Workspace, buffer: Buffer, T: int) -> Tensor:
    """All steps of an operand, (T·B, w)."""
    return workspace.steps_of(buffer)[:T].flatten(0, 1)


def total_of(rows: Tensor) -> Tensor:
    """The sum of all rows in float32."""
    if rows.is_cuda and rows.dtype != torch.float32:
        # As a product with ones, which is exact, and several times as fast as torch's sum of few long columns.
        return torch.mm(rows.new_ones(1, len(rows)), rows, out_dtype=torch.float32)[0]
    return rows.sum(0, dtype=torch.float32)


def summed_product(rows: Tensor, factors: Tensor) -> Tensor:
    """rowsᵀ · factors in float32, whatever their type."""
    if rows.is_cuda and rows.dtype != torch.float32:
        return torch.mm(rows.T, factors, out_dtype=torch.float32)
    return rows.T @ factors


Key: TypeAlias = tuple[Plan, int, torch.dtype, torch.device, int]


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
        self, plan: Plan, rows: int, steps: int, dtype: torch.dtype, device: torch.device, *, is_full: bool
    ) -> Lease:
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            # Somebody records a graph of their own: memory that belongs to it, used by nobody else.
            return Lease(Workspace(plan, rows, steps, dtype, device), 0)
        rows = rows if is_full else rows_like(rows)
        stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
        key = (plan, rows, dtype, device, stream)
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
