"""All steps of a plan printed as one Triton kernel, which stays on the GPU from the first step to the last.

A program owns a block of units of a block of rows. It loads the columns of the recurrent matrices that its units need
once, keeps them on the chip, and keeps its share of the states in registers. At each step

    it waits until all programs of its rows have written h of the step before     (a counter in memory)
    multiplies h of its rows, all units, by its columns: one product for all gates of its units
    computes its row pass, writes its share of h, and counts itself as done
    writes what the backward pass needs

A step with a second product, as in a GRU, waits a second time, for what the first pass wrote. What others wait for is
computed first: of a GRU's gates, r is multiplied before r ∘ h is written, and z after it, while others write theirs.
That all programs run at the same time is asked of the driver (a cooperative launch); how long a program waits is
limited.

Backward, the steps run from the last to the first. What a program keeps are the gradients of its share of the states,
and the first product of a step is that of what the step after it wrote; the last step has none. What of it is written
early (the gradient of z) is multiplied at the end of the step that wrote it.

Matrices that are too large for the chip are read at each step, a chunk of their rows after the other (BK > 0).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recurra.engines.plan import Buffer, Phases, Place, Plan, StepProduct, Write, is_saved
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

CHAINS = 4
"""In how many sums at most the tiles of a product are added up, so that not every instruction waits for the last."""


@dataclass(frozen=True)
class Persistent:
    """A kernel for all steps, and what it is launched with."""

    name: str
    source: str
    arguments: tuple[tuple[Buffer, bool], ...]
    products: tuple[StepProduct, ...]
    units: int
    gates: int  # the largest number of gates that are multiplied at once, up to a power of two
    terms: int  # how many numbers of matrices belong to one unit
    passes: int  # how often a program counts itself as done at each step
    is_rowwise: bool = False  # a program computes whole rows, and columns of products instead of units


class Share(NamedTuple):
    """A part of a product that is computed at once: some gates of its result, from some terms."""

    number: int
    of: int  # which product it is of
    gates: range
    first: int
    terms: int

    @property
    def columns(self) -> int:
        """How many columns a unit has."""
        return power_of_two(len(self.gates))


def persistent(
    plan: Plan,
    phases: Phases,
    name: str,
    *,
    is_backward: bool = False,
    absent: Collection[Buffer] = (),
    chunk: int = CHUNK,
) -> Persistent:
    """Print the steps of a direction; NoPlan says why they cannot be one kernel.

    absent    what no gradient comes from: such buffers are not read
    chunk     how many rows a tile of a matrix has at most that stays on the chip
    """
    writer = BackwardWriter(plan, phases, absent) if is_backward else ForwardWriter(plan, phases)
    writer.chunk = chunk
    body = list(writer.steps())
    ends = [f"    {line}" for line in writer.ends()]
    pointers = [f"{p}, {p}_row, {p}_step" for p in (writer.pointer(*key) for key in writer.arguments)]
    matrices = [f"m{n}, m{n}_k, m{n}_n" for n in range(len(writer.products))]
    head = "steps, rows, lengths, counters, counted, limit, failed"
    settings = "RAGGED: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr"
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
        max(share.columns for share in writer.shares),
        sum(share.columns * share.terms for share in writer.shares),
        len(phases.passes),
    )


class NotYetError(Exception):
    """A value needs a product that is computed only later in the step."""


class Writer(UnitWriter):
    """What the writers of both directions share: products, pointers and values of one program."""

    def __init__(self, plan: Plan, phases: Phases, slots: list[list[StepProduct]]) -> None:
        self.plan = plan
        self.phases = phases
        self.slots = slots  # the products before each pass
        self.chunk = CHUNK
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
        self.slot_of = {product: number for number, slot in enumerate(slots) for product in slot}
        if not self.products:
            raise NoPlan("its step has no product")
        if any(product.out.width % units or product.operand.width > 8192 for product in self.products):
            raise NoPlan("a product makes something else than whole gates")
        self.shares: list[Share] = []
        self.kept: list[str] = []  # what is loaded before the first step
        self.asked: set[tuple[StepProduct, int]] = set()  # gates of products that were needed
        self.place_now = 0  # the pass that is written

    # What is done once

    def before(self) -> Iterator[str]:
        """Columns of matrices, states, and whatever stays the same at all steps."""
        for share in self.shares:
            s, n, gates = share.number, share.of, share.columns
            yield f"q{s} = tl.arange(0, {gates} * BH)"
            yield f"u{s} = tl.program_id(0) * BH + q{s} // {gates}"
            yield f"g{s} = q{s} % {gates}"
            inside = "" if gates == len(share.gates) else f" & (g{s} < {len(share.gates)})"
            yield f"n{s}k = (u{s} < H){inside}"
            yield f"n{s}p = ((g{s} + {share.gates.start}) * H + u{s}) * m{n}_n"
            yield "if BK == 0:"
            for c, (first, size, real) in enumerate(chunks(share.terms, self.chunk)):
                yield f"    i{s}_{c} = {share.first + first} + tl.arange(0, {size})"
                rows = f" & (i{s}_{c} < {share.first + share.terms})[:, None]" if real < size else ""
                place = f"m{n} + i{s}_{c}[:, None] * m{n}_k + n{s}p[None, :]"
                yield f"    w{s}_{c} = tl.load({place}, mask=n{s}k[None, :]{rows}, other=0.0)"
        yield from self.kept

    def ends(self) -> list[str]:
        """What is written after the last step."""
        return []

    # Products

    def new_share(self, product: StepProduct, gates: range, first: int, terms: int) -> Share:
        share = Share(len(self.shares), self.products.index(product), gates, first, terms)
        self.shares.append(share)
        return share

    def zeros(self, gates: int) -> str:
        return f"tl.zeros((BB, {gates} * BH), tl.float32)"

    def dot(self, share: Share, result: str, pointer: str, at: str, loaded: Share | None = None) -> Iterator[str]:
        """Add a share of a product to a result: all its terms by the columns of this program.

        loaded    another share, which has loaded the same terms before
        """
        s, n, end = share.number, share.of, share.first + share.terms
        a = s if loaded is None else loaded.number
        rows = f"{at} + r[:, None] * {pointer}_row"
        yield "if BK == 0:"
        tiles = list(enumerate(chunks(share.terms, self.chunk)))
        for c, (_, size, real) in tiles:
            inside = f" & (i{s}_{c} < {end})[None, :]" if real < size else ""
            place = f"{rows} + i{s}_{c}[None, :]"
            if loaded is None:
                yield f'    a{s}_{c} = tl.load({place}, mask=rk[:, None]{inside}, other=0.0, cache_modifier=".cg")'
        for c, _ in tiles:
            sum_of = result if c % CHAINS == 0 else f"{result}_sum{c % CHAINS}"
            start = sum_of if c % CHAINS == 0 or c >= CHAINS else self.zeros(share.columns)
            yield f"    {sum_of} = tl.dot(a{a}_{c}, w{s}_{c}, {start}, input_precision=PRECISION)"
        sums = [f"{result}_sum{c}" for c in range(1, min(CHAINS, len(tiles)))]
        if sums:
            yield f"    {result} = {result} + ({' + '.join(sums)})"
        yield "else:"
        yield f"    for first{s} in range({share.first}, {end}, BK):"
        yield f"        i{s} = first{s} + tl.arange(0, BK)"
        yield f"        ik{s} = i{s} < {end}"
        place = f"{rows} + i{s}[None, :]"
        yield f'        a{s} = tl.load({place}, mask=rk[:, None] & ik{s}[None, :], other=0.0, cache_modifier=".cg")'
        place = f"m{n} + i{s}[:, None] * m{n}_k + n{s}p[None, :]"
        yield f"        w{s} = tl.load({place}, mask=n{s}k[None, :] & ik{s}[:, None], other=0.0)"
        yield f"        {result} = tl.dot(a{s}, w{s}, {result}, input_precision=PRECISION)"

    def split_gates(self, share: Share, result: str) -> None:
        """Part the result of a share into its gates."""
        names = [f"d{share.of}_{gate}" for gate in share.gates]
        names += [f"{result}_none{n}" for n in range(share.columns - len(names))]
        self.split(result, share.columns, names)

    def split(self, name: str, gates: int, names: list[str]) -> None:
        """Part a block whose columns are all gates of a unit, then all of the next: a block for each gate."""
        if gates == 1:
            self.lines.append(f"{names[0]} = {name}")
            return
        self.lines.append(f"{name}e, {name}o = tl.split(tl.reshape({name}, (BB, BH * {gates} // 2, 2)))")
        self.split(f"{name}e", gates // 2, names[::2])
        self.split(f"{name}o", gates // 2, names[1::2])

    def asks(self, write_down: Callable[[], object]) -> set[tuple[StepProduct, int]] | None:
        """Which gates of products something needs, found by writing it down and forgetting it again.

        None where it needs what is computed only later.
        """
        before = (
            self.lines,
            self.known,
            self.kept,
            self.count,
            self.arguments,
            self.asked,
        )
        self.lines, self.known, self.kept = list(self.lines), dict(self.known), list(self.kept)
        self.arguments, self.asked = dict(self.arguments), set()
        try:
            write_down()
            return self.asked
        except NotYetError:
            return None
        finally:
            self.lines, self.known, self.kept, self.count, self.arguments, self.asked = before

    # Values

    def written(self, write: Write) -> list[str]:
        return [self.element(write.value, offset) for offset in range(0, write.value.width, self.units)]

    def store(self, write: Write, names: Sequence[str], *, crosses: bool) -> None:
        for gate, name in enumerate(names):
            self.store_gate(write, gate, name, crosses=crosses)

    def store_gate(self, write: Write, gate: int, name: str, *, crosses: bool) -> None:
        pointer = self.pointer(write.buffer, True)
        how = ', cache_modifier=".cg"' if crosses else ""
        column = write.column + gate * self.units
        stored = self.block(name)
        if not is_saved(write.buffer):
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
        return self.result(buffer, column + offset)

    def result(self, buffer: Buffer, column: int) -> str:
        self.check_gate(column)
        n = next(n for n, product in enumerate(self.products) if product.out is buffer)
        if self.slot_of[self.products[n]] > self.place_now:
            raise NotYetError
        self.asked.add((self.products[n], column // self.units))
        return f"d{n}_{column // self.units}"

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
            self.place_now = place
            later = self.slots[(place + 1) % len(self.slots)]
            self.load_inputs(place)
            awaited = {product.operand.name.replace("previous", "state") for product in later}
            writes = [write for write in row_pass.writes if write.buffer.place is not Place.SUMS]
            first = [write for write in writes if write.buffer.name in awaited]
            early, late = self.shared_out(place, first)
            if self.slots[place]:
                self.lines.append("await_others(counter, done * J, limit, failed)")
            for share in early:
                self.multiply(share)
            names = [(write, self.written(write)) for write in first]
            for write, parts in names:
                self.store(write, parts, crosses=True)
            self.lines += ["count_done(counter)", "done += 1"]
            for share, loaded in late:
                self.multiply(share, loaded)
            for write in writes:
                # What later passes of the step read of it is at hand.
                if write not in first and not write.buffer.name.startswith("kept"):
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

    def shared_out(self, number: int, first: list[Write]) -> tuple[list[Share], list[tuple[Share, Share]]]:
        """The products before a pass: what others wait for; and what can be computed while others compute theirs, each
        with the share of the same product that comes first."""
        needed = self.asks(lambda: [self.written(write) for write in first])
        assert needed is not None
        early: list[Share] = []
        late: list[tuple[Share, Share]] = []
        for product in self.slots[number]:
            terms, gates = product.operand.width, product.out.width // self.units
            soon = [gate for gate in range(gates) if (product, gate) in needed]
            # What lies there for one step only is overwritten by programs that have gone on.
            can_wait = bool(first) and product.operand.place is not Place.ROWS
            count = len(soon)
            if not can_wait or count in (0, gates) or soon not in (list(range(count)), list(range(gates)[-count:])):
                early.append(self.new_share(product, range(gates), 0, terms))
                continue
            rest = range(count, gates) if soon[0] == 0 else range(gates - count)
            early.append(self.new_share(product, range(soon[0], soon[0] + count), 0, terms))
            late.append((self.new_share(product, rest, 0, terms), early[-1]))
        return early, late

    def multiply(self, share: Share, loaded: Share | None = None) -> None:
        operand = self.products[share.of].operand
        buffer = next((s for s in self.plan.states if s.name == operand.name.replace("previous", "state")), operand)
        pointer = self.pointer(buffer, True)
        at = f"{pointer} + t * {pointer}_step" if operand.place is not Place.ROWS else pointer
        at = f"{at} - {pointer}_step" if operand.place is Place.PREVIOUS else at
        result = f"d{share.of}s{share.number}"
        self.lines.append(f"{result} = {self.zeros(share.columns)}")
        self.lines += self.dot(share, result, pointer, at, loaded)
        self.split_gates(share, result)

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
        self.ahead: dict[StepProduct, Share] = {}  # what is multiplied at the end of the step that wrote it
        self.stored: set[tuple[Buffer, int]] = set()  # gates that an earlier pass has written
        self.outside: dict[Buffer, str] = {}  # gradients that come from outside, loaded before waiting for others

    def steps(self) -> list[str]:
        for n, buffer in enumerate(self.turns):
            # The first step reads the turn that the step after it would have written.
            pointer = self.pointer(buffer, False)
            at = f"{pointer} + (steps % 2) * {pointer}_step + {self.place(buffer, False, 0)}"
            self.kept.append(f"c{n} = tl.load({at}, mask=k, other=0.0).to(tl.float32)")
        soon = self.early_gates()
        for place, row_pass in enumerate(self.phases.passes):
            self.place_now = place
            for value, parts in row_pass.reads.items():  # ask for it before waiting for others
                if self.is_stored(parts):
                    for offset in range(0, value.width, self.units):
                        self.element(value, offset)
            if place == 0:
                absent = self.absent
                self.outside = {b: self.loaded(b, 0) for b in self.plan.d_outputs if b not in absent}
            self.multiply(place)
            later = self.slots[(place + 1) % len(self.slots)]
            awaited = {product.operand for product in later}
            writes = [write for write in row_pass.writes if write.buffer.place is not Place.TURNS]
            first = [write for write in writes if write.buffer in awaited]
            pieces = [(write, gate) for write in first for gate in range(write.value.width // self.units)]
            pieces += [(write, gate) for write, gates in soon if place == 0 for gate in gates]
            self.store_pieces(pieces, crosses=True)
            self.lines += ["count_done(counter)", "done += 1"]
            for write in writes:
                # What later passes of the step read of it is at hand.
                if write not in first and not write.buffer.name.startswith("kept"):
                    self.store_pieces([(write, gate) for gate in range(write.value.width // self.units)], crosses=False)
        self.carry()
        for product, share in self.ahead.items():
            pointer = self.pointer(product.operand, True)
            self.lines.append(f"e{share.of} = {self.zeros(share.columns)}")
            self.lines += self.dot(share, f"e{share.of}", pointer, f"{pointer} + t * {pointer}_step")
        return self.lines

    def early_gates(self) -> list[tuple[Write, range]]:
        """What a later pass writes for the products of the next step, and the first pass can write already."""
        found = []
        for row_pass in self.phases.passes[1:]:
            for write in row_pass.writes:
                product = next((p for p in self.slots[0] if p.operand is write.buffer), None)
                if product is None or write.column or product in self.ahead:
                    continue
                gates = range(write.value.width // self.units)
                known = [gate for gate in gates if self.is_known(write, gate)]
                # One stretch, at either end, so that the rest is one as well.
                if not known or len(known) == len(gates) or known[-1] - known[0] + 1 != len(known):
                    continue
                if known[0] != 0 and known[-1] != gates[-1]:
                    continue
                of_result = range(product.out.width // self.units)
                self.ahead[product] = self.new_share(product, of_result, known[0] * self.units, len(known) * self.units)
                self.kept.append(f"e{self.ahead[product].of} = {self.zeros(self.ahead[product].columns)}")
                found.append((write, range(known[0], known[-1] + 1)))
        return found

    def is_known(self, write: Write, gate: int) -> bool:
        """Whether the first pass can compute a gate."""
        return self.asks(lambda: self.element(write.value, gate * self.units)) is not None

    def store_pieces(self, pieces: list[tuple[Write, int]], *, crosses: bool) -> None:
        pieces = [(write, gate) for write, gate in pieces if (write.buffer, gate) not in self.stored]
        names = [self.element(write.value, gate * self.units) for write, gate in pieces]
        for (write, gate), name in zip(pieces, names, strict=True):
            self.store_gate(write, gate, name, crosses=crosses)
            if crosses:
                self.stored.add((write.buffer, gate))

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
        shares = []
        for product in self.slots[number]:
            n, gates, terms = self.products.index(product), product.out.width // self.units, product.operand.width
            ahead = self.ahead.get(product)
            if ahead is None:
                share = self.new_share(product, range(gates), 0, terms)
                self.lines.append(f"d{n} = {self.zeros(share.columns)}")
            else:
                first = ahead.terms if ahead.first == 0 else 0
                share = self.new_share(product, range(gates), first, terms - ahead.terms)
                self.lines.append(f"d{n} = e{n}")
            shares.append(share)
        indent = ""
        if number == 0 and shares:
            self.lines.append("if i > 0:")
            indent = "    "
        if shares:
            self.lines.append(f"{indent}await_others(counter, done * J, limit, failed)")
        for share in shares:
            pointer = self.pointer(self.products[share.of].operand, True)
            at = f"{pointer} + {'(t + 1)' if number == 0 else 't'} * {pointer}_step"
            self.lines += [indent + line for line in self.dot(share, f"d{share.of}", pointer, at)]
        for share in shares:
            self.split_gates(share, f"d{share.of}")

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
                given = [self.outside[b] for b in self.plan.d_outputs[n : n + 1] if b in self.outside]
                return self.define(" + ".join([*given, self.held(n, parts)]))
        raise NoPlan("a backward step reads something that is not kept")


def chunks(width: int, most: int = CHUNK) -> Iterator[tuple[int, int, int]]:
    """Where each tile of so many rows begins, its size, a power of two, and how many of them are real.

    >>> list(chunks(768)), list(chunks(20))
    ([(0, 512, 512), (512, 256, 256)], [(0, 32, 20)])
    """
    first = 0
    while first < width:
        rest = width - first
        size = min(most, 1 << (rest.bit_length() - 1))
        size = size if size >= 64 or (size == rest >= 16) else max(16, power_of_two(rest))
        yield first, size, min(size, rest)
        first += size
