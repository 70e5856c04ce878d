"""Gradients through time, and cells compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recurra.errors import ConfigError
from recurra.text.json_file import json_text

if TYPE_CHECKING:
    from recurra.cells import Spec


def gradients(options: argparse.Namespace) -> None:
    """How gradients flow through time; of several runs, in each."""
    from recurra import runs
    from recurra.named import catalogue
    from recurra.reports import examined, gradient_page
    from recurra.tasks.task import Task
    from recurra.training.run_names import folders
    from recurra.training.trained import load

    if options.out is not None:
        gradient_page.check_ending(Path(options.out))
    if options.steps < 2:
        raise ConfigError(f"--steps must be at least 2, but is {options.steps}.")
    what = options.what
    is_own = ":" in what and not Path(what).exists()  # a task as 'package.module:Class'
    if what.endswith(".toml") or Path(what).is_file() or is_own or what in catalogue(Task):
        this = runs.setup(what, overrides=options.set, trust=options.trust)
        title = f"{what}, untrained"
        found = [
            examined.gradients_before_training(this.kind, this.settings, options.data, title=title, steps=options.steps)
        ]
    elif options.set:
        raise ConfigError(
            f"the settings of a trained model cannot be changed: use --set {options.set[0]} with a config file."
        )
    else:
        found = [
            examined.gradients_of_run(load(folder, trust=options.trust), options.data, steps=options.steps)
            for folder in folders(what)
        ]
    if options.out is not None:
        gradient_page.write(found, Path(options.out))
    if options.json:
        each = [one.json() for one in found]
        print(json_text(each if len(each) > 1 else each[0]))
    else:
        print("\n\n".join(map(gradient_page.as_text, found)))


def lab(options: argparse.Namespace) -> None:
    """Cells compared on a problem, or on data."""
    from recurra.reports import automaton_picture
    from recurra.reports import lab as laboratory

    if options.out is not None:
        laboratory.check_ending(Path(options.out))
    if options.automaton is not None:
        automaton_picture.check_ending(Path(options.automaton))
    cells = laboratory.USUAL if options.cells is None else laboratory.cells_of(options.cells)
    told = None if options.json else lambda line: print(line, file=sys.stderr, flush=True)
    if is_task(options.problem):
        on_data(options, cells, told)
        return
    if given := [name for name in ONLY_DATA if getattr(options, name)]:
        raise ConfigError(
            f"--{given[0]} is for data, but '{options.problem}' is a problem that draws its own: leave it out, or name "
            "a task or a config file."
        )
    found = laboratory.compare_cells(
        options.problem,
        cells,
        length=options.length,
        hidden=64 if options.hidden is None else options.hidden,
        layers=options.layers or 1,
        seconds=30.0 if options.seconds is None else options.seconds,
        updates=options.updates,
        learning_rate=1e-3 if options.learning_rate is None else options.learning_rate,
        equal_parameters=options.equal == "parameters",
        seed=options.seed or 0,
        seeds=1 if options.seeds is None else options.seeds,
        device=options.device or "cpu",
        told=told,
    )
    if options.automaton is not None:
        name, tracked = laboratory.best_tracked(found)
        said = laboratory.caption(found.problem, name, tracked)
        automaton_picture.write(tracked.found.automaton, Path(options.automaton), said)
    if options.out is not None:
        laboratory.write(found, Path(options.out))
    print(json_text(found.json()) if options.json else laboratory.as_text(found))


ONLY_DATA = ("train", "valid", "test", "set", "keep")
"""Options of `recurra lab` that a problem has no use for."""

ONLY_PROBLEMS = ("length", "learning_rate")
"""Options that data have no use for: their settings say the same."""


def is_task(name: str) -> bool:
    """Whether a task or a config file is meant, and not a problem."""
    from recurra.named import catalogue
    from recurra.tasks.task import Task

    is_own = ":" in name and not Path(name).exists()
    return name.endswith(".toml") or Path(name).is_file() or is_own or name in catalogue(Task)


def on_data(options: argparse.Namespace, cells: Sequence[Spec], told: Callable[[str], None] | None) -> None:
    """Cells compared on data of the user."""
    from recurra.reports import cell_runs
    from recurra.training.progress import progress
    from recurra.trials import compare_on_data

    if given := [name for name in ONLY_PROBLEMS if getattr(options, name) is not None]:
        name = given[0].replace("_", "-")
        raise ConfigError(
            f"--{name} is for the problems of recurra lab; on data use --set, such as --set "
            "training.learning_rate=0.001."
        )
    if options.automaton is not None:
        raise ConfigError(
            "--automaton is for the problems of recurra lab, whose networks read one symbol after the other and whose "
            "right answers are known for any word: a model of a task has embeddings, may read both ways, and "
            "there is no right automaton to compare with. Leave it out."
        )
    files = {name: getattr(options, name) for name in ("train", "valid", "test") if getattr(options, name)}
    found = compare_on_data(
        options.problem,
        cells,
        files=files,
        overrides=options.set,
        equal=options.equal or "parameters",
        hidden=options.hidden,
        layers=options.layers,
        seed=options.seed,
        seeds=1 if options.seeds is None else options.seeds,
        seconds=options.seconds,
        updates=options.updates,
        device=options.device,
        keep=None if options.keep is None else Path(options.keep),
        progress=lambda: progress(sys.stderr, quiet=options.json),
        told=told,
        trust=options.trust,
    )
    if options.out is not None:
        cell_runs.write(found, Path(options.out))
    print(json_text(found.json()) if options.json else cell_runs.as_text(found))
