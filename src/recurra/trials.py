"""Cells compared on data of your own: a run of a task with each, at equal parameters or equal width."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from recurra.analysis.widths import size_of, width_for
from recurra.cells import Spec
from recurra.config.given import Config
from recurra.errors import ConfigError
from recurra.reports.cell_runs import CellRun, CellRuns
from recurra.reports.lab import Course
from recurra.runs import Setup, begin, setup
from recurra.settings import table_of
from recurra.text.json_file import read_json
from recurra.toml import toml_value
from recurra.training.log import FILE, read_log
from recurra.training.progress import Progress, Silent

Equal = Literal["parameters", "hidden"]


def compare_on_data(
    what: Config,
    cells: Sequence[Spec],
    *,
    files: Mapping[str, object],
    overrides: Sequence[str] = (),
    equal: Equal = "parameters",
    hidden: int | None = None,
    layers: int | None = None,
    seed: int | None = None,
    seeds: int = 1,
    seconds: float | None = None,
    updates: int | None = None,
    device: str | None = None,
    keep: Path | None = None,
    progress: Callable[[], Progress] = Silent,
    told: Callable[[str], None] | None = None,
    trust: bool = False,
) -> CellRuns:
    """Train a task once with each cell. The first has the width of the settings; with `equal` = parameters the others
    have the width at which their model is as large.

    Each is trained for so many seconds, or so many updates, or else as the settings say, from as many seeds: that of
    the settings, or `seed`, and those after it. Runs are kept if a folder for them is named.
    """
    if seeds < 1:
        raise ConfigError(f"--seeds must be above 0, but is {seeds}.")
    if not cells:
        raise ConfigError("name at least one cell, such as elman,gru,lstm.")
    budget = [] if seconds is None else [f"training.minutes={seconds / 60!r}"]
    budget += [] if updates is None else [f"training.steps={updates}"]
    budget += [] if layers is None else [f"model.layers={layers}"]
    budget += [] if seed is None else [f"training.seed={seed}"]
    width = [] if hidden is None else [f"model.hidden={hidden}"]

    def with_cell(cell: Spec, own: Sequence[str]) -> Setup:
        chosen = [f"model.cell={toml_value(cell)}"]
        return setup(what, given=files, overrides=[*overrides, *budget, *chosen, *own], device=device, trust=trust)

    found: list[CellRun] = []
    with tempfile.TemporaryDirectory(prefix="recurra-") as private:
        folder = Path(private) if keep is None else keep
        for number, cell in enumerate(cells, 1):
            name, own = Course(cell, []).name, width
            this = with_cell(cell, own)
            check_width(this)
            if equal == "parameters" and found:
                size = partial(_size, partial(with_cell, cell), folder / found[0].folder)
                own = [f"model.hidden={width_for(found[0].parameters, size)}"]
            first = this.settings.training.seed
            for drawn in range(first, first + seeds):
                this = with_cell(cell, [*own, f"training.seed={drawn}"])
                place = f"{number}-{''.join(letter if letter.isalnum() else '_' for letter in name)}"
                place += f"-seed-{drawn}" if seeds > 1 else ""
                begin(this, folder / place, progress())
                found.append(_run(folder, place, name, this.settings.model.hidden, drawn))
                if told is not None:
                    last, which = found[-1], f", seed {drawn}" if seeds > 1 else ""
                    told(
                        f"{name}{which}: {last.parameters:,} parameters, {last.steps:,} updates in {last.seconds:.0f} s"
                    )
    data = ", ".join(Path(file).name for file in this.settings.data.files("train"))
    return CellRuns(this.kind.name, data, equal, found, seeds)


def check_width(this: Setup) -> None:
    """Refuse settings whose model has no cell of one width."""
    model = table_of(this.settings).get("model", {})
    if "cell" not in model or not isinstance(model.get("hidden"), int):
        raise ConfigError(
            f"recurra lab compares cells of one width, but the model of {this.kind.name} has no model.cell, or no "
            "model.hidden that is one whole number: give --hidden N."
        )


def _size(with_settings: Callable[[Sequence[str]], Setup], learned: Path, width: int) -> int:
    """The parameters of a task's model with a cell of a width, given a run that has read the data."""
    this = with_settings([f"model.hidden={width}"])
    task = this.kind.load(this.kind.resolved(this.settings), learned)
    return size_of(task.build())


def _run(folder: Path, place: str, name: str, hidden: int, seed: int) -> CellRun:
    """What a finished run says of itself."""
    summary: Any = read_json(folder / place / "summary.json")
    scores = {"valid": summary.get("best") or {}, "test": summary.get("test") or {}}
    return CellRun(
        name=name,
        hidden=hidden,
        parameters=summary["parameters"],
        steps=summary["steps"],
        seconds=summary["seconds"],
        lines=read_log(folder / place / FILE),
        scores={part: each["scores"] for part, each in scores.items() if each.get("scores")},
        first=summary.get("first_metric") or "",
        folder=place,
        seed=seed,
    )
