"""Row passes printed as C.

A pass becomes one function over the rows of a step. Within a row, values are computed segment by segment: a segment
is a run of numbers that all take the same way through the equations, such as one gate. Segments of one width share a
loop, so that an LSTM's four gates, its cell and its output are one sweep over H. A sum over a row ends a stage; what
uses the sum stands in a loop of the next stage.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from recurra.engines.plan import Buffer, Place, Plan, RowPass
from recurra.engines.trace import Value

PRELUDE = """\
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef {real} real;
typedef {integer} integer;

/* 2^n from its bits. */
static inline real power_of_two(integer n) {{
    union {{ integer i; real r; }} bits;
    bits.i = (n + {bias}) << {mantissa};
    return bits.r;
}}

/* a = n ln 2 + r with n whole and |r| <= ln 2 / 2; returns e^r - 1, exact to the last digits also where r is near 0. */
static inline real split_exponent(real a, real *n) {{
    const real shifted = a * (real)1.4426950408889634074 + (real){magic};
    *n = shifted - (real){magic};
    const real r = (a - *n * (real){ln2_high}) - *n * (real){ln2_low};
    real p = {lead};
{terms}    return p * r * r + r;
}}
/* Where 2^n alone would overflow, or have no room for all its digits, it is multiplied in two parts. */
static inline real r_exp(real a) {{
    real n;
    a = a > (real){top} ? (real){top} : a;
    a = a < -(real){bottom} ? -(real){bottom} : a;
    const real p = split_exponent(a, &n);
    const integer half = (integer)n >> 1;
    const real s = power_of_two(half);
    return (s * p + s) * power_of_two((integer)n - half);
}}
static inline real exp_minus_one(real a) {{
    real n;
    a = a > (real){top} ? (real){top} : a;
    a = a < -50 ? -50 : a;
    const real p = split_exponent(a, &n);
    const real s = power_of_two((integer)n - 1);
    return 2 * (s * p + (s - (real)0.5));
}}
/* log a = e ln 2 + log m, m between sqrt 1/2 and sqrt 2; log m = 2 artanh q = 2 (q + q^3/3 + ...), q = (m-1)/(m+1). */
static inline real r_log(real a) {{
    const int is_small = a < (real){smallest};
    union {{ integer i; real r; }} bits;
    bits.r = is_small ? a * (real){scale} : a;
    const integer from_half = bits.i - {sqrt_half};
    const integer e = from_half >> {mantissa};
    bits.i = (from_half & {mantissa_mask}) + {sqrt_half};
    const real f = bits.r - 1, q = f / (2 + f), z = q * q;
    real p = {log_lead};
{log_terms}    const real n = (real)e - (is_small ? {scale_log} : 0);
    const real y = n * (real){ln2_high} + (n * (real){ln2_low} + (2 * q + 2 * q * z * p));
    const real ends = a == 0 ? -(real)INFINITY : (real)NAN;
    return a > 0 ? (a > {largest} ? a : y) : ends;
}}
/* log(1 + a) for the rounded 1 + a, and by how much that was rounded (Kahan). */
static inline real r_log1p(real a) {{
    const real u = 1 + a, d = u - 1;
    const real y = r_log(u) * (a / d);
    return d == 0 ? a : u > {largest} ? u : y;
}}
static inline real r_sigmoid(real a) {{ return 1 / (2 + exp_minus_one(-a)); }}
static inline real r_tanh(real a) {{
    const real e = exp_minus_one(-2 * (a < 0 ? -a : a));
    const real y = -e / (e + 2);
    return a < 0 ? -y : y;
}}
static inline real r_sign(real a) {{ return a > 0 ? 1 : a < 0 ? -1 : a; }}
static inline real r_relu(real a) {{ return a < 0 ? 0 : a; }}
static inline real r_max(real a, real b) {{ return a > b || a != a ? a : b; }}
static inline real r_min(real a, real b) {{ return a < b || a != a ? a : b; }}
static inline real r_abs(real a) {{ return {fabs}(a); }}
static inline real r_sqrt(real a) {{ return {sqrt}(a); }}
static inline real r_rsqrt(real a) {{ return 1 / {sqrt}(a); }}
static inline real r_sin(real a) {{ return {sin}(a); }}
static inline real r_cos(real a) {{ return {cos}(a); }}
static inline real r_erf(real a) {{ return {erf}(a); }}
static inline real r_pow(real a, real b) {{ return {pow}(a, b); }}
"""

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
    "sin": "r_sin({0})",
    "cos": "r_cos({0})",
    "erf": "r_erf({0})",
    "sqrt": "r_sqrt({0})",
    "rsqrt": "r_rsqrt({0})",
    "abs": "r_abs({0})",
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


def prelude(is_double: bool) -> str:
    suffix = "" if is_double else "f"
    functions = {name: name + suffix for name in ("fabs", "sqrt", "sin", "cos", "erf", "pow")}
    # e^r = 1 + r + r² (1/2! + r/3! + …) for |r| ≤ ln 2 / 2: as many terms as the type has digits.
    order = 13 if is_double else 7
    terms = "".join(f"    p = p * r + (real){1 / math.factorial(k)!r};\n" for k in range(order - 1, 1, -1))
    # artanh q = q + q³ (1/3 + q²/5 + …) for |q| ≤ 0.172, likewise.
    last = 11 if is_double else 5
    log_terms = "".join(f"    p = p * z + (real){1 / (2 * k + 1)!r};\n" for k in range(last - 1, 0, -1))
    numbers: dict[str, object] = (
        {"bias": 1023, "mantissa": 52, "top": 710.0, "bottom": 746.0, "magic": 6755399441055744.0}
        | {"smallest": "0x1p-1022", "largest": "1.7976931348623157e308", "scale": "0x1p54", "scale_log": 54}
        | {"sqrt_half": "0x3fe6a09e667f3bcdLL", "mantissa_mask": "0xfffffffffffffLL"}
        if is_double
        else {"bias": 127, "mantissa": 23, "top": 89.0, "bottom": 104.0, "magic": 12582912.0}
        | {"smallest": "0x1p-126f", "largest": "3.4028234663852886e38f", "scale": "0x1p25f", "scale_log": 25}
        | {"sqrt_half": "0x3f3504f3", "mantissa_mask": "0x7fffff"}
    )
    return PRELUDE.format(
        real="double" if is_double else "float",
        integer="int64_t" if is_double else "int32_t",
        ln2_high=6.93147180369123816490e-01 if is_double else 0.693359375,
        ln2_low=1.90821492927058770002e-10 if is_double else -2.12194440e-4,
        lead=f"(real){1 / math.factorial(order)!r}",
        terms=terms,
        log_lead=f"(real){1 / (2 * last + 1)!r}",
        log_terms=log_terms,
        **numbers,
        **functions,
    )


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


class RowWriter:
    """Writes what happens to one row."""

    def __init__(self, row_pass: RowPass) -> None:
        self.row_pass = row_pass
        self.arguments = {key: number for number, key in enumerate(buffers_of(row_pass))}
        self.known: dict[tuple[Value, int, int], tuple[int, str]] = {}
        self.cut_points: dict[Value, frozenset[int]] = {}
        self.scalars: dict[int, list[str]] = {}
        self.loops: dict[tuple[int, int], list[str]] = {}
        self.reductions: dict[tuple[int, int], dict[str, None]] = {}
        self.arrays: list[str] = []
        self.stored: set[str] = set()
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
            for offset, width in self.segments(write.value):
                stage, name = self.element(write.value, offset, width)
                sign = "+=" if write.buffer.place is Place.SUMS else "="
                if width == 1:
                    self.scalars.setdefault(stage, []).append(f"{pointer}[{write.column + offset}] {sign} {name};")
                else:
                    place = f"{pointer}[{write.column + offset} + j]"
                    self.loops.setdefault((stage, width), []).append(f"{place} {sign} {name};")
        yield from self.arrays
        stages = {*self.scalars, *(stage for stage, _ in self.loops)}
        for stage in sorted(stages):
            yield from self.scalars.get(stage, [])
            for (of_stage, width), lines in sorted(self.loops.items()):
                if of_stage == stage:
                    sums = self.reductions.get((stage, width), {})
                    yield "#pragma omp simd" + (f" reduction(+: {', '.join(sums)})" if sums else "")
                    yield f"for (long j = 0; j < {width}; j++) {{"
                    yield from (f"    {line}" for line in lines)
                    yield "}"

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
        if value.op == "view":
            return self.element(value.values[0], offset, width)
        if value.op == "slice":
            [whole] = value.values
            group, within = divmod(offset, value.shape[-1])
            return self.element(whole, group * whole.shape[-1] + value.detail + within, width)
        if value.op == "cat":
            return self.part(value, offset, width)
        if value.op == "sum":
            return self.total(value, offset)
        return self.pointwise(value, offset, width)

    def part(self, value: Value, offset: int, width: int) -> tuple[int, str]:
        start = 0
        for part in value.values:
            if offset < start + part.width:
                return self.element(part, offset - start, width)
            start += part.width
        raise AssertionError("a segment lies beyond its value")

    def pointwise(self, value: Value, offset: int, width: int) -> tuple[int, str]:
        elements = [self.operand(arg, value, offset, width) for arg in value.values]
        stage = max((stage for stage, _ in elements), default=0)
        names = [self.at_stage(name, of, stage, width) for of, name in elements]
        return self.define(stage, width, expression(value, names))

    def operand(self, arg: Value, value: Value, offset: int, width: int) -> tuple[int, str]:
        if arg.op == "constant":
            return 0, number(arg.args[0])
        at, is_single = broadcast_offset(arg.shape, value.shape, offset)
        return self.element(arg, at, 1 if is_single else width)

    def total(self, value: Value, offset: int) -> tuple[int, str]:
        """Σ over one row of the argument: added up in its stage, known in the next."""
        [arg] = value.values
        size = arg.shape[-1]
        self.count += 1
        name, last = f"s{self.count}", 0
        self.arrays.append(f"real {name} = 0;")
        for start, width in self.segments(arg, offset * size, (offset + 1) * size):
            stage, element = self.element(arg, start, width)
            last = max(last, stage)
            if width == 1:
                self.scalars.setdefault(stage, []).append(f"{name} += {element};")
            else:
                self.loops.setdefault((stage, width), []).append(f"{name} += {element};")
                self.reductions.setdefault((stage, width), {})[name] = None
        return last + 1, name

    def define(self, stage: int, width: int, code: str) -> tuple[int, str]:
        self.count += 1
        name = f"v{self.count}"
        lines = self.scalars.setdefault(stage, []) if width == 1 else self.loops.setdefault((stage, width), [])
        lines.append(f"const real {name} = {code};")
        return stage, name

    def at_stage(self, name: str, of: int, stage: int, width: int) -> str:
        """A number of an earlier stage's loop is left in an array for the loops of later stages."""
        if of == stage or not name.startswith("v") or width == 1:
            return name
        lines = self.loops.get((of, width), [])
        if not any(line.startswith(f"const real {name} =") for line in lines):
            return name  # a single number, which every loop can see
        if name not in self.stored:
            self.stored.add(name)
            self.arrays.append(f"real a{name}[{width}];")
            lines.append(f"a{name}[j] = {name};")
        return f"a{name}[j]"

    # Segments

    def segments(self, value: Value, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """A value, or a stretch of it, cut where its numbers begin to take another way."""
        end = value.width if end is None else end
        points = sorted({start, end, *(cut for cut in self.cuts(value) if start < cut < end)})
        return [(a, b - a) for a, b in itertools.pairwise(points)]

    def cuts(self, value: Value) -> frozenset[int]:
        if value not in self.cut_points:
            self.cut_points[value] = frozenset(self.find_cuts(value))
        return self.cut_points[value]

    def find_cuts(self, value: Value) -> Iterator[int]:
        if value in self.row_pass.reads or value.op == "constant":
            return
        if value.op == "view":
            yield from self.cuts(value.values[0])
        elif value.op == "slice":
            [whole] = value.values
            n, k = whole.shape[-1], value.shape[-1]
            for group in range(value.width // k):
                yield group * k
                for cut in self.cuts(whole):
                    if 0 < cut - group * n - value.detail < k:
                        yield group * k + cut - group * n - value.detail
        elif value.op == "cat":
            start = 0
            for part in value.values:
                yield start
                yield from (start + cut for cut in self.cuts(part))
                start += part.width
        elif value.op == "sum":
            yield from range(value.width)
        else:
            for arg in value.values:
                if arg.width == value.width:
                    yield from self.cuts(arg)
                elif arg.width > 1:
                    yield from range(0, value.width, value.shape[-1])
                    if arg.shape[-1] == value.shape[-1]:
                        repeats = range(0, value.width, arg.width)
                        yield from (start + cut for start in repeats for cut in self.cuts(arg))


def broadcast_offset(small: tuple[int, ...], large: tuple[int, ...], offset: int) -> tuple[int, bool]:
    """Where the number at an offset of the large shape stands in the small one; True where one serves a whole segment.

    >>> broadcast_offset((4, 1), (4, 5), 10), broadcast_offset((5,), (4, 5), 10), broadcast_offset((), (4,), 2)
    ((2, True), (0, False), (0, True))
    """
    if math.prod(small) == math.prod(large):
        return offset, False
    padded = (1,) * (len(large) - len(small)) + small
    index = []
    for size in reversed(large):
        offset, place = divmod(offset, size)
        index.append(place)
    at, stride = 0, 1
    for place, size in zip(index, reversed(padded), strict=True):
        at += (place if size > 1 else 0) * stride
        stride *= size
    return at, padded[-1] == 1


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


def number(value: Value | float) -> str:
    assert not isinstance(value, Value)
    if math.isinf(value):
        return "(real)INFINITY" if value > 0 else "(real)-INFINITY"
    return f"(real){value!r}"
