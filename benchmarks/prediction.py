"""Predicting a long file: one process beside several, what all of them hold, and a kill.

    python benchmarks/prediction.py [--megabytes 20] [--processes 1 2] [--rounds 2] [--kill]

Trains a tagger that reads words and letters (BiLSTM 128) for a few steps on made-up sentences, and lets it tag a table
of so many megabytes: `recurra predict RUN FILE --out ANSWERS --processes N`. Each number of processes has its turn in
each round, and the bytes that they write are compared. With --kill, a prediction is killed half way (SIGKILL) and
started again. Exit code 1 where bytes differ.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from larger_than_memory import write_sentences
from preparation import flat, resident

SETTINGS = ["model.hidden=128", "training.steps=20", 'data.columns=["tokens","tags"]', "data.cache=false"]


class Predicted(NamedTuple):
    """What a prediction took."""

    seconds: float
    cpu: float
    busiest: float  # processor time of the process that has most
    memory: list[float]  # MB, of all processes together
    said: str


def predict(folder: Path, processes: int, out: str, *, kill_at: int | None = None) -> Predicted:
    """Tag the table; killed when so many groups are kept."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    command = ["predict", "run", "asked.tsv", "--out", out, "--processes", str(processes)]
    process = subprocess.Popen(
        [sys.executable, "-m", "recurra", *command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    memory: list[float] = []
    busy: dict[int, float] = {}
    while process.poll() is None:
        memory.append(resident(process.pid, busy))
        if kill_at is not None and len(list((folder / f"{out}.parts").glob("*.answers"))) >= kill_at:
            process.kill()
        time.sleep(0.1)
    assert process.stderr is not None
    said = [line for line in process.stderr.read().splitlines() if "not in the vocabulary" not in line]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if process.returncode and kill_at is None:
        sys.exit("\n".join(said))
    return Predicted(time.monotonic() - began, cpu, max(busy.values()), memory, "\n".join(said))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=20, help="of the table, tags included (20)")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="numbers of processes (1 2)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each has its turn (2)")
    parser.add_argument("--kill", action="store_true", help="also kill a prediction half way, and start it again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_sentences(folder / "train.tsv", 1_000_000)
        lines, tokens = write_sentences(folder / "asked.tsv", int(options.megabytes * 1e6))
        train = [sys.executable, "-m", "recurra", "train", "tagging", "--train", "train.tsv", "--out", "run", "--quiet"]
        settings = [part for setting in SETTINGS for part in ("--set", setting)]
        subprocess.run(
            [*train, *settings], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        print(f"{lines:,} sentences, {tokens:,} words; {os.cpu_count()} cores", flush=True)
        print(
            f"{'processes':>9}{'seconds':>9}{'words/s':>9}{'CPU s':>8}{'busiest':>9}{'cores used':>12}  memory of all",
            flush=True,
        )
        digests = set()
        for turn in range(options.rounds):
            for processes in options.processes:
                out = f"answers-{turn}-{processes}.jsonl"
                found = predict(folder, processes, out)
                digests.add(hashlib.sha256((folder / out).read_bytes()).hexdigest())
                speed, used = tokens / found.seconds, found.cpu / found.seconds
                figures = (
                    f"{processes:9}{found.seconds:9.1f}{speed:9,.0f}{found.cpu:8.1f}{found.busiest:9.1f}{used:12.2f}"
                )
                print(f"{figures}  {flat(found.memory)}", flush=True)
        if options.kill:
            killed = predict(folder, options.processes[-1], "killed.jsonl", kill_at=lines // 4096 // 2)
            print(f"killed after {killed.seconds:.1f} s")
            again = predict(folder, options.processes[0], "killed.jsonl")
            digests.add(hashlib.sha256((folder / "killed.jsonl").read_bytes()).hexdigest())
            print(f"started again, it took {again.seconds:.1f} s: {again.said}")
    print(f"the bytes are {'the same each time' if len(digests) == 1 else 'NOT THE SAME'}")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
