"""Row passes printed as C.

A pass becomes one function over the rows of a step. Within a row, values are computed segment by segment: a segment
is a run of numbers that all take the same way through the equations, such as one gate. Segments of one width share a
loop, so that an LSTM's four gates, its cell and its output are one sweep over H. A sum over a row ends a stage; what
uses the sum stands in a loop of the next stage. So does what reads computed numbers in another order than that in which
they were computed: they are left in an array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from recurra.engines.c_prelude import FROM_LIBRARY, prelude
from recurra.engines.plan import Buffer, Place, Plan, RowPass
from recurra.engines.segments import Segments
from recurra.engines.values import STRETCHES, Run, Value

FUNCTIONS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "reciprocal": "1 / {0}",
    "sigmoid": "r_sigmoid({0})",
    "tanh": "r_tanh({0})",
    "exp": "r_exp({0})",
    "log": "r_log({0})",
    "log1p": "r_log1p({0})",
    "expm1": "r_expm1({0})",
    "rsqrt": "r_rsqrt({0})",
    "abs": "r_fabs({0})",
    "round": "r_rint({0})",
    "atan2": "r_atan2({0}, {1})",
    "sign": "r_sign({0})",
    "relu": "r_relu({0})",
    "maximum": "r_max({0}, {1})",
    "minimum": "r_min({0}, {1})",
    "where": "{0} != 0 ? {1} : {2}",
    "eq": "{0} == {1} ? (real)1 : (real)0",
    "ne": "{0} != {1} ? (real)1 : (real)0",
    "lt": "{0} < {1} ? (real)1 : (real)0",
    "le": "{0} <= {1} ? (real)1 : (real)0",
    "gt": "{0} > {1} ? (real)1 : (real)0",
    "ge": "{0} >= {1} ? (real)1 : (real)0",
    "and": "{0} != 0 && {1} != 0 ? (real)1 : (real)0",
    "or": "{0} != 0 || {1} != 0 ? (real)1 : (real)0",
    "not": "{0} == 0 ? (real)1 : (real)0",
    "pow": "r_pow({0}, {1})",
    **{name: f"r_{name}({{0}})" for name in FROM_LIBRARY if name not in ("fabs", "rint")},
}


PARAMETERS = (
    "long first, long last, long part, long t, const int64_t *lengths, real **base, const int64_t *row, "
    "const int64_t *step"
)
"""Rows `first` to `last` of step t; `part` says whose sums are added to. The rest is where things lie (c_passes.py)."""


def source(plan: Plan, is_double: bool) -> str:
    """All row passes of a plan as one C file."""
    passes = [*plan.forward.passes, *plan.inference.passes, *plan.backward.passes]
    names = [*named("forward", plan.forward.passes), *named("inference", plan.inference.passes)]
    names += named("backward", plan.backward.passes)
    return "\n".join([prelude(is_double), *(function(p, name) for p, name in zip(passes, names, strict=True))])


def named(direction: str, passes: list[RowPass]) -> list[str]:
    """
    >>> named("forward", [RowPass("a"), RowPass("b")])
    ['forward_0', 'forward_1']
    """
    return [f"{direction}_{number}" for number in range(len(passes))]


def buffers_of(row_pass: RowPass) -> list[tuple[Buffer, bool]]:
    """The buffers of a pass in the order of its arguments; True where one is written."""
    found: dict[tuple[Buffer, bool], None] = {}
    for parts in row_pass.reads.values():
        found.update({(buffer, False): None for buffer, _ in parts})
    for parts, _ in row_pass.holds:
        found.update({(buffer, False): None for buffer, _ in parts})
    found.update({(write.buffer, True): None for write in row_pass.writes})
    found.update({(buffer, True): None for buffer in row_pass.clears})
    return list(found)


def function(row_pass: RowPass, name: str) -> str:
    """One row pass as a C function."""
    writer = RowWriter(row_pass)
    body = list(writer.body())
    lines = [
        f"void {name}({PARAMETERS}) {{",
        "    for (long b = first; b < last; b++) {",
        *(f"        {line}" for line in writer.pointers()),
        "        if (lengths && t >= lengths[b]) {",
        *(f"            {line}" for line in writer.padded()),
        "            continue;",
        "        }",
        *(f"        {line}" for line in body),
        "    }",
        "}",
        "",
    ]
    return "\n".join(lines)


REDUCTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]] = {
    "sum": (("real {s} = 0;",), ("{s} += {a};",), ("reduction(+: {s})",), "{s}"),
    # A maximum of which one number is not a number is none either.
    "largest": (
        ("real {s} = -(real)INFINITY;", "long n{s} = 0;"),
        ("{s} = {a} > {s} ? {a} : {s};", "n{s} += {a} != {a};"),
        ("reduction(max: {s})", "reduction(+: n{s})"),
        "(n{s} ? (real)NAN : {s})",
    ),
}
"""How a stretch is reduced: what is declared, done for each number {a} and told the compiler; and the result."""


MOST_SINGLE = 8
"""How many stretches of a value are reduced side by side, in the loop that computes the value; more have their own."""


class RowWriter:
    """Writes what happens to one row."""

    def __init__(self, row_pass: RowPass) -> None:
        self.row_pass = row_pass
        self.arguments = {key: number for number, key in enumerate(buffers_of(row_pass))}
        self.known: dict[tuple[Value, int, int], tuple[int, str]] = {}
        self.segments = Segments(row_pass)
        self.scalars: dict[int, list[str]] = {}
        self.loops: dict[tuple[int, int], list[str]] = {}
        self.reductions: dict[tuple[int, int], dict[str, None]] = {}
        self.ends: dict[int, list[str]] = {}  # what follows the loops of a stage
        self.arrays: list[str] = []
        self.of_loop: dict[str, int] = {}  # names that one loop alone can see, and the stage of the loop
        self.stored: set[str] = set()
        self.laid_out: dict[Value, tuple[int, str]] = {}
        self.count = 0

    def pointers(self) -> Iterator[str]:
        for (buffer, is_written), number in self.arguments.items():
            at = f"base[{number}] + b * row[{number}]"
            if buffer.place is Place.SEQUENCE:
                at += f" + t * step[{number}]"
            elif buffer.place is Place.PREVIOUS:
                # The pointer of the start state stands behind all others, as do its strides.
                first = f"base[{number + len(self.arguments)}] + b * row[{number + len(self.arguments)}]"
                at = f"t == 0 ? {first} : {at} + (t - 1) * step[{number}]"
            elif buffer.place is Place.TURNS:
                at += f" + ({'t' if is_written else '(t + 1)'} & 1) * step[{number}]"
            elif buffer.place is Place.SUMS:
                at = f"base[{number}] + part * step[{number}]"
            constant = "" if is_written else "const "
            yield f"{constant}real *{self.pointer(buffer, is_written)} = {at};  /* {buffer.name} */"

    def pointer(self, buffer: Buffer, is_written: bool) -> str:
        return f"{'o' if is_written else 'p'}{self.arguments[buffer, is_written]}"

    def padded(self) -> Iterator[str]:
        for parts, target in self.row_pass.holds:
            total = " + ".join(f"{self.pointer(buffer, False)}[{column} + j]" for buffer, column in parts)
            yield f"for (long j = 0; j < {target.width}; j++) {self.pointer(target, True)}[j] = {total};"
        for buffer in self.row_pass.clears:
            yield f"memset({self.pointer(buffer, True)}, 0, {buffer.width} * sizeof(real));"

    def body(self) -> Iterator[str]:
        for write in self.row_pass.writes:
            pointer = self.pointer(write.buffer, True)
            for offset, width in self.segments.of(write.value):
                stage, name = self.element(write.value, offset, width)
                sign = "+=" if write.buffer.place is Place.SUMS else "="
                if width == 1:
                    self.scalars.setdefault(stage, []).append(f"{pointer}[{write.column + offset}] {sign} {name};")
                else:
                    place = f"{pointer}[{write.column + offset} + j]"
                    self.loops.setdefault((stage, width), []).append(f"{place} {sign} {name};")
        yield from self.arrays
        stages = {*self.scalars, *(stage for stage, _ in self.loops), *self.ends}
        for stage in sorted(stages):
            yield from self.scalars.get(stage, [])
            for (of_stage, width), lines in sorted(self.loops.items()):
                if of_stage == stage:
                    clauses = self.reductions.get((stage, width), {})
                    yield " ".join(["#pragma omp simd", *clauses])
                    yield f"for (long j = 0; j < {width}; j++) {{"
                    yield from (f"    {line}" for line in lines)
                    yield "}"
            yield from self.ends.get(stage, [])

    # Values

    def element(self, value: Value, offset: int, width: int) -> tuple[int, str]:
        """A segment of a value: the stage in which it is known, and how a loop of that width names its element j."""
        key = (value, offset, width)
        if key not in self.known:
            self.known[key] = self.make(value, offset, width)
        return self.known[key]

    def make(self, value: Value, offset: int, width: int) -> tuple[int, str]:
        if value in self.row_pass.reads:
            parts = self.row_pass.reads[value]
            index = "" if width == 1 else " + j"
            loads = [f"{self.pointer(b, False)}[{column + offset}{index}]" for b, column in parts]
            # Loads are written where they are used: the compiler merges them, and later stages need no copy.
            return 0, loads[0] if len(loads) == 1 else f"({' + '.join(loads)})"
        if value.op == "constant":
            return 0, number(value.args[0])
        if value.op == "move":
            return self.moved(value, offset, width)
        if value.op == "running sum" or (value.op in STRETCHES and (width > 1 or value.width > MOST_SINGLE)):
            return self.in_array(value, offset, 1, width)
        if value.op in STRETCHES:
            return self.stretch(value, offset)
        return self.pointwise(value, offset, width)

    def moved(self, value: Value, offset: int, width: int) -> tuple[int, str]:
        for run in value.detail.runs:
            j, is_between = divmod(offset - run.start, run.step)
            if 0 <= j < run.length and not is_between and (run.step == 1 or width == 1):
                return self.of_run(value, run, j, width)
        return self.in_array(value, offset, 1, width)

    def of_run(self, value: Value, run: Run, j: int, width: int) -> tuple[int, str]:
        """Number j of a run and those behind it."""
        arg, at = value.values[run.source], run.offset + run.stride * j
        if arg.op == "constant":
            return 0, number(arg.args[0])
        if width == 1 or run.stride in (0, 1):
            return self.element(arg, at, 1 if run.stride == 0 else width)
        parts = self.row_pass.reads.get(arg)
        if parts is None:
            return self.in_array(arg, at, run.stride, width)
        loads = [f"{self.pointer(b, False)}[{column + at} + {run.stride} * j]" for b, column in parts]
        return 0, loads[0] if len(loads) == 1 else f"({' + '.join(loads)})"

    def in_array(self, value: Value, at: int, stride: int, width: int) -> tuple[int, str]:
        """Numbers of a value that is written to an array as a whole."""
        stage, name = self.array_of(value)
        place = f"{at}" if width == 1 else f"{at} + j" if stride == 1 else f"{at} + {stride} * j"
        return stage, f"{name}[{place}]"

    def array_of(self, value: Value) -> tuple[int, str]:
        """An array with a value, and the stage from which on it can be read."""
        if value not in self.laid_out:
            is_loop = value.op == "running sum" or (value.op in STRETCHES and value.width > MOST_SINGLE)
            self.laid_out[value] = self.loop_of_stretches(value) if is_loop else self.lay_out(value)
        return self.laid_out[value]

    def loop_of_stretches(self, value: Value) -> tuple[int, str]:
        """Many stretches: one after the other, out of an array and into one."""
        [arg] = value.values
        stage, source = self.array_of(arg)
        self.count += 1
        name, size = f"m{self.count}", value.detail
        self.arrays.append(f"real {name}[{value.width}];")
        lines = [f"for (long i = 0; i < {arg.width // size}; i++) {{", f"    const real *from = {source} + i * {size};"]
        if value.op == "running sum":
            lines.append("    real total = 0;")
            lines.append(f"    for (long j = 0; j < {size}; j++) {name}[i * {size} + j] = total += from[j];")
        elif value.op == "place of the largest":
            lines.append(f"    {name}[i] = (real)place_of_largest(from, {size});")
        else:
            declared, steps, clauses, result = REDUCTIONS[value.op]
            lines += [f"    {line.format(s='x')}" for line in declared]
            lines.append(" ".join(["#pragma omp simd", *(clause.format(s="x") for clause in clauses)]))
            body = " ".join(line.format(s="x", a="from[j]") for line in steps)
            lines.append(f"    for (long j = 0; j < {size}; j++) {{ {body} }}")
            lines.append(f"    {name}[i] = {result.format(s='x')};")
        self.ends.setdefault(stage, []).extend([*lines, "}"])
        return stage + 1, name

    def lay_out(self, value: Value) -> tuple[int, str]:
        self.count += 1
        name, last = f"m{self.count}", 0
        self.arrays.append(f"real {name}[{value.width}];")
        if value.op in STRETCHES:
            for offset in range(value.width):
                stage, element = self.element(value, offset, 1)
                last = max(last, stage)
                self.scalars.setdefault(stage, []).append(f"{name}[{offset}] = {element};")
            return last, name
        runs = value.detail.runs if value.op == "move" else (Run(0, 1, value.width, 0, 0, 1),)
        for run in runs:
            for first, width in self.segments.of_run(value, run):
                if value.op == "move":
                    stage, element = self.of_run(value, run, first, width)
                else:
                    stage, element = self.element(value, first, width)
                last = max(last, stage)
                start = run.start + run.step * first
                place = f"{start}" if width == 1 else f"{start} + j" if run.step == 1 else f"{start} + {run.step} * j"
                lines = self.scalars.setdefault(stage, []) if width == 1 else self.loops.setdefault((stage, width), [])
                lines.append(f"{name}[{place}] = {self.at_stage(element, stage, width)};")
        return last + 1, name

    def pointwise(self, value: Value, offset: int, width: int) -> tuple[int, str]:
        elements = []
        for arg in value.values:
            is_single = arg.width == 1 < value.width
            elements.append(self.element(arg, 0, 1) if is_single else self.element(arg, offset, width))
        stage = max((stage for stage, _ in elements), default=0)
        names = [self.at_stage(name, stage, width) for _, name in elements]
        if value.op == "add" and ZERO in names:
            # Slices write their gradients into zeros.
            return stage, names[1 - names.index(ZERO)]
        return self.define(stage, width, expression(value, names))

    def stretch(self, value: Value, offset: int) -> tuple[int, str]:
        """What a stretch of the argument comes to: gathered in its stage, known in the next."""
        [arg] = value.values
        first, size = offset * value.detail, value.detail
        self.count += 1
        name, last = f"s{self.count}", 0
        if value.op == "place of the largest":
            stage, array = self.array_of(arg)
            self.arrays.append(f"real {name};")
            self.ends.setdefault(stage, []).append(f"{name} = (real)place_of_largest({array} + {first}, {size});")
            return stage + 1, name
        declared, steps, clauses, result = REDUCTIONS[value.op]
        self.arrays += [line.format(s=name) for line in declared]
        for start, width in self.segments.of(arg, first, first + size):
            stage, element = self.element(arg, start, width)
            last = max(last, stage)
            lines = self.scalars.setdefault(stage, []) if width == 1 else self.loops.setdefault((stage, width), [])
            element = self.at_stage(element, stage, width)
            lines += [line.format(s=name, a=element) for line in steps]
            if width > 1:
                found = self.reductions.setdefault((stage, width), {})
                found.update({clause.format(s=name): None for clause in clauses})
        return last + 1, result.format(s=name)

    def define(self, stage: int, width: int, code: str) -> tuple[int, str]:
        self.count += 1
        name = f"v{self.count}"
        lines = self.scalars.setdefault(stage, []) if width == 1 else self.loops.setdefault((stage, width), [])
        lines.append(f"const real {name} = {code};")
        if width > 1:
            self.of_loop[name] = stage
        return stage, name

    def at_stage(self, name: str, stage: int, width: int) -> str:
        """A number of an earlier stage's loop is left in an array for the loops of later stages."""
        of = self.of_loop.get(name, stage)
        if of == stage:
            return name  # of the same loop, a single number or something in memory: every loop can see these
        if name not in self.stored:
            self.stored.add(name)
            self.arrays.append(f"real a{name}[{width}];")
            self.loops[of, width].append(f"a{name}[j] = {name};")
        return f"a{name}[j]"


def expression(value: Value, names: list[str]) -> str:
    if value.op == "pow" and isinstance(value.args[1], Value) and value.args[1].op == "constant":
        exponent = value.args[1].args[0]
        if exponent in (2.0, 3.0):
            return " * ".join([names[0]] * int(exponent))
        if exponent == 0.5:
            return f"r_sqrt({names[0]})"
        if exponent == -0.5:
            return f"r_rsqrt({names[0]})"
        if exponent == 1.0:
            return names[0]
    return FUNCTIONS[value.op].format(*names)


ZERO = "(real)0.0"


def number(value: Value | float) -> str:
    assert not isinstance(value, Value)
    if math.isnan(value):
        return "(real)NAN"
    if math.isinf(value):
        return "(real)INFINITY" if value > 0 else "(real)-INFINITY"
    return f"(real){value!r}"
