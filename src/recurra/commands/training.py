"""From files to a run, and what a run is."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recurra.errors import ConfigError
from recurra.text.json_file import json_text

if TYPE_CHECKING:
    from recurra.runs import Setup
    from recurra.training.launching import Place


def train(options: argparse.Namespace) -> None:
    """A new run, or one to go on with."""
    from recurra.training.launching import place_of_this_process

    place = place_of_this_process()
    if place is None:
        train_or_launch(options)
    else:
        train_with_others(options, place)


def train_or_launch(options: argparse.Namespace) -> None:
    """Train in this process, or start those that train together."""
    from recurra import runs
    from recurra.training.allocation import keep_freed_memory
    from recurra.training.launching import launch
    from recurra.training.progress import progress

    shown = progress(sys.stderr, quiet=options.quiet)
    is_launched = options.processes is not None and options.processes != 1
    if not is_launched:
        keep_freed_memory()
    if options.resume:
        check_resumed(options)
        if is_launched:
            leave_with(launch(without_processes(options.typed), options.processes, shown.note))
            return
        device = [f"training.device={options.device}"] if options.device else []
        runs.resume(Path(options.what), shown, overrides=[*options.set, *device], trust=options.trust)
        print(runs.told(Path(options.what)))
        return
    if options.seeds is not None and options.seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, but is {options.seeds}.")
    this = setup_of(options)
    if options.dry_run:
        print(runs.rehearsed(this, shown, trust=options.trust))
        return
    folder = Path(options.out or runs.free_name(this))
    if is_launched:
        refuse_seeds(options)
        out = [] if options.out else ["--out", str(folder)]
        runs.check_is_new(folder)
        leave_with(launch([*without_processes(options.typed), *out], options.processes, shown.note))
        return
    if options.seeds and options.seeds > 1:
        print(runs.several(this, folder, options.seeds, shown, trust=options.trust))
        return
    runs.begin(this, folder, shown, trust=options.trust)
    print(runs.told(folder))


def leave_with(status: int) -> None:
    """End this command as those that it has started have ended."""
    if status:
        sys.exit(status)


def train_with_others(options: argparse.Namespace, place: Place) -> None:
    """Train in one of several processes that torchrun, or `--processes`, has started."""
    from recurra import runs
    from recurra.training.allocation import keep_freed_memory
    from recurra.training.launching import end_as_lost, follow_the_launcher, is_restart
    from recurra.training.processes import LostError
    from recurra.training.progress import progress

    if options.processes is not None:
        raise ConfigError("--processes starts processes itself: leave it out under torchrun.")
    follow_the_launcher()
    if place.rank:
        warnings.simplefilter("ignore")  # the first process says the same
    keep_freed_memory()
    refuse_seeds(options)
    shown = progress(sys.stderr, quiet=options.quiet)
    try:
        if options.resume:
            check_resumed(options)
            folder = Path(options.what)
            device = [f"training.device={options.device}"] if options.device else []
            runs.resume(folder, shown, overrides=[*options.set, *device], trust=options.trust)
        else:
            if not options.out:
                raise ConfigError("several processes write one run: say where with --out RUN.")
            this, folder = setup_of(options), Path(options.out)
            if options.dry_run:
                if place.rank == 0:
                    print(runs.rehearsed(this, shown, trust=options.trust))
                return
            if is_restart() and runs.is_run(folder):
                runs.resume(folder, shown, trust=True)
            else:
                runs.begin(this, folder, shown, trust=options.trust)
    except LostError as error:
        end_as_lost(str(error))
    if place.rank == 0:
        print(runs.told(folder))


def setup_of(options: argparse.Namespace) -> Setup:
    """The task and the settings that were typed."""
    from recurra import runs

    on_the_line = {name: getattr(options, name) for name in ("train", "valid", "test", "format", "columns")}
    return runs.setup(
        options.what,
        given=on_the_line,
        overrides=options.set,
        device=options.device,
        start_from=options.start,
        trust=options.trust,
    )


def check_resumed(options: argparse.Namespace) -> None:
    """Refuse what a run that is resumed has settled already."""
    if options.what is None:
        raise ConfigError("--resume continues a run: name it, recurra train RUN --resume.")
    names = ("train", "valid", "test", "out", "seeds", "dry_run", "start")
    if given := [name for name in names if getattr(options, name)]:
        raise ConfigError(f"--resume continues a run with its own settings; leave --{given[0].replace('_', '-')} out.")


def refuse_seeds(options: argparse.Namespace) -> None:
    """Several runs are not trained by several processes."""
    if options.seeds and options.seeds > 1:
        raise ConfigError(
            "--seeds trains several models, one after the other, and several processes train one: leave --seeds out, "
            "or train in one process."
        )


def without_processes(arguments: Sequence[str]) -> list[str]:
    """The arguments without the option --processes.

    >>> without_processes(["train", "tagging", "--processes", "2", "--quiet"])
    ['train', 'tagging', '--quiet']
    """
    found, words = list[str](), iter(arguments)
    for word in words:
        if word == "--processes":
            next(words)
        elif not word.startswith("--processes="):
            found.append(word)
    return found


def config(options: argparse.Namespace) -> None:
    """All settings of a task with their defaults."""
    from recurra import runs
    from recurra.settings import toml_text

    print(toml_text(runs.setup(options.task, overrides=options.set, trust=options.trust).settings, about=True), end="")


def info(options: argparse.Namespace) -> None:
    """What a run is, how it was trained and what it reached; of several runs, each."""
    from recurra import runs
    from recurra.training.run_names import folders

    if options.draw is not None or options.graph is not None:
        from recurra.reports import probabilistic_graph, unrolled
        from recurra.training.loading import load_task

        tasks = {str(folder): load_task(folder, trust=options.trust) for folder in folders(options.run)}
        for report, path in ((unrolled, options.draw), (probabilistic_graph, options.graph)):
            if path is not None:
                report.draw(tasks, Path(path))
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
