"""The planned engine: any cell at the speed of its products, by the plan that its own step gives (plan.py)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx
from torch.autograd.function import once_differentiable
from torch.utils._pytree import tree_flatten

from recurra.cells import AnyCell
from recurra.engines.alike import likeness
from recurra.engines.c_library import compiler
from recurra.engines.c_passes import Compiled
from recurra.engines.c_run import CPasses, CSteps, threads
from recurra.engines.engine import Layer, Reader, Reading, only_looped
from recurra.engines.memory import Memory, TorchPasses
from recurra.engines.plan import Phases, Place, Plan, make_plan
from recurra.engines.trace import trace, weights_of
from recurra.engines.values import NoPlan
from recurra.padding import Padded

Direction: TypeAlias = Literal["forward", "inference", "backward"]


class Planned:
    """Runs every cell whose step can be cut at its products, on the CPU."""

    name = "planned"

    def __init__(self) -> None:
        self.plans: WeakKeyDictionary[AnyCell, dict[tuple[Any, ...], Plan | str]] = WeakKeyDictionary()
        self.shared: WeakKeyDictionary[type, dict[tuple[Any, ...], Plan | str]] = WeakKeyDictionary()

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        if (reason := only_looped(x)) is not None:
            return reason
        if x.values.device.type != "cpu":
            return f"its row passes run on the CPU, the batch is on {x.values.device.type}"
        if x.values.dtype not in (torch.float32, torch.float64):
            return f"its row passes compute in float32 and float64, the batch holds {x.values.dtype}"
        if torch.is_autocast_enabled("cpu"):
            return "its row passes know one type of number, and autocast mixes two"
        for reader in layer:
            plan = self.plan(reader, x.values)
            if isinstance(plan, str):
                return f"'{reader.cell.name}' has no plan: {plan}"
            if torch.is_grad_enabled() and any(row.requires_grad for row in row_tensors(plan, reader)):
                return f"'{reader.cell.name}' wants the gradient of something in `fixed` that each row has of its own"
        return None

    def slower(self, layer: Layer, x: Padded) -> str | None:
        if compiler() is None:
            return "no C compiler was found, and with torch's own operations its row passes are no faster than the loop"
        return None

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        return [self.read(reader, x, every) for reader in layer]

    def plan(self, reader: Reader, values: Tensor) -> Plan | str:
        """The plan of a cell as it now is, or why there is none; made once for all cells that are alike."""
        cell = reader.cell
        leaves, structure = tree_flatten(reader.fixed)
        shapes = tuple(leaf.shape[1:] if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        modes = tuple(module.training for module in cell.modules())
        key = (values.dtype, modes, str(structure), shapes)
        plans = self.plans.setdefault(cell, {})
        if key not in plans:
            found = likeness(cell)
            shared = {} if found is None else self.shared.setdefault(type(cell), {})
            if (key, found) not in shared:
                shared[key, found] = made(cell, values)
            plans[key] = shared[key, found]
        return plans[key]

    def read(self, reader: Reader, x: Padded, every: bool) -> Reading:
        """One cell over one batch. A backward reader is a forward one on reversed rows."""
        cell, state, fixed, backward = reader
        plan = self.plan(reader, x.values)
        assert isinstance(plan, Plan)
        inputs = cell.project(x.values, fixed)
        if backward:
            inputs = Padded(inputs, x.lengths).reversed().values
        lengths = None if x.is_full else x.lengths
        rows, weights = split_fixed(plan, reader)
        tensors = (inputs, *state, *rows, *weights)
        training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        run = Run(plan, lengths, every, len(rows), training)
        results = Steps.apply(run, *tensors)  # type: ignore[no-untyped-call]
        sequences, finals = results[: -len(state)], results[-len(state) :]
        if backward:
            sequences = [Padded(sequence, x.lengths).reversed().values for sequence in sequences]
        return Reading(sequences[0], cell.State(*sequences) if every else cell.State(*finals))


def made(cell: AnyCell, values: Tensor) -> Plan | str:
    """The plan of a cell, or why there is none."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        width = cell.project(values.new_zeros(1, 1, cell.input_size), cell.fixed(1, values)).shape[-1]
        try:
            return make_plan(trace(cell, width, values))
        except NoPlan as reason:
            return str(reason)
        except Exception as error:  # a step that planning does not expect still runs, in the loop
            return f"planning it failed ({type(error).__name__}: {error})"


