"""The steps of a cell among other work: the row passes of its plan, on memory that a larger loop owns.

The graph engine runs a cell over a whole sequence by itself. In a decoder, other kernels stand between two steps of a
cell, what it reads at a step is known only then, and its states are read by others. Here a loop says where states lie,
what else is added to the inputs, where copies of h go, and which gradients reach a state; the row passes are printed
with exactly these reads and writes, so that none of it takes a kernel of its own.

    inputs_t = xw_t + W e_t          xw known before the loop; e_t, the extra input, written by others at each step
    state_t  = step(inputs_t, state_{t-1})

Sequences are (T, B, w), step by step. All arithmetic of passes is in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from recurra.engines.plan import Buffer, Phases, Place, Plan, RowPass, StepProduct, Write, is_saved, ordered
from recurra.engines.planning import Nodes
from recurra.engines.triton_kernels import Address, Launch, functions, launch
from recurra.engines.triton_source import Kernel, kernel
from recurra.engines.values import Value, constant
from recurra.engines.workspace import clear as clear
from recurra.engines.workspace import operands_of, products_of, saved_type
from recurra.engines.workspace import summed_product as summed_product
from recurra.engines.workspace import total_of as total_of

Forward: TypeAlias = Literal["forward", "inference"]

MOST_PARTS = 4
"""Into how many partial sums a product is split at most."""

PART = 128
"""A partial sum has a multiple of so many terms."""

MOST_NUMBERS = 1 << 19
"""So many numbers all partial sums of a product have together at most; with more, the GPU has enough to do."""


class Room(NamedTuple):
    """The sizes of a loop, and the type of what its products multiply."""

    rows: int
    steps: int
    dtype: torch.dtype
    device: torch.device

    def sequence(self, width: int, *, more: int = 0, dtype: torch.dtype | None = None) -> Tensor:
        """(T + more, B, w): something for each step."""
        return torch.empty(self.steps + more, self.rows, width, dtype=dtype or self.dtype, device=self.device)

    def once(self, width: int, parts: int = 1, *, dtype: torch.dtype | None = None) -> Tensor:
        """(parts, B, w): something for one step; partial sums lie behind each other."""
        return torch.empty(parts, self.rows, width, dtype=dtype or self.dtype, device=self.device)

    def parts(self, terms: int, width: int) -> int:
        """Into how many partial sums a product of so many terms and results is split.

        A product of few rows leaves most of a GPU idle. One batched product computes the partial sums side by side,
        and whoever reads the result adds them up: with 128 rows and bfloat16 on an H200, 2,048 terms and 1,024 results
        take 5.6 µs as a whole and 3.6 in four parts.
        """
        for count in range(MOST_PARTS, 1, -1):
            if terms % (count * PART) == 0 and count * self.rows * width <= MOST_NUMBERS:
                return count
        return 1


class Part(NamedTuple):
    """A share of a sum that a pass reads: a sequence (T, B, w), or what the last step left, (parts, B, w)."""

    tensor: Tensor
    is_sequence: bool

    @property
    def kind(self) -> Kind:
        return Kind(self.is_sequence, 1 if self.is_sequence else len(self.tensor))

    def total(self, width: int) -> Tensor:
        """Of the first step, (B, w) in float32."""
        return self.tensor[0].float() if self.is_sequence else self.tensor[:, :, :width].sum(0, dtype=torch.float32)


class Kind(NamedTuple):
    """What a printed pass must know of a part."""

    is_sequence: bool
    parts: int

    def buffer(self, name: str, width: int) -> Buffer:
        return Buffer(name, Place.SEQUENCE if self.is_sequence else Place.ROWS, width)


class Copy(NamedTuple):
    """Where h goes besides: (T, B, H); with a mask, m ∘ h / (1 - rate)."""

    target: Tensor
    mask: Tensor | None = None  # (T, B, H), uint8
    rate: float = 0.0


class Printed(NamedTuple):
    """Row passes for certain reads and writes, and the buffers that a loop gives them."""

    kernels: tuple[Kernel, ...]
    inputs: tuple[Buffer, ...] = ()
    lead: Buffer | None = None  # the product U h, where others compute it
    copies: tuple[tuple[Buffer, Buffer | None], ...] = ()  # the copy, and its mask
    gradients: tuple[tuple[Buffer, ...], ...] = ()  # that reach each state
    carried: tuple[Buffer | None, ...] = ()  # the gradient of each state that a step leaves to the one before


Parts: TypeAlias = tuple[tuple[Buffer, int], ...]
"""Of how many partial sums the results of products consist."""


def all_products(plan: Plan) -> list[StepProduct]:
    return [product for of in (plan.forward, plan.inference, plan.backward) for product in products_of(of)]


def rewired(row_pass: RowPass, reads: dict[Value, list[tuple[Buffer, int]]], writes: Iterable[Write]) -> RowPass:
    """A pass that reads some values elsewhere and writes others. No row of a decoder's loop is padded."""
    found = {value: reads.get(value, parts) for value, parts in row_pass.reads.items()}
    return RowPass(row_pass.name, found, list(writes))


