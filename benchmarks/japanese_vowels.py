"""Japanese Vowels: which of nine speakers said it, from 7 to 29 frames of 12 LPC coefficients.

    python benchmarks/japanese_vowels.py --cross-validate        # three folds of the 270 training items
    python benchmarks/japanese_vowels.py                         # all 270, then the 370 of test once; five seeds

Data are read from --data, $RECURRA_DATA/japanese_vowels or ../shared/data/japanese_vowels. There is no validation
file: SETTINGS were chosen by cross-validation on the training items, and test was scored with them alone, after a fixed
number of epochs.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import recurra
from recurra.config.given import Given

FOLDS = 3

SETTINGS = [
    "data.frames=x",
    "data.cache=false",
    "model.encoder=ensemble",
    'model.members=["rnn","rnn","rnn","rnn"]',
    "model.cell=gru",
    "model.hidden=64",
    "model.summary=mean",
    "model.dropout=0.3",
    "training.batch_size=16",
    "training.learning_rate=5e-3",
    "training.epochs=30",
    'training.average={name="ema",decay=0.98}',
]


def accuracy(train: str, test: str, out: Path, settings: Mapping[str, Any]) -> float:
    model: recurra.Trained = recurra.train("classification", train=train, out=out, settings=settings)
    return float(model.evaluate(test).values["accuracy"])


def of_folds(train: Path, place: Path, settings: Mapping[str, Any], seed: int) -> float:
    """The mean accuracy over folds; the items of a speaker stand together, so every third is held out."""
    with gzip.open(train, "rt", encoding="utf-8") as file:
        items = file.readlines()
    found = []
    for fold in range(FOLDS):
        learned, held = place / f"train-{seed}-{fold}.jsonl", place / f"held-{seed}-{fold}.jsonl"
        learned.write_text("".join(item for k, item in enumerate(items) if k % FOLDS != fold), "utf-8")
        held.write_text("".join(items[fold::FOLDS]), "utf-8")
        found.append(accuracy(str(learned), str(held), place / f"run-{seed}-{fold}", settings))
    return statistics.fmean(found)


def accuracies(options: argparse.Namespace, place: Path) -> Iterator[tuple[int, float, float]]:
    """Each seed with its accuracy and the seconds it took."""
    train, test = options.data / "train.jsonl.gz", options.data / "test.jsonl.gz"
    for seed in range(options.seed, options.seed + options.seeds):
        began = time.monotonic()
        chosen = [*SETTINGS, f"training.device={options.device}", f"training.seed={seed}", *options.set]
        settings = Given().options(chosen).table()
        if options.cross_validate:
            found = of_folds(train, place, settings, seed)
        else:
            found = accuracy(str(train), str(test), place / f"run-{seed}", settings)
        yield seed, found, time.monotonic() - began


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    home = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))
    arguments.add_argument("--data", type=Path, default=home / "japanese_vowels", help="the folder with train and test")
    arguments.add_argument("--cross-validate", action="store_true", help="on train alone")
    arguments.add_argument("--seed", type=int, default=1, help="the first (1)")
    arguments.add_argument("--seeds", type=int, default=5, help="how many (5)")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    options = arguments.parse_args()
    part = f"{FOLDS} folds of train" if options.cross_validate else "test"
    print(f"{'seed':>6}{'accuracy':>10}{'seconds':>9}   on {part}")
    with tempfile.TemporaryDirectory() as place:
        found = []
        for seed, right, seconds in accuracies(options, Path(place)):
            found.append(100 * right)
            print(f"{seed:6}{100 * right:10.2f}{seconds:9.1f}", flush=True)
    if len(found) > 1:
        print(f"{'mean':>6}{statistics.fmean(found):10.2f} ± {statistics.stdev(found):.2f}")


if __name__ == "__main__":
    main()
