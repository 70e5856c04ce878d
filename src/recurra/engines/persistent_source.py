"""All forward steps of a plan printed as one Triton kernel, which stays on the GPU from the first step to the last.

A program owns a block of units of a block of rows. It loads the columns of the recurrent matrices that its units need
once, keeps them on the chip, and keeps its share of the states in registers. At each step

    it waits until all programs of its rows have written h of the step before     (a counter in memory)
    multiplies h of its rows, all units, by its columns: one product for all gates of its units
    computes its row pass, writes its share of h, and counts itself as done
    writes what the backward pass needs

A step with a second product, as in a GRU, waits a second time, for what the first pass wrote. That all programs run at
the same time is asked of the driver (a cooperative launch); how long a program waits is limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recurra.engines.plan import Buffer, Phases, Place, Plan, StepProduct, Write
from recurra.engines.triton_source import expression, is_number, number, power_of_two, units_of
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


def persistent(plan: Plan, phases: Phases, name: str) -> Persistent:
    """Print the steps of a direction; NoPlan says why they cannot be one kernel."""
    writer = PersistentWriter(plan, phases)
    body = list(writer.steps())
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
        "    t = tl.full((), 0, tl.int64)",
        "    for _ in range(steps):",
        *(f"        {line}" for line in body),
        "        t += 1",
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


class PersistentWriter:
    """Writes the steps of one program."""

    def __init__(self, plan: Plan, phases: Phases) -> None:
        self.plan = plan
        self.phases = phases
        found = {units_of(row_pass) for row_pass in phases.passes}
        widths = {buffer.width for buffer in plan.states}
        if len(found) != 1 or None in found or found != widths:
            raise NoPlan("its units are not computed apart from each other")
        [units] = widths
        self.units = units
        slots = [phases.before, *phases.after_pass]
        if any(slots[-1]):
            raise NoPlan("a step ends with a product")
        if not all(slots[: len(phases.passes)]) and any(p.operand.place is Place.ROWS for s in slots for p in s):
            # Others may still read what the step before has left there.
            raise NoPlan("a row pass that waits for no other program writes what products multiply")
        self.slots = slots[: len(phases.passes)]
        self.products = [product for slot in self.slots for product in slot]
        if not self.products:
            raise NoPlan("its step has no product")
        if any(product.out.width % units or product.operand.width > 4096 for product in self.products):
            raise NoPlan("a product makes something else than whole gates")
        self.arguments: dict[tuple[Buffer, bool], int] = {}
        self.known: dict[tuple[Value, int], str] = {}
        self.kept: list[str] = []  # what is loaded before the first step
        self.lines: list[str] = []
        self.count = 0

    def pointer(self, buffer: Buffer, is_written: bool) -> str:
        number = self.arguments.setdefault((buffer, is_written), len(self.arguments))
        return f"{'o' if is_written else 'p'}{number}"

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
            is_state = operand.place is Place.PREVIOUS
            buffer = next((s for s in self.plan.states if s.name == operand.name.replace("previous", "state")), operand)
            pointer = self.pointer(buffer, True)
            at = f"{pointer} + t * {pointer}_step" if operand.place is not Place.ROWS else pointer
            at = f"{at} - {pointer}_step" if is_state else at
            gates = power_of_two(product.out.width // self.units)
            self.lines.append(f"d{n} = tl.zeros((BB, {gates} * BH), tl.float32)")
            for c, (_, size, real) in enumerate(chunks(operand.width)):
                inside = f" & (i{n}_{c} < {operand.width})[None, :]" if real < size else ""
                place = f"{at} + r[:, None] * {pointer}_row + i{n}_{c}[None, :]"
                self.lines.append(
                    f'a{n}_{c} = tl.load({place}, mask=rk[:, None]{inside}, other=0.0, cache_modifier=".cg")'
                )
                self.lines.append(f"d{n} = tl.dot(a{n}_{c}, w{n}_{c}, d{n}, input_precision=PRECISION)")
            self.split(f"d{n}", gates, [f"d{n}_{gate}" for gate in range(gates)])

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

    def element(self, value: Value, offset: int) -> str:
        """One gate of a value, for the rows and units of this program."""
        key = (value, offset)
        if key not in self.known:
            self.known[key] = self.make(value, offset)
        return self.known[key]

    def make(self, value: Value, offset: int) -> str:
        if value.op == "constant":
            return number(value.args[0])
        if value.op == "product":
            return self.product(value, offset)
        if value.op == "move":
            return self.moved(value, offset)
        if value.op == "leaf":
            return self.leaf(value, offset)
        names = []
        for arg in value.values:
            names.append(number(arg.args[0]) if arg.op == "constant" else self.element(arg, offset))
        if value.op == "add" and "0.0" in names:
            return names[1 - names.index("0.0")]
        if all(is_number(name) for name in names):
            names = [f"tl.full((), {name}, tl.float32)" for name in names]
        return self.define(expression(value, names))

    def product(self, value: Value, offset: int) -> str:
        """One gate of what a product has made."""
        reads = [p.reads[value] for p in self.phases.passes if value in p.reads]
        [(buffer, column)] = reads[0]
        n = next(n for n, product in enumerate(self.products) if product.out is buffer)
        self.check_gate(column + offset)
        return f"d{n}_{(column + offset) // self.units}"

    def check_gate(self, offset: int) -> None:
        if offset % self.units:
            raise NoPlan("a unit reads what other units have computed")

    def moved(self, value: Value, offset: int) -> str:
        for run in value.detail.runs:
            if run.start <= offset < run.start + run.length:
                arg = value.values[run.source]
                return (
                    number(arg.args[0]) if arg.op == "constant" else self.element(arg, run.offset + offset - run.start)
                )
        raise NoPlan("a gate begins in the middle of a value")

    def leaf(self, value: Value, offset: int) -> str:
        """Inputs are loaded at each step; weights and masks once; states are at hand."""
        for n in range(len(self.plan.states)):
            if value is self.plan.trace.leaves[f"state {n}"]:
                self.check_gate(offset)
                return f"s{n}"
        reads = [p.reads[value] for p in self.phases.passes if value in p.reads]
        [(buffer, column)] = reads[0]
        pointer = self.pointer(buffer, False)
        self.count += 1
        name = f"v{self.count}"
        if buffer.place is Place.SHARED:
            at = f"{pointer} + {column + offset} + j"
            self.kept.append(f"{name} = tl.load({at}, mask=jk, other=0.0).to(tl.float32)[None, :]")
        elif buffer.place is Place.ROWS:
            at = f"{pointer} + {self.place(buffer, False, column + offset)}"
            self.kept.append(f"{name} = tl.load({at}, mask=k, other=0.0).to(tl.float32)")
        else:
            at = f"{pointer} + t * {pointer}_step + {self.place(buffer, False, column + offset)}"
            self.lines.append(f"{name} = tl.load({at}, mask=k, other=0.0).to(tl.float32)")
        return name

    def block(self, name: str) -> str:
        return f"tl.zeros((BB, BH), tl.float32) + {name}"

    def define(self, code: str) -> str:
        self.count += 1
        self.lines.append(f"v{self.count} = {code}")
        return f"v{self.count}"


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
