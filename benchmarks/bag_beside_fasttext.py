"""A bag of n-grams beside fastText's supervised training, on the same texts, in turn.

    python -m venv fasttext && fasttext/bin/pip install "numpy<2" fasttext-wheel
    python benchmarks/bag_beside_fasttext.py --fasttext-python fasttext/bin/python [--rounds 3] [--cpu]

Accuracy: 150 intents of clinc150, learned from train.tsv, shuffled, and scored on test.tsv, each side by settings that
were chosen on valid.tsv: fastText with vectors of 100, 25 epochs, learning rate 0.5, phrases of two words and pieces of
3 to 5 letters; Recurra as it comes, with vectors of 64 and 20 epochs. Beside it, both with vectors of 10, 5 epochs and
phrases of two words, no pieces.

Speed: the lines of train.tsv repeated to 120,000, vectors of 10, 5 epochs, learning rate 0.5, words alone (1) or with
phrases of two words (2). Rows a second, the best of several rounds: of the whole call, from the file to the trained
model, and marginal, 4 epochs over the time that 5 epochs take more than 1. fastText moves its weights after each row;
Recurra after each 2,000, by Adam, with 0.3 of the features left out. The data is sought in $RECURRA_DATA, or else
../shared/data.

--cpu counts the processor's time instead of the clock's, for a machine that others use at the same time: with one
thread it is what the clock would say if they did not.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TypeAlias

ROWS, EPOCHS, BUCKETS = 120_000, 5, 200_000
GOAL = 0.5
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
Question: TypeAlias = dict[str, Any]
"""What a side is asked: `file`, `epochs`, `ngrams`, `size`, `threads`, `clock`, and `good` for its own settings."""


def fasttext_side(folder: Path, question: Question) -> dict[str, float]:
    trained = importlib.import_module("fasttext").train_supervised
    options: dict[str, Any] = {"dim": question["size"], "epoch": question["epochs"], "lr": 0.5}
    options |= {"wordNgrams": question["ngrams"], "bucket": BUCKETS if question["ngrams"] > 1 else 0}
    if question["good"]:
        options |= {"dim": 100, "epoch": 25, "wordNgrams": 2, "minn": 3, "maxn": 5, "bucket": BUCKETS}
    clock = CLOCKS[question["clock"]]
    began = clock()
    model = trained(str(folder / f"{question['file']}.txt"), thread=question["threads"], verbose=0, **options)
    seconds = clock() - began
    return {"seconds": seconds, "accuracy": model.test(str(folder / "test.txt"))[1]}


def recurra_side(folder: Path, question: Question) -> dict[str, float]:
    import recurra

    settings: dict[str, Any] = {
        "data.cache": False,
        "model.encoder": "bag",
        "training.device": "cpu",
        "training.threads": question["threads"],
    }
    if not question["good"]:
        settings |= {
            "data.text.tokens": "symbols",
            "data.text.lowercase": False,
            "model.bag.size": question["size"],
            "model.bag.words": question["ngrams"],
            "model.bag.characters": None,
            "model.bag.buckets": BUCKETS,
            "model.bag.gain": 1.0,
            "model.dropout": 0.0,
            "model.bag.dropout": 0.3 if question["file"] == "many" else 0.0,
            "training.average": None,
            "training.epochs": question["epochs"],
            "training.batch_size": 2000 if question["file"] == "many" else 32,
            "training.learning_rate": 0.1 if question["file"] == "many" else 0.03,
        }
    run = folder / f"run-{os.getpid()}"
    valid = str(folder / "valid.tsv") if question["good"] else ""
    clock = CLOCKS[question["clock"]]
    began = clock()
    model = recurra.train(
        "classification", train=str(folder / f"{question['file']}.tsv"), valid=valid, out=run, settings=settings
    )
    seconds = clock() - began
    shutil.rmtree(run)
    return {"seconds": seconds, "accuracy": model.evaluate(str(folder / "test.tsv")).values["accuracy"]}


def work(side: str, folder: Path) -> None:
    """Answer each question on the input with a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed goes elsewhere
    for line in sys.stdin:
        answer = (fasttext_side if side == "fasttext" else recurra_side)(folder, json.loads(line))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