def split_fixed(plan: Plan, reader: Reader) -> tuple[list[Tensor], list[Tensor]]:
    """What the plan takes beside inputs and states: tensors with a row each, and weights."""
    given = [leaf for leaf in tree_flatten(reader.fixed)[0] if isinstance(leaf, Tensor)]
    tensors = [*given, *weights_of(reader.cell).values()]
    of_rows = {int(name.removeprefix("fixed ")) for name in plan.trace.row_inputs}
    rows = [tensor for number, tensor in enumerate(tensors) if number in of_rows]
    return rows, [tensor for number, tensor in enumerate(tensors) if number not in of_rows]


def row_tensors(plan: Plan, reader: Reader) -> list[Tensor]:
    return split_fixed(plan, reader)[0]


COMPILED = Compiled()
"""Every plan's compiled row passes, for the whole process."""


def run_steps(plan: Plan, direction: Direction, memory: Memory, lengths: Tensor | None) -> None:
    """All steps of a sequence: products, then each pass and the products of what it made."""
    phases: Phases = getattr(plan, direction)
    functions = COMPILED.functions(plan, memory.like.dtype)
    backward = direction == "backward"
    if functions is not None:
        CSteps(CPasses(functions, memory, lengths), memory, phases, direction).run(backward=backward)
        return
    passes = TorchPasses(memory, lengths)
    for t in reversed(range(memory.steps)) if backward else range(memory.steps):
        for product in phases.before:
            memory.product(product, t)
        for row_pass, products in zip(phases.passes, phases.after_pass, strict=True):
            passes.run(row_pass, t)
            for product in products:
                memory.product(product, t)


class Run(NamedTuple):
    """What the steps of one run need beside tensors."""

    plan: Plan
    lengths: Tensor | None
    every: bool
    row_count: int  # how many tensors out of `fixed` have a row each
    training: bool  # whether the way back will be gone


