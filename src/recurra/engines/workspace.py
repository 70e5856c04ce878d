"""A workspace: the buffers of a plan on a GPU for so many rows and steps, and the steps run on them.

Buffers lie step by step, (T, B, w), so that all rows of a step are one matrix. A state has a slot more than there are
steps, and what a step reads of it is the slot before the one it writes: (T + 1, B, w), the start state first.

Row passes are kernels of Triton; products are those of the vendor. On a GPU a stretch of steps is recorded once as a
CUDA graph and replayed from then on, so that the host launches one graph where it would launch hundreds of kernels.
Stretches are as long as powers of two: any number of steps is made of a few of them.

Numbers: what products multiply (h, gates' gradients) has the type that autocast or the batch asks for; other states
(c) and the gradients carried from step to step are float32, and all row passes compute in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from recurra.engines.persistent_source import Persistent, persistent
from recurra.engines.plan import Buffer, Phases, Place, Plan, StepProduct
from recurra.engines.planning import Nodes
from recurra.engines.triton_kernels import Address, Launch, functions, launch
from recurra.engines.triton_source import Kernel, kernel, power_of_two
from recurra.engines.values import NoPlan
from recurra.errors import EngineError
from recurra.padding import beside
from recurra.recording import keep

Direction: TypeAlias = Literal["forward", "inference", "backward"]

SMALLEST_PART = 64
"""A product is split into partial sums only where each has at least so many terms."""

MOST_PARTS = 8

MOST_LOOKS = 1 << 22
"""How often a program looks for others before it gives up: some seconds."""

MOST_BLOCKS = 64
"""Into how many blocks a persistent kernel shares out rows at most."""

MOST_NUMBERS = 1 << 17
"""Rows times units up to which all forward steps are one kernel; beyond, the vendor's products are faster."""

SEVERAL = 2
"""From so many rounds of products a step on, all backward steps are one kernel."""

WIDEST_BACKWARD = 512
"""Up to so many units: wider, one kernel backward was slower than the vendor's products (1.09 times with 1,024)."""

ON_CHIP = 180 << 10
"""Bytes of a matrix that one program keeps on the chip."""


def parts_of(product: StepProduct) -> int:
    """Into how many partial sums a product is split: as many as its operand has blocks of the result's width.

    The gradient of h is dG · U with four times as many terms as results, for which the vendor's product leaves most of
    the GPU idle: one batched product computes the partial sums side by side, and the next row pass adds them up.
    """
    terms, width = product.operand.width, product.out.width
    if terms % width or width < SMALLEST_PART:
        return 1
    return terms // width if terms // width <= MOST_PARTS else 1


def products_of(phases: Phases) -> list[StepProduct]:
    return [*phases.before, *(product for slot in phases.after_pass for product in slot)]