class Worker:
    """A side in its process, asked by a line."""

    def __init__(self, python: str, side: str, folder: Path) -> None:
        self.log = folder / f"{side}.log"
        self.process = subprocess.Popen(
            [python, __file__, "--side", side, "--folder", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
        )

    def ask(self, question: Question) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(self.log.read_text("utf-8")[-3000:])
        found: dict[str, float] = json.loads(answer)
        return found

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def write_files(data: Path, folder: Path) -> None:
    """Each part as TSV and as fastText has it, and the many rows."""
    for name in ("train", "valid", "test"):
        rows = [line.split("\t") for line in (data / f"{name}.tsv").read_text("utf-8").splitlines()]
        parts = {name: rows}
        if name == "train":  # fastText takes rows in their order, and these are sorted by class
            random.Random(1).shuffle(rows)
            parts["many"] = list(itertools.islice(itertools.cycle(rows), ROWS))
        for part, content in parts.items():
            (folder / f"{part}.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in content), "utf-8")
            lines = (f"__label__{label} {text}\n" for text, label in content)
            (folder / f"{part}.txt").write_text("".join(lines), "utf-8")


def accuracies(sides: dict[str, Worker], clock: str) -> None:
    print(f"\n{'accuracy on test.tsv, of train.tsv':36}{'fastText':>10}{'Recurra':>10}")
    for name, good in (("good settings of each", True), (f"vectors of 10, {EPOCHS} epochs", False)):
        question = {"file": "train", "epochs": EPOCHS, "ngrams": 2, "size": 10, "threads": 1, "clock": clock}
        found = {side: worker.ask({**question, "good": good}) for side, worker in sides.items()}
        print(f"{name:36}{found['fasttext']['accuracy']:10.4f}{found['recurra']['accuracy']:10.4f}", flush=True)
        print(f"{'  seconds':36}{found['fasttext']['seconds']:10.1f}{found['recurra']['seconds']:10.1f}", flush=True)


def speeds(sides: dict[str, Worker], threads: int, rounds: int, clock: str) -> None:
    print(f"\n{f'rows a second, {threads} thread(s)':36}{'fastText':>10}{'Recurra':>10}{'ratio':>8}{'goal':>6}")
    for ngrams in (1, 2):
        best = {(side, epochs): float("inf") for side in sides for epochs in (EPOCHS, 1)}
        accuracy: dict[str, float] = {}
        for _ in range(rounds):
            for epochs in (EPOCHS, 1):
                question = {"file": "many", "epochs": epochs, "ngrams": ngrams, "size": 10, "good": False}
                for side, worker in sides.items():
                    answer = worker.ask({**question, "threads": threads, "clock": clock})
                    best[side, epochs] = min(best[side, epochs], answer["seconds"])
                    if epochs == EPOCHS:
                        accuracy[side] = answer["accuracy"]
        whole = {side: EPOCHS * ROWS / best[side, EPOCHS] for side in sides}
        more = {side: (EPOCHS - 1) * ROWS / max(1e-9, best[side, EPOCHS] - best[side, 1]) for side in sides}
        for name, found in (("the whole call", whole), ("marginal", more)):
            ratio = found["recurra"] / found["fasttext"]
            shown = f"n-grams of {ngrams}, {name}"
            print(f"{shown:36}{found['fasttext']:10,.0f}{found['recurra']:10,.0f}{ratio:8.2f}{GOAL:6g}", flush=True)
        print(f"{'  accuracy on test.tsv':36}{accuracy['fasttext']:10.4f}{accuracy['recurra']:10.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fasttext-python", help="the Python that has fastText")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts (3)")
    parser.add_argument("--threads", type=int, action="append", help="once or several times (1 and 2)")
    parser.add_argument("--speed-only", action="store_true", help="leave the accuracies out")
    parser.add_argument("--cpu", action="store_true", help="count the processor's time, not the clock's")
    parser.add_argument("--side", choices=["fasttext", "recurra"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        work(options.side, options.folder)
        return
    if not options.fasttext_python:
        parser.error("--fasttext-python is needed")
    threads: list[int] = options.threads or ([1] if options.cpu else [1, 2])
    clock = "cpu" if options.cpu else "wall"
    here = Path(__file__).resolve().parents[1]
    data = Path(os.environ.get("RECURRA_DATA", here.parent / "shared" / "data")) / "clinc150"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_files(data, folder)
        pythons = {"fasttext": options.fasttext_python, "recurra": sys.executable}
        sides = {side: Worker(python, side, folder) for side, python in pythons.items()}
        what = "seconds of the processor" if options.cpu else "seconds of the clock"
        print(f"{what}, the best of {options.rounds} rounds")
        if not options.speed_only:
            accuracies(sides, clock)
        for count in threads:
            speeds(sides, count, options.rounds, clock)
        for worker in sides.values():
            worker.end()


if __name__ == "__main__":
    main()
