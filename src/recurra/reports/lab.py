"""Cells compared on one problem under one budget: how fast and how far each learns."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from recurra.analysis.automata import PROBLEMS as AUTOMATA
from recurra.analysis.extraction import Extracted, extracted
from recurra.analysis.memory_problems import AssociativeRecall, CopyBits, RepeatCopy
from recurra.analysis.problems import Adding, Answering, CopyMemory, Problem, Progress, learn, network_for
from recurra.analysis.tracking import MULTIPLES, Tracking
from recurra.analysis.widths import other_sizes, size_of, width_for
from recurra.cells import Spec
from recurra.errors import ConfigError
from recurra.named import choose
from recurra.reports import automaton_picture
from recurra.settings import name_of
from recurra.text.json_file import json_text
from recurra.views.lines import IN_TURN, Curve, Lines, Panel
from recurra.views.page import page, section, table_in_html, write_whole
from recurra.views.svg import as_svg
from recurra.views.table import Table

MEMORY: dict[str, tuple[str, Callable[[int], Problem], str]] = {
    "adding": ("the sum of two marked numbers among T", Adding, "mean squared error"),
    "copy": ("repeat ten symbols after T blanks", CopyMemory, "nats a step"),
    "bits": ("repeat up to T vectors of 8 bits", CopyBits, "nats a bit"),
    "repeat": ("repeat up to T vectors of 6 bits, one to three times", RepeatCopy, "nats a bit"),
    "recall": ("of up to T items, the one after that which is shown again", AssociativeRecall, "nats a bit"),
}
"""Problems of memory: what they are, and what their losses are."""

PROBLEMS = {name: what for name, (what, *_) in MEMORY.items()} | {name: each.about for name, each in AUTOMATA.items()}
"""All problems by name, in words."""

SHORTEST = {"adding": 2, "recall": 2}
LENGTHS = dict.fromkeys(MEMORY, 100)
"""Of problems whose sequences are not as long as the words of an automaton, TRACKED."""

TRACKED = 16
WORDS = 2000
"""Words of each length on which a network that follows an automaton is tested."""

USUAL: tuple[Spec, ...] = ("elman", "gru", "lstm")
ENDINGS = (".html", ".svg", ".png")

HEIGHT = 300.0
"""Pixels of the curves."""

FLOOR = 1e-8
"""Losses below it are not told apart."""


class Tracked(NamedTuple):
    """How far a network follows an automaton."""

    right: dict[int, float]  # to each multiple of the longest word of training, the share of new words that are right
    found: Extracted

    def json(self) -> dict[str, Any]:
        """All of it; lengths as texts, as JSON has them."""
        found = {**self.found._asdict(), "automaton": self.found.automaton.json()}
        return {"right": {str(multiple): share for multiple, share in self.right.items()}, "found": found}


class Course(NamedTuple):
    """How one cell learned."""

    cell: Spec
    looks: list[Progress]  # the first before any update
    hidden: int = 0
    parameters: int = 0
    seed: int = 0
    tracked: Tracked | None = None

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
    learning_rate: float = 1e-3
    seeds: int = 1

    def json(self) -> dict[str, Any]:
        """All of it, as `recurra lab --json` prints it."""
        rows = [
            {
                **course._asdict(),
                "cell": course.name,
                "looks": [look._asdict() for look in course.looks],
                "tracked": None if course.tracked is None else course.tracked.json(),
            }
            for course in self.courses
        ]
        return {**self._asdict(), "courses": rows}


def compare_cells(
    problem: str,
    cells: Sequence[Spec] = USUAL,
    *,
    length: int | None = None,
    hidden: int = 64,
    layers: int = 1,
    seconds: float = 30.0,
    updates: int | None = None,
    learning_rate: float = 1e-3,
    equal_parameters: bool = False,
    seed: int = 0,
    seeds: int = 1,
    device: str = "cpu",
    look_every: int = 50,
    told: Callable[[str], None] | None = None,
) -> Lab:
    """Each cell learns for so many seconds, or so many updates, from the same sequences.

    With `equal_parameters`, all have about as many as the first with this hidden size. Of several seeds, that one
    counts which ends with the lowest loss; of a network that follows an automaton, the one that is right most often at
    twice the longest length of training.

    >>> found = compare_cells("adding", ["gru"], length=4, hidden=4, updates=10, look_every=5)
    >>> [look.updates for look in found.courses[0].looks]
    [0, 5, 10]
    """
    choose(PROBLEMS, problem, "the problem")
    length = LENGTHS.get(problem, TRACKED) if length is None else length
    if length < SHORTEST.get(problem, 1):
        raise ConfigError(f"--length must be at least {SHORTEST.get(problem, 1)} for '{problem}', but is {length}.")
    given = {
        "--hidden": hidden,
        "--layers": layers,
        "--seconds": seconds,
        "--updates": updates,
        "--seeds": seeds,
        "--learning-rate": learning_rate,
    }
    for name, value in given.items():
        if value is not None and not 0 < value < math.inf:
            raise ConfigError(f"{name} must be above 0, but is {value}.")
    if not cells:
        raise ConfigError(f"name at least one cell, such as {','.join(map(str, USUAL))}.")
    drawn: Problem = Tracking(problem, length) if problem in AUTOMATA else MEMORY[problem][1](length)

    def size(cell: Spec, width: int) -> int:
        return size_of(network_for(drawn, cell, hidden=width, layers=layers))

    every = look_every if updates is None else min(look_every, updates)
    courses: list[Course] = []
    for cell in cells:
        width = hidden
        if equal_parameters and courses:
            width = width_for(courses[0].parameters, partial(size, cell))
        tried: list[tuple[tuple[float, float], Course, Answering]] = []
        for number in range(seed, seed + seeds):
            network = network_for(drawn, cell, hidden=width, seed=number, layers=layers, device=device)
            looks: list[Progress] = []
            course = learn(
                drawn, cell, hidden=width, learning_rate=learning_rate, seed=number, look_every=every, network=network
            )
            for look in course:
                looks.append(look)
                if (look.seconds >= seconds) if updates is None else (look.updates >= updates):
                    break
                if not math.isfinite(look.loss):
                    break
            network.eval()
            found = Course(cell, looks, width, size_of(network), number)
            wrong = 0.0 if not isinstance(drawn, Tracking) else 1 - drawn.right(network, 2 * length, rows=WORDS, seed=1)
            tried.append(((wrong, looks[-1].loss), found, network))
            if told is not None:
                at_twice = f", right at 2 ×: {1 - wrong:.2%}" if isinstance(drawn, Tracking) else ""
                which = f", seed {number}" if seeds > 1 else ""
                told(f"{found.name}{which}: {looks[-1].loss:.5f} after {looks[-1].updates:,} updates{at_twice}")
        _, best, network = min(tried, key=lambda each: each[0])
        courses.append(best._replace(tracked=followed(drawn, network) if isinstance(drawn, Tracking) else None))
    return Lab(problem, length, hidden, drawn.without_memory, courses, learning_rate, seeds)


def followed(problem: Tracking, network: Answering) -> Tracked:
    """How far a network follows an automaton, and which one is found in it."""
    lengths = {multiple: multiple * problem.longest for multiple in MULTIPLES}
    right = {multiple: problem.right(network, each, rows=WORDS, seed=2) for multiple, each in lengths.items()}
    return Tracked(right, extracted(network, problem))


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
    tracks = found.problem in AUTOMATA
    for course in found.courses:
        last, best = course.looks[-1], min(course.looks, key=lambda look: look.loss)
        half = next((look for look in course.looks if look.loss <= found.without_memory / 2), None)
        reached = "-" if half is None else f"{half.updates:,}"
        size = [course.name, course.hidden, f"{course.parameters:,}"]
        losses = [f"{last.loss:.5f}"] if tracks else [f"{last.loss:.5f}", f"{best.loss:.5f}"]
        learned = [f"{last.updates:,}", *([] if tracks else [reached]), f"{last.seconds:.1f}"]
        rows.append([*size, *losses, *learned, *_followed_row(course)])
    own = ["updates", "seconds", *(f"{multiple} ×" for multiple in MULTIPLES), "states", "disagrees"]
    others = ["best", "updates", "half after", "seconds"]
    return Table(["cell", "hidden", "parameters", "loss", *(own if tracks else others)], rows)


def _followed_row(course: Course) -> list[str]:
    if course.tracked is None:
        return []
    found = course.tracked.found
    states = f"{found.automaton.states}{' (right)' if found.is_right else ''}"
    return [*(f"{share:.2%}" for share in course.tracked.right.values()), states, f"{found.disagreement:.2%}"]


def about(found: Lab) -> str:
    """What was compared, in a sentence."""
    unit = MEMORY[found.problem][2] if found.problem in MEMORY else "nats a step"
    over = f"T = {found.length}" if found.problem in MEMORY else f"words of 1 to {found.length} symbols"
    seeds = f"; the best of {found.seeds} seeds" if found.seeds > 1 else ""
    size = f"hidden {found.hidden}"
    if any(course.hidden != found.hidden for course in found.courses):
        sizes = [(course.name, course.hidden, course.parameters) for course in found.courses]
        size = f"{size} for the first cell, about as many parameters for the others{other_sizes(sizes)}"
    return (
        f"{found.problem}: {PROBLEMS[found.problem]}, {over}; {unit} on new sequences, "
        f"{found.without_memory:.5f} for a model without memory; {size}, 32 rows, "
        f"Adam {found.learning_rate:g}, clip 1{seeds}."
    )


def as_text(found: Lab) -> str:
    """For a terminal. `half after`: the updates after which the loss was half of that without memory."""
    parts = [about(found), as_table(found).text()]
    if found.problem in AUTOMATA:
        parts.append(meaning(found))
    return "\n\n".join(parts)


def meaning(found: Lab) -> str:
    """What the columns of a network that follows an automaton are."""
    states = AUTOMATA[found.problem].automaton().minimised().states
    return (
        f"n ×: the share of {WORDS:,} new words, n times as long as the longest of training ({found.length}), after "
        f"which the last answer is right. states: of the automaton found by clustering the network's states, "
        f"minimised; the problem's own has {states}, and (right) says the same. disagrees: the share of answers to "
        "other words in which that automaton differs from the network."
    )


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
    unit = MEMORY[found.problem][2] if found.problem in MEMORY else "nats a step"
    panel = Panel(unit, curves, HEIGHT, log=True)
    return Lines([panel], "updates", title=f"{found.problem}: {PROBLEMS[found.problem]}", about=about(found))


def by_length(found: Lab) -> Lines | None:
    """How many words are right at lengths beyond those of training; None where there is no automaton to follow."""
    tracked = [(course.name, course.tracked) for course in found.courses if course.tracked is not None]
    if not tracked:
        return None
    curves = [
        Curve(name, list(each.right.values()), look=IN_TURN[number % len(IN_TURN)], dots=True)
        for number, (name, each) in enumerate(tracked)
    ]
    lengths = [f"{multiple} × {found.length}" for multiple in MULTIPLES]
    return Lines([Panel("share of words", curves, HEIGHT)], "symbols of a word", lengths, title="Words by length")


def best_tracked(found: Lab) -> tuple[str, Tracked]:
    """The cell that follows the automaton farthest, and how; a ConfigError where the problem has none."""
    tracked = [(course.name, course.tracked) for course in found.courses if course.tracked is not None]
    if not tracked:
        raise ConfigError(f"'{found.problem}' has no automaton to draw. Problems with one: {', '.join(AUTOMATA)}.")
    return max(tracked, key=lambda each: (each[1].right[MULTIPLES[-1]], -each[1].found.disagreement))


def caption(problem: str, name: str, tracked: Tracked) -> str:
    """What a picture of an automaton is of."""
    found = tracked.found
    unlike = f"not the right ones; it differs from the network in {found.disagreement:.1%} of its answers"
    states = "1 state" if found.automaton.states == 1 else f"{found.automaton.states} states"
    return f"{problem}, found in {name}: {states}, {'the right ones' if found.is_right else unlike}"


def as_page(found: Lab) -> str:
    """A page with the curves, the table and all numbers."""
    table = as_table(found)
    pieces = [
        f"<h1>{escape(found.problem)}</h1>",
        f"<p>{escape(about(found))}</p>",
        view(found).figure(),
        *([] if (lengths := by_length(found)) is None else [section("Words by length", lengths.figure())]),
        *(
            section(f"The automaton in {course.name}", _figure(found.problem, course.name, course.tracked))
            for course in found.courses
            if course.tracked is not None
        ),
        section("Cells", table_in_html(Table(table.columns, table.rows)) + _said(found)),
        f"<details><summary>As numbers</summary><pre>{escape(json_text(found.json()))}</pre></details>",
    ]
    return page(f"recurra lab {found.problem}", pieces)


def _figure(problem: str, name: str, tracked: Tracked) -> str:
    scene = automaton_picture.picture(tracked.found.automaton, caption(problem, name, tracked))
    return f'<figure style="overflow:auto">{as_svg(scene)}</figure>'


def _said(found: Lab) -> str:
    return f'<p class="soft">{escape(meaning(found))}</p>' if found.problem in AUTOMATA else ""
