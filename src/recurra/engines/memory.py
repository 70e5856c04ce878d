"""The buffers of a plan as tensors, and the row passes run on them by torch."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from recurra.engines.plan import Buffer, Place, RowPass, StepProduct
from recurra.engines.values import Run, Value

LARGE_PAGE = 1 << 21


def in_large_pages(tensor: Tensor) -> Tensor:
    """The same tensor; where the system has large pages to give, first touching it costs little."""
    start = -(-tensor.data_ptr() // LARGE_PAGE) * LARGE_PAGE
    end = (tensor.data_ptr() + tensor.numel() * tensor.element_size()) // LARGE_PAGE * LARGE_PAGE
    if end > start and sys.platform == "linux":
        libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 14)  # MADV_HUGEPAGE; a hint, not a must
    return tensor


@functools.cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class Buffers:
    """Tensors for the buffers of a plan, made when first asked for."""

    def __init__(self, rows: int, steps: int, like: Tensor, parts: int = 1) -> None:
        self.rows = rows
        self.steps = steps
        self.parts = parts  # how many threads may add to a sum
        self.like = like
        self.tensors: dict[str, Tensor] = {}
        self.first: dict[str, Tensor] = {}  # PREVIOUS: what the first step reads
        self.products: dict[StepProduct, Tensor] = {}  # the stacked weights

    def tensor(self, buffer: Buffer) -> Tensor:
        if buffer.name not in self.tensors:
            rows, steps, width = self.rows, self.steps, buffer.width
            shape = {
                Place.SEQUENCE: (rows, steps, width),
                Place.ROWS: (rows, width),
                Place.TURNS: (2, rows, width),
                Place.SUMS: (self.parts, width),
            }[buffer.place]
            make = self.like.new_zeros if buffer.place in (Place.SUMS, Place.TURNS) else self.like.new_empty
            self.tensors[buffer.name] = in_large_pages(make(shape))
        return self.tensors[buffer.name]

    def read(self, buffer: Buffer, t: int) -> Tensor:
        """What a step finds in a buffer: (B, w), or (w,) where all rows share it."""
        if buffer.place is Place.PREVIOUS:
            return self.first[buffer.name] if t == 0 else self.tensors[buffer.name][:, t - 1]
        tensor = self.tensor(buffer)
        if buffer.place is Place.SEQUENCE:
            return tensor[:, t]
        return tensor[(t + 1) % 2] if buffer.place is Place.TURNS else tensor

    def target(self, buffer: Buffer, t: int) -> Tensor:
        """Where a step writes."""
        tensor = self.tensor(buffer)
        if buffer.place is Place.SEQUENCE:
            return tensor[:, t]
        return tensor[t % 2] if buffer.place is Place.TURNS else tensor

    def history(self, buffer: Buffer) -> Tensor:
        """All steps of an operand, (B·T, w)."""
        if buffer.place is Place.PREVIOUS:
            earlier = self.tensors[buffer.name][:, : self.steps - 1]
            return torch.cat([self.first[buffer.name].unsqueeze(1), earlier], dim=1).flatten(0, 1)
        return self.tensor(buffer).flatten(0, 1)

    def product(self, product: StepProduct, t: int) -> None:
        torch.mm(self.read(product.operand, t), self.products[product], out=self.tensor(product.out))


class TorchPasses:
    """Row passes by torch's own operations: slower than compiled ones, and what those are checked against."""

    def __init__(self, memory: Buffers, lengths: Tensor | None) -> None:
        self.memory = memory
        self.lengths = lengths

    def run(self, row_pass: RowPass, t: int) -> None:
        memory = self.memory
        known: dict[Value, Tensor] = {}
        results = [(write, evaluate(write.value, row_pass, known, memory, t)) for write in row_pass.writes]
        active = None if self.lengths is None else (t < self.lengths).unsqueeze(1)
        held = [
            (sum_of([memory.read(b, t)[..., c : c + target.width] for b, c in parts]), target)
            for parts, target in row_pass.holds
        ]
        for write, value in results:
            flat = value.expand(memory.rows, write.value.width)
            if write.buffer.place is Place.SUMS:
                memory.tensor(write.buffer)[0].add_((flat if active is None else flat * active).sum(0))
                continue
            target = memory.target(write.buffer, t)[:, write.column : write.column + write.value.width]
            target.copy_(flat)
        if active is None:
            return
        for buffer in row_pass.clears:
            memory.target(buffer, t).masked_fill_(~active, 0)
        for value, buffer in held:
            target = memory.target(buffer, t)
            target.copy_(torch.where(active, target, value))


