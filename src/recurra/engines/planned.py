"""The planned engine: any cell at the speed of its products, by the plan that its own step gives (plan.py)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, fx

from recurra.engines.c_passes import Compiled
from recurra.engines.c_run import CPasses, CSteps, threads
from recurra.engines.cost import Estimate, Rates
from recurra.engines.engine import DirectedCell, Layer, Reading, Work, only_looped
from recurra.engines.loop import read_inputs
from recurra.engines.memory import Buffers, TorchPasses
from recurra.engines.plan import Phases, Place, Plan
from recurra.engines.planning import PLANS, computed, inputs_of, row_tensors, split_fixed
from recurra.engines.replay import is_differentiated, replayed
from recurra.engines.resets import Resets
from recurra.engines.restart import Restart, backward_restart, forward_restart
from recurra.padding import Padded

Direction: TypeAlias = Literal["forward", "inference", "backward"]


WITH_PRODUCTS = Estimate(
    training=Rates(call=730e-6, gate=0.07e-6, weight=7.8e-11, number=4.5e-9, product=3.7e-11),
    inference=Rates(call=290e-6, gate=0.07e-6, weight=3.2e-11, number=8.5e-10, product=2.4e-11),
)
WITHOUT_PRODUCTS = Estimate(
    training=Rates(call=450e-6, gate=0.07e-6, number=2e-10), inference=Rates(call=200e-6, gate=0.14e-6, number=1e-10)
)
BY_TORCH = Estimate(  # without a compiler, torch runs the row passes: slower than the loop
    training=Rates(call=700e-6, gate=90e-6, weight=5e-10, number=9e-9, product=3e-11),
    inference=Rates(call=300e-6, gate=22e-6, weight=8.5e-11, number=3.5e-9, product=2.2e-11),
)


class Planned:
    """Runs every cell whose step can be cut at its products, on the CPU."""

    name = "planned"

    def refusal(self, layer: Layer, x: Padded, every: bool = False) -> str | None:
        if (reason := only_looped(x, layer)) is not None:
            return reason
        if x.values.device.type != "cpu":
            return f"it runs on the CPU, but the batch is on {x.values.device.type}"
        if x.values.dtype not in (torch.float32, torch.float64):
            return f"it supports float32 and float64, but the batch has {x.values.dtype}"
        if torch.is_autocast_enabled("cpu"):
            return "it needs one dtype, but autocast mixes two"
        for reader in layer:
            plan = PLANS.plan(reader, x.values)
            if isinstance(plan, str):
                return f"'{reader.cell.name}' has no plan: {plan}"
            others = {each.dtype for each in reader.cell.parameters()} - {x.values.dtype}
            if others:
                return f"the weights of '{reader.cell.name}' have {others.pop()}, but the batch has {x.values.dtype}"
            if torch.is_grad_enabled() and any(row.requires_grad for row in row_tensors(plan, reader)):
                return f"'{reader.cell.name}' needs the gradient of a value in `fixed` that differs between rows"
        return None

    def cost(self, work: Work) -> float:
        if not work.has_compiler:
            return BY_TORCH.seconds(work)
        return (WITH_PRODUCTS if work.weights else WITHOUT_PRODUCTS).seconds(work)

    def run(self, layer: Layer, x: Padded, every: bool = False) -> list[Reading]:
        return [self.read(reader, x, every) for reader in layer]

    def read(self, reader: DirectedCell, x: Padded, every: bool) -> Reading:
        """One cell over one batch. A backward reader is a forward one on reversed rows."""
        cell, state, _, backward, resets = reader
        plan, draws = PLANS.planning(reader, x.values)
        assert isinstance(plan, Plan)
        inputs = inputs_of(reader, x)
        lengths = None if x.is_full else x.lengths
        rows, weights = split_fixed(plan, reader)
        tensors = (inputs, *state, *rows, *weights)
        training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if resets is not None:
            resets = resets._replace(mask=resets.in_reading_order(x.lengths, backward).contiguous())
        run = Run(plan, reader, lengths, every, len(rows), training, resets, keeps_inputs=plan.needs_inputs or draws)
        results = Steps.apply(run, x.values, *tensors)  # type: ignore[no-untyped-call]
        sequences, finals = results[: -len(state)], results[-len(state) :]
        if backward:
            sequences = [Padded(sequence, x.lengths).reversed().values for sequence in sequences]
        return Reading(sequences[0], cell.State(*sequences) if every else cell.State(*finals))


COMPILED = Compiled()
"""Every plan's compiled row passes, for the whole process."""


