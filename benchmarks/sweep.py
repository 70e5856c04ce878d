"""A sweep of clinc150's intents by a bag of n-grams: two processes on one journal, then the best beside the defaults.

    python benchmarks/sweep.py                       # 40 trials, two processes; then three seeds of both on test
    python benchmarks/sweep.py --trials 8 --seeds 1 --out sweeps/brief

Data are read from $RECURRA_DATA (../shared/data). The sweep sees train.tsv and valid.tsv; its trials have the defaults
of `recurra config classification` with encoder = bag, but for 5 epochs and batches of 64. Because the best of many
trials looks better on valid.tsv than it is, the settings as they are and the best ones are trained once more with
other seeds, and scored on test.tsv, which no trial has seen.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import recurra

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "clinc150"

CONFIG = f"""task = "classification"

[data]
train = "{DATA}/train.tsv"
valid = "{DATA}/valid.tsv"

[model]
encoder = "bag"

[training]
epochs = 5
batch_size = 64
threads = 1

[sweep]
training.learning_rate = {{from = 3e-4, to = 3e-2, log = true}}
model.bag.size = {{from = 32, to = 128, step = 32}}
model.bag.words = [1, 2, 3]
model.bag.gain = {{from = 1, to = 32, log = true}}
model.bag.dropout = {{from = 0.0, to = 0.6}}
model.label_smoothing = {{from = 0.0, to = 0.3, step = 0.1}}
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--trials", type=int, default=40, help="in all (40)")
    arguments.add_argument("--processes", type=int, default=2, help="that work at the sweep (2)")
    arguments.add_argument("--seeds", type=int, default=3, help="of both settings, on test (3)")
    arguments.add_argument("--out", type=Path, help="keep the sweep in this folder")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as private:
        home = Path(options.out or private)
        home.mkdir(parents=True, exist_ok=True)
        config, folder = home / "config.toml", home / "sweep"
        config.write_text(CONFIG, "utf-8")
        command = [sys.executable, "-m", "recurra", "sweep", str(config), "--out", str(folder), "--quiet"]
        workers = [
            subprocess.Popen([*command, "--trials", str(options.trials)], stdout=subprocess.DEVNULL)
            for _ in range(options.processes)
        ]
        if any(worker.wait() for worker in workers):
            raise SystemExit("a process of the sweep has failed.")
        told(folder, options.processes)
        on_test(folder, home, options.seeds)


def told(folder: Path, processes: int) -> None:
    """What came of the trials."""
    trials = [json.loads(line) for line in (folder / "trials.jsonl").read_text("utf-8").splitlines()]
    states = Counter(each["state"] for each in trials)
    said = ", ".join(f"{count} {state}" for state, count in states.items())
    print(f"{len(trials)} trials by {processes} processes: {said}")
    epochs, whole = sum(each["validations"] for each in trials), 5 * len(trials)
    print(f"epochs trained: {epochs} of the {whole} that all trials to their end would take ({epochs / whole:.0%})")
    complete = sorted((each for each in trials if each["state"] == "complete"), key=lambda each: -each["score"])
    given = next((each for each in complete if each["as_given"]), None)
    print(f"\n{'trial':>7}{'valid':>8}   settings")
    for each in complete[:5]:
        drawn = ", ".join(f"{name} = {value:.4g}" for name, value in each["settings"].items())
        print(f"{each['number']:7}{100 * each['score']:8.2f}   {drawn}")
    if given is not None:
        print(f"{given['number']:7}{100 * given['score']:8.2f}   the settings as they are")


def on_test(folder: Path, home: Path, seeds: int) -> None:
    """Both settings with seeds that no trial had, on test data."""
    best = next(
        each["settings"]
        for each in map(json.loads, (folder / "trials.jsonl").read_text("utf-8").splitlines())
        if f"trial-{each['number']}" == json.loads((folder / "best" / "summary.json").read_text("utf-8"))["name"]
    )
    usual = {"model.encoder": "bag", "training.epochs": 5, "training.batch_size": 64, "training.threads": 1}
    print(f"\n{'':24}{'valid':>14}{'test':>14}   {seeds} seeds")
    for name, chosen in (("the settings as they are", {}), ("the best of the sweep", best)):
        scores: dict[str, list[float]] = {"valid": [], "test": []}
        for seed in range(101, 101 + seeds):
            run = home / f"{'best' if chosen else 'usual'}-{seed}"
            if not (run / "summary.json").exists():
                settings = {**usual, **chosen, "training.seed": seed}
                train, valid, test = (str(DATA / f"{part}.tsv") for part in ("train", "valid", "test"))
                recurra.train("classification", train=train, valid=valid, test=test, out=run, settings=settings)
            summary = json.loads((run / "summary.json").read_text("utf-8"))
            scores["valid"].append(100 * summary["best"]["scores"]["accuracy"])
            scores["test"].append(100 * summary["test"]["scores"]["accuracy"])
        cells = (f"{statistics.fmean(x):.2f} ± {statistics.stdev(x) if len(x) > 1 else 0:.2f}" for x in scores.values())
        print(f"{name:24}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
