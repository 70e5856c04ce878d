"""The plan of a cell: which products and row passes make a step, what is saved for the way back, what comes after.

A step is cut at its products with weights. Between two products lies a row pass: every row of the batch by itself, one
sweep over its numbers. A plan is data: planned.py runs it, c_source.py prints its passes as C.

    forward    [products of states] → pass 0 → [products] → pass 1 → …
    backward   pass 0 → [products] → pass 1 → …, the same weights the other way
    after      every matrix's gradient as one product over all steps: Σ_t G_tᵀ A_t
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from recurra.engines.trace import Contraction, Trace
from recurra.engines.values import Value, Weight, constant

CHEAP = {
    *("leaf", "constant", "move", "add", "sub", "mul", "div", "neg", "reciprocal", "abs", "sign", "relu"),
    *("maximum", "minimum", "where", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not"),
    *("floor", "ceil", "round", "trunc"),
}
"""What is computed again for the backward pass; the rest (products, stretches, exp, tanh, …) is saved."""

MAXIMA = ("largest", "place of the largest")


BOUNDED = ("sigmoid", "tanh", "erf", "sin", "cos")
"""What is never above 1, nor below -1."""


def kind_of(value: Value) -> str:
    """The buffer in which a value is saved. In half precision gates have more digits than others, for which numbers of
    small range suffice, because what is multiplied on the way back is 1 - tanh² and σ (1 - σ); and single numbers, such
    as the deviation by which a row is divided, have all digits, because whatever a row passes on is multiplied by them.
    """
    if value.width == 1:
        return "saved numbers"
    return "saved gates" if value.op in BOUNDED else "saved"


def is_saved(buffer: Buffer) -> bool:
    """Whether a buffer holds what the way back needs, which no padded row has."""
    return buffer.name.startswith("saved")


def is_exact(value: Value) -> bool:
    """Whether a value is a maximum, or asks which number is one.

    Such a value is made where its arguments are, once: computed again, a number may differ in its last digit, and then
    none would be equal to the maximum.
    """

    def is_maximum(value: Value) -> bool:
        return value.op in MAXIMA or (value.op in ("move", "neg") and any(is_maximum(arg) for arg in value.values))

    return value.op in MAXIMA or (value.op in ("eq", "ne") and any(is_maximum(arg) for arg in value.values))


class Place(Enum):
    """How a buffer lies in memory."""

    SEQUENCE = "B, T, w"
    PREVIOUS = "B, T, w, read one step earlier; the first from the start state"
    ROWS = "B, w"
    TURNS = "2, B, w: written in turns, so that a step reads what the last one wrote"
    SHARED = "w, one for all rows"
    SUMS = "parts, w: added to by every row and step, each thread in a part of its own"


@dataclass(frozen=True, eq=False)
class Buffer:
    """A piece of memory that passes and products read and write."""

    name: str
    place: Place
    width: int
    weight: Weight | None = None  # SHARED: what it holds


@dataclass(frozen=True, eq=False)
class StepProduct:
    """out = operand · weight, for all rows at once; several weights of one operand are stacked side by side."""

    operand: Buffer
    weights: tuple[Weight, ...]
    out: Buffer


@dataclass(frozen=True, eq=False)
class Write:
    """A value and where it goes, from a column on."""

    value: Value
    buffer: Buffer
    column: int = 0


@dataclass
class RowPass:
    """One sweep over the rows: what it can read, what it writes, and what padded rows get instead."""

    name: str
    reads: dict[Value, list[tuple[Buffer, int]]] = field(default_factory=dict)  # a value is the sum of these
    writes: list[Write] = field(default_factory=list)
    holds: list[tuple[list[tuple[Buffer, int]], Buffer]] = field(default_factory=list)  # padded rows: kept as they are
    clears: list[Buffer] = field(default_factory=list)  # padded rows: zero


@dataclass
class Phases:
    """One direction of a step: products before the first pass, then passes, each followed by its products."""

    before: list[StepProduct]
    passes: list[RowPass]
    after_pass: list[list[StepProduct]]


@dataclass(eq=False)
class Plan:
    """All that an engine must know to run a cell forward and back."""

    forward: Phases  # with everything that the way back needs written down
    inference: Phases  # without
    backward: Phases
    states: list[Buffer]  # SEQUENCE: the state after each step
    start: list[Buffer]  # ROWS
    saved: list[Buffer]  # SEQUENCE: what the way back needs besides the states
    d_inputs: Buffer
    d_states: list[list[tuple[Buffer, int]]]  # TURNS and product results whose sum is the gradient of a state
    d_outputs: list[Buffer]  # SEQUENCE: what comes from outside, per state
    matrices: list[tuple[Contraction, Buffer, Buffer]]  # Gᵀ A: which two sequences
    sums: list[tuple[Contraction, Buffer]]
    needs_inputs: bool  # whether the way back reads the projected inputs
    trace: Trace

    def __str__(self) -> str:
        return "\n".join(described(self))


def make_plan(trace: Trace) -> Plan:
    """Cut a traced step at its products and put the pieces in order."""
    return Planner(trace).plan()


class Planner:
    """Carries the buffers while a plan is made."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.leaves = trace.leaves
        n = len(trace.new_states)
        self.inputs = Buffer("inputs", Place.SEQUENCE, trace.leaves["inputs"].width)
        self.states = [Buffer(f"state {k}", Place.SEQUENCE, trace.new_states[k].width) for k in range(n)]
        self.previous = [Buffer(f"previous {k}", Place.PREVIOUS, trace.new_states[k].width) for k in range(n)]
        self.start = [Buffer(f"start {k}", Place.ROWS, trace.new_states[k].width) for k in range(n)]
        self.given = {name: Buffer(name, Place.ROWS, trace.leaves[name].width) for name in trace.row_inputs}
        self.gradients = {leaf for name, leaf in trace.leaves.items() if name.startswith("gradient")}
        self.shared: dict[Weight, Buffer] = {}
        self.results: dict[Value, tuple[Buffer, int]] = {}  # where the products of the phases last made lie
        self.kept = 0

    def plan(self) -> Plan:
        trace = self.trace
        forward_values = ordered(trace.new_states)
        saved = self.choose_saved(set(forward_values))
        groups: dict[str, list[Value]] = {}
        # The widest first: narrow ones between gates would leave what follows them unaligned.
        for value in sorted(saved, key=lambda value: -value.width):
            groups.setdefault(kind_of(value), []).append(value)
        wanted = []
        for kind, values in groups.items():
            buffer = Buffer(kind, Place.SEQUENCE, sum(value.width for value in values))
            column = 0
            for value in values:
                wanted.append(Write(value, buffer, column))
                column += value.width
        forward, operands = self.forward_phases(wanted, training=True)
        inference, _ = self.forward_phases([], training=False)
        at_hand = {write.value: [(write.buffer, write.column)] for write in wanted}
        for value, buffer in zip(trace.new_states, self.states, strict=True):
            at_hand.setdefault(value, [(buffer, 0)])
        for value, buffer in operands.items():
            at_hand.setdefault(value, [(buffer, 0)])
        return self.backward_plan(forward, inference, at_hand, operands, list(dict.fromkeys(w.buffer for w in wanted)))

    # Forward

    def forward_phases(self, wanted: list[Write], training: bool) -> tuple[Phases, dict[Value, Buffer]]:
        trace = self.trace
        outputs = [Write(value, buffer) for value, buffer in zip(trace.new_states, self.states, strict=True)]
        # A name of its own for each: an engine may keep memory for both by the names of buffers.
        name, place = ("forward", Place.SEQUENCE) if training else ("inference", Place.ROWS)
        phases, operands = self.phases(name, outputs + wanted, self.forward_leaves(), place)
        for row_pass in phases.passes:
            written = dict.fromkeys(write.buffer for write in row_pass.writes)
            row_pass.clears.extend(buffer for buffer in written if not is_saved(buffer))
        return phases, operands

    def forward_leaves(self) -> dict[Value, list[tuple[Buffer, int]]]:
        at_hand = {self.leaves["inputs"]: [(self.inputs, 0)]}
        for k, buffer in enumerate(self.previous):
            at_hand[self.leaves[f"state {k}"]] = [(buffer, 0)]
        for name, buffer in self.given.items():
            at_hand[self.leaves[name]] = [(buffer, 0)]
        return at_hand

    # Backward

    def choose_saved(self, forward: set[Value]) -> list[Value]:
        """What the backward values need of the forward ones and cannot cheaply compute again."""
        trace = self.trace
        roots = [trace.d_inputs, *trace.d_states]
        for contraction in trace.contractions:
            roots += [contraction.left, *([contraction.right] if contraction.right else [])]
        every = ordered(roots)
        # Whether two numbers are equal is asked on the way there, even if only the way back wants to know.
        late: set[Value] = set(self.gradients)
        for value in every:
            if any(arg in late for arg in value.values):
                late.add(value)
        early = [value for value in every if is_exact(value) and value not in late and value not in forward]
        forward = forward | set(ordered(early))
        backward = [value for value in every if value not in forward]
        states = set(trace.new_states)
        needed = {arg for value in backward for arg in value.values if arg in forward}
        needed |= {root for root in roots if root in forward}
        saved: dict[Value, None] = {}
        known: set[Value] = set()
        order = {value: number for number, value in enumerate(ordered([*trace.new_states, *early]))}

        def at_hand(value: Value) -> bool:
            return value.op in ("leaf", "constant") or value in states or value in saved

        def cheap(value: Value) -> bool:
            if value in known or at_hand(value):
                return True
            if is_exact(value) or value.op not in CHEAP or not all(cheap(arg) for arg in value.values):
                return False
            known.add(value)
            return True

        def missing(value: Value) -> set[Value]:
            """What a value is cheaply computed from and is not at hand."""
            if cheap(value):
                return set()
            if is_exact(value) or value.op not in CHEAP:
                return {value}
            return {found for arg in value.values for found in missing(arg)}

        for value in ordered([*trace.new_states, *early]):
            if value in needed and not cheap(value):
                # A mean and a deviation take less room than the numbers of a row that were normalised by them.
                numbers = missing(value)
                is_less = value.width > 1 and all(number.width == 1 for number in numbers)
                saved.update(dict.fromkeys(sorted(numbers, key=order.__getitem__) if is_less else [value]))
        return list(saved)

    def backward_plan(
        self,
        forward: Phases,
        inference: Phases,
        at_hand: dict[Value, list[tuple[Buffer, int]]],
        operands: dict[Value, Buffer],
        saved: list[Buffer],
    ) -> Plan:
        trace = self.trace
        at_hand = {**self.forward_leaves(), **at_hand}
        # The gradient of a state: what comes from outside, what the later step left, and its products.
        outside = [Buffer(f"d_state {k}", Place.SEQUENCE, b.width) for k, b in enumerate(self.states)]
        turns = [Buffer(f"carried {k}", Place.TURNS, b.width) for k, b in enumerate(self.states)]
        d_inputs = Buffer("d_inputs", Place.SEQUENCE, self.inputs.width)
        matrices = [c for c in trace.contractions if c.right is not None]
        sums = [c for c in trace.contractions if c.right is None]
        terms = [add_terms(value) for value in trace.d_states]
        writes = [Write(trace.d_inputs, d_inputs)]
        sequences: dict[Value, Buffer] = {trace.d_inputs: d_inputs}
        for contraction in matrices:
            if contraction.left not in sequences:
                name = f"d_product {len(sequences)}"
                sequences[contraction.left] = Buffer(name, Place.SEQUENCE, contraction.left.width)
                writes.append(Write(contraction.left, sequences[contraction.left]))
        right: list[Buffer] = []
        for contraction in matrices:
            assert contraction.right is not None
            found = self.sequence_of(contraction.right, operands) or sequences.get(contraction.right)
            if found is None:
                found = Buffer(f"factor {len(sequences)}", Place.SEQUENCE, contraction.right.width)
                sequences[contraction.right] = found
                writes.append(Write(contraction.right, found))
            right.append(found)
        direct: list[Value | None] = []
        for (_, rest), buffer in zip(terms, turns, strict=True):
            direct.append(rest)
            if rest is not None:
                writes.append(Write(rest, buffer))
        sum_buffers = [Buffer(f"sum {n}", Place.SUMS, c.left.width) for n, c in enumerate(sums)]
        writes += [Write(c.left, b) for c, b in zip(sums, sum_buffers, strict=True)]
        carried = [value for products, _ in terms for value in products]
        gradient_leaves = [self.leaves[f"gradient {k}"] for k in range(len(turns))]
        for leaf, buffer, own in zip(gradient_leaves, outside, turns, strict=True):
            at_hand[leaf] = [(buffer, 0), (own, 0)]
        phases, _ = self.phases("backward", writes, at_hand, Place.ROWS, sequences, carried)
        d_states = []
        for (products, _), leaf, buffer, own in zip(terms, gradient_leaves, outside, turns, strict=True):
            parts = [(own, 0), *(self.results[value] for value in products)]
            d_states.append(parts)
            at_hand[leaf] = [(buffer, 0), *parts]
        # Pass 0 adds up the gradient of a state; a later pass that wants it finds it where pass 0 has left it.
        for leaf in gradient_leaves:
            if leaf in phases.passes[0].reads:
                phases.passes[0].reads[leaf] = at_hand[leaf]
        self.finish_backward(phases, turns, direct, d_states)
        used = {b.name for p in phases.passes for parts in p.reads.values() for b, _ in parts}
        return Plan(
            forward,
            inference,
            phases,
            self.states,
            self.start,
            saved,
            d_inputs,
            d_states,
            outside,
            [(c, sequences[c.left], r) for c, r in zip(matrices, right, strict=True)],
            list(zip(sums, sum_buffers, strict=True)),
            "inputs" in used,
            trace,
        )

    def finish_backward(
        self,
        phases: Phases,
        turns: list[Buffer],
        direct: list[Value | None],
        d_states: list[list[tuple[Buffer, int]]],
    ) -> None:
        """Padded rows pass the gradients of their states on as they are, and have none of their own."""
        last = phases.passes[-1]
        for buffer, value, parts in zip(turns, direct, d_states, strict=True):
            writer = next((p for p in phases.passes if any(w.buffer is buffer for w in p.writes)), last)
            if value is None:
                writer = phases.passes[0]
                writer.writes.append(Write(constant(0.0, buffer.width), buffer))
            writer.holds.append((parts, buffer))
        for row_pass in phases.passes:
            held = [buffer for _, buffer in row_pass.holds]
            written = dict.fromkeys(write.buffer for write in row_pass.writes)
            row_pass.clears.extend(b for b in written if b not in held and b.place is not Place.SUMS)

    def sequence_of(self, value: Value, operands: dict[Value, Buffer]) -> Buffer | None:
        """Where all steps of a product's operand can be found after the loop; None where nobody keeps them."""
        for k, previous in enumerate(self.previous):
            if value is self.leaves[f"state {k}"]:
                return previous
        return operands.get(value)

    # Both

    def phases(
        self,
        name: str,
        writes: list[Write],
        at_hand: dict[Value, list[tuple[Buffer, int]]],
        operand_place: Place,
        sequences: dict[Value, Buffer] | None = None,
        carried: Iterable[Value] = (),
    ) -> tuple[Phases, dict[Value, Buffer]]:
        """Put every value that the writes need into the earliest pass that can compute it."""
        roots = [write.value for write in writes]
        values = ordered([*roots, *carried], stop=at_hand)
        ready: dict[Value, int] = {}  # the first pass that can use a value
        for value in values:
            if value in at_hand or value.op in ("leaf", "constant"):
                ready[value] = 0
            elif value.op == "product":
                [operand] = value.values
                # What lies in memory at the start is multiplied before pass 0; the rest after the pass that made it.
                ready[value] = 0 if in_memory(operand, at_hand) else ready[operand] + 1
            else:
                ready[value] = max((ready[arg] for arg in value.values), default=0)
        reads = {value: list(parts) for value, parts in at_hand.items()}
        operands: dict[Value, Buffer] = {}
        groups: dict[tuple[int, Value], list[Value]] = {}
        for value in values:
            if value.op == "product" and value not in at_hand:
                [operand] = value.values
                slot = -1 if in_memory(operand, at_hand) else ready[operand]
                groups.setdefault((slot, operand), []).append(value)
        count = 1 + max([ready[value] for value in values if value.op != "product"], default=0)
        count = max(count, *(slot + 1 for slot, _ in groups), 1)
        passes = [RowPass(f"{name} {number}") for number in range(count)]
        slots: list[list[StepProduct]] = [[] for _ in range(count + 1)]
        self.results = {}
        for (slot, operand), members in groups.items():
            width = sum(member.width for member in members)
            out = Buffer(f"{name} product {len(self.results)}", Place.ROWS, width)
            source = self.operand_buffer(name, operand, at_hand, operand_place, sequences, operands)
            if slot >= 0 and operand in operands:
                passes[slot].writes.append(Write(operand, source))
            column = 0
            for member in members:
                self.results[member] = (out, column)
                reads[member] = [(out, column)]
                column += member.width
            slots[slot + 1].append(StepProduct(source, tuple(member.detail for member in members), out))
        for write in writes:
            passes[ready[write.value]].writes.append(write)
        for number in reversed(range(len(passes))):
            self.connect(passes, number, ready, reads)
        return Phases(slots[0], passes, slots[1:]), operands

    def operand_buffer(
        self,
        name: str,
        operand: Value,
        at_hand: dict[Value, list[tuple[Buffer, int]]],
        place: Place,
        sequences: dict[Value, Buffer] | None,
        operands: dict[Value, Buffer],
    ) -> Buffer:
        if sequences and operand in sequences:
            return sequences[operand]
        if in_memory(operand, at_hand):
            return at_hand[operand][0][0]
        return operands.setdefault(operand, Buffer(f"{name} operand {len(operands)}", place, operand.width))

    def connect(
        self, passes: list[RowPass], number: int, ready: dict[Value, int], reads: dict[Value, list[tuple[Buffer, int]]]
    ) -> None:
        """Give a pass all that it reads; what an earlier pass must leave for it is written there."""
        row_pass = passes[number]

        def readable(value: Value) -> bool:
            # Products of the last step, which make up a state's gradient, are overwritten after pass 0.
            return value in reads and (number == 0 or value not in self.gradients)

        def again(value: Value) -> bool:
            """Whether it costs little to compute a value of an earlier pass once more."""
            if readable(value) or (value.op in ("leaf", "constant") and value not in self.gradients):
                return True
            if value in known:
                return True
            if is_exact(value) or value.op not in CHEAP or not value.values:
                return False
            if not all(again(arg) for arg in value.values):
                return False
            known.add(value)
            return True

        known: set[Value] = set()
        waiting = [write.value for write in row_pass.writes]
        seen: set[Value] = set()
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            if readable(value):
                row_pass.reads[value] = reads[value]
            elif value.op == "leaf" and isinstance(value.detail, Weight):
                row_pass.reads[value] = [(self.vector(value), 0)]
            elif value.op == "constant":
                continue
            elif ready[value] == number or value.op == "move" or again(value):
                waiting.extend(value.values)
            else:
                row_pass.reads[value] = [self.left_by(passes[ready[value]], value)]

    def left_by(self, row_pass: RowPass, value: Value) -> tuple[Buffer, int]:
        """Where a pass leaves a value for a later pass of the same step."""
        for write in row_pass.writes:
            # What is written in turns is read one step later.
            if write.value is value and write.buffer.place not in (Place.SUMS, Place.TURNS):
                return write.buffer, write.column
        self.kept += 1
        write = Write(value, Buffer(f"kept {self.kept}", Place.ROWS, value.width))
        row_pass.writes.append(write)
        return write.buffer, 0

    def vector(self, value: Value) -> Buffer:
        """A vector that all rows share: a bias, a gain, a diagonal weight."""
        weight = value.detail
        if weight not in self.shared:
            self.shared[weight] = Buffer(f"vector {len(self.shared)}", Place.SHARED, value.width, weight)
        return self.shared[weight]


