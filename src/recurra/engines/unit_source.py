"""Values printed as Triton where no unit needs another: one line for each gate, on blocks of units."""

from __future__ import annotations

from recurra.engines.plan import Buffer
from recurra.engines.triton_source import expression, is_number, number
from recurra.engines.values import NoPlan, Value


class UnitWriter:
    """Writes the equations of a step for a block of units. What a leaf is, a printer of kernels says."""

    def __init__(self, units: int) -> None:
        self.units = units
        self.arguments: dict[tuple[Buffer, bool], int] = {}  # True where a buffer is written
        self.known: dict[tuple[Value, int], str] = {}
        self.lines: list[str] = []
        self.count = 0

    def pointer(self, buffer: Buffer, is_written: bool) -> str:
        number = self.arguments.setdefault((buffer, is_written), len(self.arguments))
        return f"{'o' if is_written else 'p'}{number}"

    def element(self, value: Value, offset: int) -> str:
        """One gate of a value, for the units of this program."""
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
        raise NotImplementedError

    def leaf(self, value: Value, offset: int) -> str:
        """Something that no equation of the step makes."""
        raise NotImplementedError

    def moved(self, value: Value, offset: int) -> str:
        for run in value.detail.runs:
            if run.start <= offset < run.start + run.length:
                arg = value.values[run.source]
                return (
                    number(arg.args[0]) if arg.op == "constant" else self.element(arg, run.offset + offset - run.start)
                )
        raise NoPlan("a gate begins in the middle of a value")

    def check_gate(self, offset: int) -> None:
        if offset % self.units:
            raise NoPlan("a unit reads what other units have computed")

    def define(self, code: str) -> str:
        self.count += 1
        self.lines.append(f"v{self.count} = {code}")
        return f"v{self.count}"
