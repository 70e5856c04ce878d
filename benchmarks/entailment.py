"""Pairs of texts: entailment on SICK and on a sample of SNLI by every pairing, and readers of a generated cloze set.

    python benchmarks/entailment.py                                      # everything, one seed, six runs at once
    python benchmarks/entailment.py --sets sick snli --seeds 3 --at-once 8 --device cuda
    python benchmarks/entailment.py --sets sick --systems comparing --seeds 1 --device cpu
    python benchmarks/entailment.py --minutes 0.2 --out runs             # a short trial, its runs kept
    python benchmarks/entailment.py --sets snli --systems conditional --shuffled      # and with premises of other pairs

SICK and SNLI are read from $RECURRA_DATA (../shared/data: sick, snli); the cloze set is made by examples/data/cloze.py.
`sick from snli` starts from the weights of the SNLI run of the same system and seed (--from). No word vectors from
elsewhere: all is learned from the 4,500 pairs of SICK, or the 20,000 of SNLI's sample. Weights are chosen by accuracy
on the validation file; the test file is scored once. Published figures stand in the README of each data set: those of
SICK used GloVe vectors, those of SNLI the whole 549,367 pairs.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import platform
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))

PLAIN = ["model.characters.cell=none", "model.word_dropout=0.05"]
LSTM = ['model.cell="lstm"', "model.embedding=128", "model.hidden=100", "model.dropout=0.2", *PLAIN]
ONE_WAY = [*LSTM, "model.bidirectional=false"]
WORDS = ["model.embedding=128", "model.dropout=0.3", *PLAIN]
SPELT = ["model.embedding=128", "model.dropout=0.3", "model.word_dropout=0.1", "model.characters.hidden=64"]
SMOOTH = ["model.label_smoothing=0.1"]
SPELT_LSTM = [
    *('model.cell="lstm"', "model.hidden=100", *SPELT, "model.dropout=0.4", "model.word_dropout=0.15", *SMOOTH),
    "data.text.min_count=2",
]
COMPARING = '{name="decomposable", size=128, layers=1, compare="all", pool="mean_max"'

SYSTEMS = {
    "siamese": [*LSTM, "model.pairing=siamese"],
    "conditional": [*ONE_WAY, "model.pairing=conditional"],
    "attention": [*ONE_WAY, 'model.pairing={name="conditional", attention="additive"}'],
    "word_by_word": [*ONE_WAY, "model.pairing=word_by_word"],
    "conditional_spelt": [*SPELT_LSTM, "model.bidirectional=false", "model.pairing=conditional"],
    "word_by_word_spelt": [*SPELT_LSTM, "model.bidirectional=false", "model.pairing=word_by_word"],
    "word_by_word_dot": [
        *(*SPELT_LSTM, "model.bidirectional=false"),
        'model.pairing={name="word_by_word", attention="projected_dot"}',
    ],
    "word_by_word_both_ways": [*SPELT_LSTM, "model.pairing=word_by_word"],
    "decomposable": [*WORDS, "model.pairing=decomposable"],
    "within": [*WORDS, 'model.pairing={name="decomposable", within=true}'],
    "comparing": [*WORDS, f"model.pairing={COMPARING}}}"],
    "spelt": [*SPELT, f"model.pairing={COMPARING}}}"],
    "smoothed": [*SPELT, "model.dropout=0.4", "model.word_dropout=0.15", *SMOOTH, f"model.pairing={COMPARING}}}"],
    "common": [*SPELT, *SMOOTH, "data.text.min_count=2", f"model.pairing={COMPARING}}}"],
    "both": [
        *SPELT,
        "model.dropout=0.4",
        "model.word_dropout=0.15",
        *SMOOTH,
        "data.text.min_count=2",
        f"model.pairing={COMPARING}}}",
    ],
    "sequential": [*WORDS, "model.hidden=100", f"model.pairing={COMPARING}, read=true}}"],
    "sequential_spelt": [*SPELT, "model.hidden=100", f"model.pairing={COMPARING}, read=true}}"],
}

READERS = {
    "attentive": [*LSTM, "model.pairing=attentive"],
    "impatient": [*LSTM, "model.pairing=impatient"],
}

ABOUT = {
    "siamese": "two encodings compared, BiLSTM",
    "conditional": "LSTM reads one after the other (Rocktäschel)",
    "attention": "the same, its last state attends",
    "word_by_word": "the same, word by word",
    "conditional_spelt": "conditional, spelt, labels smoothed",
    "word_by_word_spelt": "word by word, spelt, labels smoothed",
    "word_by_word_dot": "the same, scores are dot products",
    "word_by_word_both_ways": "the same, both directions, additive scores",
    "decomposable": "decomposable attention (Parikh)",
    "within": "the same with attention within",
    "comparing": "the same, G sees differences and products",
    "spelt": "the same, words are spelt too",
    "smoothed": "the same, labels smoothed, more dropout",
    "common": "labels smoothed, rare words only spelt",
    "both": "labels smoothed, more dropout, rare words spelt",
    "sequential": "comparing over a BiLSTM (Chen)",
    "sequential_spelt": "the same, words are spelt too",
    "attentive": "attentive reader (Hermann)",
    "impatient": "impatient reader (Hermann)",
}

TRAINED = {
    "sick": ["training.epochs=12", "training.batch_size=32", "training.learning_rate=3e-3"],
    "snli": ["training.epochs=8", "training.batch_size=64", "training.learning_rate=2e-3"],
    "sick from snli": ["training.epochs=8", "training.batch_size=32", "training.learning_rate=1e-3"],
    "cloze": ["training.epochs=12", "training.batch_size=64", "training.learning_rate=3e-3", "model.candidates=text"],
}

COLUMNS = {
    "sick": '["premise", "hypothesis", "label", "_"]',
    "snli": '["premise", "hypothesis", "label"]',
}

CLOZES = {"train": 12_000, "valid": 1_000, "test": 2_000}


class Job(NamedTuple):
    """One training: a data set, a system and a seed."""

    data: str
    system: str
    seed: int

    @property
    def folder(self) -> str:
        return f"{self.data.replace(' ', '_')}.{self.system}.{self.seed}"

    @property
    def after(self) -> Job | None:
        """The training that must be over before."""
        return Job("snli", self.system, self.seed) if self.data == "sick from snli" else None


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sets", nargs="+", choices=[*TRAINED], default=[*TRAINED], metavar="SET")
    arguments.add_argument("--systems", nargs="+", choices=[*SYSTEMS, *READERS], metavar="SYSTEM", help="all")
    arguments.add_argument("--seeds", type=int, default=1, help="so many runs of each")
    arguments.add_argument("--at-once", type=int, default=6, help="so many runs at the same time")
    arguments.add_argument("--minutes", type=float, help="at most so long for each run")
    arguments.add_argument("--all-minutes", type=float, help="at most so long for all; what is not done is left out")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--out", type=Path, help="keep the runs in this folder")
    arguments.add_argument("--shuffled", action="store_true", help="score test pairs with premises of other pairs too")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    print(f"command: {shlex.join(['python', *sys.argv])}\n{versions()}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as private:
        home = options.out or Path(private)
        home.mkdir(parents=True, exist_ok=True)
        if "cloze" in options.sets:
            write_clozes(home)
        jobs = [*wanted(options.sets, options.systems, options.seeds)]
        run_all(jobs, home, options)
        tell(jobs, home)
        if options.shuffled:
            tell_shuffled(jobs, home)
    print(f"all in {time.monotonic() - began:.0f} s", flush=True)


def wanted(sets: list[str], systems: list[str] | None, seeds: int) -> Iterator[Job]:
    """The trainings that are asked for, and those that they start from, each once."""
    found: dict[Job, None] = {}
    for seed in range(1, seeds + 1):
        for data in sorted(sets, key=lambda name: [*TRAINED].index(name)):
            for system in READERS if data == "cloze" else SYSTEMS:
                if systems is None or system in systems:
                    job = Job(data, system, seed)
                    found |= {job.after: None} if job.after is not None else {}
                    found[job] = None
    return iter(found)


def command(job: Job, home: Path, options: argparse.Namespace) -> list[str]:
    """What trains it."""
    if job.data == "cloze":
        files = {part: home / f"cloze.{part}.tsv" for part in CLOZES}
    else:
        source = "sick" if job.data.startswith("sick") else "snli"
        files = {part: DATA / source / f"{part}.tsv.gz" for part in ("train", "valid", "test")}
    words = [sys.executable, "-m", "recurra", "train", "classification", "--out", str(home / job.folder), "--quiet"]
    for part, file in files.items():
        words += [f"--{part}", str(file)]
    if job.after is not None:
        words += ["--from", str(home / job.after.folder)]
    settings = [*{**SYSTEMS, **READERS}[job.system], *TRAINED[job.data]]
    settings += ["data.label=answer"] if job.data == "cloze" else [f"data.columns={COLUMNS[job.data.split()[0]]}"]
    settings += [f"training.seed={job.seed}", f"training.device={options.device}", "training.threads=1"]
    settings += ["data.cache=false", "training.deterministic=false"]
    settings += [f"training.minutes={options.minutes}"] if options.minutes else []
    for setting in (*settings, *options.set):
        words += ["--set", setting]
    return words


def run_all(jobs: list[Job], home: Path, options: argparse.Namespace) -> None:
    """Run the trainings, so many at once, each after the one that it starts from."""
    began = time.monotonic()
    waiting, running = [job for job in jobs if not is_done(job, home)], dict[Job, subprocess.Popen[bytes]]()
    while waiting or running:
        for job, process in [*running.items()]:
            if process.poll() is not None:
                del running[job]
                if process.returncode:
                    raise SystemExit(f"{job.folder} failed:\n{(home / f'{job.folder}.log').read_text('utf-8')}")
                print(f"  done: {job.folder}", file=sys.stderr, flush=True)
        if options.all_minutes and time.monotonic() - began > 60 * options.all_minutes:
            for job, process in running.items():
                process.kill()
                print(f"not done after {options.all_minutes:g} minutes: {job.folder}", flush=True)
            return
        ready = [job for job in waiting if job.after is None or is_done(job.after, home)]
        for job in ready[: options.at_once - len(running)]:
            waiting.remove(job)
            with (home / f"{job.folder}.log").open("wb") as log:
                running[job] = subprocess.Popen(command(job, home, options), stdout=log, stderr=subprocess.STDOUT)
        time.sleep(0.2)


def is_done(job: Job, home: Path) -> bool:
    return (home / job.folder / "summary.json").exists()


def tell(jobs: list[Job], home: Path) -> None:
    """The table: of several seeds the mean of accuracy, and the least and the most."""
    print(f"{'data':16}{'system':18}{'':46}{'parameters':>11}{'valid':>8}{'test':>8}{'range':>16}{'seconds':>9}")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    jobs = [job for job in jobs if is_done(job, home)]
    for job in sorted(jobs, key=lambda job: ([*TRAINED].index(job.data), [*ABOUT].index(job.system), job.seed)):
        summary = json.loads((home / job.folder / "summary.json").read_text("utf-8"))
        groups.setdefault((job.data, job.system), []).append(summary)
    for (data, system), found in groups.items():
        valid = [100 * each["best"]["scores"]["accuracy"] for each in found]
        test = [100 * each["test"]["scores"]["accuracy"] for each in found]
        reach = f"{min(test):.2f}-{max(test):.2f}" if len(test) > 1 else ""
        print(
            f"{data:16}{system:18}{ABOUT[system]:46}{found[0]['parameters']:>11,}{statistics.mean(valid):8.2f}"
            f"{statistics.mean(test):8.2f}{reach:>16}{statistics.mean(each['seconds'] for each in found):9.0f}"
        )


def tell_shuffled(jobs: list[Job], home: Path) -> None:
    """What each run still gets right where a hypothesis has the premise of another pair: the label is of the first one.

    A reader that had learned nothing of the first text would lose nothing.
    """
    import recurra

    for job in jobs:
        if job.data == "cloze" or not is_done(job, home):
            continue
        path = DATA / job.data.split()[0] / "test.tsv.gz"
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        premises = [row[0] for row in rows]
        random.Random(1).shuffle(premises)
        other = home / f"{job.data.split()[0]}.shuffled.tsv"
        other.write_text("".join("\t".join([a, *rest]) + "\n" for a, (_, *rest) in zip(premises, rows, strict=True)))
        model = recurra.load(home / job.folder)
        right, left = (100 * model.evaluate(each).values["accuracy"] for each in (path, other))
        print(f"{job.folder}: {right:.2f} % of the test pairs, with premises of other pairs {left:.2f} %", flush=True)


def write_clozes(home: Path) -> None:
    made = generator()
    for seed, (part, count) in enumerate(CLOZES.items(), 1):
        made.write(home / f"cloze.{part}.tsv", made.clozes(count, seed=seed))


def generator() -> ModuleType:
    """examples/data/cloze.py."""
    path = Path(__file__).parents[1] / "examples" / "data" / "cloze.py"
    found = importlib.util.spec_from_file_location("cloze", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["cloze"] = module  # its classes look themselves up there
    found.loader.exec_module(module)
    return module


def versions() -> str:
    import torch

    import recurra

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return f"recurra {recurra.__version__}, torch {torch.__version__}, Python {platform.python_version()}, {device}"


if __name__ == "__main__":
    main()
