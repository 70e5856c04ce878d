"""Cells compared on data: a run each, their sizes, scores and learning curves in one picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from recurra.analysis.widths import other_sizes
from recurra.training.log import Line, TrainLine, ValidLine
from recurra.views.lines import IN_TURN, Curve, Lines, Panel, Point, drawable, smoothed
from recurra.views.page import page, section, table_in_html, write_whole
from recurra.views.several import Several
from recurra.views.table import Table

HEIGHT = 230.0
"""Pixels of a panel."""


class CellRun(NamedTuple):
    """A run with one cell."""

    name: str  # of the cell, with its options
    hidden: int
    parameters: int
    steps: int
    seconds: float
    lines: Sequence[Line]  # of its log
    scores: dict[str, dict[str, float]]  # of valid, and of test where there is one
    first: str  # the score that selects weights
    folder: str  # its name among the runs, where these are kept
    seed: int = 1

    def json(self) -> dict[str, Any]:
        """All of it but the log, of which the validations."""
        valid = [line for line in self.lines if isinstance(line, ValidLine)]
        looks = [{"updates": line.step, "seconds": line.seconds, "loss": line.loss, **line.scores} for line in valid]
        return {**{name: value for name, value in self._asdict().items() if name != "lines"}, "looks": looks}


class CellRuns(NamedTuple):
    """What came of a comparison on data."""

    task: str
    data: str
    equal: str  # what all have in common: parameters or hidden
    runs: list[CellRun]  # those of a cell together
    seeds: int = 1  # runs of each cell

    @property
    def cells(self) -> list[list[CellRun]]:
        """The runs of each cell, one for every seed."""
        return [self.runs[first : first + self.seeds] for first in range(0, len(self.runs), self.seeds)]

    def json(self) -> dict[str, Any]:
        """As `recurra lab --json` prints it."""
        return {**self._asdict(), "runs": [run.json() for run in self.runs]}


def as_table(found: CellRuns) -> Table:
    """A row for each cell, in their order: its size, the loss in training, and the score of each part of the data.

    Of several seeds, means ± standard deviations.
    """
    parts = [part for part in ("valid", "test") if any(part in run.scores for run in found.runs)]
    first = found.runs[0].first
    rows = []
    for runs in found.cells:
        losses = [
            next((line.loss for line in reversed(run.lines) if isinstance(line, TrainLine)), math.nan) for run in runs
        ]
        scored = [_numbers([run.scores.get(part, {}).get(first, math.nan) for run in runs]) for part in parts]
        rows.append(
            [
                runs[0].name,
                runs[0].hidden,
                f"{runs[0].parameters:,}",
                _numbers(losses),
                *scored,
                f"{fmean(run.steps for run in runs):,.0f}",
                f"{fmean(run.seconds for run in runs):.0f}",
            ]
        )
    columns = ["cell", "hidden", "parameters", "train loss", *(f"{part} {first}" for part in parts)]
    return Table([*columns, "updates", "seconds"], rows)


def _numbers(values: Sequence[float]) -> str:
    """The mean of values, and of several their standard deviation.

    >>> _numbers([0.5]), _numbers([0.5, 0.7]), _numbers([math.nan, 0.5])
    ('0.5000', '0.6000 ± 0.1414', '–')
    """
    if any(map(math.isnan, values)):
        return "–"
    return f"{fmean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


def about(found: CellRuns) -> str:
    """What was compared, in a sentence."""
    same, but = "the same hidden size", ""
    if found.equal == "parameters":
        same = "about as many parameters as the first"
        but = other_sizes([(run.name, run.hidden, run.parameters) for run in found.runs])
    from_seeds = f", from {found.seeds} seeds (means ± standard deviations)" if found.seeds > 1 else ""
    return (
        f"{found.task} on {found.data}: every cell has {same}{but}, and is trained with the same settings and "
        f"budget{from_seeds}."
    )


def as_text(found: CellRuns) -> str:
    """For a terminal."""
    return f"{about(found)}\n\n{as_table(found).text()}"


def view(found: CellRuns) -> Several:
    """The learning curves of all cells by updates, and by seconds: the loss of training and the score of validation."""
    return Several([_curves(found, by) for by in ("updates", "seconds")], title=f"Cells compared: {found.task}")


def _curves(found: CellRuns, by: str) -> Lines:
    first = found.runs[0].first
    train, valid = list[list[Point]](), list[list[Point]]()
    for run in found.runs:
        losses = [Point(_at(line, by), drawable(line.loss)) for line in run.lines if isinstance(line, TrainLine)]
        train.append(smoothed([point for point in losses if not math.isnan(point.x)]))
        scores = [
            Point(_at(line, by), drawable(line.scores.get(first, math.nan)))
            for line in run.lines
            if isinstance(line, ValidLine)
        ]
        valid.append([point for point in scores if not math.isnan(point.x + point.y)])
    panels = [
        Panel("loss in training", _drawn(found, train, dots=False), HEIGHT, log=True),
        Panel(f"{first}, valid", _drawn(found, valid, dots=True), HEIGHT),
    ]
    return Lines([panel for panel in panels if panel.curves], by, title=f"Learning curves by {by}", about=about(found))


def _drawn(found: CellRuns, each: Sequence[Sequence[Point]], *, dots: bool) -> list[Curve]:
    """A curve for each run that has points, without its first ones where they are far from all that follows."""
    low, high = _range(each)
    curves, named = list[Curve](), set[int]()
    for number, (run, points) in enumerate(zip(found.runs, each, strict=True)):
        near = [point for point in points if low <= point.y <= high]
        if near:
            cell = number // found.seeds
            look, name = IN_TURN[cell % len(IN_TURN)], "" if cell in named else run.name
            named.add(cell)  # its other runs look like the first
            curves.append(Curve(name, [point.y for point in near], [point.x for point in near], look, dots=dots))
    return curves


def _range(each: Sequence[Sequence[Point]]) -> tuple[float, float]:
    """The values after the first tenth, and as much room again on either side: the first are often many times as large.

    >>> _range([[Point(0, 50.0), Point(10, 9.0), Point(100, 8.0)]])
    (7.0, 10.0)
    """
    last = max((point.x for points in each for point in points), default=0.0)
    later = [point.y for points in each for point in points if point.x >= last / 10 and not math.isnan(point.y)]
    if not later:
        return -math.inf, math.inf
    room = (max(later) - min(later)) or math.inf
    return min(later) - room, max(later) + room


def _at(line: TrainLine | ValidLine, by: str) -> float:
    return float(line.step) if by == "updates" else line.seconds


def write(found: CellRuns, path: Path) -> None:
    """Write a page (.html) or a picture (.svg, .png)."""
    if path.suffix == ".html":
        write_whole(path, as_page(found))
    else:
        view(found).write(path)


def as_page(found: CellRuns) -> str:
    """A page with the table and the curves."""
    pieces = [
        f"<h1>{escape(found.task)}: cells compared</h1>",
        f"<p>{escape(about(found))}</p>",
        table_in_html(as_table(found)),
        *(section(each.title, each.figure()) for each in view(found).views),
    ]
    return page(f"recurra lab {found.task}", pieces)
