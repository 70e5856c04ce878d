"""Runs of every task that are killed, stopped, cut off from power or refused by the disk, and then gone on with.

    python benchmarks/crashes.py [--tasks tagging …] [--kills 36] [--cuts 20] [--signals 9] [--refusals 2] [--seed 1]

Each broken run must end with the bits of an unbroken one: model.safetensors, the tensors of the last checkpoint, all
scores. Where nothing was saved yet it must simply begin anew. Prints a row per task (how often it was broken, how often
that went wrong) and every fault that went wrong; exit code 1 where there is one. `make slow-test` runs the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", ".")]

from tests.faults.fault import build_shim, why_no_shim  # noqa: E402
from tests.faults.fork_server import ForkServer  # noqa: E402
from tests.faults.programme import (  # noqa: E402
    REFUSALS,
    Outcome,
    many_kills,
    many_power_cuts,
    many_signals,
    mistakes,
    refused_at_every_file,
)
from tests.faults.small_runs import TASKS, SmallRun  # noqa: E402

COLUMNS = ("kills", "of them in a save", "power cuts", "signals", "disk faults", "went wrong", "seconds")


def broken(small: SmallRun, options: argparse.Namespace) -> dict[str, list[Outcome]]:
    """What became of every fault of a task, by kind."""
    draw = random.Random(f"{options.seed} {small.task}")
    chosen = draw.sample(REFUSALS, options.refusals)
    kinds: dict[str, Iterable[Outcome]] = {
        "kills": many_kills(small, draw, options.kills),
        "power cuts": many_power_cuts(small, draw, options.cuts),
        "signals": many_signals(small, draw, options.signals),
        "disk faults": refused_at_every_file(small, draw, chosen),
    }
    return {kind: [outcome for outcome in outcomes if outcome.came] for kind, outcomes in kinds.items()}


def row(first: str, cells: Iterable[object]) -> str:
    return f"{first:<16}" + "".join(f"{cell!s:>{len(name) + 3}}" for name, cell in zip(COLUMNS, cells, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), metavar="TASK", help="of these tasks (all six)")
    parser.add_argument("--kills", type=int, default=36, help="of each task (36)")
    parser.add_argument("--cuts", type=int, default=20, help="power cuts of each task (20)")
    parser.add_argument("--signals", type=int, default=9, help="SIGTERM, SIGINT, SIGINT twice, of each task (9)")
    parser.add_argument("--refusals", type=int, default=2, help="kinds of disk faults at every file of a run (2)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens when (1)")
    options = parser.parse_args()
    if (why := why_no_shim()) is not None:
        sys.exit(why)
    total = [0] * len(COLUMNS)
    wrong: list[str] = []
    print(row("", COLUMNS))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with ForkServer(build_shim(folder), folder / "server") as server:
            for task in options.tasks:
                began = time.monotonic()
                (folder / task).mkdir()
                small = SmallRun(task, folder / task, server)
                small.prepare()
                found = broken(small, options)
                here = mistakes(outcome for outcomes in found.values() for outcome in outcomes)
                wrong += here
                in_save = sum(outcome.in_save for outcome in found["kills"])
                counts = [len(found["kills"]), in_save, *(len(found[kind]) for kind in list(found)[1:]), len(here)]
                counts.append(round(time.monotonic() - began))
                total = [before + count for before, count in zip(total, counts, strict=True)]
                print(row(task, counts), flush=True)
    print(row("all", total))
    print("\n".join(["", *wrong]) if wrong else "\nevery run ended with the bits of the unbroken one")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
