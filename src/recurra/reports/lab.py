"""Cells compared on one problem under one budget: how fast and how far each learns."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from recurra.analysis.memory_problems import AssociativeRecall, CopyBits, RepeatCopy
from recurra.analysis.problems import Adding, CopyMemory, Problem, Progress, learn
from recurra.cells import Spec
from recurra.errors import ConfigError
from recurra.named import choose
from recurra.settings import name_of
from recurra.text.json_file import json_text
from recurra.views.lines import IN_TURN, Curve, Lines, Panel
from recurra.views.page import page, section, table_in_html, write_whole
from recurra.views.table import Table

PROBLEMS: dict[str, tuple[str, Callable[[int], Problem], str]] = {
    "adding": ("the sum of two marked numbers among T", Adding, "mean squared error"),
    "copy": ("repeat ten symbols after T blanks", CopyMemory, "nats a step"),
    "bits": ("repeat up to T vectors of 8 bits", CopyBits, "nats a bit"),
    "repeat": ("repeat up to T vectors of 6 bits, one to three times", RepeatCopy, "nats a bit"),
    "recall": ("of up to T items, the one after that which is shown again", AssociativeRecall, "nats a bit"),
}
SHORTEST = {"adding": 2, "copy": 1, "bits": 1, "repeat": 1, "recall": 2}
USUAL: tuple[Spec, ...] = ("elman", "gru", "lstm")
ENDINGS = (".html", ".svg", ".png")

HEIGHT = 300.0
"""Pixels of the curves."""

FLOOR = 1e-8
"""Losses below it are not told apart."""


class Course(NamedTuple):
    """How one cell learned."""

    cell: Spec
    looks: list[Progress]  # the first before any update

    @property
    def name(self) -> str:
        """The cell with its options."""
        if isinstance(self.cell, str):
            return self.cell
        options = [f"{key}={value}" for key, value in self.cell.items() if key != "name"]
        return " ".join([name_of(dict(self.cell)), *options])


class Lab(NamedTuple):
    """What came of a comparison."""

    problem: str
    length: int
    hidden: int
    without_memory: float  # the loss of the best answer that ignores the past
    courses: list[Course]

    def json(self) -> dict[str, Any]:
        """All of it, as `recurra lab --json` prints it."""
        rows = [{"cell": course.name, "looks": [look._asdict() for look in course.looks]} for course in self.courses]
        return {**self._asdict(), "courses": rows}


def compare_cells(
    problem: str,
    cells: Sequence[Spec] = USUAL,
    *,
    length: int = 100,
    hidden: int = 64,
    seconds: float = 30.0,
    updates: int | None = None,
    seed: int = 0,
    look_every: int = 50,
    told: Callable[[str], None] | None = None,
) -> Lab:
    """Each cell learns for so many seconds, or so many updates, from the same sequences.

    >>> found = compare_cells("adding", ["gru"], length=4, hidden=4, updates=10, look_every=5)
    >>> [look.updates for look in found.courses[0].looks]
    [0, 5, 10]
    """
    choose(PROBLEMS, problem, "the problem")
    if length < SHORTEST[problem]:
        raise ConfigError(f"--length must be at least {SHORTEST[problem]} for '{problem}', but is {length}.")
    for name, value in (("--hidden", hidden), ("--seconds", seconds), ("--updates", updates)):
        if value is not None and not 0 < value < math.inf:
            raise ConfigError(f"{name} must be above 0, but is {value}.")
    if not cells:
        raise ConfigError(f"name at least one cell, such as {','.join(map(str, USUAL))}.")
    drawn: Problem = PROBLEMS[problem][1](length)
    courses = []
    for cell in cells:
        looks: list[Progress] = []
        every = look_every if updates is None else min(look_every, updates)
        for look in learn(drawn, cell, hidden=hidden, seed=seed, look_every=every):
            looks.append(look)
            if (look.seconds >= seconds) if updates is None else (look.updates >= updates):
                break
            if not math.isfinite(look.loss):
                break
        courses.append(Course(cell, looks))
        if told is not None:
            told(f"{courses[-1].name}: {looks[-1].loss:.5f} after {looks[-1].updates:,} updates")
    return Lab(problem, length, hidden, drawn.without_memory, courses)


def cells_of(text: str) -> list[Spec]:
    """The cells that a command line names: names with commas between them, or a TOML list of names and tables.

    >>> cells_of("elman,lstm"), cells_of('["lstm", {name = "gru", reset = "after"}]')
    (['elman', 'lstm'], ['lstm', {'name': 'gru', 'reset': 'after'}])
    """
    if not text.lstrip().startswith("["):
        return [name.strip() for name in text.split(",") if name.strip()]
    try:
        found = tomllib.loads(f"cells = {text}")["cells"]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--cells {text} is not a valid TOML list: {error}.") from error
    if any(not isinstance(cell, str | dict) or (isinstance(cell, dict) and "name" not in cell) for cell in found):
        raise ConfigError(
            f'--cells {text} must be a list of names, or of tables with a name: ["lstm", {{name = "gru"}}].'
        )
    return list(found)


def as_table(found: Lab) -> Table:
    """A row for each cell, in their order."""
    rows: list[list[Any]] = []
    for course in found.courses:
        last, best = course.looks[-1], min(course.looks, key=lambda look: look.loss)
        half = next((look for look in course.looks if look.loss <= found.without_memory / 2), None)
        reached = "-" if half is None else f"{half.updates:,}"
        rows.append([course.name, f"{last.loss:.5f}", f"{best.loss:.5f}", f"{last.updates:,}", reached, last.seconds])
    return Table(["cell", "loss", "best", "updates", "half after", "seconds"], [[*r[:5], f"{r[5]:.1f}"] for r in rows])


def about(found: Lab) -> str:
    """What was compared, in a sentence."""
    what, _, unit = PROBLEMS[found.problem]
    return (
        f"{found.problem}: {what}, T = {found.length}; {unit} on new sequences, "
        f"{found.without_memory:.5f} for a model without memory; hidden {found.hidden}, 32 rows, Adam 0.001, clip 1."
    )


def as_text(found: Lab) -> str:
    """For a terminal. `half after`: the updates after which the loss was half of that without memory."""
    return f"{about(found)}\n\n{as_table(found).text()}"


def write(found: Lab, path: Path) -> None:
    """Write a page (.html) or a picture (.svg, .png)."""
    check_ending(path)
    if path.suffix == ".html":
        write_whole(path, as_page(found))
    else:
        view(found).write(path)


def check_ending(path: Path) -> None:
    """Refuse a file that is neither a page nor a picture."""
    if path.suffix not in ENDINGS:
        raise ConfigError(f"--out {path}: the file must end in .html, .svg or .png.")


def view(found: Lab) -> Lines:
    """The learning curves of all cells: the loss of each by updates."""
    most = max(look.updates for course in found.courses for look in course.looks)
    curves = []
    for number, course in enumerate(found.courses):
        losses = [max(look.loss, FLOOR) if math.isfinite(look.loss) else math.nan for look in course.looks]
        updates = [look.updates for look in course.looks]
        curves.append(Curve(course.name, losses, updates, IN_TURN[number % len(IN_TURN)]))
    curves.append(Curve("without memory", [found.without_memory] * 2, [0, max(1, most)], "faint"))
    panel = Panel(PROBLEMS[found.problem][2], curves, HEIGHT, log=True)
    return Lines([panel], "updates", title=f"{found.problem}: {PROBLEMS[found.problem][0]}", about=about(found))


def as_page(found: Lab) -> str:
    """A page with the curves, the table and all numbers."""
    table = as_table(found)
    pieces = [
        f"<h1>{escape(found.problem)}</h1>",
        f"<p>{escape(about(found))}</p>",
        view(found).figure(),
        section("Cells", table_in_html(Table(table.columns, table.rows))),
        f"<details><summary>As numbers</summary><pre>{escape(json_text(found.json()))}</pre></details>",
    ]
    return page(f"recurra lab {found.problem}", pieces)
