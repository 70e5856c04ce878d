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
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from recurra.capturing import capturing
from recurra.engines.c_library import notice
from recurra.engines.persistent_source import CHUNK, Persistent, persistent
from recurra.engines.plan import Buffer, Phases, Place, Plan, StepProduct, is_saved
from recurra.engines.planning import Nodes
from recurra.engines.rowwise_source import rowwise
from recurra.engines.tiles import MOST_BLOCKS, Direction, Tile, tile_of
from recurra.engines.triton_kernels import Address, Launch, functions, launch
from recurra.engines.triton_source import Kernel, kernel, units_of
from recurra.engines.values import NoPlan
from recurra.engines.waiting import check_waiting, failure_flag
from recurra.padding import beside
from recurra.products.triton_here import in_words, is_of_triton

SMALLEST_PART = 64
"""A product is split into partial sums only where each has at least so many terms."""

MOST_PARTS = 8

MOST_LOOKS = 1 << 22
"""How often a program looks for others before it gives up: some seconds."""


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

    def __init__(
        self,
        plan: Plan,
        rows: int,
        steps: int,
        dtype: torch.dtype,
        device: torch.device,
        *,
        is_for_one: bool = False,
    ) -> None:
        """is_for_one: one sequence is read and no other ever, so that what is given need not be copied to where
        recorded steps would look for it, nor what is found from where they left it."""
        self.plan = plan
        self.is_for_one = is_for_one
        self.own: dict[Buffer, Address] = {}  # where buffers lie that are not this workspace's
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
        self.vector_types: dict[Buffer, torch.dtype] = {}  # those of the weights
        self.gradients: dict[tuple[int, ...], WeightGradients] = {}
        self.wholes: dict[tuple[Direction, tuple[Buffer, ...]], Whole | None] = {}
        self.counters: dict[tuple[str, Tile], Tensor] = {}  # of a persistent kernel: how far its programs have come
        self.counted: dict[tuple[str, Tile], int] = {}
        self.failed = failure_flag(device.type)

    # Memory

    def tensor(self, buffer: Buffer) -> Tensor:
        """The memory of a buffer, made when first asked for."""
        name = buffer.name.replace("previous", "state") if buffer.place is Place.PREVIOUS else buffer.name
        if buffer.place is Place.SUMS:
            return self.sums(buffer)
        if (column := parts_of_d_inputs(self.plan).get(buffer)) is not None:
            return self.tensor(self.plan.d_inputs)[:, :, column : column + buffer.width]
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
            dtype = self.type_of(buffer, name)
            if buffer is self.plan.d_inputs and self.is_for_one:
                # As a batch has them, (B, T, w): nothing else reads them at a step but a product, row by row.
                by_row = torch.empty((rows, steps, width), dtype=dtype, device=self.device)
                self.tensors[name] = by_row.transpose(0, 1)
            else:
                self.tensors[name] = self.new(shape, dtype)
        return self.tensors[name]

    def new(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Memory. Rows beyond those of a batch must hold numbers, since they are multiplied by zeros; where it is for
        one sequence only, there are none."""
        make = torch.empty if self.is_for_one else torch.zeros
        return make(shape, dtype=dtype, device=self.device)

    def sums(self, buffer: Buffer) -> Tensor:
        """What the row passes leave to be summed up, side by side with all other sums."""
        buffers = [each for _, each in self.plan.sums]
        if "sums" not in self.tensors:
            shape = (self.steps, self.rows, sum(each.width for each in buffers))
            self.tensors["sums"] = self.new(shape, self.dtype)
        first = sum(each.width for each in buffers[: buffers.index(buffer)])
        return self.tensors["sums"][:, :, first : first + buffer.width]

    def type_of(self, buffer: Buffer, name: str) -> torch.dtype:
        if buffer.place is Place.SHARED:
            return self.vector_types.get(buffer, torch.float32)
        if buffer.place is Place.TURNS or (buffer.place is Place.ROWS and name not in self.operands):
            return torch.float32
        if is_saved(buffer):
            return saved_type(buffer, self.dtype)
        if buffer in exact_results(self.plan):
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
        if buffer in self.own:
            return self.own[buffer]
        tensor = self.steps_of(buffer)
        if buffer.place is Place.SHARED:
            return Address(tensor, 0, 0)
        return Address(tensor, tensor.stride(1), tensor.stride(0))

    def all_rows(self, left: Buffer, right: Buffer, T: int) -> tuple[Tensor, Tensor]:
        """All rows of all steps of two sequences, in the same order."""
        both = (self.steps_of(left)[:T], self.steps_of(right)[:T])
        if any(each.stride(0) < each.stride(1) for each in both):  # one of them lies row by row
            left_rows, right_rows = (in_one_piece(each.transpose(0, 1)).flatten(0, 1) for each in both)
            return left_rows, right_rows
        return both[0].flatten(0, 1), both[1].flatten(0, 1)

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
        values = nodes(weights) if targets else []
        sources = [value.reshape(target.shape) for value, target in zip(values, targets, strict=True)]
        targets = [*targets, *(self.tensor(buffer)[0, :B] for buffer in self.plan.states)]
        sources += start
        for row, target in zip(rows, of_rows, strict=True):
            if target is not None:
                targets.append(target[0, :B])
                sources.append(row.flatten(1))
        copy_all(targets, sources)

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
        named = {buffer.name: buffer for buffer in buffers}
        of_rows = [self.tensor(named[name]) if name in named else None for name in plan.trace.row_inputs]
        if self.is_for_one and all(len(product.weights) == 1 for product in products):
            # Where they lie: whoever changes a weight before the way back hears of it from autograd.
            values = [value if value.is_floating_point() else value.float() for value in found(weights)]
            for product, value in zip(products, values, strict=False):
                self.matrices[product] = value.to(self.dtype)
            self.tensors |= {
                b.name: v.contiguous().flatten() for b, v in zip(vectors, values[len(products) :], strict=True)
            }
            return Loading(found, [], of_rows)
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
        self.vector_types |= {buffer: value.dtype for buffer, value in zip(vectors, shapes, strict=True)}
        targets += [self.tensor(buffer) for buffer in vectors]
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
        clear([self.tensor(buffer) for buffer in dict.fromkeys(parts)])
        targets, sources = [], []
        for buffer, gradient in zip(self.plan.d_outputs, of_sequences, strict=True):
            if gradient is not None and self.is_for_one and gradient.stride(2) == 1:
                self.own[buffer] = Address(gradient, gradient.stride(0), gradient.stride(1))
            elif gradient is not None:
                self.own.pop(buffer, None)
                targets.append(self.sequence(buffer, B, T))
                sources.append(gradient)
        for of_state, gradient in zip(self.plan.d_states, of_finals, strict=True):
            for buffer, _ in of_state:
                if buffer.place is Place.TURNS and gradient is not None:
                    targets.append(self.tensor(buffer)[T % 2, :B])
                    sources.append(gradient)
        copy_all(targets, sources)

    def input_gradient(self, B: int, T: int) -> Tensor:
        """The gradient of the projected inputs, (B, T, P), in memory that is not used again."""
        found = self.sequence(self.plan.d_inputs, B, T)
        if not self.is_for_one:
            return in_one_piece(found, always=True)
        # Another way back through the same steps writes elsewhere.
        del self.tensors[self.plan.d_inputs.name]
        self.passes = {key: launches for key, launches in self.passes.items() if key[0] != "backward"}
        return found

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
        key = tuple(wanted)
        if key not in self.gradients:
            self.gradients[key] = WeightGradients(plan, wanted, weights)
        return self.gradients[key](self, T, weights)

    # Steps

    def run_forward(self, direction: Direction, given: Tensor, is_ragged: bool) -> None:
        """All steps of projected inputs (B, T, P): by one kernel, or step by step."""
        whole = self.whole(direction)
        B, T, _ = given.shape
        inputs = next((b for b in inputs_read(self.plan, direction)), None)
        own = {} if inputs is None else {inputs: Address(given, given.stride(0), given.stride(1))}
        is_in_place = inputs is None or (given.stride(2) == 1 and self.rows == B)
        is_copied = not is_in_place or not self.is_for_one
        if is_in_place and self.is_for_one:
            self.own |= own
        if whole is not None and is_in_place:
            if inputs is not None and self.plan.needs_inputs and direction == "forward" and is_copied:
                self.tensor(inputs)[:T, :B].transpose(0, 1).copy_(given)
            if self.launch_whole(whole, direction, T, is_ragged, own):
                return
        if inputs is not None and is_copied:
            self.tensor(inputs)[:T, :B].transpose(0, 1).copy_(given)
        self.run(direction, T, is_ragged)

    def run_backward(self, T: int, is_ragged: bool, absent: tuple[Buffer, ...]) -> None:
        """All steps from the last to the first: by one kernel, or step by step."""
        whole = self.whole("backward", absent)
        if whole is None or not self.launch_whole(whole, "backward", T, is_ragged, {}):
            self.run("backward", T, is_ragged, absent)
            return
        for product in self.plan.backward.after_pass[-1]:  # of the first step, for the gradient of the start
            self.multiply(product, 0)

    def whole(self, direction: Direction, absent: tuple[Buffer, ...] = ()) -> Whole | None:
        """The kernel of all steps, where one can run here and is worth it."""
        key = (direction, absent)
        if key not in self.wholes:
            kernel = persistent_of(self.plan, direction, absent)
            tile = None if kernel is None else tile_of(kernel, direction, self.rows, self.dtype, self.device)
            if tile is not None:
                kernel = persistent_of(self.plan, direction, absent, tile.part)
            self.wholes[key] = None if kernel is None or tile is None else Whole(kernel, tile)
        return self.wholes[key]

    def launch_whole(
        self, whole: Whole, direction: Direction, T: int, is_ragged: bool, own: dict[Buffer, Address]
    ) -> bool:
        """Run all steps by one kernel; False where the GPU has no room for it after all.

        own    where buffers lie that are not this workspace's
        """
        kernel, tile = whole
        addresses = [own.get(buffer) or self.address(buffer) for buffer, _ in kernel.arguments]
        matrices = [self.matrices[product] for product in kernel.products]
        options: dict[str, object] = {} if self.device.type == "cpu" else {"launch_cooperative_grid": True}
        key = (kernel.source, tile)
        if key not in self.counters:
            # Each kernel has its own: another may have other numbers of programs, which count to other sums.
            self.counters[key] = torch.zeros(MOST_BLOCKS * 32, dtype=torch.int32, device=self.device)
            self.counted[key] = 0
        try:
            functions([kernel])[kernel.name][tile.grid(kernel.units, self.rows)](
                T,
                self.rows,
                self.lengths,
                self.counters[key],
                self.counted[key],
                MOST_LOOKS,
                self.failed,
                *(part for matrix in matrices for part in (matrix, matrix.stride(0), matrix.stride(1))),
                *(part for address in addresses for part in address),
                RAGGED=is_ragged,
                BB=tile.rows,
                BH=tile.units,
                BK=tile.chunk,
                PRECISION=precision_of(self.dtype),
                num_warps=tile.warps,
                num_stages=tile.stages,
                **options,
            )
        except Exception as reason:
            if is_too_large(reason):
                why = "does not fit on this GPU"
            elif is_of_triton(reason):
                why = f"cannot be made or launched here ({in_words(reason)})"
            else:
                raise
            notice(
                f"one kernel for all {direction} steps of {self.rows} rows and {kernel.units} units {why}; the steps "
                f"run one by one, which is slower"
            )
            self.wholes = {key: None if key[0] == direction else found for key, found in self.wholes.items()}
            return False
        # Counters are never set back: the next launch goes on from where this one ended.
        self.counted[key] += T * kernel.passes
        return True

    def check(self) -> None:
        """Raise an EngineError if a kernel gave up waiting, as far as is known without waiting for the GPU."""
        check_waiting(self.device.type)

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
            multiplied(operand, matrix, out[0])
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


class WeightGradients:
    """How the gradients of some weights come from products and sums over all rows and steps."""

    def __init__(self, plan: Plan, wanted: Sequence[int], weights: Sequence[Tensor]) -> None:
        self.plan = plan
        self.wanted = wanted
        contractions = [of[0].node for of in plan.matrices] + [of[0].node for of in plan.sums]
        nodes = [plan.trace.weight_gradients[number] for number in wanted]
        given = [*plan.trace.weight_inputs, *contractions]
        self.nodes = Nodes(plan, given, [node for node in nodes if node is not None])
        self.ones: Tensor | None = None
        self.is_direct = self.only_moved(weights)

    def only_moved(self, weights: Sequence[Tensor]) -> bool:
        """Whether every gradient is one of the products or sums as it is, with nothing computed from it: then products
        are rounded to the type of a weight at once, as they would be afterwards."""
        kinds = {weights[number].dtype for number in self.wanted}
        if len(kinds) != 1:
            return False
        plan = self.plan
        shapes = [(left.width, right.width) for _, left, right in plan.matrices] + [(b.width,) for _, b in plan.sums]
        gathered = [torch.empty(shape, device="meta") for shape in shapes]
        try:
            results = self.nodes([*(torch.empty_like(weight, device="meta") for weight in weights), *gathered])
        except (RuntimeError, TypeError, NotImplementedError):
            return False
        memory = [tensor.untyped_storage()._cdata for tensor in gathered]
        used = [result.untyped_storage()._cdata for result in results]
        return all(each in memory for each in used) and len(set(used)) == len(used)

    def __call__(self, workspace: Workspace, T: int, weights: Sequence[Tensor]) -> list[Tensor | None]:
        plan = self.plan
        dtype = weights[self.wanted[0]].dtype if self.is_direct else torch.float32

        gathered = [summed_product(*workspace.all_rows(left, right, T), dtype) for _, left, right in plan.matrices]
        if plan.sums:
            widths = [buffer.width for _, buffer in plan.sums]
            summed = workspace.tensors["sums"][:T].flatten(0, 1)
            if self.ones is None or self.ones.shape[1] != len(summed):
                self.ones = summed.new_ones(1, len(summed))
            gathered += total_of(summed, self.ones).to(dtype).split(widths)
        results = iter(self.nodes([*weights, *gathered]))
        return [
            next(results).to(weight.dtype) if number in self.wanted else None for number, weight in enumerate(weights)
        ]


@functools.lru_cache(maxsize=256)
def parts_of_d_inputs(plan: Plan) -> dict[Buffer, int]:
    """Which buffers of gradients, side by side, are the gradient of the inputs, and where each begins there; none where
    that has other parts as well. In a GRU the gradients of what U multiplies are those of what W does."""
    whole = plan.trace.d_inputs
    written = {write.value: write.buffer for p in plan.backward.passes for write in p.writes}
    found: dict[Buffer, int] = {}
    if whole.op != "move":
        return {}
    for run in whole.detail.runs:
        value = whole.values[run.source]
        buffer = written.get(value)
        is_all = run.step == run.stride == 1 and run.offset == 0 and run.length == value.width
        if buffer is None or not is_all or buffer in found or buffer.place is not Place.SEQUENCE:
            return {}
        found[buffer] = run.start
    return found if sum(buffer.width for buffer in found) == whole.width else {}


@functools.lru_cache(maxsize=256)
def backward_phases(plan: Plan) -> Phases:
    """The way back without what is written once already, as a part of something else."""
    if not parts_of_d_inputs(plan):
        return plan.backward
    passes = [
        replace(p, writes=[write for write in p.writes if write.buffer is not plan.d_inputs])
        for p in plan.backward.passes
    ]
    if not all(each.writes for each in passes):
        return plan.backward
    return replace(plan.backward, passes=passes)


def nothing_carried(plan: Plan) -> list[Buffer | None]:
    """For each state, the buffer that carries its gradient from step to step besides products, where that is always 0:
    but for the gradient of the last state, it need not be read nor written."""
    values = {write.buffer: write.value for p in plan.backward.passes for write in p.writes}
    carried = [next(buffer for buffer, _ in parts if buffer.place is Place.TURNS) for parts in plan.d_states]
    return [buffer if values[buffer].op == "constant" else None for buffer in carried]


def phases_of(plan: Plan, direction: Direction) -> Phases:
    if direction == "backward":
        return backward_phases(plan)
    found: Phases = getattr(plan, direction)
    return found


def saved_type(buffer: Buffer, dtype: torch.dtype) -> torch.dtype:
    """The type in which something is kept for the way back, where products multiply another type: see plan.kind_of.

    >>> saved_type(Buffer("saved gates", Place.SEQUENCE, 8), torch.bfloat16)
    torch.float16
    """
    if buffer.name == "saved numbers":
        return torch.float32
    return torch.float16 if buffer.name == "saved gates" and dtype == torch.bfloat16 else dtype


@functools.lru_cache(maxsize=256)
def exact_results(plan: Plan) -> frozenset[Buffer]:
    """Results of products which forward passes sum up along rows, as layer norm does: deviations from a mean, divided
    by how far they deviate, have fewer digits than the results, and so these are not rounded."""
    found = set()
    for phases in (plan.forward, plan.inference):
        results = {product.out for product in products_of(phases)}
        for row_pass in phases.passes:
            if units_of(row_pass) is None:
                found |= results & {buffer for parts in row_pass.reads.values() for buffer, _ in parts}
    return frozenset(found)


def multiplied(operand: Tensor, matrix: Tensor, out: Tensor) -> None:
    """operand (B, n) · matrix (n, m); float32 where there is room for it."""
    if out.dtype == operand.dtype:
        torch.mm(operand, matrix, out=out)
    elif out.is_cuda:
        torch.mm(operand, matrix, out_dtype=out.dtype, out=out)
    else:
        torch.mm(operand.to(out.dtype), matrix.to(out.dtype), out=out)


def in_one_piece(tensor: Tensor, *, always: bool = False) -> Tensor:
    """A sequence (B, T, w) with one row after the other, copied unless it lies so already; always: in any case."""
    if not always and tensor.stride(0) == tensor.shape[1] * tensor.stride(1):
        return tensor
    count = 16 // tensor.element_size()
    if tensor.is_cuda and all(n % count == 0 for n in (tensor.shape[2], *tensor.stride()[:2], tensor.storage_offset())):
        # 16 bytes as one number: torch copies numbers one by one where they do not lie in a row.
        wide = tensor.view(torch.complex128).clone(memory_format=torch.contiguous_format)
        return wide.view(tensor.dtype)
    return tensor.clone(memory_format=torch.contiguous_format)


def copy_all(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copy each source to its target: one kernel for all pairs of the same types."""
    groups: dict[tuple[torch.dtype, torch.dtype], tuple[list[Tensor], list[Tensor]]] = {}
    for target, source in zip(targets, sources, strict=True):
        into, of = groups.setdefault((target.dtype, source.dtype), ([], []))
        into.append(target)
        of.append(source)
    for into, of in groups.values():
        torch._foreach_copy_(into, of)


def clear(tensors: Sequence[Tensor]) -> None:
    """Zeros in all of them, by one kernel for each type."""
    for dtype in {each.dtype for each in tensors}:
        torch._foreach_zero_([each for each in tensors if each.dtype == dtype])


def total_of(rows: Tensor, ones: Tensor | None = None) -> Tensor:
    """The sum of all rows in float32. ones: as many of them as there are rows, (1, n)."""
    if rows.is_cuda and rows.dtype != torch.float32:
        # As a product with ones, which is exact, and several times as fast as torch's sum of few long columns.
        ones = rows.new_ones(1, len(rows)) if ones is None else ones
        return torch.mm(ones, rows, out_dtype=torch.float32)[0]
    return rows.sum(0, dtype=torch.float32)


def summed_product(rows: Tensor, factors: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """rowsᵀ · factors, summed up in float32 whatever their type; rounded to a type only if that is their own."""
    if rows.is_cuda and rows.dtype not in (torch.float32, dtype):
        return torch.mm(rows.T, factors, out_dtype=torch.float32)
    return rows.T @ factors


def recorded(workspace: Workspace, run: object) -> torch.cuda.CUDAGraph:
    """What a function launches, as a graph."""
    stream = torch.cuda.Stream(workspace.device)
    stream.wait_stream(torch.cuda.current_stream(workspace.device))
    with torch.cuda.stream(stream):
        # The vendor's library sets itself up for a thread and stream at its first product: not while recording.
        one = torch.ones(16, 16, dtype=workspace.dtype, device=workspace.device)
        torch.mm(one, one)
        torch.bmm(one[None], one[None])
        with capturing() as graph:
            run()  # type: ignore[operator]
    torch.cuda.current_stream(workspace.device).wait_stream(stream)
    return graph


class Whole(NamedTuple):
    """All steps of a direction as one kernel."""

    kernel: Persistent
    tile: Tile


@functools.lru_cache(maxsize=256)
def persistent_of(
    plan: Plan, direction: Direction, absent: tuple[Buffer, ...] = (), part: int = CHUNK
) -> Persistent | None:
    """All steps of a direction as one kernel, each program with its units or, where passes need whole rows, with rows;
    None where its plan allows neither."""
    phases = phases_of(plan, direction)
    is_backward = direction == "backward"
    name = f"whole_{direction}"
    try:
        return persistent(plan, phases, name, is_backward=is_backward, absent=absent, chunk=part)
    except NoPlan:
        try:
            return rowwise(phases, name, is_backward=is_backward, absent=absent, chunk=part)
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
    said = str(reason).lower()  # drivers differ in what they call a grid that does not fit
    return "OutOfResources" in type(reason).__name__ or "too large" in said or "too many blocks" in said


def operands_of(plan: Plan) -> set[str]:
    """The names of the buffers that products multiply, at each step or after the last."""
    products = [*products_of(plan.forward), *products_of(plan.inference), *products_of(plan.backward)]
    found = [buffer for product in products for buffer in (product.operand, product.out)]
    found += [buffer for _, left, right in plan.matrices for buffer in (left, right)]
    return {buffer.name.replace("previous", "state") for buffer in found}


@functools.lru_cache(maxsize=256)
def kernels_of(plan: Plan, direction: Direction, absent: tuple[Buffer, ...]) -> tuple[Kernel, ...]:
    """The row passes of a direction, printed."""
    phases = phases_of(plan, direction)
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
