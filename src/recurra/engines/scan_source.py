"""The steps of a cell that is linear in its only state, unit by unit, printed as Triton kernels that scan over time.

T is cut into chunks, and a program computes one chunk for a block of units of one row. A chunk turns the state s before
it into P ∘ s + e, with P the product of its decays and e its end from s = 0:

    ends     P, e of every chunk                                                        all chunks at once
    steps    s from P and e of the chunks before, then every step from s                all chunks at once

The decay is the derivative of the step by its state, so both kernels are printed from the plan alone: gates are
computed in registers, in float32, once in each kernel, and are never written. Backward, the same from the end, where
what passes from chunk to chunk is the gradient q of the state:

    q_{t-1} = decay_t ∘ (q_t + g_t)                                                     g_t: what comes from outside

Steps are taken a few at a time: all that they read is asked for before the first of them is computed.
On padded steps the state and its gradient stay as they are. A reset puts another state in the place of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from recurra.engines.plan import Place, Plan
from recurra.engines.triton_source import units_of
from recurra.engines.unit_source import UnitWriter
from recurra.engines.values import NoPlan, Value, Weight

AT_ONCE = 8
"""How many steps are read ahead."""

PRELUDE = '''

@triton.jit
def carried(s, products, ends, at, apart, first, step, count, k):
    """What comes through so many chunks: s' = P s + e, from one to the next."""
    for n in range(0, count, 8):
        for i in tl.static_range(8):
            inside = k & (n + i < count)
            place = (first + (n + i) * step) * apart + at
            s = tl.load(products + place, mask=inside, other=1.0) * s + tl.load(ends + place, mask=inside, other=0.0)
    return s
