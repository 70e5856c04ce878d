"""Gradients through time, and cells compared."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recurra.errors import ConfigError
from recurra.text.json_file import json_text


def gradients(options: argparse.Namespace) -> None:
    """How gradients flow through time."""
    from recurra import runs
    from recurra.named import catalogue
    from recurra.reports import examined, gradient_page
    from recurra.tasks.task import Task
    from recurra.training.trained import load

    if options.out is not None:
        gradient_page.check_ending(Path(options.out))
    if options.steps < 2:
        raise ConfigError(f"--steps must be at least 2, but is {options.steps}.")
    what = options.what
    is_own = ":" in what and not Path(what).exists()  # a task as 'package.module:Class'
    if what.endswith(".toml") or Path(what).is_file() or is_own or what in catalogue(Task):
        this = runs.setup(what, overrides=options.set, trust=options.trust)
        found = examined.gradients_before_training(
            this.kind, this.settings, options.data, title=f"{what}, untrained", steps=options.steps
        )
    elif options.set:
        raise ConfigError(
            f"the settings of a trained model cannot be changed: use --set {options.set[0]} with a config file."
        )
    else:
        found = examined.gradients_of_run(load(Path(what), trust=options.trust), options.data, steps=options.steps)
    if options.out is not None:
        gradient_page.write(found, Path(options.out))
    print(json_text(found.json()) if options.json else gradient_page.as_text(found))


def lab(options: argparse.Namespace) -> None:
    """Cells compared on one problem."""
    from recurra.reports import lab as laboratory

    if options.out is not None:
        laboratory.check_ending(Path(options.out))
    found = laboratory.compare_cells(
        options.problem,
        laboratory.USUAL if options.cells is None else laboratory.cells_of(options.cells),
        length=options.length,
        hidden=options.hidden,
        seconds=options.seconds,
        updates=options.updates,
        seed=options.seed,
        told=None if options.json else lambda line: print(line, file=sys.stderr, flush=True),
    )
    if options.out is not None:
        laboratory.write(found, Path(options.out))
    print(json_text(found.json()) if options.json else laboratory.as_text(found))
