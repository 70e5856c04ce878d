"""Segments: numbers of a row value that take the same way through the equations of a pass, such as one gate."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from recurra.engines.plan import RowPass
from recurra.engines.values import STRETCHES, Run, Value


class Segments:
    """Cuts the values of one row pass into segments, which the printers of C and of Triton compute one by one."""

    def __init__(self, row_pass: RowPass) -> None:
        self.row_pass = row_pass
        self.cut_points: dict[Value, frozenset[int]] = {}

    def of(self, value: Value, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """The offset and width of each segment of a value, or of a stretch of it."""
        end = value.width if end is None else end
        points = sorted({start, end, *(cut for cut in self.cuts(value) if start < cut < end)})
        return [(a, b - a) for a, b in itertools.pairwise(points)]

    def of_run(self, value: Value, run: Run) -> list[tuple[int, int]]:
        """A run of a move, cut where the numbers of its source begin to take another way; offsets within the run."""
        if value.op != "move":
            return self.of(value)
        arg = value.values[run.source]
        if run.stride != 1 or arg.op == "constant":
            return [(0, run.length)]
        return [(a - run.offset, width) for a, width in self.of(arg, run.offset, run.offset + run.length)]

    def cuts(self, value: Value) -> frozenset[int]:
        if value not in self.cut_points:
            self.cut_points[value] = frozenset(self.find_cuts(value))
        return self.cut_points[value]

    def find_cuts(self, value: Value) -> Iterator[int]:
        if value in self.row_pass.reads or value.op == "constant":
            return
        if value.op == "move":
            for run in value.detail.runs:
                if run.step == 1:
                    yield run.start
                    yield from (run.start + first for first, _ in self.of_run(value, run))
                    yield run.start + run.length
        elif value.op not in STRETCHES:
            for arg in value.values:
                if arg.width == value.width:
                    yield from self.cuts(arg)