class Workspace:
    """Memory for one sequence at a time, and what runs its steps."""

    def __init__(self, plan: Plan, rows: int, steps: int, dtype: torch.dtype, device: torch.device) -> None:
        self.plan = plan
        self.rows = rows
        self.steps = steps
        self.dtype = dtype
        self.device = device
        self.tensors: dict[str, Tensor] = {}
        self.matrices: dict[StepProduct, Tensor] = {}
        self.lengths = torch.zeros(rows, dtype=torch.int32, device=device)
        self.passes: dict[tuple[Direction, bool, tuple[Buffer, ...]], list[Launch]] = {}
        self.graphs: dict[tuple[object, ...], torch.cuda.CUDAGraph | None] = {}
        self.operands = operands_of(plan)
        self.loading: dict[Direction, Loading] = {}
        self.gradients: dict[tuple[int, ...], Nodes] = {}
        self.wholes: dict[tuple[Direction, tuple[Buffer, ...]], Persistent | None] = {}
        self.counted = 0  # how far the counters of persistent kernels have come
        self.counters = torch.zeros(MOST_BLOCKS * 32, dtype=torch.int32, device=device)
        self.failed = torch.zeros(1, dtype=torch.int32, device=device)
        self.seen_failed = torch.zeros(1, dtype=torch.int32, pin_memory=device.type == "cuda")
        keep(self)

    # Memory

    def tensor(self, buffer: Buffer) -> Tensor:
        """The memory of a buffer, made when first asked for."""
        name = buffer.name.replace("previous", "state") if buffer.place is Place.PREVIOUS else buffer.name
        if buffer.place is Place.SUMS:
            return self.sums(buffer)
        if name not in self.tensors:
            rows, steps, width = self.rows, self.steps, buffer.width
            is_state = buffer.place is Place.PREVIOUS or buffer in self.plan.states
            shape: tuple[int, ...] = {
                Place.SEQUENCE: (steps + is_state, rows, width),
                Place.PREVIOUS: (steps + 1, rows, width),
                Place.ROWS: (self.parts.get(buffer, 1), rows, width),
                Place.TURNS: (2, rows, width),
                Place.SHARED: (width,),
            }[buffer.place]
            self.tensors[name] = torch.zeros(shape, dtype=self.type_of(buffer, name), device=self.device)
        return self.tensors[name]

    def sums(self, buffer: Buffer) -> Tensor:
        """What the row passes leave to be summed up, side by side with all other sums."""
        buffers = [each for _, each in self.plan.sums]
        if "sums" not in self.tensors:
            shape = (self.steps, self.rows, sum(each.width for each in buffers))
            self.tensors["sums"] = torch.zeros(shape, dtype=self.dtype, device=self.device)
        first = sum(each.width for each in buffers[: buffers.index(buffer)])
        return self.tensors["sums"][:, :, first : first + buffer.width]

    def type_of(self, buffer: Buffer, name: str) -> torch.dtype:
        if buffer.place in (Place.TURNS, Place.SHARED) or (buffer.place is Place.ROWS and name not in self.operands):
            return torch.float32
        is_state = name.startswith("state ")
        return self.dtype if name in self.operands or not is_state else torch.float32

    @functools.cached_property
    def parts(self) -> dict[Buffer, int]:
        return {
            product.out: parts_of(product)
            for phases in (self.plan.forward, self.plan.inference, self.plan.backward)
            for product in products_of(phases)
        }

    def steps_of(self, buffer: Buffer) -> Tensor:
        """A sequence step by step, (T, B, w), as a step t reads or writes it."""
        tensor = self.tensor(buffer)
        return tensor[1:] if buffer in self.plan.states else tensor

    def size(self) -> int:
        """How many bytes it holds."""
        held = [*self.tensors.values(), *self.matrices.values()]
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    def address(self, buffer: Buffer) -> Address:
        tensor = self.steps_of(buffer)
        if buffer.place is Place.SHARED:
            return Address(tensor, 0, 0)
        return Address(tensor, tensor.stride(1), tensor.stride(0))

    # What comes in and goes out

    def set_lengths(self, lengths: Tensor | None, B: int, T: int) -> None:
        """How many steps each row has; rows beyond the batch have none."""
        self.lengths[B:] = 0
        if lengths is None:
            self.lengths[:B] = T
        else:
            self.lengths[:B] = beside(lengths, self.lengths)

    def load(
        self, direction: Direction, weights: Sequence[Tensor], start: Sequence[Tensor], rows: Sequence[Tensor]
    ) -> None:
        """Copy weights, start states and tensors with a row each to where steps read them; in training, also the
        weights that the way back reads."""
        if direction not in self.loading:
            self.loading[direction] = self.loaded(direction, weights)
        nodes, targets, of_rows = self.loading[direction]
        B = len(start[0])
        sources = [value.reshape(target.shape) for value, target in zip(nodes(weights), targets, strict=True)]
        targets = [*targets, *(self.tensor(buffer)[0, :B] for buffer in self.plan.states)]
        sources += start
        for row, target in zip(rows, of_rows, strict=True):
            if target is not None:
                targets.append(target[0, :B])
                sources.append(row.flatten(1))
        torch._foreach_copy_(targets, sources)

    def loaded(self, direction: Direction, weights: Sequence[Tensor]) -> Loading:
        """Memory for the weights of a direction, and how they come from what is given."""
        plan = self.plan
        directions: list[Direction] = ["forward", "backward"] if direction == "forward" else [direction]
        products = [product for each in directions for product in products_of(getattr(plan, each))]
        nodes = [weight.node for product in products for weight in product.weights]
        buffers = list(dict.fromkeys(b for each in directions for b in buffers_read(plan, each)))
        vectors = [buffer for buffer in buffers if buffer.weight is not None]
        nodes += [buffer.weight.node for buffer in vectors if buffer.weight is not None]
        found = Nodes(plan, plan.trace.weight_inputs, nodes)
        shapes = iter(found(weights))
        targets = []
        for product in products:
            parts = [next(shapes) for _ in product.weights]
            if len(parts) == 1:
                self.matrices[product] = torch.empty_strided(
                    parts[0].shape, parts[0].stride(), dtype=self.dtype, device=self.device
                )
                targets.append(self.matrices[product])
            else:
                width = sum(part.shape[1] for part in parts)
                self.matrices[product] = torch.empty(len(parts[0]), width, dtype=self.dtype, device=self.device)
                targets += self.matrices[product].split([part.shape[1] for part in parts], dim=1)
        targets += [self.tensor(buffer) for buffer in vectors]
        named = {buffer.name: buffer for buffer in buffers}
        of_rows = [self.tensor(named[name]) if name in named else None for name in plan.trace.row_inputs]
        return Loading(found, targets, of_rows)

    def sequence(self, buffer: Buffer, B: int, T: int) -> Tensor:
        """All steps of a buffer as a batch has them, (B, T, w)."""
        return self.steps_of(buffer)[:T, :B].transpose(0, 1)

    def last(self, buffer: Buffer, B: int, T: int, is_ragged: bool) -> Tensor:
        """The state after each row's last real step; a row without any keeps the state it started with."""
        tensor = self.tensor(buffer)
        if not is_ragged:
            return tensor[T, :B]
        return tensor[self.lengths[:B].long(), torch.arange(B, device=tensor.device)]

    def load_gradients(
        self, of_sequences: Sequence[Tensor | None], of_finals: Sequence[Tensor | None], B: int, T: int
    ) -> None:
        """Gradients from outside: of all states after each step, and of the last."""
        parts = [buffer for of_state in self.plan.d_states for buffer, _ in of_state]
        torch._foreach_zero_([self.tensor(buffer) for buffer in parts])
        targets, sources = [], []
        for buffer, gradient in zip(self.plan.d_outputs, of_sequences, strict=True):
            if gradient is not None:
                targets.append(self.sequence(buffer, B, T))
                sources.append(gradient)
        for of_state, gradient in zip(self.plan.d_states, of_finals, strict=True):
            for buffer, _ in of_state:
                if buffer.place is Place.TURNS and gradient is not None:
                    targets.append(self.tensor(buffer)[T % 2, :B])
                    sources.append(gradient)
        if targets:
            torch._foreach_copy_(targets, sources)

    def start_gradient(self, parts: list[tuple[Buffer, int]], B: int) -> Tensor:
        """The gradient of a start state: what step 0 left, and its products."""
        width = parts[0][0].width
        total = self.tensor(parts[0][0])[0, :B].clone()  # step 0 wrote turn 0
        for buffer, column in parts[1:]:
            total += self.tensor(buffer)[:, :B, column : column + width].sum(0, dtype=torch.float32)
        return total

    def weight_gradients(self, T: int, weights: Sequence[Tensor], needed: Sequence[bool]) -> list[Tensor | None]:
        """Every weight's gradient, from one product over all steps or a sum of what the row passes wrote."""
        plan = self.plan
        wanted = [
            number
            for number, (node, is_needed) in enumerate(zip(plan.trace.weight_gradients, needed, strict=True))
            if node is not None and is_needed
        ]
        if not wanted:
            return [None] * len(weights)
        gathered = [
            summed_product(self.steps_of(left)[:T].flatten(0, 1), self.steps_of(right)[:T].flatten(0, 1))
            for _, left, right in plan.matrices
        ]
        if plan.sums:
            widths = [buffer.width for _, buffer in plan.sums]
            gathered += total_of(self.tensors["sums"][:T].flatten(0, 1)).split(widths)
        key = tuple(wanted)
        if key not in self.gradients:
            contractions = [of[0].node for of in plan.matrices] + [of[0].node for of in plan.sums]
            nodes = [plan.trace.weight_gradients[number] for number in wanted]
            given = [*plan.trace.weight_inputs, *contractions]
            self.gradients[key] = Nodes(plan, given, [node for node in nodes if node is not None])
        results = iter(self.gradients[key]([*weights, *gathered]))
        return [next(results).to(weight.dtype) if number in wanted else None for number, weight in enumerate(weights)]

    # Steps

    def run_forward(self, direction: Direction, given: Tensor, is_ragged: bool) -> None:
        """All steps of projected inputs (B, T, P): by one kernel, or step by step."""
        kernel = self.whole(direction)
        B, T, _ = given.shape
        inputs = next((b for b in inputs_read(self.plan, direction)), None)
        if kernel is not None and (inputs is None or (given.stride(2) == 1 and self.rows == B)):
            if inputs is not None and self.plan.needs_inputs and direction == "forward":
                self.tensor(inputs)[:T, :B].transpose(0, 1).copy_(given)
            own = {} if inputs is None else {inputs: Address(given, given.stride(0), given.stride(1))}
            if self.launch_whole(kernel, direction, T, is_ragged, own):
                return
        if inputs is not None:
            self.tensor(inputs)[:T, :B].transpose(0, 1).copy_(given)
        self.run(direction, T, is_ragged)

    def run_backward(self, T: int, is_ragged: bool, absent: tuple[Buffer, ...]) -> None:
        """All steps from the last to the first: by one kernel where a step has several rounds of products, which the
        vendor's products and kernels between them would take one after the other; else step by step."""
        phases = self.plan.backward
        is_worth = len(phases.passes) >= SEVERAL and self.plan.states[0].width <= WIDEST_BACKWARD
        kernel = self.whole("backward", absent) if is_worth else None
        if kernel is None or not self.launch_whole(kernel, "backward", T, is_ragged, {}):
            self.run("backward", T, is_ragged, absent)
            return
        for product in phases.after_pass[-1]:  # of the first step, for the gradient of the start
            self.multiply(product, 0)

    def whole(self, direction: Direction, absent: tuple[Buffer, ...] = ()) -> Persistent | None:
        """The kernel of all steps, where one can run here and is worth it."""
        key = (direction, absent)
        if key not in self.wholes:
            found = persistent_of(self.plan, direction, absent)
            is_worth = found is not None and tile_of(found, self.rows, self.dtype, self.device) is not None
            self.wholes[key] = found if is_worth else None
        return self.wholes[key]

    def launch_whole(
        self, kernel: Persistent, direction: Direction, T: int, is_ragged: bool, own: dict[Buffer, Address]
    ) -> bool:
        """Run all steps by one kernel; False where the GPU has no room for it after all.

        own    where buffers lie that are not this workspace's
        """
        tile = tile_of(kernel, self.rows, self.dtype, self.device)
        assert tile is not None
        addresses = [own.get(buffer) or self.address(buffer) for buffer, _ in kernel.arguments]
        matrices = [self.matrices[product] for product in kernel.products]
        options: dict[str, object] = {} if self.device.type == "cpu" else {"launch_cooperative_grid": True}
        try:
            functions([kernel])[kernel.name][tile.grid](
                T,
                self.rows,
                self.lengths,
                self.counters,
                self.counted,
                MOST_LOOKS,
                self.failed,
                *(part for matrix in matrices for part in (matrix, matrix.stride(0), matrix.stride(1))),
                *(part for address in addresses for part in address),
                RAGGED=is_ragged,
                BB=tile.rows,
                BH=tile.units,
                PRECISION=precision_of(self.dtype),
                num_warps=tile.warps,
                num_stages=1,
                **options,
            )
        except Exception as reason:
            if not is_too_large(reason):
                raise
            self.wholes = {key: None if key[0] == direction else found for key, found in self.wholes.items()}
            return False
        # Counters are never set back: the next launch goes on from where this one ended.
        self.counted += T * kernel.passes
        self.seen_failed.copy_(self.failed, non_blocking=True)
        return True

    def check(self) -> None:
        """Raise an EngineError if a kernel gave up waiting, as far as is known without waiting for the GPU."""
        if self.seen_failed.item():
            raise EngineError(
                "a persistent kernel waited for seconds for its other programs and gave up; its results are wrong. "
                "Something else may keep the GPU busy. Set model.engine = 'vendor' or 'loop', or try again."
            )

    def launches(self, direction: Direction, is_ragged: bool, absent: tuple[Buffer, ...]) -> list[Launch]:
        """The row passes of a direction, compiled when they are first launched."""
        key = (direction, is_ragged, absent)
        if key not in self.passes:
            kernels = kernels_of(self.plan, direction, absent)
            found = functions(kernels)
            width = max(each.scratch for each in kernels)
            scratch = torch.zeros(max(1, self.rows * width), device=self.device)
            self.passes[key] = [
                launch(
                    each,
                    found[each.name],
                    [self.address(buffer) for buffer, _ in each.arguments],
                    self.lengths if is_ragged else None,
                    scratch,
                    self.rows,
                )
                for each in kernels
            ]
        return self.passes[key]

    def run(self, direction: Direction, steps: int, is_ragged: bool, absent: tuple[Buffer, ...] = ()) -> None:
        """The first so many steps; backward from the last of them to the first."""
        stretches = list(powers_of_two(steps))
        for first, count in reversed(stretches) if direction == "backward" else stretches:
            self.run_stretch(direction, first, count, is_ragged, absent)

    def run_stretch(
        self, direction: Direction, first: int, count: int, is_ragged: bool, absent: tuple[Buffer, ...]
    ) -> None:
        """Some steps: by a graph, if they run for the second time at least and nobody else is recording."""
        if self.device.type != "cuda" or torch.cuda.is_current_stream_capturing():
            self.run_steps(direction, first, count, is_ragged, absent)
            return
        key = (direction, first, count, is_ragged, absent)
        if key not in self.graphs:
            # The first run compiles the kernels, which cannot be done while a graph is recorded.
            self.run_steps(direction, first, count, is_ragged, absent)
            self.graphs[key] = None
            return
        if (graph := self.graphs[key]) is None:
            graph = self.graphs[key] = recorded(
                self, lambda: self.run_steps(direction, first, count, is_ragged, absent)
            )
        graph.replay()

    def run_steps(
        self, direction: Direction, first: int, count: int, is_ragged: bool, absent: tuple[Buffer, ...]
    ) -> None:
        phases: Phases = getattr(self.plan, direction)
        passes = self.launches(direction, is_ragged, absent)
        steps = range(first, first + count)
        for t in reversed(steps) if direction == "backward" else steps:
            for product in phases.before:
                self.multiply(product, t)
            for row_pass, products in zip(passes, phases.after_pass, strict=True):
                row_pass(t)
                for product in products:
                    self.multiply(product, t)

    def multiply(self, product: StepProduct, t: int) -> None:
        is_sequence = product.operand.place in (Place.SEQUENCE, Place.PREVIOUS)
        operand = self.steps_of(product.operand)[t if is_sequence else 0]
        matrix, out = self.matrices[product], self.tensor(product.out)
        if (count := self.parts[product.out]) == 1:
            torch.mm(operand, matrix, out=out[0])
        else:
            torch.bmm(operand.unflatten(1, (count, -1)).transpose(0, 1), matrix.unflatten(0, (count, -1)), out=out)


