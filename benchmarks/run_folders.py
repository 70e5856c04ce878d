"""What it costs that runs are saved at one commit point and verified when they are loaded.

    python benchmarks/run_folders.py --before OTHER_CHECKOUT [--pairs 7] [--megabytes 400]

Trains the same small tagger (12 validations, each with a save) with this checkout and with another one, in turns, and
prints the medians of the ratios of the times of training, by the clock and of the processor: where other processes run,
the first differs much from pair to pair. Then writes a run folder with a large file of weights and prints how long its
verification takes, per 100 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[1]
SETTINGS = {
    "training.steps": 600,
    "training.validate": 50,
    "training.batch_tokens": 300,
    "training.threads": 1,
    "model.hidden": 64,
    "data.min_count": 1,
}
PROGRAM = """
import sys, time
import recurra.training.trainer as trainer
run, seconds = trainer.Trainer.run, []
def timed(self, log):
    began = time.monotonic(), time.process_time()
    run(self, log)
    seconds.extend((time.monotonic() - began[0], time.process_time() - began[1]))
trainer.Trainer.run = timed
from recurra.cli import main
status = main(sys.argv[1:])
print("SECONDS", *seconds)
sys.exit(status)
"""


def write_sentences(path: Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    tags = {f"w{number}": f"T{number % 9}" for number in range(400)}
    with open(path, "w") as file:
        for _ in range(count):
            words = draw.choices(list(tags), k=draw.randint(4, 25))
            file.write("\n".join(f"{word}\t{tags[word]}" for word in words) + "\n\n")


class Seconds(NamedTuple):
    clock: float
    processor: float


def training_seconds(source: Path, folder: Path, number: int) -> Seconds:
    """How long the loop of training takes, saves and validations included."""
    out = folder / f"run-{number}-{source.name}"
    given = ["train", "tagging", "--train", str(folder / "train.conll"), "--valid", str(folder / "valid.conll")]
    settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *given, "--out", str(out), "--quiet", *settings],
        env={**os.environ, "PYTHONPATH": str(source / "src"), "RECURRA_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    [line] = [line for line in found.stdout.splitlines() if line.startswith("SECONDS")]
    return Seconds(*map(float, line.split()[1:]))


def verifying_seconds(folder: Path, megabytes: int) -> float:
    """How long the verification of a folder with so many megabytes takes, per 100 of them."""
    from recurra.manifest import seal, verify

    folder.mkdir()
    with open(folder / "model.safetensors", "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1_000_000))
    seal(folder)
    times = []
    for _ in range(5):
        began = time.monotonic()
        verify(folder)
        times.append(time.monotonic() - began)
    return statistics.median(times) * 100 / megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="checkout of an earlier version")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--megabytes", type=int, default=400)
    options = parser.parse_args()
    sys.path.insert(0, str(HERE / "src"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sentences(folder / "train.conll", 1000, 1)
        write_sentences(folder / "valid.conll", 60, 2)
        ratios: list[Seconds] = []
        for number in range(options.pairs + 1):
            before, now = (training_seconds(source, folder, number) for source in (options.before, HERE))
            if number:  # the first pair compiles and fills the caches
                ratios.append(Seconds(*(one / other for one, other in zip(now, before, strict=True))))
                print(
                    f"pair {number}: before {before.clock:.2f} s, now {now.clock:.2f} s, ratio {ratios[-1].clock:.3f}; "
                    f"of the processor {before.processor:.2f} s, {now.processor:.2f} s, {ratios[-1].processor:.3f}",
                    flush=True,
                )
        clock, processor = (statistics.median(values) for values in zip(*ratios, strict=True))
        print(
            f"training with 12 saves: median ratio {clock:.3f} by the clock, {processor:.3f} of the processor, "
            f"of {options.pairs} pairs"
        )
        seconds = verifying_seconds(folder / "large", options.megabytes)
        print(f"verifying a run when it is loaded: {seconds:.3f} s per 100 MB")
        print(json.dumps({"clock": clock, "processor": processor, "seconds_per_100_MB": seconds}))


if __name__ == "__main__":
    main()