@functools.lru_cache(maxsize=256)
def forward_passes(
    plan: Plan,
    direction: Forward,
    inputs: tuple[Kind, ...],
    rates: tuple[float, ...] = (),
    own: Parts = (),
    *,
    has_lead: bool = False,
    lends: bool = False,
) -> Printed:
    """The passes of a step with inputs of several parts, and h written to as many copies as there are rates; those of
    a rate above 0 are masked.

    own         partial sums of the cell's own products
    has_lead    the product before the first pass is read from a sequence
    lends       the last pass runs at the beginning of another kernel
    """
    leaf, h = plan.trace.leaves["inputs"], plan.trace.new_states[0]
    lead = None
    if has_lead:
        [product] = getattr(plan, direction).before
        lead = Buffer("lead", Place.SEQUENCE, product.out.width)
    of_inputs = tuple(kind.buffer(f"inputs {n}", leaf.width) for n, kind in enumerate(inputs))
    parts = dict(own) | {b: kind.parts for b, kind in zip(of_inputs, inputs, strict=True)}
    copies: list[tuple[Buffer, Buffer | None]] = []
    passes = []
    for row_pass in getattr(plan, direction).passes:
        reads = {leaf: [(buffer, 0) for buffer in of_inputs]}
        if lead is not None:
            for value, found in row_pass.reads.items():
                if found[0][0] is product.out:
                    reads[value] = [(lead, found[0][1])]
        changed = rewired(row_pass, reads, row_pass.writes)
        if any(write.buffer is plan.states[0] for write in row_pass.writes):
            for n, rate in enumerate(rates):
                mask = Buffer(f"mask {n}", Place.SEQUENCE, h.width) if rate else None
                copies.append((Buffer(f"copy {n}", Place.SEQUENCE, h.width), mask))
                value = h
                if mask is not None:
                    kept = Value("leaf", (), h.width, mask.name)
                    changed.reads[kept] = [(mask, 0)]
                    value = masked(h, kept, rate)
                changed.writes.append(Write(value, copies[-1][0]))
        passes.append(changed)
    kernels = tuple(
        kernel(each, f"{direction}_{n}", parts, whole_rows=lends and n == len(passes) - 1)
        for n, each in enumerate(passes)
    )
    return Printed(kernels, of_inputs, lead, tuple(copies))


def masked(value: Value, mask: Value, rate: float) -> Value:
    """m ∘ value / (1 - rate)."""
    kept = Value("mul", (value, mask), value.width)
    return Value("mul", (kept, constant(1.0 / (1.0 - rate))), value.width)


