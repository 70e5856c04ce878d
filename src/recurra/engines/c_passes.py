"""The C of a plan: compiled once, and checked against torch before its first use."""

from __future__ import annotations

import ctypes
import threading
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from recurra.engines.c_library import NoCompiler, library, notice
from recurra.engines.c_run import CPasses, CSteps, Functions, steps_library
from recurra.engines.c_source import buffers_of, named, source
from recurra.engines.memory import Buffers, TorchPasses
from recurra.engines.plan import Buffer, Phases, Place, Plan, RowPass, StepProduct, is_saved


class Compiled:
    """Compiles plans, once each; where there is no compiler, torch runs the passes and a notice says so once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: WeakKeyDictionary[Plan, Functions | None] = WeakKeyDictionary()
        self.was_said = False

    def functions(self, plan: Plan, dtype: torch.dtype) -> Functions | None:
        """A plan is made for one type of number, so it is compiled for one."""
        with self.lock:
            if plan not in self.found:
                self.found[plan] = self.compile(plan, dtype)
            return self.found[plan]

    def compile(self, plan: Plan, dtype: torch.dtype) -> Functions | None:
        try:
            loaded = library(source(plan, dtype == torch.float64))
            steps_library(dtype == torch.float64)
        except NoCompiler as reason:
            if not self.was_said:
                self.was_said = True
                notice(f"recurra: {reason}; the planned engine computes its row passes with torch, which is slower.")
            return None
        functions: Functions = {}
        for direction, phases in (
            ("forward", plan.forward),
            ("inference", plan.inference),
            ("backward", plan.backward),
        ):
            for name in named(direction, phases.passes):
                function = getattr(loaded, name)
                function.argtypes = [*[ctypes.c_long] * 4, *[ctypes.c_void_p] * 4]
                function.restype = None
                functions[name] = function
        difference = largest_difference(plan, functions, dtype) or difference_of_product(dtype)
        if difference is not None:
            notice(f"recurra: compiled C differs from torch ({difference}); torch computes it instead.")
            return None
        return functions


def largest_difference(plan: Plan, functions: Functions, dtype: torch.dtype) -> str | None:
    """Run every pass once in C and once by torch, on random numbers with a padded row; None where they agree."""
    lengths = torch.tensor([2, 1, 2])
    tolerance = {"rtol": 1e-8, "atol": 1e-10} if dtype == torch.float64 else {"rtol": 2e-3, "atol": 1e-4}
    for direction, phases in (("forward", plan.forward), ("inference", plan.inference), ("backward", plan.backward)):
        for row_pass, name in zip(phases.passes, named(direction, phases.passes), strict=True):
            ours, theirs = random_memory(row_pass, dtype), random_memory(row_pass, dtype)
            CPasses(functions, ours, lengths).run(row_pass, name, 1)
            TorchPasses(theirs, lengths).run(row_pass, 1)
            for buffer, is_written in buffers_of(row_pass):
                found, expected = ours.tensors[buffer.name], theirs.tensors[buffer.name]
                # What is saved of a padded row is never read, and need not agree.
                if is_saved(buffer):
                    found, expected = found[::2], expected[::2]
                if is_written and not torch.allclose(found, expected, equal_nan=True, **tolerance):
                    return f"{name}, {buffer.name}, by up to {(found - expected).abs().max().item():.1e}"
    return None


def difference_of_product(dtype: torch.dtype) -> str | None:
    """The same for products: more rows and columns than are multiplied at once, multiples of neither; and one row."""
    # Whole numbers, so that no order of adding up is more exact than another.
    weight = (torch.arange(19.0 * 101).view(101, 19) % 11 - 5).to(dtype).T
    for rows in (11, 1):
        operand = (torch.arange(rows * 19.0).view(rows, 19) % 7 - 3).to(dtype)
        product = StepProduct(Buffer("operand", Place.ROWS, 19), (), Buffer("out", Place.ROWS, 101))
        memory = Buffers(rows, 1, operand)
        memory.tensors["operand"], memory.products[product] = operand, weight
        CSteps(CPasses({}, memory, None), memory, Phases([product], [], []), "forward").run(backward=False)
        if not torch.equal(memory.tensor(product.out), operand @ weight):
            return f"a product of {rows} row{'s' * (rows > 1)}"
    return None


def random_memory(row_pass: RowPass, dtype: torch.dtype) -> Buffers:
    """Buffers full of numbers between 0 and 1, the same each time."""
    generator = torch.Generator().manual_seed(0)
    memory = Buffers(3, 2, torch.zeros((), dtype=dtype))

    def numbers(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator).mul(0.8).add(0.1).to(dtype)

    shapes = {Place.ROWS: (3,), Place.TURNS: (2, 3), Place.SHARED: (), Place.SUMS: (1,)}
    for buffer, _ in buffers_of(row_pass):
        if buffer.name not in memory.tensors:
            memory.tensors[buffer.name] = numbers(*shapes.get(buffer.place, (3, 2)), buffer.width)
            memory.first[buffer.name] = numbers(3, buffer.width)
    return memory
