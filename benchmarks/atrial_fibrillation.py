"""Atrial fibrillation from RR intervals, the seconds between heart beats: a BiLSTM on windows of 100 of them.

    python benchmarks/atrial_fibrillation.py                               # by patient, then the first fold by windows
    python benchmarks/atrial_fibrillation.py --manner windows --folds 10 --hop 5 --device cuda

Data are read from --data, $RECURRA_DATA/afdb_rr or ../shared/data/afdb_rr: 20 recordings of the MIT-BIH AF database.
A window is AF where more than half of its beats are. Two manners:

patient   split.json: no patient is in two parts; weights are chosen on the two patients of valid.
windows   as Faust et al. (2018) did: windows of all patients are dealt at random into ten folds, each of which is
          tested once, by weights that learned from the others for a fixed time. Windows overlap (by 90 beats with the
          usual --hop 10; theirs by 99), so nearly every beat of a tested window stands in windows that were learned
          from: this says how well a rhythm is recognised that was seen a minute ago, not how well a new patient is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import recurra
from recurra.config.given import Given
from recurra.training.progress import progress

BEATS = 100
FOLDS = 10
AFIB = 1
SHOWN = ("accuracy", "sensitivity", "specificity", "auc")

SETTINGS = [
    "data.frames=intervals",
    "data.positive=afib",
    "data.cache=false",
    "model.cell=lstm",
    "model.hidden=100",
    "model.summary=max",
    "model.dropout=0.2",
    "training.batch_size=256",
    "training.learning_rate=2e-3",
]

Windows = tuple[NDArray[np.float32], NDArray[np.bool_]]
"""Intervals (N, 100) in seconds, and whether each window is AF."""


def windows(folder: Path, recordings: Iterable[str], hop: int) -> Windows:
    """The windows of some recordings, the next beginning `hop` beats after the one before."""
    with np.load(folder / "afdb_rr.npz") as archive:
        intervals, afib = [], []
        for name in recordings:
            beats = archive[f"rr_{name}"].astype(np.float32) / 250
            rhythm = archive[f"rhythm_{name}"] == AFIB
            starts = np.arange(0, len(beats) - BEATS + 1, hop)
            places = starts[:, None] + np.arange(BEATS)
            intervals.append(beats[places])
            afib.append(rhythm[places].sum(axis=1) > BEATS / 2)
    return np.concatenate(intervals), np.concatenate(afib)


def write(path: Path, these: Windows) -> str:
    intervals, afib = these
    np.savez(path, intervals=intervals, label=np.where(afib, "afib", "other"))
    return str(path)


def by_patient(folder: Path, options: argparse.Namespace, place: Path) -> Iterator[dict[str, float]]:
    """Scores on the patients of test."""
    split = json.loads((folder / "split.json").read_text("utf-8"))
    hop = options.hop or 50
    files = {part: write(place / f"{part}.npz", windows(folder, split[part], hop)) for part in ("train", "valid")}
    # Every beat of a test patient counts once.
    test = write(place / "test.npz", windows(folder, split["test"], BEATS))
    yield trained(options, place / "patient", train=files["train"], valid=files["valid"]).evaluate(test).values


def by_windows(folder: Path, options: argparse.Namespace, place: Path) -> Iterator[dict[str, float]]:
    """Scores on each fold of the windows of all patients."""
    split = json.loads((folder / "split.json").read_text("utf-8"))
    everyone = [*split["train"], *split["valid"], *split["test"]]
    intervals, afib = windows(folder, everyone, options.hop or 10)
    fold_of = np.random.default_rng(1).permutation(len(afib)) % FOLDS
    for fold in range(options.folds):
        held = fold_of == fold
        train = write(place / f"train-{fold}.npz", (intervals[~held], afib[~held]))
        test = write(place / f"test-{fold}.npz", (intervals[held], afib[held]))
        yield trained(options, place / f"fold-{fold}", train=train).evaluate(test).values


def trained(options: argparse.Namespace, out: Path, *, train: str, valid: str = "") -> recurra.Trained:
    limit = f"epochs={options.epochs}" if options.minutes is None else f"minutes={options.minutes}"
    chosen = [*SETTINGS, f"training.device={options.device}", f"training.{limit}", *options.set]
    model: recurra.Trained = recurra.train(
        "classification",
        train=train,
        valid=valid,
        out=out,
        settings=Given().options(chosen).table(),
        progress=progress(sys.stderr),
    )
    return model


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    home = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))
    arguments.add_argument(
        "--data", type=Path, default=home / "afdb_rr", help="the folder with afdb_rr.npz, or the one above it"
    )
    arguments.add_argument("--manner", choices=("patient", "windows", "both"), default="both")
    arguments.add_argument("--folds", type=int, default=1, help="by windows: how many of the ten folds (1)")
    arguments.add_argument("--hop", type=int, help="beats between windows (by patient 50, by windows 10)")
    arguments.add_argument("--epochs", type=int, default=20)
    arguments.add_argument("--minutes", type=float, help="instead of epochs, for each training")
    arguments.add_argument("--device", default="auto")
    arguments.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    options = arguments.parse_args()
    if (options.data / "afdb_rr").is_dir():
        options.data /= "afdb_rr"
    manners = {"patient": by_patient, "windows": by_windows}
    print(f"{'manner':9}{'part':>9}" + "".join(f"{name:>13}" for name in SHOWN) + f"{'windows':>9}{'seconds':>9}")
    for manner, scores in manners.items():
        if options.manner not in (manner, "both"):
            continue
        found = []
        with tempfile.TemporaryDirectory() as place:
            began = time.monotonic()
            for number, values in enumerate(scores(options.data, options, Path(place)), 1):
                found.append(values)
                part = "test" if manner == "patient" else f"fold {number}"
                show(manner, part, values, time.monotonic() - began)
                began = time.monotonic()
        if len(found) > 1:
            means = {name: statistics.fmean(values[name] for values in found) for name in (*SHOWN, "count")}
            show(manner, "mean", means, 0.0)


def show(manner: str, part: str, values: dict[str, float], seconds: float) -> None:
    cells = "".join(f"{100 * values[name]:13.2f}" for name in SHOWN)
    print(f"{manner:9}{part:>9}{cells}{int(values['count']):9}{seconds:9.0f}", flush=True)


if __name__ == "__main__":
    main()
