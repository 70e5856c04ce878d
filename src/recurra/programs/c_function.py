"""One function of a program printed as C.

What is done to each number by itself is not kept in memory: its expression is written where the number is used, in one
loop. Slices, permutations and reshapes are other ways to look at an array. An expression is put into memory where that
saves work: where several use it and it takes long, or where a product, a lookup or a scan needs an array.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from recurra.programs.c_values import (
    C_TYPES,
    MOST_EXACT,
    MOST_OF_NAME,
    ONE,
    ZERO,
    Array,
    Expression,
    Held,
    Loop,
    broadcast,
    c_count,
    c_number,
    c_operation,
    c_size,
    ends_of,
    largest,
    load,
    magnitude,
    standard,
)
from recurra.programs.program import (
    POINTWISE,
    REDUCTIONS,
    Function,
    Number,
    Operand,
    Operation,
    Value,
    output_values,
    sizes_of,
)
from recurra.programs.rows import has_rows_alone
from recurra.programs.shapes import Condition, conditions
from recurra.programs.sizes import Size

if TYPE_CHECKING:
    from recurra.programs.c_text import Printed

DEAR = {
    "sigmoid",
    "tanh",
    "exp",
    "expm1",
    "exp2",
    "log",
    "log1p",
    "log2",
    "log10",
    "erf",
    "pow",
    "atan2",
    "sqrt",
    "rsqrt",
}
DEAR |= {"sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "div", "reciprocal"}
"""What takes long, so that it is done once."""

MOST_INLINE = 12
"""Operations, at most, that are written out where a value is used, if several use it."""

PART = 512
"""Numbers of a row that are computed before they are added up."""

FROM_INPUT = re.compile(r"\bin_\w+\[")


class Printer:
    """Prints one function; the body of a scan is printed into it."""

    def __init__(self, whole: Printed, function: Function, name: str) -> None:
        self.whole, self.function, self.name = whole, function, name
        self.lines: list[str] = []
        self.depth = 1
        self.rooms: list[tuple[str, str, str]] = []  # name, type and size of what is taken from memory
        self.bounds: dict[str, None] = {}  # what sizes must not pass, so that the checks can compute with them
        self.checks: dict[str, None] = {}
        self.count = 0

    # Lines

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, start: str) -> str:
        self.count += 1
        return f"{start}{self.count}"

    def loops(self, shape: Sequence[Size]) -> tuple[Size, ...]:
        """Begin loops over all places of a shape; the indices."""
        indices = []
        for number, size in enumerate(shape):
            if size.constant == 1:
                indices.append(ZERO)
                continue
            name = f"i_{self.fresh('')}"
            if number == len(shape) - 1:
                self.line("EACH")
            self.line(f"for (int64_t {name} = 0; {name} < {c_size(size)}; {name}++) {{")
            self.depth += 1
            indices.append(Size.named(name))
        return tuple(indices)

    def end(self, shape: Sequence[Size]) -> None:
        for size in shape:
            if size.constant != 1:
                self.depth -= 1
                self.line("}")

    # Sizes

    def check(self, condition: Condition) -> None:
        # As double, products of any sizes are compared rightly: those of shapes are below 2^40.
        cast = "(double)" if len(condition.left) > 1 or len(condition.right) > 1 else ""
        sides = [
            " * ".join(f"{cast}({c_size(size)})" for size in side) or "1" for side in (condition.left, condition.right)
        ]
        self.checks[f"{sides[0]} {'==' if condition.is_equal else '<='} {sides[1]}"] = None

    # Values

    def room(self, kind: str, shape: Sequence[Size], name: str | None = None) -> Array:
        name = self.fresh("v") if name is None else name
        self.rooms.append((name, C_TYPES[kind], c_count(shape)))
        self.limit(shape)
        return Array(name, kind, tuple(shape), standard(shape))

    def limit(self, shape: Sequence[Size]) -> None:
        """No array is larger than memory could be; each size is taken as 1 at least, so that no product overflows."""
        if all(size.constant is not None for size in shape):
            return
        for size in shape:
            if size.constant is None:
                self.bound(size)
                self.checks[f"{c_size(size)} >= 0"] = None
        factors = [
            str(size.constant) if size.constant is not None else f"(double)larger_size(1, {c_size(size)})"
            for size in shape
        ]
        self.checks[" * ".join(sorted(factors, key=lambda each: each.isdigit())) + " < MOST_NUMBERS"] = None

    def bound(self, size: Size) -> None:
        """No size is so large, before anything is taken from it, that a whole number of C could not hold it."""
        if largest(size) > MOST_EXACT:
            self.bounds[f"{magnitude(size)} < {float(MOST_EXACT)!r}"] = None

    def print(self) -> list[str]:
        """The function, as lines."""
        scope = Scope(self, self.function)
        for number, each in enumerate(self.function.inputs):
            shape = each.value.shape
            self.limit(shape)
            scope.held[number] = Array(f"in_{each.name}", each.value.type, shape, standard(shape))
        scope.print()
        values = output_values(self.function, self.whole.program)
        # An output may lie where an input does: all inputs are read before any output is written.
        outputs = [scope.without_inputs(operand) for _, operand in self.function.outputs]
        for (name, operand), value, held in zip(self.function.outputs, values, outputs, strict=True):
            shape = value.shape
            self.limit(shape)
            target = Array(f"out_{name}", value.type, shape, standard(shape))
            scope.store(held, operand, target)
        return [*self.fitting(values), *self.assembled()]

    def fitting(self, values: Sequence[Value]) -> list[str]:
        """What looks at the sizes, and tells how many numbers each output has."""
        prefix, name = self.whole.prefix, self.name.removeprefix(self.whole.prefix)
        names = self.function.names
        found = [f"int {prefix}_sizes_of{name}({', '.join(self.whole.sizes(self.function))}) {{"]
        if names:
            limits = [f"n_{name} < 0 || n_{name} > {MOST_OF_NAME}" for name in names]
            found.append(f"    if ({' || '.join(limits)}) return RECURRA_SIZES;")
        found += [f"    if (!({check})) return RECURRA_SIZES;" for check in (*self.bounds, *self.checks)]
        found.append("    if (counts) {" if values else "    (void)counts;")
        found += [f"        counts[{number}] = {c_count(value.shape)};" for number, value in enumerate(values)]
        return [*found, *(["    }"] if values else []), "    return RECURRA_OK;", "}", ""]

    def assembled(self) -> list[str]:
        names = self.function.names
        prefix, name = self.whole.prefix, self.name.removeprefix(self.whole.prefix)
        found = [f"int {self.name}({', '.join(self.whole.parameters(self.function))}) {{"]
        found += [f"    int status = {prefix}_sizes_of{name}({', '.join([*(f'n_{each}' for each in names), 'NULL'])});"]
        found += ["    if (status) return status;", "    (void)model;"]
        found += [f"    (void)in_{each.name};" for each in self.function.inputs]
        if self.rooms:
            found.append("    uint64_t need = 0;")
            for name, kind, count in self.rooms:
                found.append(f"    const size_t at_{name} = need;")
                found.append(f"    need += room({count}, sizeof({kind}));")
            found.append("    if (need > MOST_BYTES) return RECURRA_MEMORY;")
            found.append("    void *const found = borrowed(model->spare, (size_t)need);")
            found.append("    if (!found) return RECURRA_MEMORY;")
            found.append("    char *const memory = aligned((size_t *)found + 1);")
            for name, kind, _ in self.rooms:
                found.append(f"    {kind} *const {name} = ({kind} *)(memory + at_{name});")
        found += self.lines
        uses_end = any("goto end;" in line for line in self.lines)
        if uses_end:
            found.append("end:")
        if self.rooms:
            found.append("    give_back(model->spare, found);")
        found += ["    return status;", "}", ""]
        return found


class Scope:
    """The values of a function, or of the body of a scan, as far as they are printed."""

    def __init__(self, printer: Printer, function: Function) -> None:
        self.p, self.function = printer, function
        self.held: dict[int, Held] = {}
        self.values = function.values
        self.uses = uses_of(function)

    def of(self, operand: Operand, kind: str | None = None) -> Held:
        """An operand: an array, or what is written for it."""
        if isinstance(operand, str):
            return self.p.whole.weight(operand)
        if isinstance(operand, int):
            return self.held[operand]
        value = operand.value
        if isinstance(value, Size):
            text = f"({C_TYPES[kind or 'int64']})({c_size(value)})"
            return Expression(kind or "int64", (), lambda loop, indices: text)
        chosen = kind or ("bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int64")
        return Expression(chosen, (), lambda loop, indices: c_number(value, chosen))

    def print(self) -> None:
        for size in sizes_of(self.function):
            self.p.bound(size)
        number = len(self.function.inputs)
        for op in self.function.operations:
            operands = [self.value_of(each) for each in op.operands]
            for value in op.results:
                self.p.limit(value.shape)
            for condition in conditions(op, operands):
                self.p.check(condition)
            found = self.operation(op, operands)
            for place, held in enumerate(found):
                self.held[number + place] = held
                if isinstance(held, Expression) and self.is_kept(number + place, held):
                    self.memory(number + place)
            number += len(found)

    def value_of(self, operand: Operand) -> Value:
        if isinstance(operand, int):
            return self.values[operand]
        held = self.of(operand)
        return Value(held.type, held.shape)

    def is_kept(self, number: int, held: Expression) -> bool:
        """Whether a value is put into memory as soon as it is known."""
        return self.uses.get(number, 0) > 1 and (held.dear or held.length > MOST_INLINE)

    def memory(self, operand: Operand) -> Array:
        """An operand as an array, put into memory where it is not."""
        held = self.of(operand)
        if isinstance(held, Array):
            return held
        array = self.p.room(held.type, held.shape)
        self.store(held, operand, array)
        if isinstance(operand, int):
            self.held[operand] = array
        return array

    def without_inputs(self, operand: Operand) -> Held:
        """An operand that is put into memory if an input of the function is still read where it is used."""
        held = self.of(operand)
        loop = Loop(self.p)
        text = loop.number(held, key_of(self, operand), tuple(Size.named(f"i_{dim}") for dim in range(len(held.shape))))
        if not any(FROM_INPUT.search(line) for line in (*loop.lines, text)):
            return held
        return self.memory(operand) if isinstance(held, Expression) else self.whole_copy(held)

    def whole(self, operand: Operand) -> Array:
        """An operand as an array without gaps."""
        array = self.memory(operand)
        if array.is_whole:
            return array
        copy = self.p.room(array.type, array.shape)
        self.store(array, operand, copy)
        return copy

    def store(self, held: Held, key: Any, target: Array) -> None:
        """Print the loop that puts a value into an array."""
        indices = self.p.loops(target.shape)
        loop = Loop(self.p)
        text = loop.number(held, key, broadcast(indices, held.shape))
        for line in loop.lines:
            self.p.line(line)
        self.p.line(f"{load(target, indices)} = {text};")
        self.p.end(target.shape)

    # Operations

    def operation(self, op: Operation, operands: Sequence[Value]) -> list[Held]:
        kind = op.kind
        if kind == "scan":
            return list(self.scan(op))
        shape = op.results[0].shape
        if kind in POINTWISE:
            return [self.pointwise(op, shape, operands)]
        if kind in REDUCTIONS:
            return [self.reduction(op, shape)]
        return [getattr(self, f"print_{kind}")(op, shape)]

    def pointwise(self, op: Operation, shape: tuple[Size, ...], operands: Sequence[Value]) -> Expression:
        result = op.results[0].type
        known = [
            value.type for value, operand in zip(operands, op.operands, strict=True) if not isinstance(operand, Number)
        ]
        computing = known[-1] if known else operands[-1].type
        if op.kind == "cast":
            computing = operands[0].type
        kinds = [computing] * len(op.operands)
        if op.kind == "where":
            kinds, computing = ["bool", result, result], result
        parts = [
            (self.of(operand, kind), key_of(self, operand, kind))
            for operand, kind in zip(op.operands, kinds, strict=True)
        ]

        def write(loop: Loop, indices: tuple[Size, ...]) -> str:
            numbers = [loop.number(held, key, broadcast(indices, held.shape)) for held, key in parts]
            return c_operation(op.kind, numbers, computing, result)

        inner = [held for held, _ in parts if isinstance(held, Expression)]
        dear = op.kind in DEAR or any(each.dear for each in inner)
        return Expression(result, shape, write, dear, 1 + sum(each.length for each in inner))

    def print_full(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        operand, kind = op.operands[0], op.results[0].type
        number, key = self.of(operand, kind), key_of(self, operand, kind)
        return Expression(kind, shape, lambda loop, indices: loop.number(number, key, ()))

    def print_iota(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        start, step = op.details["start"], op.details["step"]
        return Expression("int64", shape, lambda loop, indices: f"({c_size(start + indices[0] * step)})")

    def view(
        self, op: Operation, shape: tuple[Size, ...], change: Callable[[tuple[Size, ...]], tuple[Size, ...]]
    ) -> Held:
        """An operand looked at in another way: `change` gives its indices for those of the result."""
        operand = op.operands[0]
        held = self.of(operand)
        if isinstance(held, Expression):
            if held.dear and self.uses.get(operand if isinstance(operand, int) else -1, 0) > 1:
                held = self.memory(operand)
            else:
                key, inner = key_of(self, operand), held
                return Expression(
                    held.type,
                    shape,
                    lambda loop, indices: loop.number(inner, key, change(indices)),
                    held.dear,
                    0 if not held.length else held.length,
                )
        # Where each index of the result is 1 and all others 0, the address moves by its stride.
        rank = len(shape)
        zero = address(held, change((ZERO,) * rank))
        strides = []
        for dim in range(rank):
            moved = address(held, change(tuple(ONE if each == dim else ZERO for each in range(rank))))
            strides.append(moved + zero * -1)
        return Array(held.base, held.type, shape, tuple(strides), zero, held.weight)

    def print_reshape(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        operand = op.operands[0]
        held = self.of(operand)
        old = [dim for dim, size in enumerate(held.shape) if size.constant != 1]
        new = [dim for dim, size in enumerate(shape) if size.constant != 1]
        if [held.shape[dim] for dim in old] == [shape[dim] for dim in new]:
            places = dict(zip(old, new, strict=True))
            rank = len(held.shape)
            return self.view(op, shape, lambda at: tuple(at[places[d]] if d in places else ZERO for d in range(rank)))
        if isinstance(held, Expression) and not held.length and held.type != "int64":
            return Expression(held.type, shape, lambda loop, indices: held.write(loop, indices))
        if isinstance(held, Expression) and held.shape[1:] == shape[2:] and held.shape[:1] == (shape[0] * shape[1],):
            return self.view(op, shape, lambda at: (at[0] * shape[1] + at[1], *at[2:]))
        array = self.whole(operand)
        return Array(array.base, array.type, shape, standard(shape), array.offset, array.weight)

    def print_expand(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        own = self.of(op.operands[0]).shape
        return self.view(op, shape, lambda at: broadcast(at, own))

    def print_permute(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        order = op.details["order"]
        back = [order.index(dim) for dim in range(len(order))]
        return self.view(op, shape, lambda at: tuple(at[back[dim]] for dim in range(len(back))))

    def print_slice(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        dim, first, by = op.details["dim"], op.details["first"], op.details["by"]
        return self.view(op, shape, lambda at: (*at[:dim], first + at[dim] * by, *at[dim + 1 :]))

    def print_flip(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        dims = op.details["dims"]
        return self.view(
            op,
            shape,
            lambda at: tuple(shape[d] + -1 + at[d] * -1 if d in dims else at[d] for d in range(len(at))),
        )

    def print_cat(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        array = self.p.room(op.results[0].type, shape)
        dim, at = op.details["dim"], ZERO
        for operand in op.operands:
            held = self.of(operand)
            part = Array(array.base, array.type, held.shape, array.strides, array.offset + at * array.strides[dim])
            self.store(held, key_of(self, operand), part)
            at = at + held.shape[dim]
        return array

    def print_pad(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        array = self.p.room(op.results[0].type, shape)
        self.store(self.of(op.operands[1], array.type), None, array)
        at = array.offset
        for before, stride in zip(op.details["before"], array.strides, strict=True):
            at = at + before * stride
        held = self.of(op.operands[0])
        self.store(held, key_of(self, op.operands[0]), Array(array.base, array.type, held.shape, array.strides, at))
        return array

    # Sums, products and lookups

    def reduction(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        operand, kind, result = op.operands[0], op.kind, op.results[0].type
        held, dims = self.of(operand), op.details["dims"]
        last = len(held.shape) - 1
        in_parts = list(dims) == [last] and kind in ("sum", "max") and result == held.type == "float32"
        if isinstance(held, Expression) and held.dear and not in_parts:
            held = self.memory(operand)  # loops that add up are not those that compute fast
        array = self.p.room(result, shape)
        outer = [dim for dim in range(len(held.shape)) if dim not in dims]
        kept = [held.shape[dim] for dim in outer]
        target = Array(array.base, result, tuple(kept), standard(kept))
        if kind in ("argmax", "argmin"):
            self.places(op, held, dims, outer, target)
            return array
        start = {"sum": "0", "prod": "1", "any": "0", "all": "1"}.get(kind)
        if start is None:
            start = ends_of(result)[kind == "min"]
        if in_parts:
            self.reduce_rows(kind, held, key_of(self, operand), target)
            return array
        self.store(Expression(result, (), lambda loop, indices: start), None, target)
        # All places in the order in which they lie, so that the innermost loop runs along memory.
        indices = self.p.loops(held.shape)
        loop = Loop(self.p)
        text = loop.number(held, key_of(self, operand), indices)
        for line in loop.lines:
            self.p.line(line)
        into = load(target, [indices[dim] for dim in outer])
        combined = {
            "sum": c_operation("add", [into, text], result, result),
            "prod": c_operation("mul", [into, text], result, result),
            "any": f"{into} | ({text} != 0)",
            "all": f"{into} & ({text} != 0)",
        }
        if kind in combined:
            self.p.line(f"{into} = {combined[kind]};")
        else:
            sign = ">" if kind == "max" else "<"
            value = "x_now"
            self.p.line(f"const {C_TYPES[result]} {value} = {text};")
            self.p.line(f"{into} = {value} {sign} {into} || {value} != {value} ? {value} : {into};")
        self.p.end(held.shape)
        if last in dims:  # what is added up in one place must not be done side by side
            self.lines_without_each()
        return array

    def reduce_rows(self, kind: str, held: Held, key: Any, target: Array) -> None:
        """The sum or the maximum of each row; what is not in memory is computed part by part, in the cache."""
        name, n = f"{kind}_of", held.shape[-1]
        indices = self.p.loops(target.shape)
        self.drop_each()
        if isinstance(held, Array) and held.strides[-1] == ONE:
            self.p.line(f"{load(target, indices)} = {name}(&{load(held, [*indices, ZERO])}, {c_size(n)});")
        else:
            total, first, count, part = (self.p.fresh(each) for each in ("total", "i_", "count", "part"))
            j = f"i_{self.p.fresh('')}"
            self.p.line(f"float {total} = {'0' if kind == 'sum' else '-INFINITY'};")
            self.p.line(f"for (int64_t {first} = 0; {first} < {c_size(n)}; {first} += {PART}) {{")
            self.p.depth += 1
            self.p.line(f"const int64_t {count} = {c_size(n)} - {first} < {PART} ? {c_size(n)} - {first} : {PART};")
            self.p.line(f"float {part}[{PART}];")
            self.p.line("EACH")
            self.p.line(f"for (int64_t {j} = 0; {j} < {count}; {j}++) {{")
            self.p.depth += 1
            loop = Loop(self.p)
            text = loop.number(held, key, (*indices, Size.named(first) + Size.named(j)))
            for line in loop.lines:
                self.p.line(line)
            self.p.line(f"{part}[{j}] = {text};")
            self.p.depth -= 1
            self.p.line("}")
            found = f"{name}({part}, {count})"
            self.p.line(f"{total} = {f'{total} + {found}' if kind == 'sum' else f'r_max({total}, {found})'};")
            self.p.depth -= 1
            self.p.line("}")
            self.p.line(f"{load(target, indices)} = {total};")
        self.p.end(target.shape)

    def lines_without_each(self) -> None:
        """The last loop that was printed, to be run in order."""
        for number in range(len(self.p.lines) - 1, -1, -1):
            if self.p.lines[number].strip() == "EACH":
                del self.p.lines[number]
                return

    def places(self, op: Operation, held: Held, dims: Sequence[int], outer: Sequence[int], target: Array) -> None:
        """The first place of the largest or smallest; what is not a number is before all."""
        kept = [held.shape[dim] for dim in outer]
        around = self.p.loops(kept)
        self.drop_each()
        inner = [held.shape[dim] for dim in dims]
        best, place, at = self.p.fresh("best"), self.p.fresh("place"), self.p.fresh("at")
        self.p.line(f"{C_TYPES[held.type]} {best} = 0;")
        self.p.line(f"int64_t {place} = 0, {at} = 0;")
        indices = self.p.loops(inner)
        self.drop_each()
        whole = [ZERO] * len(held.shape)
        for dim, index in (*zip(outer, around, strict=True), *zip(dims, indices, strict=True)):
            whole[dim] = index
        loop = Loop(self.p)
        text = loop.number(held, key_of(self, op.operands[0]), tuple(whole))
        for line in loop.lines:
            self.p.line(line)
        sign = ">" if op.kind == "argmax" else "<"
        self.p.line(f"const {C_TYPES[held.type]} here = {text};")
        self.p.line(
            f"if (!{at} || ({best} == {best} && (here {sign} {best} || here != here))) {best} = here, {place} = {at};"
        )
        self.p.line(f"{at}++;")
        self.p.end(inner)
        self.p.line(f"{load(target, around)} = {place};")
        self.p.end(kept)

    def drop_each(self) -> None:
        """The loop that was just begun is run in order."""
        if len(self.p.lines) > 1 and self.p.lines[-2].strip() == "EACH":
            del self.p.lines[-2]

    def running(self, op: Operation, shape: tuple[Size, ...], kind: str, start: str) -> Held:
        array, dim = self.p.room(op.results[0].type, shape), op.details["dim"]
        held = self.of(op.operands[0])
        others = [size for each, size in enumerate(shape) if each != dim]
        around = list(self.p.loops(others))
        self.drop_each()
        total, step = self.p.fresh("total"), f"i_{self.p.fresh('')}"
        self.p.line(f"{C_TYPES[array.type]} {total} = {start};")
        self.p.line(f"for (int64_t {step} = 0; {step} < {c_size(shape[dim])}; {step}++) {{")
        self.p.depth += 1
        indices = (*around[:dim], Size.named(step), *around[dim:])
        loop = Loop(self.p)
        text = loop.number(held, key_of(self, op.operands[0]), indices)
        for line in loop.lines:
            self.p.line(line)
        self.p.line(f"{total} = {c_operation(kind, [total, text], array.type, array.type)};")
        self.p.line(f"{load(array, indices)} = {total};")
        self.p.depth -= 1
        self.p.line("}")
        self.p.end(others)
        return array

    def print_cumsum(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        return self.running(op, shape, "add", "0")

    def print_cumprod(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        return self.running(op, shape, "mul", "1")

    def print_argsort(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        array, dim = self.p.room("int64", shape), op.details["dim"]
        given = self.memory(op.operands[0])
        others = [size for each, size in enumerate(shape) if each != dim]
        around = list(self.p.loops(others))
        self.drop_each()
        j, k = f"i_{self.p.fresh('')}", f"i_{self.p.fresh('')}"
        n = c_size(shape[dim])

        def at(of: Array, name: str) -> str:
            return load(of, (*around[:dim], Size.named(name), *around[dim:]))

        # Each number goes before those that come after it; equals stay in their order.
        self.p.line(f"for (int64_t {j} = 0; {j} < {n}; {j}++) {{")
        self.p.depth += 1
        self.p.line(f"int64_t {k} = {j};")
        before = load(array, (*around[:dim], Size.named(k) + -1, *around[dim:]))
        # The number at a place that is itself read from memory.
        stride = c_size(given.strides[dim])
        rest = c_size(address(given, (*around[:dim], ZERO, *around[dim:])))
        here, there = at(given, j), f"{given.base}[{rest} + {before} * ({stride})]"
        less, more = (here, there) if not op.details["falls"] else (there, here)
        is_less = f"{less} < {more}"
        if given.type.startswith("float"):  # what is not a number is the largest
            is_less = f"({is_less} || ({more} != {more} && {less} == {less}))"
        self.p.line(f"for (; {k} > 0 && {is_less}; {k}--)")
        self.p.line(f"    {at(array, k)} = {before};")
        self.p.line(f"{at(array, k)} = {j};")
        self.p.depth -= 1
        self.p.line("}")
        self.p.end(others)
        return array

    def print_matmul(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        left, right = self.memory(op.operands[0]), self.memory(op.operands[1])
        out = self.p.room(op.results[0].type, shape)
        *_, K, N = right.shape
        M = shape[-2]
        constant = out.type == "float32" and all(size.constant is not None for size in right.shape)
        if len(shape) == 2 and right.weight is not None and constant:
            packed = self.p.whole.packed(right)
            if left.strides[1] != ONE:
                left = self.whole_copy(left)
            sizes = ", ".join(c_size(each) for each in (M, K, N))
            at = f"{left.base} + ({c_size(left.offset)})"
            self.p.line(f"product({sizes}, {at}, {c_size(left.strides[0])}, model->{packed}, {out.base});")
            return out
        G = shape[0] if len(shape) == 3 else ONE
        sizes = ", ".join(c_size(each) for each in (G, M, K, N))
        ways = []
        for array in (left, right):
            strides = array.strides if len(shape) == 3 else (ZERO, *array.strides)
            ways.append(f"{array.base} + ({c_size(array.offset)}), {', '.join(map(c_size, strides))}")
        name = "multiply" if out.type == "float32" else "multiply_exact"
        self.p.line(f"{name}({sizes}, {ways[0]}, {ways[1]}, {out.base});")
        return out

    def print_narrow_matmul(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        left, right = self.memory(op.operands[0]), self.memory(op.operands[1])
        out = self.p.room("float32", shape)
        if left.strides[1] != ONE:
            left = self.whole_copy(left)
        (M, N), K = shape, right.shape[1]
        packed = self.p.whole.packed(right, str(op.operands[2]) if len(op.operands) == 3 else None)
        sizes = ", ".join(c_size(each) for each in (M, K, N))
        given = f"{left.base} + ({c_size(left.offset)}), {c_size(left.strides[0])}, model->{packed}"
        if len(op.operands) == 2:
            self.p.line(f"half_product({sizes}, {given}, {out.base});")
            return out
        rounded = self.p.room("int8", (M, Size.of(((K.constant or 0) + 3) // 4 * 4)))
        self.p.line(f"narrow_product({sizes}, {given}, {rounded.base}, {out.base});")
        return out

    def print_narrow_take(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        table, ids = self.memory(op.operands[0]), self.of(op.operands[1])
        array = self.p.room("float32", shape)
        around = self.p.loops(shape[:-1])
        self.drop_each()
        row = Size.named(self.checked_id(ids, key_of(self, op.operands[1]), around, table.shape[0], wraps=False))
        [place] = self.p.loops(shape[-1:])
        number = load(table, (row, place))
        found = f"widened({number})"
        if len(op.operands) == 3:
            found = f"(float){number} * {load(self.memory(op.operands[2]), (row,))}"
        self.p.line(f"{load(array, (*around, place))} = {found};")
        self.p.end(shape[-1:])
        self.p.end(shape[:-1])
        return array

    def whole_copy(self, array: Array) -> Array:
        copy = self.p.room(array.type, array.shape)
        self.store(array, ("copy", copy.base), copy)
        return copy

    def checked_id(self, held: Held, key: Any, indices: tuple[Size, ...], size: Size, *, wraps: bool) -> str:
        """The name of an id that is inside of 0 … size − 1; from the end, where it may be counted so."""
        loop = Loop(self.p)
        text = loop.number(held, key, broadcast(indices, held.shape))
        for line in loop.lines:
            self.p.line(line)
        name = f"i_{self.p.fresh('')}"
        self.p.line(f"int64_t {name} = {text};")
        if wraps:
            self.p.line(f"{name} += {name} < 0 ? {c_size(size)} : 0;")
        self.p.line(f"if ({name} < 0 || {name} >= {c_size(size)}) {{ status = RECURRA_IDS; goto end; }}")
        return name

    def print_take(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        """Rows of a table. They are read where they are used, once every id was looked at."""
        table, ids = self.memory(op.operands[0]), self.memory(op.operands[1])
        around = self.p.loops(ids.shape)
        self.drop_each()
        self.checked_id(ids, key_of(self, op.operands[1]), around, table.shape[0], wraps=False)
        self.p.end(ids.shape)
        rank = len(ids.shape)

        def write(_: Loop, indices: tuple[Size, ...]) -> str:
            row, rest = load(ids, indices[:rank]), load(table, (ZERO, *indices[rank:]))
            return f"{rest[:-1]} + ({c_size(table.strides[0])}) * {row}]"

        return Expression(op.results[0].type, shape, write, length=1)

    def print_index(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        table = self.memory(op.operands[0])
        ids = [(self.of(operand), key_of(self, operand)) for operand in op.operands[1:]]
        array = self.p.room(op.results[0].type, shape)
        rank = len(shape) - (len(table.shape) - len(ids))
        around = self.p.loops(shape[:rank])
        self.drop_each()
        names = [
            Size.named(self.checked_id(held, key, around, table.shape[number], wraps=op.kind == "index"))
            for number, (held, key) in enumerate(ids)
        ]
        inner = self.p.loops(shape[rank:])
        self.p.line(f"{load(array, (*around, *inner))} = {load(table, (*names, *inner))};")
        self.p.end(shape[rank:])
        self.p.end(shape[:rank])
        return array

    def print_gather(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        table, ids = self.memory(op.operands[0]), self.of(op.operands[1])
        array, dim = self.p.room(op.results[0].type, shape), op.details["dim"]
        around = self.p.loops(shape)
        self.drop_each()
        name = self.checked_id(ids, key_of(self, op.operands[1]), around, table.shape[dim], wraps=False)
        self.p.line(f"{load(array, around)} = {load(table, (*around[:dim], Size.named(name), *around[dim + 1 :]))};")
        self.p.end(shape)
        return array

    def print_scatter(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        array, dim = self.p.room(op.results[0].type, shape), op.details["dim"]
        self.store(self.of(op.operands[0]), key_of(self, op.operands[0]), array)
        ids, numbers = self.of(op.operands[1]), self.of(op.operands[2], array.type)
        around = self.p.loops(ids.shape)
        self.drop_each()
        name = self.checked_id(ids, key_of(self, op.operands[1]), around, shape[dim], wraps=False)
        loop = Loop(self.p)
        text = loop.number(numbers, key_of(self, op.operands[2], array.type), broadcast(around, numbers.shape))
        for line in loop.lines:
            self.p.line(line)
        into = load(array, (*around[:dim], Size.named(name), *around[dim + 1 :]))
        text = c_operation("add", [into, text], array.type, array.type) if op.details["adds"] else text
        self.p.line(f"{into} = {text};")
        self.p.end(ids.shape)
        return array

    def print_convolution(self, op: Operation, shape: tuple[Size, ...]) -> Held:
        x, weight = (self.whole(operand) for operand in op.operands)
        out = self.p.room("float32", shape)
        self.store(Expression("float32", (), lambda loop, indices: "0"), None, out)
        details = op.details
        one = len(shape) == 3  # a row is a picture of one line

        def pair(sizes: Sequence[Size]) -> list[str]:
            return [c_size(each) for each in ((ONE, *sizes) if one else sizes)]

        def numbers(name: str, fill: int) -> list[str]:
            return [str(each) for each in ((fill, *details[name]) if one else details[name])]

        sizes = [c_size(x.shape[0]), c_size(x.shape[1]), *pair(x.shape[2:]), c_size(shape[1]), *pair(shape[2:])]
        sizes += [*pair(weight.shape[2:]), *numbers("stride", 1), *numbers("padding", 0), *numbers("dilation", 1)]
        places = [f"{each.base} + ({c_size(each.offset)})" for each in (x, weight)]
        self.p.line(f"convolve({', '.join((*places, out.base, *sizes, str(details['groups'])))});")
        return out

    # Steps

    def scan(self, op: Operation) -> Iterator[Held]:
        """Steps through time. Where the step computes each row by itself, rows are taken in the order of their lengths,
        the longest first, and those that have ended are left out; else all of them are computed to the longest."""
        p, body, count = self.p, op.details["body"], op.details["states"]
        x, lengths = self.of(op.operands[0]), self.whole(op.operands[1])
        if isinstance(x, Expression) and x.dear:
            x = self.memory(op.operands[0])  # loops over all steps at once are longer
        B, T, P = x.shape
        name = next(iter(B.names), "")
        drops = Size.named(name) == B and lengths.type == "int64" and has_rows_alone(body, name)
        b, t = f"i_{p.fresh('')}", f"t_{p.fresh('')}"
        row, step = Size.named(b), Size.named(t)
        order = p.room("int64", (B,)) if drops else None
        chosen = f"i_{p.fresh('')}"
        source = Size.named(chosen) if drops else row
        states = []
        active, most, place = p.fresh("active"), p.fresh("most"), f"i_{p.fresh('')}"
        at = f"{lengths.base} + ({c_size(lengths.offset)})"
        if order is None:
            p.line(f"const int64_t {most} = longest_of({at}, {c_size(B)}, {c_size(T)});")
        else:
            counts = p.room("int64", (T + 1, Size.of(2)))
            p.line(f"int64_t *const {active} = {counts.base};")
            found = f"longest_first({at}, {c_size(B)}, {c_size(T)}, {order.base}, {active})"
            p.line(f"const int64_t {most} = {found};")
        p.line(f"if ({most} < 0) {{ status = RECURRA_SIZES; goto end; }}")

        def begin_rows() -> None:
            """A loop over rows, with the name of the row in the order in which they are given."""
            p.line(f"for (int64_t {b} = 0; {b} < {c_size(B)}; {b}++) {{")
            p.depth += 1
            if order is not None:
                p.line(f"const int64_t {chosen} = {load(order, (row,))};")

        def end() -> None:
            p.depth -= 1
            p.line("}")

        def copy(into: Array, one: Size, found: Array, other: Size) -> None:
            """One row of a matrix into another one, at these rows."""
            target, number = load(into, (one, ZERO)), load(found, (other, ZERO))
            if into.strides[1] == found.strides[1] == ONE:
                size = f"(size_t)({c_size(found.shape[1])}) * sizeof({C_TYPES[found.type]})"
                p.line(f"memcpy(&{target}, &{number}, {size});")
                return
            j = f"i_{p.fresh('')}"
            p.line(f"for (int64_t {j} = 0; {j} < {c_size(found.shape[1])}; {j}++)")
            p.line(f"    {load(into, (one, Size.named(j)))} = {load(found, (other, Size.named(j)))};")

        for operand in op.operands[2 : 2 + count]:
            held = self.of(operand)
            state = p.room(held.type, held.shape)
            if order is None:
                self.store(held, key_of(self, operand), state)
            else:
                given = self.memory(operand)
                begin_rows()
                copy(state, row, given, source)
                end()
            states.append(state)
        same = [self.memory(operand) for operand in op.operands[2 + count :]]
        out = p.room(op.results[0].type, op.results[0].shape)
        p.line(f"memset({out.base}, 0, (size_t)({c_count(out.shape)}) * sizeof({C_TYPES[out.type]}));")
        p.line(f"for (int64_t {t} = 0; {t} < {most}; {t}++) {{")
        p.depth += 1
        if order is not None:
            p.line(f"const int64_t n_{name} = {active}[{t}];  /* the rows that are left */")
        backward, length = op.details["backward"], load(lengths, (source,))
        if isinstance(x, Expression) or backward or order is not None:
            now = p.room(x.type, (B, P))
            begin_rows()
            p.line(f"const int64_t {place} = {f'larger_size(0, {length} - 1 - {t})' if backward else t};")
            if isinstance(x, Array):
                at_place = x.offset + Size.named(place) * x.strides[1]
                strides = (x.strides[0], x.strides[2])
                copy(now, row, Array(x.base, x.type, (B, P), strides, at_place), source)
            else:
                number = p.loops((P,))
                loop = Loop(p)
                text = loop.number(x, key_of(self, op.operands[0]), (source, Size.named(place), *number))
                for line in loop.lines:
                    p.line(line)
                p.line(f"{load(now, (row, *number))} = {text};")
                p.end((P,))
            end()
        else:
            strides = (x.strides[0], x.strides[2])
            at_step = x.offset + step * x.strides[1]
            now = Array(x.base, x.type, (B, P), strides, at_step, x.weight)
        inner = Scope(p, body)
        for index, held in enumerate((now, *states, *same)):
            inner.held[index] = held
        inner.print()
        new = [inner.memory(operand) for _, operand in body.outputs]
        begin_rows()
        if order is None:
            p.line(f"if ({t} >= {length}) continue;")
        for state, computed in zip(states, new, strict=True):
            copy(state, row, computed, row)
        p.line(f"const int64_t {place} = {f'{length} - 1 - {t}' if backward else t};")
        width = out.strides[1]
        flat = Array(out.base, out.type, (B, states[0].shape[1]), (out.strides[0], ONE), Size.named(place) * width)
        copy(flat, source, states[0], row)
        end()
        end()
        yield out
        for state in states:
            if order is None:
                yield state
                continue
            last = p.room(state.type, state.shape)
            begin_rows()
            copy(last, source, state, row)
            end()
            yield last


def key_of(scope: Scope, operand: Operand, kind: str | None = None) -> Any:
    """What tells values apart inside of a loop: 1 and 1.0 are two numbers, and one of them in two types is, too."""
    if isinstance(operand, Number):
        return "number", type(operand.value), repr(operand.value), kind
    return operand if isinstance(operand, str) else (id(scope), operand)


def address(array: Array, indices: Sequence[Size]) -> Size:
    at = array.offset
    for index, stride in zip(indices, array.strides, strict=True):
        at = at + index * stride
    return at


def uses_of(function: Function) -> dict[int, int]:
    """How many operations, and outputs, use each value; a view counts as often as it is used itself."""
    found: dict[int, int] = {}
    numbers = len(function.inputs)
    starts = []
    for op in function.operations:
        starts.append(numbers)
        numbers += len(op.results)
    for _, operand in function.outputs:
        if isinstance(operand, int):
            found[operand] = found.get(operand, 0) + 1
    views = ("reshape", "expand", "permute", "slice", "flip")
    for start, op in reversed(list(zip(starts, function.operations, strict=True))):
        own = max(1, found.get(start, 0)) if op.kind in views else 1
        for operand in op.operands:
            if isinstance(operand, int):
                found[operand] = found.get(operand, 0) + own
    return found