class Loading(NamedTuple):
    """How the weights of a direction come to where steps read them."""

    nodes: Nodes
    targets: list[Tensor]
    of_rows: list[Tensor | None]


def buffers_read(plan: Plan, direction: Direction) -> list[Buffer]:
    """All buffers that the passes and products of a direction read."""
    phases: Phases = getattr(plan, direction)
    found = {buffer: None for p in phases.passes for parts in p.reads.values() for buffer, _ in parts}
    found.update({product.operand: None for product in products_of(phases)})
    return list(found)


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


def recorded(workspace: Workspace, run: object) -> torch.cuda.CUDAGraph:
    """What a function launches, as a graph."""
    stream = torch.cuda.Stream(workspace.device)
    stream.wait_stream(torch.cuda.current_stream(workspace.device))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        # The vendor's library sets itself up for a thread and stream at its first product: not while recording.
        one = torch.ones(16, 16, dtype=workspace.dtype, device=workspace.device)
        torch.mm(one, one)
        torch.bmm(one[None], one[None])
        # Other threads may use the GPU meanwhile, as those that prepare batches do.
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            run()  # type: ignore[operator]
        finally:
            graph.capture_end()
    torch.cuda.current_stream(workspace.device).wait_stream(stream)
    return graph


class Tile(NamedTuple):
    """What one program of a persistent kernel owns, and how many there are."""

    rows: int
    units: int
    warps: int
    grid: tuple[int, int]


