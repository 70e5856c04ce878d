"""All steps of a plan printed as one Triton kernel, which stays on the GPU from the first step to the last.

A program owns a block of units of a block of rows. It loads the columns of the recurrent matrices that its units need
once, keeps them on the chip, and keeps its share of the states in registers. At each step

    it waits until all programs of its rows have written h of the step before     (a counter in memory)
    multiplies h of its rows, all units, by its columns: one product for all gates of its units
    computes its row pass, writes its share of h, and counts itself as done
    writes what the backward pass needs

A step with a second product, as in a GRU, waits a second time, for what the first pass wrote. That all programs run at
the same time is asked of the driver (a cooperative launch); how long a program waits is limited.

Backward, the steps run from the last to the first. What a program keeps are the gradients of its share of the states,
and the first product of a step is that of what the step after it wrote; the last step has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from recurra.engines.plan import Buffer, Phases, Place, Plan, StepProduct, Write
from recurra.engines.triton_source import power_of_two, units_of
from recurra.engines.unit_source import UnitWriter
from recurra.engines.values import NoPlan, Value

PRELUDE = '''

@triton.jit
def await_others(counter, wanted, limit, failed):
    """Wait until a counter has come so far; after too many looks, say so and go on."""
    found = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
    looks = 0
    while (found < wanted) & (looks < limit):
        found = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
        looks += 1
    if found < wanted:
        tl.store(failed, 1)
    tl.debug_barrier()


@triton.jit
def count_done(counter):
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")
'''

CHUNK = 512
"""How many rows of a matrix one tile on the chip has at most."""


@dataclass(frozen=True)
class Persistent:
    """A kernel for all steps, and what it is launched with."""

    name: str
    source: str
    arguments: tuple[tuple[Buffer, bool], ...]
    products: tuple[StepProduct, ...]
    units: int
    gates: int  # the largest number of gates of a product, up to a power of two
    terms: int  # the largest number of rows of a matrix
    passes: int  # how often a program counts itself as done at each step


def persistent(
    plan: Plan, phases: Phases, name: str, *, is_backward: bool = False, absent: Collection[Buffer] = ()
) -> Persistent:
    """Print the steps of a direction; NoPlan says why they cannot be one kernel.

    absent    what no gradient comes from: such buffers are not read
    """
    writer = BackwardWriter(plan, phases, absent) if is_backward else ForwardWriter(plan, phases)
    body = list(writer.steps())
    ends = [f"    {line}" for line in writer.ends()]
    pointers = [f"{p}, {p}_row, {p}_step" for p in (writer.pointer(*key) for key in writer.arguments)]
    matrices = [f"m{n}, m{n}_k, m{n}_n" for n in range(len(writer.products))]
    head = "steps, rows, lengths, counters, counted, limit, failed"
    settings = "RAGGED: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, PRECISION: tl.constexpr"
    lines = [
        '@triton.jit(do_not_specialize=["steps", "counted", "limit"])',
        f"def {name}({', '.join([head, *matrices, *pointers, settings])}):",
        f"    H: tl.constexpr = {writer.units}",
        "    J: tl.constexpr = (H + BH - 1) // BH",
        "    r = tl.program_id(1) * BB + tl.arange(0, BB)",
        "    j = tl.program_id(0) * BH + tl.arange(0, BH)",
        "    rk = r < rows",
        "    jk = j < H",
        "    k = rk[:, None] & jk[None, :]",
        "    r = r.to(tl.int64)",
        "    counter = counters + tl.program_id(1) * 32",
        *(f"    {line}" for line in writer.before()),
        "    if RAGGED:",
        "        length = tl.load(lengths + r, mask=rk, other=0)",
        "    done = counted",
        f"    t = tl.full((), 0, tl.int64){' + steps - 1' if is_backward else ''}",
        "    for i in range(steps):",
        *(f"        {line}" for line in body),
        f"        t {'-' if is_backward else '+'}= 1",
        *ends,
        "",
    ]
    return Persistent(
        name,
        "\n".join(lines),
        tuple(writer.arguments),
        tuple(writer.products),
        writer.units,
        max(power_of_two(product.out.width // writer.units) for product in writer.products),
        max(product.operand.width for product in writer.products),
        len(phases.passes),
    )


class Writer(UnitWriter):
    """What the writers of both directions share: products, pointers and values of one program."""

    def __init__(self, plan: Plan, phases: Phases, slots: list[list[StepProduct]]) -> None:
        self.plan = plan
        self.phases = phases
        self.slots = slots  # the products before each pass
        found = {units_of(row_pass) for row_pass in phases.passes}
        widths = {buffer.width for buffer in plan.states}
        if len(found) != 1 or None in found or found != widths:
            raise NoPlan("its units are not computed apart from each other")
        [units] = widths
        super().__init__(units)
        if not all(slots) and any(product.operand.place is Place.ROWS for slot in slots for product in slot):
            # Others may still read what the step before has left there.
            raise NoPlan("a row pass that waits for no other program writes what products multiply")
        self.products = [product for slot in self.slots for product in slot]
        if not self.products:
            raise NoPlan("its step has no product")
        if any(product.out.width % units or product.operand.width > 4096 for product in self.products):
            raise NoPlan("a product makes something else than whole gates")
        self.kept: list[str] = []  # what is loaded before the first step

    # What is done once

    def before(self) -> Iterator[str]:
        """Columns of matrices, states, and whatever stays the same at all steps."""
        for n, product in enumerate(self.products):
            gates = power_of_two(product.out.width // self.units)
            yield f"q{n} = tl.arange(0, {gates} * BH)"
            yield f"u{n} = tl.program_id(0) * BH + q{n} // {gates}"
            yield f"g{n} = q{n} % {gates}"
            kept = f"(u{n} < H) & (g{n} < {product.out.width // self.units})"
            for c, (first, size, real) in enumerate(chunks(product.operand.width)):
                yield f"i{n}_{c} = {first} + tl.arange(0, {size})"
                inside = f" & (i{n}_{c} < {product.operand.width})[:, None]" if real < size else ""
                place = f"m{n} + i{n}_{c}[:, None] * m{n}_k + (g{n} * H + u{n})[None, :] * m{n}_n"
                yield f"w{n}_{c} = tl.load({place}, mask=({kept})[None, :]{inside}, other=0.0)"
        yield from self.kept

    def ends(self) -> list[str]:
        """What is written after the last step."""
        return []

    def dot(self, n: int, product: StepProduct, pointer: str, at: str) -> Iterator[str]:
        """One product: all units of the operand by the columns of this program."""
        for c, (_, size, real) in enumerate(chunks(product.operand.width)):
            inside = f" & (i{n}_{c} < {product.operand.width})[None, :]" if real < size else ""
            place = f"{at} + r[:, None] * {pointer}_row + i{n}_{c}[None, :]"
            yield f'a{n}_{c} = tl.load({place}, mask=rk[:, None]{inside}, other=0.0, cache_modifier=".cg")'
            yield f"d{n} = tl.dot(a{n}_{c}, w{n}_{c}, d{n}, input_precision=PRECISION)"

    def gates(self, product: StepProduct) -> int:
        return power_of_two(product.out.width // self.units)

    def split(self, name: str, gates: int, names: list[str]) -> None:
        """Part a block whose columns are all gates of a unit, then all of the next: a block for each gate."""
        if gates == 1:
            self.lines.append(f"{names[0]} = {name}")
            return
        self.lines.append(f"{name}e, {name}o = tl.split(tl.reshape({name}, (BB, BH * {gates} // 2, 2)))")
        self.split(f"{name}e", gates // 2, names[::2])
        self.split(f"{name}o", gates // 2, names[1::2])

    # Values

    def written(self, write: Write) -> list[str]:
        return [self.element(write.value, offset) for offset in range(0, write.value.width, self.units)]

    def store(self, write: Write, names: list[str], *, crosses: bool) -> None:
        pointer = self.pointer(write.buffer, True)
        how = ', cache_modifier=".cg"' if crosses else ""
        for gate, name in enumerate(names):
            column = write.column + gate * self.units
            stored = self.block(name)
            if write.buffer.name != "saved":
                self.count += 1
                self.lines += [f"x{self.count} = {stored}", "if RAGGED:"]
                self.lines.append(f"    x{self.count} = tl.where((t < length)[:, None], x{self.count}, 0.0)")
                stored = f"x{self.count}"
            step = "" if write.buffer.place is Place.ROWS else f" + t * {pointer}_step"
            self.lines.append(
                f"tl.store({pointer}{step} + {self.place(write.buffer, True, column)}, {stored}, mask=k{how})"
            )

    def place(self, buffer: Buffer, is_written: bool, column: int) -> str:
        return f"r[:, None] * {self.pointer(buffer, is_written)}_row + ({column} + j)[None, :]"

    def product(self, value: Value, offset: int) -> str:
        """One gate of what a product has made."""
        reads = [p.reads[value] for p in self.phases.passes if value in p.reads]
        [(buffer, column)] = reads[0]
        n = next(n for n, product in enumerate(self.products) if product.out is buffer)
        self.check_gate(column + offset)
        return f"d{n}_{(column + offset) // self.units}"

    def loaded(self, buffer: Buffer, column: int) -> str:
        """Numbers of a buffer: weights and masks once, before the first step; others at each step."""
        pointer = self.pointer(buffer, False)
        self.count += 1
        name = f"v{self.count}"
        if buffer.place is Place.SHARED:
            at = f"{pointer} + {column} + j"
            self.kept.append(f"{name} = tl.load({at}, mask=jk, other=0.0).to(tl.float32)[None, :]")
        elif buffer.place is Place.ROWS:
            at = f"{pointer} + {self.place(buffer, False, column)}"
            self.kept.append(f"{name} = tl.load({at}, mask=k, other=0.0).to(tl.float32)")
        else:
            at = f"{pointer} + t * {pointer}_step + {self.place(buffer, False, column)}"
            self.lines.append(f"{name} = tl.load({at}, mask=k, other=0.0).to(tl.float32)")
        return name

    def block(self, name: str) -> str:
        return f"tl.zeros((BB, BH), tl.float32) + {name}"


class ForwardWriter(Writer):
    """Writes the forward steps of one program."""

    def __init__(self, plan: Plan, phases: Phases) -> None:
        if phases.after_pass[-1]:
            raise NoPlan("a step ends with a product")
        super().__init__(plan, phases, [phases.before, *phases.after_pass[:-1]])

    def steps(self) -> list[str]:
        for n, buffer in enumerate(self.plan.states):
            start = f"{self.pointer(buffer, True)} - {self.pointer(buffer, True)}_step"
            self.kept.append(
                f"s{n} = tl.load({start} + {self.place(buffer, True, 0)}, mask=k, other=0.0).to(tl.float32)"
            )
        for place, row_pass in enumerate(self.phases.passes):
            later = self.slots[(place + 1) % len(self.slots)]
            self.load_inputs(place)
            self.multiply(place)
            awaited = {product.operand.name.replace("previous", "state") for product in later}
            writes = [write for write in row_pass.writes if write.buffer.place is not Place.SUMS]
            first = [write for write in writes if write.buffer.name in awaited]
            names = [(write, self.written(write)) for write in first]
            for write, parts in names:
                self.store(write, parts, crosses=True)
            self.lines += ["count_done(counter)", "done += 1"]
            for write in writes:
                if write not in first:
                    self.store(write, self.written(write), crosses=False)
        for n, value in enumerate(self.plan.trace.new_states):
            new = self.element(value, 0)
            self.lines.append(f"s{n} = {self.block(new)}")
            self.lines += ["if RAGGED:", f"    s{n} = tl.where((t < length)[:, None], s{n}, 0.0)"]
        return self.lines

    def load_inputs(self, number: int) -> None:
        """Ask for what no other program writes before waiting for what others do."""
        for value, parts in self.phases.passes[number].reads.items():
            if all(buffer.name == "inputs" for buffer, _ in parts):
                for offset in range(0, value.width, self.units):
                    self.element(value, offset)

    def multiply(self, number: int) -> None:
        if self.slots[number]:
            self.lines.append("await_others(counter, done * J, limit, failed)")
        for product in self.slots[number]:
            n = self.products.index(product)
            operand = product.operand
            buffer = next((s for s in self.plan.states if s.name == operand.name.replace("previous", "state")), operand)
            pointer = self.pointer(buffer, True)
            at = f"{pointer} + t * {pointer}_step" if operand.place is not Place.ROWS else pointer
            at = f"{at} - {pointer}_step" if operand.place is Place.PREVIOUS else at
            self.lines.append(f"d{n} = tl.zeros((BB, {self.gates(product)} * BH), tl.float32)")
            self.lines += self.dot(n, product, pointer, at)
            self.split(f"d{n}", self.gates(product), [f"d{n}_{gate}" for gate in range(self.gates(product))])

    def leaf(self, value: Value, offset: int) -> str:
        """States are at hand; all else is loaded."""
        for n in range(len(self.plan.states)):
            if value is self.plan.trace.leaves[f"state {n}"]:
                self.check_gate(offset)
                return f"s{n}"
        reads = [p.reads[value] for p in self.phases.passes if value in p.reads]
        [(buffer, column)] = reads[0]
        return self.loaded(buffer, column + offset)


class BackwardWriter(Writer):
    """Writes the backward steps of one program."""

    def __init__(self, plan: Plan, phases: Phases, absent: Collection[Buffer]) -> None:
        if phases.before:
            raise NoPlan("a backward step begins with a product of something else than gradients")
        super().__init__(plan, phases, [phases.after_pass[-1], *phases.after_pass[:-1]])
        self.absent = absent
        self.turns = [next(buffer for buffer, _ in parts if buffer.place is Place.TURNS) for parts in plan.d_states]
        if any(product.operand.place is not Place.SEQUENCE for product in self.products):
            raise NoPlan("a product multiplies what is not kept for all steps")

    def steps(self) -> list[str]:
        for n, buffer in enumerate(self.turns):
            # The first step reads the turn that the step after it would have written.
            pointer = self.pointer(buffer, False)
            at = f"{pointer} + (steps % 2) * {pointer}_step + {self.place(buffer, False, 0)}"
            self.kept.append(f"c{n} = tl.load({at}, mask=k, other=0.0).to(tl.float32)")
        for place, row_pass in enumerate(self.phases.passes):
            for value, parts in row_pass.reads.items():  # ask for it before waiting for others
                if self.is_stored(parts):
                    for offset in range(0, value.width, self.units):
                        self.element(value, offset)
            self.multiply(place)
            later = self.slots[(place + 1) % len(self.slots)]
            awaited = {product.operand for product in later}
            writes = [write for write in row_pass.writes if write.buffer.place is not Place.TURNS]
            first = [write for write in writes if write.buffer in awaited]
            for write, names in [(write, self.written(write)) for write in first]:
                self.store(write, names, crosses=True)
            self.lines += ["count_done(counter)", "done += 1"]
            for write in writes:
                # What later passes of the step read of it is at hand.
                if write not in first and not write.buffer.name.startswith("kept"):
                    self.store(write, self.written(write), crosses=False)
        self.carry()
        return self.lines

    def carry(self) -> None:
        """The gradients of the states, for the step before; rows without this step pass them on as they are."""
        named = {write.buffer: write.value for p in self.phases.passes for write in p.writes}
        for n, (buffer, parts) in enumerate(zip(self.turns, self.plan.d_states, strict=True)):
            self.lines.append(f"n{n} = {self.block(self.element(named[buffer], 0))}")
            self.lines.append("if RAGGED:")
            self.lines.append(f"    n{n} = tl.where((t < length)[:, None], n{n}, {self.held(n, parts)})")
        self.lines += [f"c{n} = n{n}" for n in range(len(self.turns))]

    def held(self, n: int, parts: list[tuple[Buffer, int]]) -> str:
        return " + ".join([f"c{n}", *(self.result(b, c) for b, c in parts if b.place is not Place.TURNS)])

    def ends(self) -> list[str]:
        """Leave the gradients of the start states where step 0 would have."""
        pointers = [(n, buffer, self.pointer(buffer, True)) for n, buffer in enumerate(self.turns)]
        return [f"tl.store({p} + {self.place(buffer, True, 0)}, c{n}, mask=k)" for n, buffer, p in pointers]

    def multiply(self, number: int) -> None:
        """The products before a pass; those before the first are of the step that came before, if there was one."""
        for product in self.slots[number]:
            n = self.products.index(product)
            self.lines.append(f"d{n} = tl.zeros((BB, {self.gates(product)} * BH), tl.float32)")
        indent = ""
        if number == 0 and self.slots[0]:
            self.lines.append("if i > 0:")
            indent = "    "
        if self.slots[number]:
            self.lines.append(f"{indent}await_others(counter, done * J, limit, failed)")
        for product in self.slots[number]:
            n, pointer = self.products.index(product), self.pointer(product.operand, True)
            at = f"{pointer} + {'(t + 1)' if number == 0 else 't'} * {pointer}_step"
            self.lines += [indent + line for line in self.dot(n, product, pointer, at)]
        for product in self.slots[number]:
            n = self.products.index(product)
            self.split(f"d{n}", self.gates(product), [f"d{n}_{gate}" for gate in range(self.gates(product))])

    def is_stored(self, parts: list[tuple[Buffer, int]]) -> bool:
        """Whether the forward pass, or the user, has left a value in memory."""
        names = ("saved", "state", "previous", "inputs", "forward operand", "vector", "fixed")
        return all(buffer.name.startswith(names) for buffer, _ in parts)

    def make(self, value: Value, offset: int) -> str:
        for row_pass in self.phases.passes:
            parts = row_pass.reads.get(value)
            if parts is not None and self.is_stored(parts):
                return self.loaded(parts[0][0], parts[0][1] + offset)
        return super().make(value, offset)

    def leaf(self, value: Value, offset: int) -> str:
        """The gradient of a state: from outside, from the step before, and from its products."""
        for n, parts in enumerate(self.plan.d_states):
            if value is self.plan.trace.leaves[f"gradient {n}"]:
                self.check_gate(offset)
                outside = self.plan.d_outputs[n]
                given = [] if outside in self.absent else [self.loaded(outside, 0)]
                return self.define(" + ".join([*given, self.held(n, parts)]))
        raise NoPlan("a backward step reads something that is not kept")

    def result(self, buffer: Buffer, column: int) -> str:
        n = next(n for n, product in enumerate(self.products) if product.out is buffer)
        return f"d{n}_{column // self.units}"


def chunks(width: int) -> Iterator[tuple[int, int, int]]:
    """Where each tile of so many rows begins, its size, a power of two, and how many of them are real.

    >>> list(chunks(768)), list(chunks(20))
    ([(0, 512, 512), (512, 256, 256)], [(0, 32, 20)])
    """
    first = 0
    while first < width:
        rest = width - first
        size = min(CHUNK, 1 << (rest.bit_length() - 1))
        size = size if size >= 64 or (size == rest >= 16) else max(16, power_of_two(rest))
        yield first, size, min(size, rest)
        first += size
