"""Row passes printed as Triton.

A pass becomes one kernel over the rows of a step. Where every number of a pass depends only on numbers of the same
unit, as in a plain LSTM, a program computes a block of units of one row. Otherwise (layer norm, softmax, heads) a
program computes a whole row: a segment is a block of its own, a sum over a row is a reduction of blocks, and numbers
that are read in another order than they were computed in pass through a scratch row in memory.

All arithmetic is in float32, whatever the type of the buffers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from recurra.engines.c_source import buffers_of
from recurra.engines.plan import Buffer, Place, RowPass, ordered
from recurra.engines.segments import Segments
from recurra.engines.values import STRETCHES, NoPlan, Run, Value

PRELUDE = '''\
import triton
import triton.language as tl


@triton.jit
def r_tanh(a):
    """(1 - e) / (1 + e) with e = exp(-2 |a|); near 0, where that cancels, its series."""
    e = tl.exp(-2.0 * tl.abs(a))
    far = (1.0 - e) / (1.0 + e)
    s = a * a
    near = a * (1.0 - s * (0.3333333333333333 - s * (0.13333333333333333 - s * 0.05396825396825397)))
    return tl.where(tl.abs(a) < 0.1, near, tl.where(a < 0.0, -far, far))


@triton.jit
def r_expm1(a):
    """exp(a) - 1 = tanh(a / 2) (exp(a) + 1), which does not cancel near 0."""
    e = tl.exp(a)
    return tl.where(tl.abs(a) < 1.0, r_tanh(0.5 * a) * (e + 1.0), e - 1.0)


@triton.jit
def r_log1p(a):
    """log(1 + a) for the rounded 1 + a, corrected by how much that was rounded (Kahan)."""
    u = 1.0 + a
    d = u - 1.0
    y = tl.log(u) * (a / tl.where(d == 0.0, 1.0, d))
    return tl.where(d == 0.0, a, tl.where(u == float("inf"), u, y))


@triton.jit
def r_relu(a):
    return tl.where(a < 0.0, 0.0, a)


@triton.jit
def r_sign(a):
    return tl.where(a > 0.0, 1.0, tl.where(a < 0.0, -1.0, 0.0))


@triton.jit
def r_max(a, b):
    return tl.where(a > b, a, tl.where(a != a, a, b))


@triton.jit
def r_min(a, b):
    return tl.where(a < b, a, tl.where(a != a, a, b))


@triton.jit
def r_trunc(a):
    return tl.where(a < 0.0, tl.ceil(a), tl.floor(a))


@triton.jit
def r_round(a):
    """To the nearest whole number, halves to the even one."""
    down = tl.floor(a)
    rest = a - down
    is_odd = down - 2.0 * tl.floor(0.5 * down) != 0.0
    return tl.where((rest > 0.5) | ((rest == 0.5) & is_odd), down + 1.0, down)


@triton.jit
def r_pow(a, b):
    """|a|^b by logarithms, with the sign of a where b is odd; no number where a < 0 and b is not whole."""
    p = tl.exp2(b * tl.log2(tl.abs(a)))
    is_whole = tl.floor(b) == b
    is_odd = b - 2.0 * tl.floor(0.5 * b) == 1.0
    p = tl.where(a < 0.0, tl.where(is_whole, tl.where(is_odd, -p, p), float("nan")), p)
    return tl.where(b == 0.0, 1.0, tl.where(a == 1.0, 1.0, p))


@triton.jit
def r_sinh(a):
    e = r_expm1(tl.abs(a))
    return r_sign(a) * 0.5 * (e + e / (e + 1.0))


@triton.jit
def r_cosh(a):
    e = tl.exp(tl.abs(a))
    return 0.5 * (e + 1.0 / e)


@triton.jit
def r_asinh(a):
    x = tl.abs(a)
    return r_sign(a) * r_log1p(x + x * x / (1.0 + tl.sqrt(x * x + 1.0)))


@triton.jit
def r_acosh(a):
    return tl.log(a + tl.sqrt(a * a - 1.0))


@triton.jit
def r_atanh(a):
    return 0.5 * (r_log1p(a) - r_log1p(-a))


@triton.jit
def r_atan(a):
    """atan x = 2 atan(x / (1 + sqrt(1 + x²))), twice, and then its series for |x| < 0.2."""
    x = tl.abs(a)
    is_large = x > 1.0
    x = tl.where(is_large, 1.0 / x, x)
    x = x / (1.0 + tl.sqrt(1.0 + x * x))
    x = x / (1.0 + tl.sqrt(1.0 + x * x))
    s = x * x
    y = 0.14285714285714285 - s * (0.1111111111111111 - s * 0.09090909090909091)
    y = 4.0 * x * (1.0 - s * (0.3333333333333333 - s * (0.2 - s * y)))
    return tl.where(a < 0.0, -1.0, 1.0) * tl.where(is_large, 1.5707963267948966 - y, y)


@triton.jit
def r_atan2(y, x):
    half = r_atan(y / tl.where(x == 0.0, 1.0, x))
    turned = tl.where(x < 0.0, half + tl.where(y < 0.0, -3.141592653589793, 3.141592653589793), half)
    return tl.where(x == 0.0, r_sign(y) * 1.5707963267948966, turned)


@triton.jit
def r_asin(a):
    return r_atan2(a, tl.sqrt((1.0 - a) * (1.0 + a)))


@triton.jit
def r_acos(a):
    return r_atan2(tl.sqrt((1.0 - a) * (1.0 + a)), a)


@triton.jit
def larger(a, b):
    """The larger of two numbers; what is not a number is larger than all."""
    return tl.where(a > b, a, tl.where(a != a, a, b))
'''

MOST_AT_ONCE = 8
"""How many sums along a row are computed at once."""


def sums_at_once(count: int) -> str:
    """The function that adds up so many sums side by side: threads wait for each other once, not once for each."""
    one, other = ([f"{name}{n}" for n in range(count)] for name in "ab")
    pairs = ", ".join(f"{a} + {b}" for a, b in zip(one, other, strict=True))
    return f"\n\n@triton.jit\ndef sums{count}({', '.join([*one, *other])}):\n    return {pairs}\n"


PRELUDE += "".join(sums_at_once(count) for count in range(2, MOST_AT_ONCE + 1))

FUNCTIONS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "reciprocal": "1.0 / {0}",
    "sigmoid": "tl.sigmoid({0})",
    "tanh": "r_tanh({0})",
    "exp": "tl.exp({0})",
    "log": "tl.log({0})",
    "log1p": "r_log1p({0})",
    "expm1": "r_expm1({0})",
    "exp2": "tl.exp2({0})",
    "log2": "tl.log2({0})",
    "log10": "tl.log2({0}) * 0.3010299956639812",
    "sin": "tl.sin({0})",
    "cos": "tl.cos({0})",
    "tan": "tl.sin({0}) / tl.cos({0})",
    "asin": "r_asin({0})",
    "acos": "r_acos({0})",
    "atan": "r_atan({0})",
    "atan2": "r_atan2({0}, {1})",
    "sinh": "r_sinh({0})",
    "cosh": "r_cosh({0})",
    "asinh": "r_asinh({0})",
    "acosh": "r_acosh({0})",
    "atanh": "r_atanh({0})",
    "erf": "tl.erf({0})",
    "sqrt": "tl.sqrt({0})",
    "rsqrt": "1.0 / tl.sqrt({0})",
    "abs": "tl.abs({0})",
    "sign": "r_sign({0})",
    "floor": "tl.floor({0})",
    "ceil": "tl.ceil({0})",
    "round": "r_round({0})",
    "trunc": "r_trunc({0})",
    "relu": "r_relu({0})",
    "maximum": "r_max({0}, {1})",
    "minimum": "r_min({0}, {1})",
    "where": "tl.where({0} != 0.0, {1}, {2})",
    "eq": "tl.where({0} == {1}, 1.0, 0.0)",
    "ne": "tl.where({0} != {1}, 1.0, 0.0)",
    "lt": "tl.where({0} < {1}, 1.0, 0.0)",
    "le": "tl.where({0} <= {1}, 1.0, 0.0)",
    "gt": "tl.where({0} > {1}, 1.0, 0.0)",
    "ge": "tl.where({0} >= {1}, 1.0, 0.0)",
    "and": "tl.where({0} != 0.0, tl.where({1} != 0.0, 1.0, 0.0), 0.0)",
    "or": "tl.where({0} != 0.0, 1.0, tl.where({1} != 0.0, 1.0, 0.0))",
    "not": "tl.where({0} == 0.0, 1.0, 0.0)",
    "pow": "r_pow({0}, {1})",
}

MOST_SINGLE = 8
"""How many stretches of a value are reduced one by one, from the blocks that hold them; more are one two-way block."""

WIDEST = 16384
"""How many numbers of a row one program holds at once."""


@dataclass(frozen=True)
class Kernel:
    """One row pass as a Triton function."""

    name: str
    source: str
    arguments: tuple[tuple[Buffer, bool], ...]  # in the order of its pointers; True where a buffer is written
    units: int | None  # None: one program computes a whole row; else how many units are shared out in blocks
    scratch: int  # how many numbers of a row pass through memory
    widest: int  # the largest number of numbers in a block


def kernel(
    row_pass: RowPass,
    name: str,
    parts: Mapping[Buffer, int],
    absent: Collection[Buffer] = (),
    *,
    whole_rows: bool = False,
) -> Kernel:
    """Print a row pass.

    parts         of how many partial sums a product's result consists
    absent        what no gradient comes from: such buffers are not read
    whole_rows    one program computes a row, even where its units could be shared out
    """
    writer = KernelWriter(row_pass, parts, absent, None if whole_rows else units_of(row_pass))
    body = list(writer.body())
    arguments = tuple(writer.arguments)
    pointers = [f"{writer.pointer(*key)}, {writer.pointer(*key)}_row, {writer.pointer(*key)}_step" for key in arguments]
    lines = [
        '@triton.jit(do_not_specialize=["t"])',
        f"def {name}(t, lengths, scratch, {', '.join(pointers)}, RAGGED: tl.constexpr, BLOCK: tl.constexpr):",
        "    b = tl.program_id(0).to(tl.int64)",
        "    t = t.to(tl.int64)",
        *(f"    {line}" for line in writer.addresses()),
        *(f"    {line}" for line in writer.indices()),
        "    if RAGGED:",
        "        active = t < tl.load(lengths + b)",
        *(f"    {line}" for line in (*writer.loads, *body)),
        "",
    ]
    return Kernel(name, "\n".join(lines), arguments, writer.units, writer.scratch, writer.widest)


def units_of(row_pass: RowPass) -> int | None:
    """H where every number of a pass depends on numbers of the same unit alone, so that units can be shared out."""
    segments = Segments(row_pass)
    seen: set[tuple[Value, int, int]] = set()

    def is_local(value: Value, offset: int, width: int) -> bool:
        if (value, offset, width) in seen or value.op == "constant":
            return True
        seen.add((value, offset, width))
        if value in row_pass.reads:
            return True
        if value.op in STRETCHES:
            return False
        if value.op == "move":
            for run in value.detail.runs:
                inside = run.start <= offset and offset + width <= run.start + run.length
                if run.step == 1 and run.stride == 1 and inside:
                    return is_local(value.values[run.source], run.offset + offset - run.start, width)
                if run.step == 1 and inside and value.values[run.source].op == "constant":
                    return True
            return False
        return all(
            arg.op == "constant" if arg.width == 1 < value.width else is_local(arg, offset, width)
            for arg in value.values
        )

    found = [(write.value, *segment) for write in row_pass.writes for segment in segments.of(write.value)]
    units = min(width for _, _, width in found)
    if units == 1 or any(width % units for _, _, width in found):
        return None
    is_apart = all(
        is_local(value, at, units) for value, offset, width in found for at in range(offset, offset + width, units)
    )
    return units if is_apart else None


class KernelWriter:
    """Writes what happens to one row, or to a block of its units."""

    def __init__(
        self, row_pass: RowPass, parts: Mapping[Buffer, int], absent: Collection[Buffer], units: int | None
    ) -> None:
        self.row_pass = row_pass
        self.parts = parts
        self.absent = absent
        self.units = units
        self.arguments = {key: number for number, key in enumerate(buffers_of(row_pass)) if key[0] not in absent}
        self.segments = Segments(row_pass)
        widths = [width for write in row_pass.writes for _, width in self.segments.of(write.value)]
        self.unit = min((width for width in widths if width > 1), default=1)
        self.known: dict[tuple[Value, int, int], str] = {}
        self.laid_out: dict[Value, int] = {}
        self.loads: list[str] = []  # what is read, all of it before anything is computed
        self.lines: list[str] = []
        self.widths: set[int] = {units} if units else set()
        self.scratch = 0
        self.widest = 1
        self.count = 0

    def pointer(self, buffer: Buffer, is_written: bool) -> str:
        return f"{'o' if is_written else 'p'}{self.arguments[buffer, is_written]}"

    def addresses(self) -> Iterator[str]:
        """Where the numbers of this row at this step begin. The step of a buffer of rows is that from one partial sum
        to the next."""
        for buffer, is_written in self.arguments:
            name = self.pointer(buffer, is_written)
            if buffer.place is not Place.SHARED:
                yield f"{name} = {address(buffer, is_written, name)}  # {buffer.name}"
        if self.scratch:
            yield f"s = scratch + b * {self.scratch}"

    def indices(self) -> Iterator[str]:
        for width in sorted(self.widths):
            if self.units:
                yield f"j{width} = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)"
            else:
                yield f"j{width} = tl.arange(0, {power_of_two(width)})"
            yield f"k{width} = j{width} < {width}"

    def body(self) -> list[str]:
        if not self.units:
            self.sum_at_once()
        held = {buffer: parts for parts, buffer in self.row_pass.holds}
        cleared = set(self.row_pass.clears)
        stores: list[tuple[Buffer, int, int, str, str | None]] = []
        for write in self.row_pass.writes:
            if write.buffer in self.absent:
                continue
            for offset, width in self.pieces(write.value):
                name = self.element(write.value, offset, width)
                if write.buffer in held:
                    parts = [(buffer, column + offset) for buffer, column in held[write.buffer]]
                    other = self.loaded(parts, width)
                elif write.buffer in cleared or write.buffer.place is Place.SUMS:
                    other = "0.0"
                else:
                    other = None
                stores.append((write.buffer, write.column + offset, width, name, other))
        # Whatever is read of a buffer is read before anything is written: a buffer may be both.
        if any(other is not None for *_, other in stores):
            self.lines += [f"w{n} = {name}" for n, (_, _, _, name, other) in enumerate(stores) if other is not None]
            self.lines.append("if RAGGED:")
        for n, (buffer, column, width, _, other) in enumerate(stores):
            if other is not None:
                self.lines.append(f"    w{n} = tl.where(active, w{n}, {other})")
                stores[n] = (buffer, column, width, f"w{n}", None)
        for buffer, column, width, name, _ in stores:
            pointer = self.pointer(buffer, True)
            if width == 1:
                self.lines.append(f"tl.store({pointer} + {column}, {name})")
            else:
                self.uses(width)
                self.lines.append(
                    f"tl.store({pointer} + {column} + j{width}, {self.block(name, width)}, mask=k{width})"
                )
        return self.lines

    def pieces(self, value: Value) -> list[tuple[int, int]]:
        """The segments of a value, in pieces as wide as the narrowest of them: a gate each, not all gates at once."""
        return [piece for segment in self.segments.of(value) for piece in self.cut(*segment)]

    def cut(self, offset: int, width: int) -> list[tuple[int, int]]:
        unit = self.units or self.unit
        if width <= unit or width % unit or (not self.units and width // unit > MOST_SINGLE):
            return [(offset, width)]
        return [(at, unit) for at in range(offset, offset + width, unit)]

    # Values

    def element(self, value: Value, offset: int, width: int) -> str:
        """A segment of a value: the name of its block, or of its only number."""
        key = (value, offset, width)
        if key not in self.known:
            self.known[key] = self.make(value, offset, width)
        return self.known[key]

    def make(self, value: Value, offset: int, width: int) -> str:
        if value in self.row_pass.reads:
            parts = [(b, c + offset) for b, c in self.row_pass.reads[value] if b not in self.absent]
            return self.loaded(parts, width)
        if value.op == "constant":
            return number(value.args[0])
        if value.op == "move":
            return self.moved(value, offset, width)
        if value.op == "running sum" or (value.op in STRETCHES and (width > 1 or value.width > MOST_SINGLE)):
            return self.from_scratch(value, offset, 1, width)
        if value.op in STRETCHES:
            return self.stretch(value, offset)
        return self.pointwise(value, offset, width)

    def loaded(self, parts: list[tuple[Buffer, int]], width: int, stride: int = 1) -> str:
        """The sum of what lies in some buffers from those columns on."""
        terms = []
        for buffer, column in parts:
            pointer = self.pointer(buffer, False)
            for part in range(self.parts.get(buffer, 1)):
                place = f"{pointer} + {column}" + (f" + {part} * {pointer}_step" if part else "")
                terms.append(self.load(place, width, stride))
        if not terms:
            return "0.0"
        # Ahead of all sums along a row, where threads wait for each other: what they read next would wait as well.
        self.count += 1
        self.loads.append(f"v{self.count} = {' + '.join(terms)}")
        return f"v{self.count}"

    def load(self, place: str, width: int, stride: int) -> str:
        if width == 1:
            return f"tl.load({place}).to(tl.float32)"
        self.uses(width)
        index = f"j{width}" if stride == 1 else f"{stride} * j{width}"
        return f"tl.load({place} + {index}, mask=k{width}, other=0.0).to(tl.float32)"

    def uses(self, width: int) -> None:
        """Have a block of indices for segments of that width."""
        self.widths.add(width)
        self.holds(width)

    def holds(self, count: int) -> None:
        """Say that one block has so many numbers."""
        self.widest = max(self.widest, count)
        if count > WIDEST and not self.units:
            raise NoPlan(f"a row of {count} numbers is more than one program of Triton computes ({WIDEST})")

    def block(self, name: str, width: int) -> str:
        """A block of a number that all its places share."""
        return f"tl.zeros_like(j{width}).to(tl.float32) + {name}" if is_number(name) else name

    def moved(self, value: Value, offset: int, width: int) -> str:
        for run in value.detail.runs:
            j, is_between = divmod(offset - run.start, run.step)
            if 0 <= j < run.length and not is_between and (run.step == 1 or width == 1):
                return self.of_run(value, run, j, width)
        return self.from_scratch(value, offset, 1, width)

    def of_run(self, value: Value, run: Run, j: int, width: int) -> str:
        """Number j of a run and those behind it."""
        arg, at = value.values[run.source], run.offset + run.stride * j
        if arg.op == "constant":
            return number(arg.args[0])
        if width == 1 or run.stride in (0, 1):
            return self.element(arg, at, 1 if run.stride == 0 else width)
        parts = self.row_pass.reads.get(arg)
        if parts is None:
            return self.from_scratch(arg, at, run.stride, width)
        return self.loaded([(b, c + at) for b, c in parts if b not in self.absent], width, run.stride)

    def from_scratch(self, value: Value, at: int, stride: int, width: int) -> str:
        """Numbers of a value that was written to the scratch row as a whole."""
        start = self.laid_out[value] if value in self.laid_out else self.lay_out(value)
        return self.define(self.load(f"s + {start + at}", width, stride))

    def room(self, width: int) -> int:
        start = self.scratch
        self.scratch += width
        return start

    def lay_out(self, value: Value) -> int:
        """Write a value to the scratch row; where it begins there."""
        if value.op == "running sum" or (value.op in STRETCHES and value.width > MOST_SINGLE):
            start = self.stretches(value)
        else:
            start = self.room(value.width)
            if value.op in STRETCHES:
                pieces = [(offset, 1, 1, self.element(value, offset, 1)) for offset in range(value.width)]
            elif value.op == "move":
                pieces = [
                    (run.start + run.step * first, run.step, width, self.of_run(value, run, first, width))
                    for run in value.detail.runs
                    for first, width in self.segments.of_run(value, run)
                ]
            else:
                pieces = [(at, 1, width, self.element(value, at, width)) for at, width in self.segments.of(value)]
            for at, step, width, name in pieces:
                self.store_scratch(start + at, step, width, name)
            self.lines.append("tl.debug_barrier()")
        self.laid_out[value] = start
        return start

    def store_scratch(self, at: int, step: int, width: int, name: str) -> None:
        if width == 1:
            self.lines.append(f"tl.store(s + {at}, {name})")
            return
        self.uses(width)
        index = f"j{width}" if step == 1 else f"{step} * j{width}"
        self.lines.append(f"tl.store(s + {at} + {index}, {self.block(name, width)}, mask=k{width})")

    def stretches(self, value: Value) -> int:
        """All stretches of a value at once: a block with a stretch in each line."""
        [arg] = value.values
        source = self.laid_out[arg] if arg in self.laid_out else self.lay_out(arg)
        size, outer = value.detail, arg.width // value.detail
        lines, columns = power_of_two(outer), power_of_two(size)
        self.holds(lines * columns)
        start = self.room(value.width)
        self.count += 1
        n = self.count
        empty = "0.0" if value.op in ("sum", "running sum") else 'float("-inf")'
        self.lines += [
            f"i{n} = tl.arange(0, {lines})[:, None]",
            f"c{n} = tl.arange(0, {columns})[None, :]",
            f"m{n} = (i{n} < {outer}) & (c{n} < {size})",
            f"x{n} = tl.load(s + {source} + i{n} * {size} + c{n}, mask=m{n}, other={empty})",
        ]
        if value.op == "running sum":
            self.lines.append(f"tl.store(s + {start} + i{n} * {size} + c{n}, tl.cumsum(x{n}, 1), mask=m{n})")
        else:
            self.lines += [
                f"r{n} = tl.arange(0, {lines})",
                f"tl.store(s + {start} + r{n}, {reduction(value.op, f'x{n}', 1)}, mask=r{n} < {outer})",
            ]
        self.lines.append("tl.debug_barrier()")
        return start

    def pointwise(self, value: Value, offset: int, width: int) -> str:
        names = []
        for arg in value.values:
            is_single = arg.width == 1 < value.width
            names.append(self.element(arg, 0, 1) if is_single else self.element(arg, offset, width))
        if value.op == "add" and "0.0" in names:
            # Slices write their gradients into zeros.
            return names[1 - names.index("0.0")]
        if all(is_number(name) for name in names):
            # Triton folds constants into Python numbers, which have no methods of blocks.
            names = [f"tl.full((), {name}, tl.float32)" for name in names]
        return self.define(expression(value, names))

    def stretch(self, value: Value, offset: int) -> str:
        """What one stretch of the argument comes to."""
        [arg] = value.values
        first, size = offset * value.detail, value.detail
        if value.op == "place of the largest":
            start = self.laid_out[arg] if arg in self.laid_out else self.lay_out(arg)
            self.count += 1
            n, columns = self.count, power_of_two(size)
            self.holds(columns)
            self.lines += [
                f"c{n} = tl.arange(0, {columns})",
                f'x{n} = tl.load(s + {start + first} + c{n}, mask=c{n} < {size}, other=float("-inf"))',
            ]
            return self.define(reduction(value.op, f"x{n}", 0))
        blocks = self.blocks(value, offset)
        return self.total(value.op, [self.reduced(value.op, width, name) for width, name in blocks.items()])

    def blocks(self, value: Value, offset: int) -> dict[int, str]:
        """The segments of a stretch, by width; those of one width are joined number by number, to be reduced once."""
        [arg] = value.values
        first, size = offset * value.detail, value.detail
        blocks: dict[int, str] = {}
        pieces = [piece for each in self.segments.of(arg, first, first + size) for piece in self.cut(*each)]
        for start, width in pieces:
            name = self.element(arg, start, width)
            blocks[width] = self.joined(value.op, blocks[width], name) if width in blocks else name
        return blocks

    def reduced(self, op: str, width: int, name: str) -> str:
        if width == 1:
            return name
        return self.define(reduction(op, self.real(op, width, name), 0))

    def real(self, op: str, width: int, name: str) -> str:
        """A block with nothing in it where there are no numbers."""
        self.uses(width)
        empty = "0.0" if op == "sum" else 'float("-inf")'
        return self.define(f"tl.where(k{width}, {self.block(name, width)}, {empty})")

    def total(self, op: str, names: list[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = self.joined(op, total, name)
        return total

    def sum_at_once(self) -> None:
        """Write down all sums along the row, those together that need no other sum than those before."""
        rounds: dict[Value, int] = {}  # how many sums one after the other a value needs
        sums: dict[int, list[Value]] = {}
        for value in ordered([write.value for write in self.row_pass.writes], stop=self.row_pass.reads):
            inside = () if value in self.row_pass.reads else value.values
            rounds[value] = max((rounds[arg] for arg in inside), default=0)
            if inside and value.op == "sum" and value.width <= MOST_SINGLE:
                sums.setdefault(rounds[value], []).append(value)
                rounds[value] += 1
        for _, values in sorted(sums.items()):
            found = [(value, offset, self.blocks(value, offset)) for value in values for offset in range(value.width)]
            names = self.all_reduced([(width, name) for _, _, blocks in found for width, name in blocks.items()])
            for value, offset, blocks in found:
                parts = [names[width, name] for width, name in blocks.items()]
                self.known[value, offset, 1] = self.total("sum", parts)

    def all_reduced(self, blocks: list[tuple[int, str]]) -> dict[tuple[int, str], str]:
        """The sum of each block, by its width and name; blocks of one width at once."""
        found = {block: block[1] for block in blocks if block[0] == 1}
        by_width: dict[int, list[str]] = {}
        for width, name in dict.fromkeys(block for block in blocks if block[0] > 1):
            by_width.setdefault(width, []).append(name)
        for width, of_width in by_width.items():
            for start in range(0, len(of_width), MOST_AT_ONCE):
                names = of_width[start : start + MOST_AT_ONCE]
                if len(names) == 1:
                    found[width, names[0]] = self.reduced("sum", width, names[0])
                    continue
                real = [self.real("sum", width, name) for name in names]
                results = [f"v{self.count + 1 + n}" for n in range(len(names))]
                self.count += len(names)
                self.lines.append(f"{', '.join(results)} = tl.reduce(({', '.join(real)}), 0, sums{len(names)})")
                found.update(zip([(width, name) for name in names], results, strict=True))
        return found

    def joined(self, op: str, one: str, other: str) -> str:
        return self.define(f"{one} + {other}" if op == "sum" else f"larger({one}, {other})")

    def define(self, code: str) -> str:
        self.count += 1
        self.lines.append(f"v{self.count} = {code}")
        return f"v{self.count}"


def address(buffer: Buffer, is_written: bool, name: str) -> str:
    """Where the numbers of row b at step t begin in a buffer that starts at a pointer of this name."""
    at = f"{name} + b * {name}_row"
    if buffer.place is Place.TURNS:  # two copies: a step reads what the step before it wrote
        at += f" + ({'t' if is_written else '(t + 1)'} % 2) * {name}_step"
    elif buffer.place is not Place.ROWS:
        at += f" + t * {name}_step"
    return at


def reduction(op: str, name: str, axis: int) -> str:
    if op == "sum":
        return f"tl.sum({name}, {axis})"
    if op == "largest":
        return f"tl.reduce({name}, {axis}, larger)"
    return f"tl.argmax({name}, {axis}).to(tl.float32)"


def expression(value: Value, names: list[str]) -> str:
    if value.op == "pow" and isinstance(value.args[1], Value) and value.args[1].op == "constant":
        exponent = value.args[1].args[0]
        if exponent in (2.0, 3.0):
            return " * ".join([names[0]] * int(exponent))
        if exponent == 0.5:
            return f"tl.sqrt({names[0]})"
        if exponent == -0.5:
            return f"1.0 / tl.sqrt({names[0]})"
        if exponent == 1.0:
            return names[0]
    return FUNCTIONS[value.op].format(*names)


def number(value: Value | float) -> str:
    assert not isinstance(value, Value)
    if math.isnan(value):
        return 'float("nan")'
    if math.isinf(value):
        return 'float("inf")' if value > 0 else 'float("-inf")'
    return f"({value!r})" if value < 0 else repr(value)


def is_number(name: str) -> bool:
    """Whether a name is a constant of Python rather than a value of Triton."""
    return not name[0].isalpha() or name.startswith("float(")


def power_of_two(width: int) -> int:
    """
    >>> power_of_two(5), power_of_two(8), power_of_two(1)
    (8, 8, 1)
    """
    return 1 << (width - 1).bit_length()