def tile_of(kernel: Persistent, rows: int, dtype: torch.dtype, device: torch.device) -> Tile | None:
    """The smallest tiles of which all fit on the GPU at the same time; None where there are none."""
    if device.type == "cpu":  # the interpreter runs programs one after the other: none may wait for another
        units = max(16, power_of_two(kernel.units))
        return Tile(16, units, 4, (1, -(-rows // 16)))
    if rows * kernel.units > MOST_NUMBERS or precision_of(dtype) == "ieee":
        # Products of float32 proper have no matrix units, and the vendor's are faster without them.
        return None
    size = torch.empty((), dtype=dtype).element_size()
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    found = []
    for block in (16, 32, 64):
        for units in (8, 16, 32):
            programs = (-(-kernel.units // units), -(-rows // block))
            held = kernel.terms * kernel.gates * units * len(kernel.products) * size
            fits = programs[0] * programs[1] <= processors and held <= ON_CHIP and programs[1] <= MOST_BLOCKS
            if fits and kernel.gates * units >= 8:
                found.append((block + 4 * units, Tile(block, units, 4 if block * units <= 128 else 8, programs)))
    return min(found)[1] if found else None


@functools.lru_cache(maxsize=256)
def persistent_of(plan: Plan, direction: Direction, absent: tuple[Buffer, ...] = ()) -> Persistent | None:
    """All steps of a direction as one kernel; None where its plan does not allow it."""
    phases: Phases = getattr(plan, direction)
    try:
        is_backward = direction == "backward"
        return persistent(plan, phases, f"whole_{direction}", is_backward=is_backward, absent=absent)
    except NoPlan:
        return None


def inputs_read(plan: Plan, direction: Direction) -> list[Buffer]:
    """The buffer of projected inputs, if a direction reads it."""
    phases: Phases = getattr(plan, direction)
    found = {b for p in phases.passes for parts in p.reads.values() for b, _ in parts if b.name == "inputs"}
    return list(found)


def precision_of(dtype: torch.dtype) -> str:
    """How products of float32 are computed: as torch's settings say."""
    return "tf32" if dtype != torch.float32 or torch.backends.cuda.matmul.allow_tf32 else "ieee"


def is_too_large(reason: Exception) -> bool:
    """Whether a kernel was not launched because the GPU has no room for all its programs, or for one."""
    return "OutOfResources" in type(reason).__name__ or "too large" in str(reason).lower()


def operands_of(plan: Plan) -> set[str]:
    """The names of the buffers that products multiply, at each step or after the last."""
    products = [*products_of(plan.forward), *products_of(plan.inference), *products_of(plan.backward)]
    found = [buffer for product in products for buffer in (product.operand, product.out)]
    found += [buffer for _, left, right in plan.matrices for buffer in (left, right)]
    return {buffer.name.replace("previous", "state") for buffer in found}


@functools.lru_cache(maxsize=256)
def kernels_of(plan: Plan, direction: Direction, absent: tuple[Buffer, ...]) -> tuple[Kernel, ...]:
    """The row passes of a direction, printed."""
    phases: Phases = getattr(plan, direction)
    parts = {
        product.out: parts_of(product)
        for of in (plan.forward, plan.inference, plan.backward)
        for product in products_of(of)
    }
    return tuple(
        kernel(row_pass, f"{direction}_{number}", parts, absent) for number, row_pass in enumerate(phases.passes)
    )


def powers_of_two(steps: int) -> Iterator[tuple[int, int]]:
    """Stretches as long as powers of two, the longest first: where each begins, and how long it is.

    >>> list(powers_of_two(50))
    [(0, 32), (32, 16), (48, 2)]
    """
    first = 0
    while first < steps:
        count = 1 << ((steps - first).bit_length() - 1)
        yield first, count
        first += count
