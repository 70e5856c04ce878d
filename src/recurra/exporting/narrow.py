"""An exported program with narrower weights: chosen by what its matrices compute from sample inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from recurra.exported import Exported
from recurra.programs.in_numpy import InNumpy
from recurra.programs.narrowing import Chosen, Narrowing, Width
from recurra.programs.program import Program
from recurra.tasks.task import Prediction, Task


class Narrow(NamedTuple):
    """A program with narrower weights, what became of each matrix, and its answers beside those of the run."""

    program: Program
    arrays: dict[str, NDArray[Any]]
    width: Width  # the one that was asked for
    chosen: Sequence[Chosen]
    answers: Sequence[Prediction]
    others: int  # answers that are not the run's
    largest: float  # by which a score differs, beside the score, or 1

    def lines(self) -> list[str]:
        """What was chosen and what was lost, for people."""
        counts = {width: sum(each.width == width for each in self.chosen) for width in ("int8", "bf16", "float32")}
        found = ", ".join(f"{count} in {width}" for width, count in counts.items() if count)
        lines = [f"matrices: {found or 'none'}"]
        lines += [
            f"  {each.name} is kept in {each.width}: what it computes would change by {each.errors[self.width]:.1%}"
            for each in self.chosen
            if each.width != self.width
        ]
        if self.answers:
            lines.append(
                f"{len(self.answers) - self.others} of {len(self.answers)} sample answers are the run's own; scores "
                f"differ by {self.largest:.1e} at most"
            )
        return lines


def narrowed(
    task: Task[Any, Any, Any],
    program: Program,
    arrays: Mapping[str, NDArray[Any]],
    width: Width,
    asked: Sequence[Any],
    answers: Sequence[Prediction],
) -> Narrow:
    """The program with narrower weights, where its matrices lose little; `answers` are the run's to what is asked."""
    narrowing = Narrowing(program, arrays)
    if asked:
        Exported(task, narrowing.watching(), Path()).predict(asked)
    chosen = narrowing.chosen(width)
    new, weights = narrowing.narrowed(chosen)
    found: Sequence[Prediction] = Exported(task, InNumpy(new, weights), Path()).predict(asked) if asked else []
    pairs = [*zip(found, answers, strict=True)]
    others = sum(one.output != other.output for one, other in pairs)
    scores = [(one.score, other.score) for one, other in pairs if one.score != other.score]
    largest = max((abs(one - other) / max(1.0, abs(other)) for one, other in scores), default=0.0)
    return Narrow(new, weights, width, [*chosen.values()], found, others, largest)
