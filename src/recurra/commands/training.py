"""From files to a run, and what a run is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recurra.errors import ConfigError
from recurra.text.json_file import json_text


def train(options: argparse.Namespace) -> None:
    """A new run, or one to go on with."""
    from recurra import runs
    from recurra.training.allocation import keep_freed_memory
    from recurra.training.progress import progress

    keep_freed_memory()
    shown = progress(sys.stderr, quiet=options.quiet)
    if options.resume:
        given = [
            name for name in ("train", "valid", "test", "out", "seeds", "dry_run", "start") if getattr(options, name)
        ]
        if given:
            raise ConfigError(
                f"--resume continues a run with its own settings; leave --{given[0].replace('_', '-')} out."
            )
        device = [f"training.device={options.device}"] if options.device else []
        runs.resume(Path(options.what), shown, overrides=[*options.set, *device], trust=options.trust)
        print(runs.told(Path(options.what)))
        return
    if options.seeds is not None and options.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, but is {options.seeds}.")
    on_the_line = {name: getattr(options, name) for name in ("train", "valid", "test", "format", "columns")}
    this = runs.setup(
        options.what, given=on_the_line, overrides=options.set, device=options.device, trust=options.trust
    )
    if options.dry_run:
        print(runs.rehearsed(this, shown))
        return
    folder = Path(options.out or runs.free_name(this))
    start_from = Path(options.start) if options.start else None
    if options.seeds and options.seeds > 1:
        print(runs.several(this, folder, options.seeds, shown, start_from=start_from, trust=options.trust))
        return
    runs.begin(this, folder, shown, start_from=start_from, trust=options.trust)
    print(runs.told(folder))


def config(options: argparse.Namespace) -> None:
    """All settings of a task with their defaults."""
    from recurra import runs
    from recurra.settings import toml_text

    print(toml_text(runs.setup(options.task, overrides=options.set, trust=options.trust).settings, about=True), end="")


def info(options: argparse.Namespace) -> None:
    """What a run is, how it was trained and what it reached; of several runs, each."""
    from recurra import runs
    from recurra.training.run_names import folders

    if options.draw is not None:
        from recurra.reports.unrolled import draw
        from recurra.training.loading import load_task

        draw(load_task(Path(options.run), trust=options.trust), Path(options.draw))
    if options.graph is not None:
        from recurra.reports import probabilistic_graph
        from recurra.training.loading import load_task

        probabilistic_graph.draw(load_task(Path(options.run), trust=options.trust), Path(options.graph))
    if options.json:
        found = [runs.summary_of(folder) for folder in folders(options.run)]
        print(json_text(found if len(found) > 1 else found[0]))
    else:
        print("\n".join(runs.told(folder) for folder in folders(options.run)))


def demo(_: argparse.Namespace) -> None:
    """The tour."""
    import torch  # noqa: F401  # where it is missing, that is said before anything else

    from recurra.demo import tour

    tour()
