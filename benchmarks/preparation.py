"""Preparing a corpus that need not fit into memory: one process beside several, what all of them hold, and a kill.

    python benchmarks/preparation.py [--megabytes 200] [--copies 1] [--processes 1 2] [--rounds 2] [--kill]

Writes a table of tagged sentences (200,000 words by Zipf's law) to a temporary folder and prepares it for a tagger that
reads letters too: vocabularies are counted and every sentence is encoded, as before a training. Each number of
processes has its turn in each round, and the bytes that they make are compared. The memory is the resident set of the
process and its workers together, ten times a second. On a machine with other work, compare processor times: `CPU s` of
all processes, and that of the busiest (counting and encoding have workers of their own). With --kill, a preparation is
killed half way (SIGKILL) and started again. Needs about four times the size of the corpus on the disk; exit code 1
where bytes differ.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from larger_than_memory import write_sentences

PREPARE = """\
import sys
from recurra.config.given import Given
from recurra.tasks.tagging import Tagging
from recurra.training.preparation import digest_of, prepared
given = {"data.train": "train.tsv", "data.columns": ["tokens", "tags"], "data.processes": int(sys.argv[1])}
settings = Given().changes({**given, "training.epochs": 1}, "changes").settings(Tagging.Settings)
found = prepared(Tagging, settings, lambda said: print(said, flush=True))
print(digest_of(found.store))
"""


class Prepared(NamedTuple):
    """What a preparation took, and a mark of what it made."""

    seconds: float
    cpu: float
    busiest: float  # processor time of the process that has most
    memory: list[float]  # MB, of all processes together
    said: list[str]
    digest: str


def resident(process: int, busy: dict[int, float] | None = None) -> float:
    """MB that a process and its children hold; `busy` is told the seconds of processor time of each so far."""
    total = 0.0
    waiting = [process]
    while waiting:
        number = waiting.pop()
        try:
            status = Path(f"/proc/{number}/status").read_text()
            total += next(int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmRSS"))
            if busy is not None:
                fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
                busy[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            for thread in Path(f"/proc/{number}/task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
        except (OSError, StopIteration):
            continue
    return total


def encoded(folder: Path) -> int:
    """How many examples an unfinished preparation has saved."""
    for progress in folder.glob("cache/data/*.unfinished/progress.json"):
        return int(json.loads(progress.read_text())["written"]["rows"])
    return 0


def prepare(folder: Path, processes: int, *, kill_at: int | None = None, keep: bool = False) -> Prepared:
    """Prepare the corpus in a process of its own, which may be killed when so many examples are saved."""
    if not keep:
        shutil.rmtree(folder / "cache", ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", PREPARE, str(processes)],
        cwd=folder,
        env={**os.environ, "RECURRA_CACHE": str(folder / "cache")},
        stdout=subprocess.PIPE,
        text=True,
    )
    memory: list[float] = []
    busy: dict[int, float] = {}
    while process.poll() is None:
        memory.append(resident(process.pid, busy))
        if kill_at is not None and encoded(folder) >= kill_at:
            process.kill()
        time.sleep(0.1)
    assert process.stdout is not None
    said = process.stdout.read().splitlines()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if process.returncode and kill_at is None:
        sys.exit(f"the preparation ended with code {process.returncode}")
    busiest = max(busy.values())
    return Prepared(time.monotonic() - began, cpu, busiest, memory, said[:-1], said[-1] if said else "")


def flat(memory: Sequence[float]) -> str:
    """The largest memory, and how much larger the last third is than the middle one."""
    third = len(memory) // 3
    middle, last = max(memory[third : 2 * third]), max(memory[2 * third :])
    return f"{max(memory):6.0f} MB, last third {last / middle - 1:+.1%}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200, help="of the corpus (200)")
    parser.add_argument("--copies", type=int, default=1, help="the corpus is so many copies of its first part (1)")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="numbers of processes (1 2)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each has its turn (2)")
    parser.add_argument("--kill", action="store_true", help="also kill a preparation half way, and start it again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if shutil.disk_usage(folder).free < 4e6 * options.megabytes:
            sys.exit(f"{folder} has less than {4e-3 * options.megabytes:.1f} GB free: set TMPDIR to a larger disk")
        lines, tokens = write_sentences(folder / "train.tsv", int(options.megabytes * 1e6 / options.copies))
        with (folder / "train.tsv").open("r+b") as corpus:  # to draw words takes longer than to copy them
            part = corpus.read()
            for _ in range(options.copies - 1):
                corpus.write(part)
        del part
        lines, tokens = lines * options.copies, tokens * options.copies
        print(f"{options.megabytes:g} MB: {lines:,} sentences, {tokens:,} words; {os.cpu_count()} cores", flush=True)
        print(
            f"{'processes':>9}{'seconds':>9}{'MB/s':>7}{'CPU s':>8}{'busiest':>9}{'cores used':>12}  memory of all",
            flush=True,
        )
        digests = set()
        for _ in range(options.rounds):
            for processes in options.processes:
                found = prepare(folder, processes)
                digests.add(found.digest)
                speed, used = options.megabytes / found.seconds, found.cpu / found.seconds
                figures = (
                    f"{processes:9}{found.seconds:9.1f}{speed:7.2f}{found.cpu:8.1f}{found.busiest:9.1f}{used:12.2f}"
                )
                print(f"{figures}  {flat(found.memory)}", flush=True)
        if options.kill:
            killed = prepare(folder, options.processes[-1], kill_at=lines // 2)
            saved = f"killed with {encoded(folder):,} examples saved, after {killed.seconds:.1f} s"
            print(f"{saved}; {flat(killed.memory)}", flush=True)
            again = prepare(folder, options.processes[-1], keep=True)
            digests.add(again.digest)
            print(f"started again, it took {again.seconds:.1f} s; {flat(again.memory)}")
            print("\n".join(f"    {line}" for line in again.said))
    print(f"the bytes are {'the same each time' if len(digests) == 1 else 'NOT THE SAME'}")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