class Steps(torch.autograd.Function):
    """All steps of a plan, forward and back."""

    @staticmethod
    def forward(ctx: Any, run: Run, inputs: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        plan, lengths, every, row_count, training = run
        count = len(plan.states)
        start = [tensor.contiguous() for tensor in tensors[:count]]
        rows = [tensor.to(inputs.dtype).contiguous() for tensor in tensors[count : count + row_count]]
        weights = tensors[count + row_count :]
        inputs = inputs if inputs.stride(-1) == 1 else inputs.contiguous()
        direction: Direction = "forward" if training else "inference"
        memory = Memory(inputs.shape[0], inputs.shape[1], inputs, threads(len(inputs), getattr(plan, direction)))
        lay_out(memory, plan, direction, inputs, start, rows, weights)
        run_steps(plan, direction, memory, lengths)
        sequences = [memory.tensor(buffer) for buffer in plan.states]
        finals = [last_of(sequence, before, lengths) for sequence, before in zip(sequences, start, strict=True)]
        if training:
            ctx.set_materialize_grads(False)
            ctx.plan, ctx.lengths, ctx.every = plan, lengths, every
            kept = {n: t for n, t in memory.tensors.items() if n == "saved" or n.startswith("forward operand")}
            tensors_kept = (*start, *rows, *weights, *sequences, *kept.values())
            ctx.save_for_backward(inputs if plan.needs_inputs else None, *tensors_kept)
            ctx.counts, ctx.kept = (len(rows), len(weights)), list(kept)
        return (*(sequences if every else sequences[:1]), *finals)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        plan: Plan = ctx.plan
        count, (row_count, weight_count) = len(plan.states), ctx.counts
        inputs, *tensors = ctx.saved_tensors
        start, rows = tensors[:count], tensors[count : count + row_count]
        weights = tensors[count + row_count : count + row_count + weight_count]
        sequences = tensors[count + row_count + weight_count :][:count]
        kept = dict(zip(ctx.kept, tensors[len(tensors) - len(ctx.kept) :], strict=True))
        B, T, _ = sequences[0].shape
        memory = Memory(B, T, sequences[0], threads(B, plan.backward))
        lay_out(memory, plan, "backward", inputs, start, rows, weights)
        for buffer, sequence in zip(plan.states, sequences, strict=True):
            memory.tensors[buffer.name] = sequence
            memory.tensors[buffer.name.replace("state", "previous")] = sequence
        memory.tensors.update(kept)
        of_sequences = gradients[:-count] + (None,) * (count - len(gradients[:-count]))
        lay_out_gradients(memory, plan, of_sequences, gradients[-count:])
        run_steps(plan, "backward", memory, ctx.lengths)
        d_start = [sum_of_parts(memory, parts) for parts in plan.d_states]
        d_weights = weight_gradients(
            plan, memory, weights, ctx.needs_input_grad[-weight_count:] if weight_count else ()
        )
        nothing = (None,) * row_count
        return (None, memory.tensor(plan.d_inputs), *d_start, *nothing, *d_weights)


def lay_out(
    memory: Memory,
    plan: Plan,
    direction: Direction,
    inputs: Tensor | None,
    start: list[Tensor],
    rows: list[Tensor],
    weights: tuple[Tensor, ...] | list[Tensor],
) -> None:
    """Put what is given into the buffers of a plan."""
    if inputs is not None:
        memory.tensors["inputs"] = inputs
    for number, (buffer, before) in enumerate(zip(plan.states, start, strict=True)):
        memory.first[f"previous {number}"] = before
        memory.tensors[f"previous {number}"] = memory.tensor(buffer)
    for name, row in zip(plan.trace.row_inputs, rows, strict=True):
        memory.tensors[name] = row
    known = dict(zip(plan.trace.weight_inputs, weights, strict=True))
    phases: Phases = getattr(plan, direction)
    for product in [*phases.before, *(product for slot in phases.after_pass for product in slot)]:
        matrices = [computed(weight.node, known, plan) for weight in product.weights]
        memory.products[product] = matrices[0] if len(matrices) == 1 else torch.cat(matrices, dim=1)
    for row_pass in phases.passes:
        for buffer in {b for parts in row_pass.reads.values() for b, _ in parts}:
            if buffer.weight is not None and buffer.name not in memory.tensors:
                memory.tensors[buffer.name] = computed(buffer.weight.node, known, plan).contiguous().flatten()


def lay_out_gradients(
    memory: Memory, plan: Plan, of_sequences: tuple[Tensor | None, ...], of_finals: tuple[Tensor | None, ...]
) -> None:
    """Gradients from outside: zeros without memory where there are none."""
    for buffer, gradient in zip(plan.d_outputs, of_sequences, strict=True):
        if gradient is None:
            gradient = memory.like.new_zeros(buffer.width).expand(memory.rows, memory.steps, buffer.width)
        memory.tensors[buffer.name] = gradient if gradient.stride(-1) == 1 else gradient.contiguous()
    for parts, gradient in zip(plan.d_states, of_finals, strict=True):
        for buffer, _ in parts:
            tensor = memory.tensor(buffer)
            if buffer.place is not Place.TURNS:
                tensor.zero_()
            elif gradient is not None:
                tensor[memory.steps % 2] = gradient


def sum_of_parts(memory: Memory, parts: list[tuple[Any, int]]) -> Tensor:
    """The gradient of a start state: what step 0 left, and its products."""
    total: Tensor | None = None
    for buffer, column in parts:
        tensor = memory.tensor(buffer)
        # Step 0 wrote turn 0.
        part = tensor[0] if buffer.place is Place.TURNS else tensor[:, column : column + parts[0][0].width]
        total = part if total is None else total + part
    assert total is not None
    return total


def weight_gradients(
    plan: Plan, memory: Memory, weights: list[Tensor], needed: tuple[bool, ...]
) -> list[Tensor | None]:
    """Every weight's gradient, from one product over all steps or a sum that the row passes kept."""
    known: dict[fx.Node, Tensor] = dict(zip(plan.trace.weight_inputs, weights, strict=True))
    for contraction, left, right in plan.matrices:
        known[contraction.node] = memory.history(left).T @ memory.history(right)
    for contraction, buffer in plan.sums:
        known[contraction.node] = memory.tensor(buffer).sum(0)
    found: list[Tensor | None] = []
    for node, is_needed in zip(plan.trace.weight_gradients, needed, strict=True):
        found.append(computed(node, known, plan) if node is not None and is_needed else None)
    return found


def computed(node: fx.Node, known: dict[fx.Node, Tensor], plan: Plan) -> Tensor:
    """A node of the trace that no row owns, by torch."""
    if node in known:
        return known[node]
    if node.op == "get_attr":
        result = getattr(plan.trace.module, str(node.target))
    else:

        def value(argument: Any) -> Any:
            return computed(argument, known, plan) if isinstance(argument, fx.Node) else argument

        arguments = fx.node.map_arg(node.args, value)
        keywords = fx.node.map_arg(node.kwargs, value)
        result = node.target(*arguments, **keywords)  # type: ignore[operator]
    known[node] = result
    return result


def last_of(sequence: Tensor, before: Tensor, lengths: Tensor | None) -> Tensor:
    """The state after each row's last real step; a row without any keeps the state it started with."""
    if lengths is None:
        return sequence[:, -1].clone()
    last = sequence[torch.arange(len(lengths)), (lengths - 1).clamp_min(0)]
    return torch.where((lengths == 0).unsqueeze(1), before, last)