@functools.lru_cache(maxsize=256)
def backward_passes(
    plan: Plan,
    inputs: tuple[Kind, ...],
    gradients: tuple[tuple[Kind, ...], ...],
    own: Parts = (),
    *,
    lends: bool = False,
) -> Printed:
    """The passes of the way back, with gradients of several parts for each state. lends: the first pass runs at the end
    of another kernel."""
    leaf = plan.trace.leaves["inputs"]
    of_inputs = tuple(kind.buffer(f"inputs {n}", leaf.width) for n, kind in enumerate(inputs))
    of_states = tuple(
        tuple(kind.buffer(f"gradient {k} {n}", plan.states[k].width) for n, kind in enumerate(kinds))
        for k, kinds in enumerate(gradients)
    )
    parts = dict(own)
    for buffers, kinds in zip([of_inputs, *of_states], [inputs, *gradients], strict=True):
        parts |= {buffer: kind.parts for buffer, kind in zip(buffers, kinds, strict=True)}
    reads = {leaf: [(buffer, 0) for buffer in of_inputs]}
    for k, buffers in enumerate(of_states):
        reads[plan.trace.leaves[f"gradient {k}"]] = [(buffer, 0) for buffer in buffers]
    turns = {of_state[0][0]: k for k, of_state in enumerate(plan.d_states)}
    carried: list[Buffer | None] = [None for _ in plan.states]
    passes = []
    for number, row_pass in enumerate(plan.backward.passes):
        writes = []
        for write in row_pass.writes:
            if write.buffer not in turns:
                writes.append(write)
            elif write.value.op != "constant":
                left = Buffer(f"carried {turns[write.buffer]}", Place.SEQUENCE, write.buffer.width)
                carried[turns[write.buffer]] = left
                writes.append(replace(write, buffer=left))
        # Only the first pass reads gradients of states as they come; those after it read what it has left.
        read = reads if number == 0 else {leaf: reads[leaf]}
        passes.append(rewired(row_pass, read, writes))
    kernels = tuple(kernel(each, f"backward_{n}", parts, whole_rows=lends and n == 0) for n, each in enumerate(passes))
    return Printed(kernels, of_inputs, None, (), of_states, tuple(carried))


@functools.lru_cache(maxsize=256)
def joined_product(plan: Plan, direction: Forward) -> StepProduct | None:
    """The product U h of a step which does nothing to its inputs but add U h to them; None where it does more.

    Such a step adds W e as well, so that [e; h] is multiplied with [W, U] at once.
    """
    leaf = plan.trace.leaves["inputs"]
    phases: Phases = getattr(plan, direction)
    if plan.needs_inputs or len(phases.before) != 1:
        return None
    [product] = phases.before
    if product.operand.name != "previous 0" or product.out.width != leaf.width or len(product.weights) != 1:
        return None
    for row_pass in phases.passes:
        both = {leaf} | {value for value, parts in row_pass.reads.items() if parts == [(product.out, 0)]}
        for value in ordered([write.value for write in row_pass.writes], stop=row_pass.reads):
            used = both.intersection(value.values) if value not in row_pass.reads else ()
            if used and not (value.op == "add" and set(value.values) == both and len(both) == 2):
                return None
        if any(write.value in both for write in row_pass.writes):
            return None
    return product


class Lent(NamedTuple):
    """A pass that runs within the kernel of another: its source, and its arguments behind the step."""

    kernel: Kernel
    arguments: tuple[Any, ...]


class Lead(NamedTuple):
    """The product of h before the first pass, and that of its gradient on the way back, which others may compute."""

    forward: StepProduct
    backward: StepProduct


@functools.lru_cache(maxsize=256)
def lead_of(plan: Plan, direction: Forward) -> Lead | None:
    """Both products of a step which has one of each, so that what else is multiplied with h can be beside it."""
    before, last = getattr(plan, direction).before, plan.backward.after_pass[-1]
    of_h = [out for out, _ in plan.d_states[0][1:]]
    found = [each for each in last if each.out in of_h and each.operand.place is Place.SEQUENCE]
    if len(before) != 1 or before[0].operand.name != "previous 0" or len(found) != 1:
        return None
    is_alone = found[0].operand is not plan.d_inputs and found[0].out.width == plan.states[0].width
    return Lead(before[0], found[0]) if is_alone else None


@functools.lru_cache(maxsize=256)
def weights_of_products(plan: Plan, directions: tuple[str, ...]) -> tuple[Nodes, list[StepProduct], list[Buffer]]:
    """How the matrices of products and the vectors of passes come from a cell's weights."""
    products = [product for each in directions for product in products_of(getattr(plan, each))]
    vectors = [
        buffer
        for each in directions
        for row_pass in getattr(plan, each).passes
        for parts in row_pass.reads.values()
        for buffer, _ in parts
        if buffer.weight is not None
    ]
    vectors = list(dict.fromkeys(vectors))
    nodes = [weight.node for product in products for weight in product.weights]
    nodes += [buffer.weight.node for buffer in vectors if buffer.weight is not None]
    return Nodes(plan, plan.trace.weight_inputs, nodes), products, vectors


