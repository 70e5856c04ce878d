"""What it costs that runs are saved at one commit point and verified when they are loaded.

    python benchmarks/run_folders.py --before OTHER_CHECKOUT [--pairs 7] [--megabytes 400]

Trains the same small tagger (12 validations, each with a save) with this checkout and with another one, in turns, and
prints the median of the ratios of the wall times of training. Then writes a run folder with a large file of weights and
prints how long its verification takes, per 100 MB. Times depend on the machine; the ratio is of one run.
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
began, run, seconds = 0.0, trainer.Trainer.run, []
def timed(self, log):
    began = time.monotonic()
    run(self, log)
    seconds.append(time.monotonic() - began)
trainer.Trainer.run = timed
from recurra.cli import main
status = main(sys.argv[1:])
print("SECONDS", sum(seconds))
sys.exit(status)
"""


def write_sentences(path: Path, count: int, seed: int) -> None:
    draw = random.Random(seed)
    tags = {f"w{number}": f"T{number % 9}" for number in range(400)}
    with open(path, "w") as file:
        for _ in range(count):
            words = draw.choices(list(tags), k=draw.randint(4, 25))
            file.write("\n".join(f"{word}\t{tags[word]}" for word in words) + "\n\n")


def training_seconds(source: Path, folder: Path, number: int) -> float:
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
    return float(line.split()[1])


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
        ratios = []
        for number in range(options.pairs + 1):
            before, now = (training_seconds(source, folder, number) for source in (options.before, HERE))
            if number:  # the first pair compiles and fills the caches
                ratios.append(now / before)
                print(f"pair {number}: before {before:.2f} s, now {now:.2f} s, ratio {now / before:.3f}", flush=True)
        print(f"training with 12 saves: median ratio {statistics.median(ratios):.3f} of {options.pairs} pairs")
        seconds = verifying_seconds(folder / "large", options.megabytes)
        print(f"verifying a run when it is loaded: {seconds:.3f} s per 100 MB")
        print(json.dumps({"ratio": statistics.median(ratios), "seconds_per_100_MB": seconds}))


if __name__ == "__main__":
    main()