def sum_of(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def evaluate(value: Value, row_pass: RowPass, known: dict[Value, Tensor], memory: Buffers, t: int) -> Tensor:
    """A row value for all rows at once, by torch: (B, width), or with a 1 in place of either."""
    if value in known:
        return known[value]
    if value in row_pass.reads:
        parts = [memory.read(b, t) for b, _ in row_pass.reads[value]]
        columns = [column for _, column in row_pass.reads[value]]
        # One row for all where all share it; a row of a tensor out of `fixed` may have several dimensions.
        flat = [part.unsqueeze(0) if part.dim() == 1 else part.flatten(1) for part in parts]
        result = sum_of([part[:, c : c + value.width] for part, c in zip(flat, columns, strict=True)])
    elif value.op == "constant":
        result = memory.like.new_tensor(value.args[0]).view(1, 1)
    else:
        args = [evaluate(arg, row_pass, known, memory, t) for arg in value.values]
        result = apply(value, args)
    known[value] = result
    return result


def apply(value: Value, args: list[Tensor]) -> Tensor:
    if value.op == "move":
        return move(value, args)
    if value.op in STRETCHES:
        [arg] = value.values
        stretches = args[0].expand(-1, arg.width).unflatten(1, (-1, value.detail))
        return STRETCHES[value.op](stretches).flatten(1).to(args[0].dtype)
    return TORCH[value.op](*args)


def move(value: Value, args: list[Tensor]) -> Tensor:
    whole = args[0].new_empty(max(len(arg) for arg in args), value.width)
    for run in value.detail.runs:
        source = args[run.source].expand(-1, value.values[run.source].width)
        whole[:, run.start : run.start + run.step * run.length : run.step] = source[:, places_of(run)]
    return whole


def places_of(run: Run) -> Tensor | slice:
    """Where the numbers of a run come from, without a list of them where they lie side by side."""
    if run.stride == 1:
        return slice(run.offset, run.offset + run.length)
    return run.offset + run.stride * torch.arange(run.length)


STRETCHES: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda stretches: stretches.sum(-1),
    "largest": lambda stretches: stretches.amax(-1),
    "place of the largest": lambda stretches: stretches.max(-1).indices,
    "running sum": lambda stretches: stretches.cumsum(-1),
}

TORCH: dict[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "neg": torch.neg,
    "reciprocal": torch.reciprocal,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "log": torch.log,
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "exp2": torch.exp2,
    "log2": torch.log2,
    "log10": torch.log10,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "atan2": torch.atan2,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "abs": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": torch.trunc,
    "relu": torch.relu,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "where": lambda condition, a, b: torch.where(condition != 0, a, b),
    "eq": lambda a, b: (a == b).to(a.dtype),
    "ne": lambda a, b: (a != b).to(a.dtype),
    "lt": lambda a, b: (a < b).to(a.dtype),
    "le": lambda a, b: (a <= b).to(a.dtype),
    "gt": lambda a, b: (a > b).to(a.dtype),
    "ge": lambda a, b: (a >= b).to(a.dtype),
    "and": lambda a, b: ((a != 0) & (b != 0)).to(a.dtype),
    "or": lambda a, b: ((a != 0) | (b != 0)).to(a.dtype),
    "not": lambda a: (a == 0).to(a.dtype),
    "pow": torch.pow,
}
