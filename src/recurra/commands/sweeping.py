"""A search over settings."""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

from recurra.text.json_file import json_text


def sweep(options: argparse.Namespace) -> None:
    """Many runs of a config file's task, with settings drawn from its space."""
    from recurra import runs
    from recurra.sweeping.sweep import search
    from recurra.training.allocation import keep_freed_memory
    from recurra.training.progress import progress

    keep_freed_memory()
    given = runs.given_by(options.config, trust=options.trust).options(options.set)
    if options.device is not None:
        given = given.also(("training", "device"), options.device, "--device")
    said = None if options.json else lambda line: print(line, file=sys.stderr, flush=True)
    found = search(
        given,
        free_name() if options.out is None else Path(options.out),
        trials=options.trials,
        minutes=options.minutes,
        seed=options.seed,
        prune=options.prune,
        keep=options.keep,
        progress=lambda: progress(sys.stderr, quiet=options.quiet or options.json),
        told=said,
    )
    print(json_text(found.json()) if options.json else f"{found.table().text()}\n{found.in_words()}")


def free_name() -> Path:
    """A folder for a sweep that is not there yet."""
    return next(path for n in itertools.count(1) if not (path := Path("sweeps") / f"sweep-{n}").exists())
