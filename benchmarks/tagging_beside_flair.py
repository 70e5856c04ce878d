"""Tagging beside Flair's SequenceTagger of the same shape, on the same sentences, in turn.

    python -m venv flair && flair/bin/pip install torch==2.13.0 flair==0.15.1
    python benchmarks/tagging_beside_flair.py --flair-python flair/bin/python [--rounds 5] [--cpu]

A BiLSTM-CRF of 256 a direction over 100-d word vectors learns the parts of speech of UD English EWT, 32 sentences a
batch, plain SGD, the same dropout. Words a second, the best of several rounds: in training, all of the loop counts; in
prediction, Flair is given its Sentence objects ready made, and Recurra plain lines. The data is sought in
$RECURRA_DATA, or else ../shared/data.

--cpu counts the processor's time instead of the clock's, for a machine that others use at the same time: with one
thread it is what the clock would say if they did not. Recurra's training then counts with reading and reporting.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

BATCHES = (1, 32, 256)
EPOCHS = 3
GOALS = {"training": 3.0, "prediction, batch 1": 5.0, "prediction, batch 256": 2.0}


Clock: TypeAlias = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}


class Side(Protocol):
    """One of the two, in a process of its own."""

    def train(self) -> float:
        """Words a second in some epochs."""

    def predict(self, batch: int) -> float:
        """Words a second, so many sentences at once."""


def texts(folder: Path, batch: int) -> list[list[str]]:
    """Sentences to tag; fewer where each is tagged alone."""
    sentences = (folder / "test.conll").read_text("utf-8").strip().split("\n\n")
    words = [[line.split("\t")[0] for line in sentence.split("\n")] for sentence in sentences]
    return words[:400] if batch == 1 else words


class Flair:
    def __init__(self, folder: Path, threads: int, clock: Clock) -> None:
        import logging

        import torch

        torch.set_num_threads(threads)
        part("flair").device = torch.device("cpu")
        logging.getLogger("flair").setLevel(logging.ERROR)
        columns = {0: "text", 1: "upos"}
        self.corpus = part("flair.datasets").ColumnCorpus(
            folder, columns, train_file="train.conll", column_delimiter="\t", sample_missing_splits=False
        )
        self.folder = folder
        self.clock = clock
        self.words = sum(len(sentence) for sentence in self.corpus.train)
        vectors = part("flair.embeddings").OneHotEmbeddings
        self.model = part("flair.models").SequenceTagger(
            hidden_size=256,
            embeddings=vectors.from_corpus(self.corpus, min_freq=1, embedding_length=100),
            tag_dictionary=self.corpus.make_label_dictionary("upos", add_unk=False),
            tag_type="upos",
        )

    def train(self) -> float:
        began = self.clock()
        part("flair.trainers").ModelTrainer(self.model, self.corpus).train(
            self.folder / "flair",
            learning_rate=0.1,
            mini_batch_size=32,
            max_epochs=EPOCHS,
            embeddings_storage_mode="none",
            save_final_model=False,
            train_with_dev=True,
        )
        return EPOCHS * self.words / (self.clock() - began)

    def predict(self, batch: int) -> float:
        sentences = [part("flair.data").Sentence(words) for words in texts(self.folder, batch)]
        began = self.clock()
        self.model.predict(sentences, mini_batch_size=batch)
        return sum(map(len, sentences)) / (self.clock() - began)


def part(name: str) -> Any:
    """A module that only one of the two Pythons has."""
    return importlib.import_module(name)


class Recurra:
    def __init__(self, folder: Path, threads: int, clock: Clock) -> None:
        self.folder = folder
        self.clock = clock
        self.settings = {
            "data.cache": False,
            "data.min_count": 1,
            "model.embedding": 100,
            "model.hidden": 256,
            "model.characters.cell": "none",
            "training.batch_size": 32,
            "training.optimizer": "sgd",
            "training.learning_rate": 0.1,
            "training.schedule": "constant",
            "training.average": None,
            "training.epochs": EPOCHS,
            "training.device": "cpu",
            "training.threads": threads,
        }
        self.model: Any = None
        self.runs = 0

    def train(self) -> float:
        import recurra

        self.runs += 1
        run = self.folder / f"recurra-{os.getpid()}-{self.runs}"
        began = self.clock()
        self.model = recurra.train("tagging", train=str(self.folder / "train.conll"), out=run, settings=self.settings)
        all_of_it = self.clock() - began
        summary = json.loads((run / "summary.json").read_text("utf-8"))
        seconds = summary["seconds"] if self.clock is CLOCKS["wall"] else all_of_it
        return float(EPOCHS * summary["data"]["train"]["tokens"] / seconds)

    def predict(self, batch: int) -> float:
        lines = [" ".join(words) for words in texts(self.folder, batch)]
        words = sum(line.count(" ") + 1 for line in lines)
        began = self.clock()
        self.model.predict(lines, batch_tokens=1 if batch == 1 else batch * words // len(lines))
        return words / (self.clock() - began)


def work(side: Side) -> None:
    """Do what each line on the input asks for, and answer with a number."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed goes elsewhere
    for line in sys.stdin:
        _, *batch = line.split()
        answers.write(f"{side.predict(int(batch[0])) if batch else side.train()}\n")
        answers.flush()


