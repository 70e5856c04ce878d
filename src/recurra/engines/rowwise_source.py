"""All steps of a plan as one Triton kernel, where a row pass needs all units of a row, as in layer norm.

Programs stand in blocks of rows, each with at least as many programs as rows. In turns, all programs of a block

    multiply    each its own columns of the matrix, which stay on the chip, by all rows of the block
    wait        until the others have done so                              (a counter in memory)
    run a row pass    each for one row, by the code of a single step's kernel; programs beyond the rows write nothing
    wait

so a step waits twice for each of its products, where a program with its own units (persistent_source.py) waits once;
but nothing is launched at a step, and matrices are read once. While a program waits it asks for what no other program
writes, and writes what no other program waits for.

Backward, a step begins with the product of what the step after it wrote; the last step has none.
That all programs run at the same time is asked of the driver (a cooperative launch); how long a program waits is
limited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from recurra.engines.persistent_source import CHUNK, Persistent, chunks
from recurra.engines.plan import Buffer, Phases, Place, RowPass, StepProduct
from recurra.engines.triton_source import KernelWriter, address, power_of_two
from recurra.engines.values import NoPlan

COUNT = ["count_done(counter)", "done += 1"]
AWAIT = "await_others(counter, done * J, limit, failed)"


def rowwise(
    phases: Phases, name: str, *, is_backward: bool = False, absent: Collection[Buffer] = (), chunk: int = CHUNK
) -> Persistent:
    """Print the steps of a direction; NoPlan says why they cannot be one kernel.

    absent    what no gradient comes from: such buffers are not read
    chunk     how many rows a tile of a matrix has at most that stays on the chip
    """
    writer = StepsWriter(phases, absent, chunk)
    body = writer.steps(is_backward)
    pointers = [f"{p}, {p}_row, {p}_step" for p in map(writer.parameter, writer.arguments)]
    matrices = [f"m{n}, m{n}_k, m{n}_n" for n in range(len(writer.products))]
    head = "steps, rows, lengths, counters, counted, limit, failed"
    settings = "RAGGED: tl.constexpr, BB: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr"
    lines = [
        '@triton.jit(do_not_specialize=["steps", "counted", "limit"])',
        f"def {name}({', '.join([head, *matrices, *pointers, settings])}):",
        f"    J: tl.constexpr = ({writer.widest} + BH - 1) // BH",
        "    first_row = tl.program_id(1) * BB",
        "    r = first_row + tl.arange(0, BB)",
        "    rk = r < rows",
        "    r = r.to(tl.int64)",
        "    b = first_row.to(tl.int64) + tl.program_id(0)",
        "    has_row = (tl.program_id(0) < BB) & (b < rows)",
        "    counter = counters + tl.program_id(1) * 32",
        *(f"    {line}" for line in writer.matrices()),
        *(f"    {line}" for line in writer.blocks()),
        "    done = counted",
        f"    t = tl.full((), 0, tl.int64){' + steps - 1' if is_backward else ''}",
        "    for i in range(steps):",
        *(f"        {line}" for line in body),
        f"        t {'-' if is_backward else '+'}= 1",
        "",
    ]
    return Persistent(
        name,
        "\n".join(lines),
        tuple(writer.arguments),
        tuple(writer.products),
        units=writer.widest,
        gates=1,
        terms=sum(product.operand.width for product in writer.products),
        passes=body.count(COUNT[0]),
        is_rowwise=True,
    )


class StepsWriter:
    """Writes products and row passes one after the other, with a wait wherever one needs what another program wrote."""

    def __init__(self, phases: Phases, absent: Collection[Buffer], chunk: int) -> None:
        self.phases = phases
        self.absent = absent
        self.chunk = chunk
        self.products = [*phases.before, *(product for slot in phases.after_pass for product in slot)]
        if not self.products:
            raise NoPlan("its step has no product")
        if phases.before and phases.after_pass[-1]:
            raise NoPlan("a step both begins and ends with a product")
        self.widest = max(product.out.width for product in self.products)
        self.arguments: dict[tuple[Buffer, bool], int] = {}
        self.widths: set[int] = set()

    def parameter(self, key: tuple[Buffer, bool]) -> str:
        """The name of a buffer among the parameters of the kernel."""
        return f"{'o' if key[1] else 'p'}{self.arguments.setdefault(key, len(self.arguments))}"

    def matrices(self) -> Iterator[str]:
        """The columns of each matrix that this program multiplies by, loaded before the first step."""
        for n, product in enumerate(self.products):
            yield f"n{n} = tl.program_id(0) * BH + tl.arange(0, BH)"
            yield f"n{n}k = n{n} < {product.out.width}"
            for c, (first, size, real) in enumerate(chunks(product.operand.width, self.chunk)):
                yield f"i{n}_{c} = {first} + tl.arange(0, {size})"
                rows = f" & (i{n}_{c} < {product.operand.width})[:, None]" if real < size else ""
                place = f"m{n} + i{n}_{c}[:, None] * m{n}_k + n{n}[None, :] * m{n}_n"
                yield f"w{n}_{c} = tl.load({place}, mask=n{n}k[None, :]{rows}, other=0.0)"

    def blocks(self) -> Iterator[str]:
        """The indices of the numbers of a row, which are the same at all steps."""
        for width in sorted(self.widths):
            yield f"j{width} = tl.arange(0, {power_of_two(width)})"
            yield f"k{width} = (j{width} < {width}) & has_row"

    def steps(self, is_backward: bool) -> list[str]:
        before, *between = [self.phases.before, *self.phases.after_pass[:-1]]
        slots = [self.phases.after_pass[-1] if is_backward else before, *between]
        if not all(slots):
            raise NoPlan("a row pass does not follow on a product")
        lines: list[str] = []
        for n, (products, row_pass) in enumerate(zip(slots, self.phases.passes, strict=True)):
            is_of_step_before = is_backward and n == 0
            multiplied = [line for product in products for line in self.multiply(product, is_of_step_before)]
            lines += ["if i > 0:", *(f"    {line}" for line in multiplied)] if is_of_step_before else multiplied
            lines += [*COUNT, *self.row_pass(row_pass, {product.out for product in products}), AWAIT]
        return lines

    def multiply(self, product: StepProduct, is_of_step_before: bool) -> Iterator[str]:
        """All rows of the block by the columns of this program."""
        n = self.products.index(product)
        operand, out = self.parameter((product.operand, False)), self.parameter((product.out, True))
        at = f"{operand} + {'(t + 1)' if is_of_step_before else 't'} * {operand}_step"
        at = operand if product.operand.place is Place.ROWS else at
        yield f"d{n} = tl.zeros((BB, BH), tl.float32)"
        for c, (_, size, real) in enumerate(chunks(product.operand.width, self.chunk)):
            inside = f" & (i{n}_{c} < {product.operand.width})[None, :]" if real < size else ""
            place = f"{at} + r[:, None] * {operand}_row + i{n}_{c}[None, :]"
            yield f'a{n}_{c} = tl.load({place}, mask=rk[:, None]{inside}, other=0.0, cache_modifier=".cg")'
        for c, _ in enumerate(chunks(product.operand.width, self.chunk)):
            yield f"d{n} = tl.dot(a{n}_{c}, w{n}_{c}, d{n}, input_precision=PRECISION)"
        place = f"{out} + r[:, None] * {out}_row + n{n}[None, :]"
        yield f'tl.store({place}, d{n}, mask=rk[:, None] & n{n}k[None, :], cache_modifier=".cg")'

    def row_pass(self, row_pass: RowPass, results: Collection[Buffer]) -> Iterator[str]:
        """A pass over the row of this program, after the products whose results it reads."""
        writer = RowWriter(row_pass, self)
        body = writer.body()
        if writer.scratch:
            raise NoPlan("a row pass has numbers that it reads in another order than it wrote them")
        self.widths |= writer.widths
        late = [
            writer.pointer(buffer, False) for buffer, is_written in writer.names if buffer in results and not is_written
        ]
        operands = {product.operand.name.replace("previous", "state") for product in self.products}
        awaited = [
            writer.pointer(buffer, True)
            for buffer, is_written in writer.names
            if is_written and buffer.name in operands
        ]
        yield from writer.addresses()
        yield "if RAGGED:"
        yield "    active = t < tl.load(lengths + b, mask=has_row, other=0)"
        yield from (line for line in writer.loads if not reads_any(line, late))
        yield AWAIT
        yield from (line for line in writer.loads if reads_any(line, late))
        stores = [line for line in body if line.startswith("tl.store(")]
        yield from (line for line in body if line not in stores)
        yield from (only_of_row(line) for line in stores if reads_any(line, awaited))
        yield from COUNT
        yield from (only_of_row(line) for line in stores if not reads_any(line, awaited))


def reads_any(line: str, pointers: Collection[str]) -> bool:
    return any(f"({pointer} " in line for pointer in pointers)


def only_of_row(store: str) -> str:
    return store if "mask=" in store else f"{store[:-1]}, mask=has_row)"


class RowWriter(KernelWriter):
    """Writes a row pass into the kernel of all steps: what it reads may have been written by other programs."""

    def __init__(self, row_pass: RowPass, steps: StepsWriter) -> None:
        # A product is whole: nothing adds up partial sums.
        super().__init__(row_pass, {}, steps.absent, None)
        self.names = {key: steps.parameter(key) for key in self.arguments}

    def pointer(self, buffer: Buffer, is_written: bool) -> str:
        name = self.names[buffer, is_written]
        return name if buffer.place is Place.SHARED else f"{name}_at"

    def addresses(self) -> Iterator[str]:
        for (buffer, is_written), name in self.names.items():
            if buffer.place is not Place.SHARED:
                yield f"{name}_at = {address(buffer, is_written, name)}  # {buffer.name}"

    def load(self, place: str, width: int, stride: int) -> str:
        how = ', cache_modifier=".cg"' if "_at " in place else ""
        if width == 1:
            return f"tl.load({place}, mask=has_row, other=0.0{how}).to(tl.float32)"
        self.uses(width)
        index = f"j{width}" if stride == 1 else f"{stride} * j{width}"
        return f"tl.load({place} + {index}, mask=k{width}, other=0.0{how}).to(tl.float32)"