def in_memory(value: Value, at_hand: dict[Value, list[tuple[Buffer, int]]]) -> bool:
    """Whether a value can be multiplied as it lies: alone in a buffer of its own."""
    parts = at_hand.get(value)
    return parts is not None and len(parts) == 1 and parts[0][0].width == value.width


def ordered(roots: Iterable[Value], stop: object = ()) -> list[Value]:
    """All values that the roots are made of, each after what it is made of; not looking behind those in `stop`."""
    known: dict[Value, None] = {}
    waiting = [(root, False) for root in reversed(list(roots))]
    while waiting:
        value, is_done = waiting.pop()
        if value in known:
            continue
        if is_done:
            known[value] = None
            continue
        waiting.append((value, True))
        if value not in stop:  # type: ignore[operator]
            waiting.extend((arg, False) for arg in reversed(value.values))
    return list(known)


def add_terms(value: Value) -> tuple[list[Value], Value | None]:
    """A sum as its products, which need no pass of their own, and the rest."""
    if value.op == "product":
        return [value], None
    if value.op != "add" or not all(arg.width == value.width for arg in value.values):
        return [], value
    products: list[Value] = []
    rest: list[Value] = []
    for arg in value.values:
        inner, other = add_terms(arg)
        products += inner
        rest += [other] if other is not None else []
    if not products:
        return [], value
    total = rest[0] if rest else None
    for other in rest[1:]:
        assert total is not None
        total = Value("add", (total, other), value.width)
    return products, total