def write_part(source: Path, target: Path, count: int) -> None:
    """The first sentences of a CoNLL-U file, a word and its part of speech a line."""
    lines: list[str] = []
    with gzip.open(source, "rt", encoding="utf-8") as file:
        for line in file:
            cells = line.rstrip("\n").split("\t")
            if cells[0].isdigit():
                lines.append(f"{cells[1]}\t{cells[3]}\n")
            elif cells == [""]:
                lines.append("\n")
                count -= 1
                if not count:
                    break
    target.write_text("".join(lines), "utf-8")


class Worker:
    """A side in its process, asked by a line."""

    def __init__(self, python: str, side: str, folder: Path, threads: int, clock: str) -> None:
        self.log = folder / f"{side}.log"
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            [python, __file__, "--side", side, "--folder", str(folder), "--threads", str(threads), f"--{clock}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
            env=environment,
        )

    def ask(self, what: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(self.log.read_text("utf-8")[-3000:])
        return float(answer)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(flair_python: str, folder: Path, threads: int, rounds: int, clock: str) -> None:
    pythons = {"flair": flair_python, "recurra": sys.executable}
    sides = {side: Worker(python, side, folder, threads, clock) for side, python in pythons.items()}
    tasks = {"training": "train", **{f"prediction, batch {batch}": f"predict {batch}" for batch in BATCHES}}
    print(f"\n{threads} thread(s){'':24}{'Flair':>9}{'Recurra':>9}{'ratio':>8}{'goal':>6}")
    for name, task in tasks.items():
        best = dict.fromkeys(sides, 0.0)
        for _ in range(rounds):
            for side, worker in sides.items():
                best[side] = max(best[side], worker.ask(task))
        goal = f"{GOALS[name]:g}" if name in GOALS else ""
        ratio = best["recurra"] / best["flair"]
        print(f"{name:35}{best['flair']:9,.0f}{best['recurra']:9,.0f}{ratio:8.1f}{goal:>6}", flush=True)
    for worker in sides.values():
        worker.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flair-python", help="the Python that has Flair")
    parser.add_argument("--rounds", type=int, default=5, help="of which the best counts (5)")
    parser.add_argument("--sentences", type=int, default=1000, help="to train on (1000)")
    parser.add_argument("--threads", type=int, action="append", help="of torch, once or several times (1 and 2)")
    parser.add_argument("--cpu", action="store_true", help="count the processor's time, not the clock's")
    parser.add_argument("--wall", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--side", choices=["flair", "recurra"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    threads: list[int] = options.threads or ([1] if options.cpu else [1, 2])
    clock = "cpu" if options.cpu else "wall"
    if options.side:
        work((Flair if options.side == "flair" else Recurra)(options.folder, threads[0], CLOCKS[clock]))
        return
    if not options.flair_python:
        parser.error("--flair-python is needed")
    here = Path(__file__).resolve().parents[1]
    data = Path(os.environ.get("RECURRA_DATA", here.parent / "shared" / "data")) / "ud_english_ewt"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_part(data / "en_ewt-ud-train.conllu.gz", folder / "train.conll", options.sentences)
        write_part(data / "en_ewt-ud-test.conllu.gz", folder / "test.conll", 1000)
        what = "words a second of the processor's time" if options.cpu else "words a second"
        print(f"{what}, the best of {options.rounds}; {options.sentences:,} sentences of UD English EWT")
        for count in threads:
            compare(options.flair_python, folder, count, options.rounds, clock)


if __name__ == "__main__":
    main()