'''


@dataclass(frozen=True)
class ScanKernels:
    """The kernels of a plan, and the leaves that they are launched with."""

    source: str
    units: int
    vectors: tuple[Weight, ...]  # weights that all rows share
    rows: tuple[str, ...]  # leaves out of `fixed` with a row each
    sums: int  # how many numbers are summed up over rows and steps


def scan_kernels(plan: Plan) -> ScanKernels:
    """Print a plan; NoPlan says why it cannot be scanned."""
    writer = ScanWriter(plan)
    sources = [writer.forward_ends(), writer.forward_steps(), writer.backward_ends(), writer.backward_steps()]
    return ScanKernels(
        "\n\n".join([PRELUDE, *sources]),
        writer.units,
        tuple(writer.vectors),
        tuple(writer.rows),
        sum(buffer.width for _, buffer in plan.sums),
    )


class ScanWriter(UnitWriter):
    """Writes the four kernels of a plan."""

    def __init__(self, plan: Plan) -> None:
        passes = [*plan.forward.passes, *plan.backward.passes]
        products = [*plan.forward.before, *(each for slot in plan.forward.after_pass for each in slot)]
        if len(plan.states) > 1:
            raise NoPlan("it has more than one state")
        if products or plan.matrices:
            raise NoPlan("a unit reads the states of others")
        found = {units_of(row_pass) for row_pass in passes}
        if len(found) != 1 or found != {plan.states[0].width}:
            raise NoPlan("its units are not computed apart from each other")
        super().__init__(plan.states[0].width)
        self.plan = plan
        self.inputs, self.state = plan.trace.leaves["inputs"], plan.trace.leaves["state 0"]
        self.gradient = plan.trace.leaves["gradient 0"]
        self.vectors: list[Weight] = [
            buffer.weight
            for buffer in dict.fromkeys(b for p in passes for parts in p.reads.values() for b, _ in parts)
            if buffer.place is Place.SHARED and buffer.weight is not None
        ]
        self.rows = plan.trace.row_inputs
        self.kept: dict[str, str] = {}  # what is loaded before the first step, by name
        self.asked: dict[
            str, tuple[int, int]
        ] = {}  # names of inputs: of which step of those read ahead, and from where
        self.needs_state = False
        self.place = 0  # which of the steps that are read ahead is being written
        self.slope = ""  # what stands for the gradient of h
        self.stores: list[str] = []  # what is written after the last of them

    # What a forward step n does

    def state_before(self, n: int) -> list[str]:
        return [f"s{n} = h", *self.reset(n)]

    def to_its_end(self, n: int) -> None:
        """The product of the decays so far, and the state; neither is stored before the chunk ends."""
        new = self.written(self.plan.trace.new_states[0])
        decay = self.written(self.plan.trace.d_states[0], slope="1.0")
        self.lines += [f"p = tl.where(is{n}, p * {self.cut(decay, n)}, p)", f"h = tl.where(is{n}, {new}, h)"]

    def to_its_state(self, n: int) -> None:
        """The state, which is stored."""
        new = self.written(self.plan.trace.new_states[0])
        self.lines.append(f"h = tl.where(is{n}, {new}, h)")
        place = f"out + b * out_row + (t + {n}) * out_step + j"
        self.stores.append(f"tl.store({place}, o{n}, mask=k & (t + {n} < steps))")
        self.lines.append(f"o{n} = tl.where(is{n}, h, 0.0)")

    # The four kernels

    def forward_ends(self) -> str:
        return self.printed(
            "scan_forward_ends",
            "products, ends",
            ["h = tl.zeros((BLOCK,), tl.float32)", "p = h + 1.0", "t = c * size"],
            self.state_before,
            self.to_its_end,
            [
                "tl.store(products + c * apart + at, p, mask=k)",
                "tl.store(ends + c * apart + at, h, mask=k)",
            ],
            after=1,
        )

    def forward_steps(self) -> str:
        return self.printed(
            "scan_forward_steps",
            "products, ends, start, final, out, out_row, out_step",
            [
                "h = tl.load(start + at, mask=k, other=0.0).to(tl.float32)",
                "h = carried(h, products, ends, at, apart, 0, 1, tl.program_id(1), k)",
                "t = c * size",
            ],
            self.state_before,
            self.to_its_state,
            ["if tl.program_id(1) == tl.num_programs(1) - 1:", "    tl.store(final + at, h, mask=k)"],
            after=1,
        )

    def backward_ends(self) -> str:
        def step(n: int) -> None:
            decay = self.written(self.plan.trace.d_states[0], slope="1.0")
            cut = self.define(self.cut(decay, n))
            self.lines += [f"p = tl.where(is{n}, p * {cut}, p)", f"q = tl.where(is{n}, {cut} * (q + g{n}), q)"]

        return self.printed(
            "scan_backward_ends",
            "products, ends, h, h_row, h_step, start, given, given_row, given_step",
            ["q = tl.zeros((BLOCK,), tl.float32)", "p = q + 1.0", "t = (c + 1) * size - 1"],
            lambda n: [],
            step,
            [
                "tl.store(products + c * apart + at, p, mask=k)",
                "tl.store(ends + c * apart + at, q, mask=k)",
            ],
            after=-1,
        )

    def backward_steps(self) -> str:
        trace, sums = self.plan.trace, [contraction.left for contraction, _ in self.plan.sums]
        columns = [at for value in sums for at in range(0, value.width, self.units)]

        def step(n: int) -> None:
            self.lines.append(f"d{n} = q + g{n}")
            decay = self.written(trace.d_states[0], slope=f"d{n}")
            self.lines.append(f"q = tl.where(is{n}, {self.cut(decay, n)}, q)")
            for at in range(0, trace.d_inputs.width, self.units):
                name = self.written(trace.d_inputs, slope=f"d{n}", offset=at)
                self.lines.append(f"o{n}_{at} = tl.where(is{n}, {name}, 0.0)")
                place = f"out + b * out_row + (t - {n}) * out_step + {at} + j"
                self.stores.append(f"tl.store({place}, o{n}_{at}, mask=k & (t - {n} < steps))")
            number = 0
            for value in sums:
                for at in range(0, value.width, self.units):
                    name = self.written(value, slope=f"d{n}", offset=at)
                    self.lines.append(f"sum{number} += tl.where(is{n}, {name}, 0.0)")
                    number += 1

        width = sum(value.width for value in sums)
        return self.printed(
            "scan_backward_steps",
            "products, ends, h, h_row, h_step, start, given, given_row, given_step, last, d_start, sums, "
            "out, out_row, out_step",
            [
                "q = tl.zeros((BLOCK,), tl.float32)",
                "if LAST:",
                "    q += tl.load(last + at, mask=k, other=0.0).to(tl.float32)",
                "final = tl.num_programs(1) - 1",
                "q = carried(q, products, ends, at, apart, final, -1, final - tl.program_id(1), k)",
                "t = (c + 1) * size - 1",
                *(f"sum{number} = tl.zeros((BLOCK,), tl.float32)" for number in range(len(columns))),
            ],
            lambda n: [],
            step,
            [
                "if tl.program_id(1) == 0:",
                "    tl.store(d_start + at, q, mask=k)",
                *(
                    f"tl.store(sums + (c * rows + b) * {width} + {number * self.units} + j, sum{number}, mask=k)"
                    for number in range(len(columns))
                ),
            ],
            after=-1,
        )

    # What they share

    def printed(
        self,
        name: str,
        arguments: str,
        before: list[str],
        begin: Callable[[int], list[str]],
        step: Callable[[int], None],
        end: list[str],
        *,
        after: int,
    ) -> str:
        """One kernel.

        before    what a chunk starts with
        begin     the lines that a step begins with
        step      writes a step
        end       what is left after a chunk
        after     1: steps in the order of time; -1: from the last to the first
        """
        self.known, self.lines, self.stores, self.asked, self.kept = {}, [], [], {}, {}
        self.needs_state = False
        for n in range(AT_ONCE):
            self.place, self.known = n, {}
            self.lines += begin(n)
            step(n)
        sign = "+" if after > 0 else "-"
        leaves = [f"vector{n}" for n in range(len(self.vectors))]
        leaves += [part for n in range(len(self.rows)) for part in (f"row{n}", f"row{n}_row")]
        head = "steps, size, lengths, anew, anew_row, first, x, x_row, x_step"
        settings = [f"{each}: tl.constexpr" for each in ("RAGGED", "RESETS", "GIVEN", "LAST", "BLOCK")]
        lines = [
            '@triton.jit(do_not_specialize=["steps", "size"])',
            f"def {name}({', '.join([head, *leaves, arguments, *settings])}):",
            f"    H: tl.constexpr = {self.units}",
            "    J: tl.constexpr = (H + BLOCK - 1) // BLOCK",
            "    b = (tl.program_id(0) // J).to(tl.int64)",
            "    c = tl.program_id(1).to(tl.int64)",
            "    j = (tl.program_id(0) % J) * BLOCK + tl.arange(0, BLOCK)",
            "    k = j < H",
            "    rows = (tl.num_programs(0) // J).to(tl.int64)",
            "    apart = rows * H",
            "    at = b * H + j",
            "    length = steps",
            "    if RAGGED:",
            "        length = tl.load(lengths + b)",
            "    if RESETS:",
            "        again = tl.load(first + at, mask=k, other=0.0).to(tl.float32)",
            *(f"    {line}" for line in self.kept.values()),
            *(f"    {line}" for line in [*self.begun(after), *before]),
            f"    for i in range(0, size, {AT_ONCE}):",
            *(f"        {line}" for n in range(AT_ONCE) for line in self.loads(n, sign)),
            *(f"        {line}" for line in self.lines),
            *(f"        {line}" for line in self.stores),
            f"        t {sign}= {AT_ONCE}",
            *(f"    {line}" for line in end),
            "",
        ]
        return "\n".join(lines)

    def loads(self, n: int, sign: str) -> Iterator[str]:
        """All that one step reads."""
        t = f"(t {sign} {n})"
        yield f"is{n} = {t} < length"
        yield "if RESETS:"
        yield f"    r{n} = tl.load(anew + b * anew_row + {t}, mask=is{n}, other=0) != 0"
        for name, (place, column) in self.asked.items():
            if place == n:
                address = f"x + b * x_row + {t} * x_step + {column} + j"
                yield f"{name} = tl.load({address}, mask=k & is{n}, other=0.0).to(tl.float32)"
        if sign == "+":
            return
        yield f"g{n} = tl.zeros((BLOCK,), tl.float32)"
        yield "if GIVEN:"
        address = f"given + b * given_row + {t} * given_step + j"
        yield f"    g{n} += tl.load({address}, mask=k & is{n}, other=0.0).to(tl.float32)"
        if self.needs_state:
            address = f"h + b * h_row + ({t} - 1) * h_step + j"
            yield f"s{n} = tl.load({address}, mask=k & is{n} & ({t} > 0), other=0.0).to(tl.float32)"
            yield f"s{n} = tl.where({t} == 0, begun, s{n})"
            yield from self.reset(n)

    def begun(self, after: int) -> list[str]:
        """Backward, the state before the first step, where it is needed."""
        is_needed = after < 0 and self.needs_state
        return ["begun = tl.load(start + at, mask=k, other=0.0).to(tl.float32)"] if is_needed else []

    def reset(self, n: int) -> list[str]:
        return ["if RESETS:", f"    s{n} = tl.where(r{n}, again, s{n})"]

    def cut(self, decay: str, n: int) -> str:
        """The same where a step begins anew: nothing passes."""
        self.count += 1
        self.lines += [f"c{self.count} = {decay}", "if RESETS:"]
        self.lines.append(f"    c{self.count} = tl.where(r{n}, 0.0, c{self.count})")
        return f"c{self.count}"

    def written(self, value: Value, slope: str = "", offset: int = 0) -> str:
        """One gate of a value at the step being written, as a block; a slope stands for the gradient of h."""
        if slope != self.slope:
            # What does not depend on the gradient is written twice, which the compiler finds out by itself.
            self.slope, self.known = slope, {}
        return f"(tl.zeros((BLOCK,), tl.float32) + {self.element(value, offset)})"

    def leaf(self, value: Value, offset: int) -> str:
        if value is self.gradient:
            self.check_gate(offset)
            return self.slope
        if value is self.state:
            self.check_gate(offset)
            self.needs_state = True
            return f"s{self.place}"
        if value is self.inputs:
            name = f"x{self.place}_{offset}"
            self.asked[name] = (self.place, offset)
            return name
        return self.constant_leaf(value, offset)

    def constant_leaf(self, value: Value, offset: int) -> str:
        """Weights and tensors with a row each: loaded once, before the first step."""
        if isinstance(value.detail, Weight):
            number = self.vectors.index(value.detail)
            name, address = f"u{number}_{offset}", f"vector{number} + {offset} + j"
        else:
            number = self.rows.index(value.detail)
            name, address = f"w{number}_{offset}", f"row{number} + b * row{number}_row + {offset} + j"
        self.kept[name] = f"{name} = tl.load({address}, mask=k, other=0.0).to(tl.float32)"
        return name