def run_steps(
    plan: Plan, direction: Direction, memory: Buffers, lengths: Tensor | None, restart: Restart | None
) -> None:
    """All steps of a sequence: products, then each pass and the products of what it made."""
    phases: Phases = getattr(plan, direction)
    functions = COMPILED.functions(plan, memory.like.dtype)
    backward = direction == "backward"
    if functions is not None:
        CSteps(CPasses(functions, memory, lengths), memory, phases, direction).run(backward=backward, restart=restart)
        return
    passes = TorchPasses(memory, lengths)
    for t in reversed(range(memory.steps)) if backward else range(memory.steps):
        if restart is not None and backward and t + 1 < memory.steps:
            restart.cut_gradients(t + 1)
        elif restart is not None and not backward and t:
            restart.start_anew(t)
        for product in phases.before:
            memory.product(product, t)
        for row_pass, products in zip(phases.passes, phases.after_pass, strict=True):
            passes.run(row_pass, t)
            for product in products:
                memory.product(product, t)


class Run(NamedTuple):
    """What the steps of one run need beside tensors."""

    plan: Plan
    reader: DirectedCell
    lengths: Tensor | None  # None where all rows are full
    every: bool
    row_count: int  # how many tensors out of `fixed` have a row each
    training: bool  # whether the way back will be gone
    resets: Resets | None  # in the order of reading
    keeps_inputs: bool  # whether the projected inputs are kept for the way back; else the batch, to project it again