@functools.lru_cache(maxsize=256)
def gradient_nodes(plan: Plan) -> tuple[Nodes, tuple[int, ...]]:
    """The gradients of a cell's weights out of sums over all rows and steps, and which weights have one."""
    wanted = tuple(n for n, node in enumerate(plan.trace.weight_gradients) if node is not None)
    given = [*plan.trace.weight_inputs, *(of[0].node for of in plan.matrices), *(of[0].node for of in plan.sums)]
    nodes = [plan.trace.weight_gradients[n] for n in wanted]
    return Nodes(plan, given, [node for node in nodes if node is not None]), wanted


class CellSteps:
    """A cell in a loop: its memory, its steps forward and back, and the gradients after the last.

    Before the first step forward, `inputs` and `after` are set, and `copies`; before the first step back, `gradients`.
    Where `lends` is set, `forward_lent` is run by others after each step forward, and `backward_lent` before one back.
    """

    def __init__(
        self,
        plan: Plan,
        room: Room,
        weights: Sequence[Tensor],
        rows: Sequence[Tensor],
        extra: Tensor | None,
        *,
        training: bool,
    ) -> None:
        """
        weights    of the cell, as the plan names them
        rows       tensors with a row for each row of the batch, likewise
        extra      W (P, E), by which the extra input is multiplied; None where there is none
        """
        self.plan = plan
        self.room = room
        self.direction: Forward = "forward" if training else "inference"
        self.weights = list(weights)
        self.extra = None if extra is None else extra.to(room.dtype)
        self.tensors: dict[Buffer, Tensor] = {}
        self.matrices: dict[StepProduct, Tensor] = {}
        self.lowered: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}
        self.parts = {each.out: room.parts(each.operand.width, each.out.width) for each in all_products(plan)}
        self.operands = operands_of(plan)
        self.copies: list[Copy] = []
        self.gradients: list[list[Part]] = [[] for _ in plan.states]
        self.after: list[Tensor] = []
        self.inputs: list[Part] = []
        self.e_out: Tensor | None = None
        self.lead: Lead | None = None
        self.lends = False  # its last pass forward and its first one back
        given = dict(zip(plan.trace.row_inputs, rows, strict=True))
        for each in self.buffers_read():
            if each.name in given:
                self.tensors[each] = given[each.name].flatten(1).float().unsqueeze(0)
        self.load(("forward", "backward") if training else ("inference",))
        self.states = self.memory_for_states()

    def buffers_read(self) -> list[Buffer]:
        phases = (self.plan.forward, self.plan.inference, self.plan.backward)
        return list({b: None for of in phases for p in of.passes for parts in p.reads.values() for b, _ in parts})

    def load(self, directions: tuple[str, ...]) -> None:
        """The matrices of products in the type they are multiplied in, and the vectors of passes in float32."""
        nodes, products, vectors = weights_of_products(self.plan, directions)
        found = iter(nodes(self.weights))
        for product in products:
            parts = [next(found) for _ in product.weights]
            self.matrices[product] = self.low(parts[0]) if len(parts) == 1 else torch.cat(parts, 1).to(self.room.dtype)
        for buffer in vectors:
            self.tensors[buffer] = next(found).float().reshape(-1)

    def low(self, matrix: Tensor) -> Tensor:
        """A matrix in the type that it is multiplied in. A step forward and one back share it, one of them turned."""
        is_turned = matrix.dim() == 2 and matrix.t().is_contiguous()
        base = matrix.t() if is_turned else matrix
        key = (base.data_ptr(), base.shape, base.stride())
        if key not in self.lowered:
            self.lowered[key] = base, base.to(self.room.dtype)
        found = self.lowered[key][1]
        return found.t() if is_turned else found

    def memory_for_states(self) -> list[Tensor]:
        """(T + 1, B, w) each: the state before each step. h lies behind the extra input where both are multiplied at
        once."""
        room, plan = self.room, self.plan
        size = 0 if self.extra is None else self.extra.shape[1]
        is_whole = self.extra is not None and len(self.extra) == plan.trace.leaves["inputs"].width
        self.joined = joined_product(plan, self.direction) if is_whole else None
        states = []
        for k, buffer in enumerate(plan.states):
            is_operand = k == 0 or buffer.name in self.operands
            ahead = size if k == 0 and self.joined is not None else 0
            memory = room.sequence(ahead + buffer.width, more=1, dtype=room.dtype if is_operand else torch.float32)
            states.append(memory[:, :, ahead:])
            if ahead:
                self.both = memory
                self.read = memory[:, :, :ahead]
        if self.extra is not None and self.joined is None:
            self.read = room.sequence(size, more=1)
        return states

    # Products that are computed beside others

    def offered_lead(self) -> Lead | None:
        """The product of h that may be computed together with another product of h; None where there is none."""
        return None if self.joined is not None else lead_of(self.plan, self.direction)

    def may_lend(self) -> bool:
        """Whether its last pass forward is the end of a step, and its first one back the beginning."""
        return not getattr(self.plan, self.direction).after_pass[-1] and not self.plan.backward.before

    def take_lead(self, lead: Lead, out: Tensor) -> Tensor:
        """Have it computed elsewhere, into (T, B, G); its matrix (H, G)."""
        self.lead, self.lead_out = lead, out
        return self.matrices[lead.forward]

    def take_d_lead(self, out: Tensor) -> Tensor:
        """Leave the gradient of its result in (T, B, G), to be multiplied elsewhere; the matrix (G, H) for that."""
        assert self.lead is not None
        self.tensors[self.lead.backward.operand] = out
        return self.matrices[self.lead.backward]

    # Forward

    def start(self, states: Sequence[Tensor]) -> None:
        """Begin from these states (B, w)."""
        for memory, state in zip(self.states, states, strict=True):
            memory[0].copy_(state)

    def prepare(self) -> None:
        """Find the kernels, now that everything around the cell is known."""
        plan, room = self.plan, self.room
        width = plan.trace.leaves["inputs"].width
        if self.joined is not None:
            assert self.extra is not None
            # (P, E + H): [W, U] as one matrix.
            U = self.matrices[self.joined].t()
            self.matrix = torch.cat([self.extra, U], dim=1)
            self.parts[self.joined.out] = room.parts(self.matrix.shape[1], len(self.matrix))
        elif self.extra is not None:
            # A way back that reads the inputs needs those of every step.
            keeps = plan.needs_inputs and self.direction == "forward"
            P, E = self.extra.shape
            self.e_out = room.sequence(width) if keeps else room.once(width, room.parts(E, P) if width == P else 1)
            if width > P:
                self.e_out.zero_()
            self.inputs = [*self.inputs, Part(self.e_out, keeps)]
        rates = tuple(copy.rate if copy.mask is not None else 0.0 for copy in self.copies)
        kinds = tuple(part.kind for part in self.inputs)
        has_lead = self.lead is not None
        own = tuple(self.parts.items())
        printed = forward_passes(plan, self.direction, kinds, rates, own, has_lead=has_lead, lends=self.lends)
        self.place(printed)
        if printed.lead is not None:
            self.tensors[printed.lead] = self.lead_out
        for copy, (buffer, mask) in zip(self.copies, printed.copies, strict=True):
            self.tensors[buffer] = copy.target
            if mask is not None and copy.mask is not None:
                self.tensors[mask] = copy.mask
        self.forward_launches = self.launches(printed.kernels)
        self.forward_lent = Lent(printed.kernels[-1], self.forward_launches[-1].arguments)

    def place(self, printed: Printed) -> None:
        """Say where inputs and states lie."""
        for buffer, part in zip(printed.inputs, self.inputs, strict=True):
            self.tensors[buffer] = part.tensor
        for k, buffer in enumerate(self.plan.states):
            self.tensors[buffer] = self.after[k]
        for buffer in [*self.buffers_read(), *(right for _, _, right in self.plan.matrices)]:
            self.is_previous(buffer)
        for product in [*products_of(self.plan.forward), *products_of(self.plan.inference)]:
            self.is_previous(product.operand)

    def is_previous(self, buffer: Buffer) -> None:
        if buffer.place is Place.PREVIOUS:
            self.tensors[buffer] = self.states[int(buffer.name.removeprefix("previous "))][: self.room.steps]

    def launches(self, kernels: Sequence[Kernel]) -> list[Launch]:
        found = functions(kernels)
        scratch = torch.empty(max(1, self.room.rows * max(each.scratch for each in kernels)), device=self.room.device)
        return [
            launch(
                each,
                found[each.name],
                [self.address(buffer) for buffer, _ in each.arguments],
                None,
                scratch,
                self.room.rows,
            )
            for each in kernels
        ]

    def address(self, buffer: Buffer) -> Address:
        tensor = self.tensor(buffer)
        if buffer.place is Place.SHARED:
            return Address(tensor, 0, 0)
        assert tensor.stride(2) == 1 or tensor.shape[2] == 1
        return Address(tensor, tensor.stride(1), tensor.stride(0))

    def tensor(self, buffer: Buffer) -> Tensor:
        """The memory of a buffer, made when first asked for."""
        if buffer not in self.tensors:
            if buffer.place is Place.SUMS:
                buffers = [each for _, each in self.plan.sums]
                widths = [each.width for each in buffers]
                self.sums = self.room.sequence(sum(widths))
                self.tensors.update(zip(buffers, self.sums.split(widths, dim=2), strict=True))
            elif buffer.place is Place.ROWS:
                is_operand = buffer.name in self.operands
                dtype = self.room.dtype if is_operand else torch.float32
                self.tensors[buffer] = self.room.once(buffer.width, self.parts.get(buffer, 1), dtype=dtype)
            else:
                assert buffer.place is Place.SEQUENCE, buffer
                dtype = saved_type(buffer, self.room.dtype) if is_saved(buffer) else self.room.dtype
                self.tensors[buffer] = self.room.sequence(buffer.width, dtype=dtype)
        return self.tensors[buffer]

    def forward(self, t: int) -> None:
        if self.joined is not None:
            multiplied(self.both[t], self.matrix.t(), self.tensor(self.joined.out))
        elif self.extra is not None:
            assert self.e_out is not None
            out = self.e_out[t : t + 1] if self.inputs[-1].is_sequence else self.e_out
            multiplied(self.read[t], self.extra.t(), out[:, :, : len(self.extra)])
        phases: Phases = getattr(self.plan, self.direction)
        for product in phases.before:
            if product is not self.joined and (self.lead is None or product is not self.lead.forward):
                self.multiply(product, t)
        for row_pass, products in zip(self.forward_launches, phases.after_pass, strict=True):
            if not (self.lends and row_pass is self.forward_launches[-1]):
                row_pass(t)
            for product in products:
                self.multiply(product, t)

    def multiply(self, product: StepProduct, t: int) -> None:
        is_sequence = product.operand.place in (Place.SEQUENCE, Place.PREVIOUS)
        operand = self.tensor(product.operand)[t if is_sequence else 0]
        multiplied(operand, self.matrices[product], self.tensor(product.out))

    # Backward

    def begin_backward(self) -> None:
        """Make room for what the steps back leave to others."""
        plan, room = self.plan, self.room
        phases = plan.backward
        self.d_inputs = room.sequence(plan.d_inputs.width)
        self.tensors[plan.d_inputs] = self.d_inputs
        self.d_joined: StepProduct | None = None
        self.d_extra: Part | None = None
        if self.extra is not None:
            E, P = self.extra.shape[1], len(self.extra)
            last = [each for each in phases.after_pass[-1] if each.operand is plan.d_inputs]
            if len(last) == 1 and plan.d_inputs.width == P:
                # The gradients of e and h are products of the same: d_inputs · [W, U].
                [self.d_joined] = last
                U = self.matrices[last[0]]
                is_same = self.joined is not None and is_turned(U, self.matrices[self.joined])
                self.d_matrix = self.matrix if is_same else torch.cat([self.extra, U], dim=1)
                self.d_both = room.once(E + last[0].out.width, room.parts(P, E + last[0].out.width))
                self.tensors[last[0].out] = self.d_both[:, :, E:]
                self.d_extra = Part(self.d_both[:, :, :E], is_sequence=False)
            else:
                self.d_extra = Part(room.once(E, room.parts(P, E)), is_sequence=False)
        self.carried = [room.sequence(each.width, more=1, dtype=torch.float32) for each in plan.states]
        writes = {write.buffer for p in phases.passes for write in p.writes if write.value.op != "constant"}
        self.carries = [of_state[0][0] in writes for of_state in plan.d_states]

    def left_by_the_last(self) -> list[Tensor]:
        """What the last step reads of the one after it, which does not exist: to be cleared before the way back."""
        found = [memory[-1] for memory in self.carried]
        of_products = [buffer for of_state in self.plan.d_states for buffer, _ in of_state[1:]]
        if self.lead is not None:
            of_products = [buffer for buffer in of_products if buffer is not self.lead.backward.out]
        if self.d_joined is not None:
            of_products = [buffer for buffer in of_products if buffer is not self.d_joined.out]
            found.append(self.d_both)
        elif self.d_extra is not None:
            found.append(self.d_extra.tensor)
        return [*found, *(self.tensor(buffer) for buffer in dict.fromkeys(of_products))]

    def d_previous(self, k: int, *, is_next: bool) -> list[Part]:
        """What reaches the state before a step from that step. is_next: as the step before it reads it."""
        T = self.room.steps
        found = []
        if self.carries[k]:
            found.append(Part(self.carried[k][1:] if is_next else self.carried[k][:T], is_sequence=True))
        width = self.plan.states[k].width
        for buffer, column in self.plan.d_states[k][1:]:
            if self.lead is not None and buffer is self.lead.backward.out:
                continue
            out = self.tensor(buffer)
            found.append(Part(out[:, :, column : column + width], is_sequence=False))
        return found

    def prepare_backward(self) -> None:
        kinds = tuple(tuple(part.kind for part in parts) for parts in self.gradients)
        own = tuple(self.parts.items())
        printed = backward_passes(self.plan, tuple(part.kind for part in self.inputs), kinds, own, lends=self.lends)
        self.place(printed)
        for buffers, parts in zip(printed.gradients, self.gradients, strict=True):
            self.tensors |= {buffer: part.tensor for buffer, part in zip(buffers, parts, strict=True)}
        for buffer, memory in zip(printed.carried, self.carried, strict=True):
            if buffer is not None:
                self.tensors[buffer] = memory
        self.backward_launches = self.launches(printed.kernels)
        self.backward_lent = Lent(printed.kernels[0], self.backward_launches[0].arguments)

    def backward(self, t: int) -> None:
        phases = self.plan.backward
        for product in phases.before:
            self.multiply(product, t)
        for row_pass, products in zip(self.backward_launches, phases.after_pass, strict=True):
            if not (self.lends and row_pass is self.backward_launches[0]):
                row_pass(t)
            for product in products:
                if product is not self.d_joined and (self.lead is None or product is not self.lead.backward):
                    self.multiply(product, t)
        if self.d_joined is not None:
            multiplied(self.d_inputs[t], self.d_matrix, self.d_both)
        elif self.extra is not None:
            assert self.d_extra is not None
            multiplied(self.d_inputs[t, :, : len(self.extra)], self.extra, self.d_extra.tensor)

    # After the loop

    def start_gradient(self, k: int) -> Tensor:
        """Of the state before the first step, (B, w)."""
        width = self.plan.states[k].width
        parts = self.d_previous(k, is_next=False)
        if not parts:
            return torch.zeros(self.room.rows, width, device=self.room.device)
        return functools.reduce(torch.add, (part.total(width) for part in parts))

    def weight_gradients(self) -> list[Tensor | None]:
        """Every weight's gradient, from one product over all steps or a sum of what the passes wrote."""
        plan = self.plan
        nodes, wanted = gradient_nodes(plan)
        gathered = [
            summed_product(self.tensor(left).flatten(0, 1), self.tensor(right).flatten(0, 1))
            for _, left, right in plan.matrices
        ]
        if plan.sums:
            widths = [buffer.width for _, buffer in plan.sums]
            gathered += total_of(self.sums.flatten(0, 1)).split(widths)
        results = iter(nodes([*self.weights, *gathered]) if wanted else ())
        return [
            next(results).to(weight.dtype) if number in wanted else None for number, weight in enumerate(self.weights)
        ]

    def extra_gradient(self) -> Tensor:
        """Of W, by which the extra input is multiplied."""
        assert self.extra is not None
        rows = self.d_inputs[:, :, : len(self.extra)].flatten(0, 1)
        return summed_product(rows, self.read[: self.room.steps].flatten(0, 1))


def is_turned(one: Tensor, other: Tensor) -> bool:
    """Whether a matrix is another one turned, in the same memory."""
    turned = other.t()
    return one.data_ptr() == turned.data_ptr() and one.shape == turned.shape and one.stride() == turned.stride()


def multiplied(operand: Tensor, matrix: Tensor, out: Tensor) -> None:
    """operand (B, n) · matrix (n, m), as the partial sums (parts, B, m) that there is room for."""
    if (count := len(out)) == 1:
        torch.mm(operand, matrix, out=out[0])
    else:
        torch.bmm(operand.unflatten(1, (count, -1)).transpose(0, 1), matrix.unflatten(0, (count, -1)), out=out)