def described(plan: Plan) -> Iterator[str]:
    """The plan in words, one line per product and pass."""
    yield "forward, each step:"
    yield from phase_lines(plan.forward)
    yield "backward, each step:"
    yield from phase_lines(plan.backward)
    saved = sum(buffer.width for buffer in plan.saved)
    yield f"saved for the backward pass, per row and step: {saved} numbers besides the states"
    yield "after the loop:"
    for contraction, left, right in plan.matrices:
        shape = f"{contraction.left.width} x {right.width}"
        yield f"    matrix gradient {shape} = Σ_t ({left.name})ᵀ ({right.name}), one product"
    for contraction, buffer in plan.sums:
        yield f"    vector gradient of {contraction.left.width} = {buffer.name}, added up by the passes"


def phase_lines(phases: Phases) -> Iterator[str]:
    for product in phases.before:
        yield f"    {product_line(product)}"
    for row_pass, products in zip(phases.passes, phases.after_pass, strict=True):
        reads = list(dict.fromkeys(buffer.name for parts in row_pass.reads.values() for buffer, _ in parts))
        writes = list(dict.fromkeys(write.buffer.name for write in row_pass.writes))
        made = ordered([write.value for write in row_pass.writes], stop=row_pass.reads)
        counted = Counter(value.op for value in made if value not in row_pass.reads)
        work = ", ".join(f"{count} {op}" for op, count in sorted(counted.items()) if op not in SILENT)
        yield f"    row pass: {', '.join(reads)} -> {', '.join(writes)}"
        yield f"        {work}"
        for product in products:
            yield f"    {product_line(product)}"


SILENT = ("leaf", "constant", "move", "product")


def product_line(product: StepProduct) -> str:
    shape = f"{product.operand.width} x {product.out.width}"
    return f"product: {product.out.name} = {product.operand.name} · {shape} weights"