class Steps(torch.autograd.Function):
    """All steps of a plan, forward and back."""

    @staticmethod
    def forward(ctx: Any, run: Run, values: Tensor, given: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        plan, _, lengths, every, row_count, training, resets, keeps_inputs = run
        count = len(plan.states)
        start = [tensor.contiguous() for tensor in tensors[:count]]
        inputs = with_rows(given)
        rows = [tensor.to(inputs.dtype).contiguous() for tensor in tensors[count : count + row_count]]
        weights = tensors[count + row_count :]
        direction: Direction = "forward" if training else "inference"
        memory = Buffers(inputs.shape[0], inputs.shape[1], inputs, threads(len(inputs), getattr(plan, direction)))
        lay_out(memory, plan, direction, inputs, start, rows, weights)
        restart = None if resets is None else forward_restart(plan, memory, resets.mask, anew_of(resets))
        run_steps(plan, direction, memory, lengths, restart)
        sequences = [memory.tensor(buffer) for buffer in plan.states]
        finals = [last_of(sequence, before, lengths) for sequence, before in zip(sequences, start, strict=True)]
        if training:
            ctx.set_materialize_grads(False)
            ctx.run = run
            kept = {n: t for n, t in memory.tensors.items() if n.startswith(("saved", "forward operand"))}
            ctx.save_for_backward(given if keeps_inputs else values, *tensors, *sequences, *kept.values())
            ctx.counts, ctx.kept = (len(rows), len(weights)), list(kept)
        return (*(sequences if every else sequences[:1]), *finals)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if is_differentiated(gradients):
            return Steps.recorded(ctx, *gradients)
        with torch.no_grad():
            return Steps.fast(ctx, *gradients)

    @staticmethod
    def recorded(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients, in operations that can be differentiated in turn."""
        plan, reader, lengths, every, row_count, _, resets, keeps_inputs = ctx.run
        count = len(plan.states)
        first, *tensors = ctx.saved_tensors
        with torch.enable_grad():
            inputs = first if keeps_inputs else inputs_of(reader, Padded(first, steps_of(first, lengths)))

        def results(tensors: list[Tensor], fixed: Any) -> list[Tensor]:
            inputs, *state = tensors
            again = DirectedCell(reader.cell, reader.cell.State(*state), fixed, resets=resets)
            outputs, states = read_inputs(again, Padded(inputs, steps_of(inputs, lengths)), every)
            if not every:
                return [outputs, *states]
            return [*states, *(last_of(field, before, lengths) for field, before in zip(states, state, strict=True))]

        found = replayed(reader.cell, reader.fixed, [inputs, *tensors[:count]], results, gradients)
        of_rows = {int(name.removeprefix("fixed ")) for name in plan.trace.row_inputs}
        others = [*found.fixed, *found.parameters, *(None for _ in reader.cell.buffers())]
        of_weights = [gradient for number, gradient in enumerate(others) if number not in of_rows]
        return None, None, *found.tensors, *(None for _ in range(row_count)), *of_weights

    @staticmethod
    def fast(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        plan: Plan = ctx.run.plan
        count, (row_count, weight_count) = len(plan.states), ctx.counts
        inputs, *tensors = ctx.saved_tensors
        start = [tensor.contiguous() for tensor in tensors[:count]]
        rows = [tensor.to(inputs.dtype).contiguous() for tensor in tensors[count : count + row_count]]
        weights = tensors[count + row_count : count + row_count + weight_count]
        sequences = tensors[count + row_count + weight_count :][:count]
        kept = dict(zip(ctx.kept, tensors[len(tensors) - len(ctx.kept) :], strict=True))
        B, T, _ = sequences[0].shape
        memory = Buffers(B, T, sequences[0], threads(B, plan.backward))
        lay_out(memory, plan, "backward", with_rows(inputs) if plan.needs_inputs else None, start, rows, weights)
        for buffer, sequence in zip(plan.states, sequences, strict=True):
            memory.tensors[buffer.name] = sequence
            memory.tensors[buffer.name.replace("state", "previous")] = sequence
        memory.tensors.update(kept)
        of_sequences = gradients[:-count] + (None,) * (count - len(gradients[:-count]))
        lay_out_gradients(memory, plan, of_sequences, gradients[-count:])
        resets: Resets | None = ctx.run.resets
        restart = None if resets is None else backward_restart(plan, memory, resets.mask, anew_of(resets))
        run_steps(plan, "backward", memory, ctx.run.lengths, restart)
        if restart is not None:
            restart.cut_gradients(0)
        d_start = [sum_of_parts(memory, parts) for parts in plan.d_states]
        d_weights = weight_gradients(
            plan, memory, weights, ctx.needs_input_grad[-weight_count:] if weight_count else ()
        )
        nothing = (None,) * row_count
        return (None, None, memory.tensor(plan.d_inputs), *d_start, *nothing, *d_weights)


def anew_of(resets: Resets) -> list[Tensor]:
    return [field.detach().contiguous() for field in resets.state]


def lay_out(
    memory: Buffers,
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
    memory: Buffers, plan: Plan, of_sequences: tuple[Tensor | None, ...], of_finals: tuple[Tensor | None, ...]
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


def sum_of_parts(memory: Buffers, parts: list[tuple[Any, int]]) -> Tensor:
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
    plan: Plan, memory: Buffers, weights: list[Tensor], needed: tuple[bool, ...]
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


def with_rows(tensor: Tensor) -> Tensor:
    """The same tensor, with each of its rows in one piece."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def steps_of(sequence: Tensor, lengths: Tensor | None) -> Tensor:
    """How many steps each row has, where None says that all are full."""
    return torch.full((len(sequence),), sequence.shape[1]) if lengths is None else lengths


def last_of(sequence: Tensor, before: Tensor, lengths: Tensor | None) -> Tensor:
    """The state after each row's last real step; a row without any keeps the state it started with."""
    if lengths is None:
        return sequence[:, -1].clone()
    last = sequence[torch.arange(len(lengths)), (lengths - 1).clamp_min(0)]
    return torch.where((lengths == 0).unsqueeze(1), before, last)
