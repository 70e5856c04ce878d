"""A training run that is killed again and again ends with the weights of one that never was.

    python benchmarks/killed.py [--kills 20] [--seed 1]

The killed run is resumed each time (SIGKILL: nothing can be tidied up). Both save a checkpoint after every step, and
every second kill waits for a save to begin; a file that is left half written shows that a kill fell into it. Prints a
table of the kills and the SHA-256 of what both runs end with; exit code 1 where they differ.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

STEPS = 240
SETTINGS = [
    *("model.hidden=256", "model.embedding=64", "model.characters.hidden=24", "model.dropout=0.2"),
    *("data.min_count=1", f"training.steps={STEPS}", "training.epochs=none", "training.validate=40"),
    *("training.batch_tokens=60", "training.threads=1", "training.device=cpu", "training.save_minutes=0"),
]


class Digests(NamedTuple):
    """What two runs must have in common."""

    model: str
    checkpoint: str


def write_sentences(path: Path, count: int, seed: int) -> None:
    """'run' is a verb after 'they' and a noun after 'the'; one word in four is rare."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        for _ in range(draw.randint(1, 6)):
            first, tag = draw.choice([("they", "PRON"), ("the", "DET")])
            word = draw.choice(["run", "walk", "talk", f"zig{draw.randint(0, 999)}"])
            lines += [f"{first}\t{tag}", f"{word}\t{'VERB' if first == 'they' else 'NOUN'}"]
        lines.append("")
    path.write_text("\n".join(lines) + "\n", "utf-8")


def started(folder: Path, run: str, *, resume: bool = False) -> subprocess.Popen[bytes]:
    """A process that trains in folder/run."""
    command = [sys.executable, "-m", "recurra", "train"]
    if resume:
        command += [run, "--resume"]
    else:
        command += ["tagging", "--train", "train.conll", "--valid", "valid.conll", "--out", run]
        command += [part for setting in SETTINGS for part in ("--set", setting)]
    environment = {**os.environ, "RECURRA_CACHE": str(folder / "cache")}
    return subprocess.Popen([*command, "--quiet"], cwd=folder, env=environment, stdout=subprocess.DEVNULL)


def last_written(run: Path) -> int:
    """When the run's log was last written to."""
    log = run / "metrics.jsonl"
    return log.stat().st_mtime_ns if log.exists() else 0


def has_stepped(run: Path, *, since: int) -> bool:
    """Whether a process that was started since then has made a step: it then writes a line of training."""
    if last_written(run) <= since:
        return False
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    return bool(lines) and '"train"' in lines[-1]


def is_saving(run: Path) -> bool:
    return (run / "last" / "checkpoint.safetensors.unfinished").exists() or any(run.glob("*.unfinished"))


def wait(process: subprocess.Popen[bytes], holds: Callable[[], bool] = lambda: False) -> None:
    """Wait until it holds or the process has ended, which must not be by a mistake."""
    while process.poll() is None and not holds():
        time.sleep(0.001)
    if process.returncode:
        sys.exit(f"the training ended with code {process.returncode}")


def steps_saved(run: Path) -> int:
    from recurra.training.trainer import position_of

    position = position_of(run)
    return position.step if position is not None else 0


def digests(run: Path) -> Digests:
    from recurra.training.checkpoint import read_tensors

    tensors, _ = read_tensors(run / "last" / "checkpoint.safetensors")
    together = hashlib.sha256()
    for name in sorted(tensors):
        together.update(name.encode() + tensors[name].contiguous().numpy().tobytes())
    return Digests(hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest(), together.hexdigest())


def killed_often(folder: Path, kills: int, seconds: float, draw: random.Random) -> None:
    """One run, killed at random moments and resumed each time until it ends by itself."""
    run = folder / "killed"
    step = inside = 0
    print(f"\n{'kill':>4}{'seconds after its first step':>30}{'step saved':>12}  in the middle of writing")
    for number in range(1, kills + 1):
        written = last_written(run)
        process = started(folder, run.name, resume=number > 1)
        wait(process, lambda: has_stepped(run, since=written))  # noqa: B023
        began = time.monotonic()
        # The rest of the run in as many parts as there are kills to come; a life repeats what was not saved.
        time.sleep(draw.uniform(0, 1.5 * seconds * (STEPS - step) / STEPS / (kills + 2 - number)))
        if number % 2:  # Half of them wait for a save, and then a moment that it may well last.
            wait(process, lambda: is_saving(run))
            time.sleep(draw.uniform(0, 0.01))
        lived = time.monotonic() - began
        process.kill()
        if process.wait() == 0:
            print(f"{number:4}  too late: the run had ended")
            break
        halves = sorted(path.name.removesuffix(".unfinished") for path in run.rglob("*.unfinished"))
        inside += bool(halves)
        step = steps_saved(run)
        print(f"{number:4}{lived:30.3f}{step:12}  {', '.join(halves)}", flush=True)
    wait(started(folder, run.name, resume=True))
    print(f"\n{number} kills, {inside} of them in the middle of writing")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="so many (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_sentences(folder / "train.conll", 400, seed=1)
        write_sentences(folder / "valid.conll", 40, seed=2)
        process = started(folder, "unbroken")
        wait(process, lambda: has_stepped(folder / "unbroken", since=0))
        began = time.monotonic()
        wait(process)
        seconds = time.monotonic() - began
        size = (folder / "unbroken" / "last" / "checkpoint.safetensors").stat().st_size
        print(f"unbroken: {STEPS} steps in {seconds:.1f} s, a checkpoint of {size / 1e6:.1f} MB after each")
        killed_often(folder, options.kills, seconds, random.Random(options.seed))
        found = {run: digests(folder / run) for run in ("unbroken", "killed")}
    print("\nSHA-256 of model.safetensors, and of the tensors of the last checkpoint")
    for run, each in found.items():
        print(f"{run:10}{each.model}\n{'':10}{each.checkpoint}")
    is_same = found["unbroken"] == found["killed"]
    print("\nthe same" if is_same else "\nTHEY DIFFER")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
