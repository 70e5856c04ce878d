"""What covariates are worth: sales that hang on a price that is known ahead, on the weekday, and on the shop.

    python benchmarks/covariates.py                  # some minutes on one core
    python benchmarks/covariates.py --steps 100      # quicker

For each of 12 shops of different size 400 days are drawn:

    sold = size · (6 − price + 2 [a flyer] + 2 [a weekend] + noise),     price and flyer drawn anew each day

The last 60 days are held out. The same network is trained without covariates, with each kind and with all, and its
mean absolute error over 7 days is printed beside that of the rule that knows everything but the noise.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from recurra.runs import begin, setup
from recurra.training.progress import Silent
from recurra.training.trained import load
from recurra.version import __version__

HORIZON, DAYS, HELD_OUT, SHOPS = 7, 400, 60, 12
NOISE = 0.3

KINDS: dict[str, list[str]] = {
    "values alone": [],
    "+ calendar (weekday)": ["data.calendar=weekday"],
    "+ past (price, promo)": ['data.past=["price", "promo"]'],
    "+ future (price, promo)": ['data.future=["price", "promo"]'],
    "+ future and calendar": ['data.future=["price", "promo"]', "data.calendar=weekday"],
    "+ future, calendar and static": ['data.future=["price", "promo"]', "data.calendar=weekday", "data.static=size"],
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--steps", type=int, default=400, help="updates of each training (400)")
    options = arguments.parse_args()
    print(f"recurra {__version__}, torch {torch.__version__}, Python {platform.python_version()}, 1 thread")
    print(f"command: python benchmarks/{Path(sys.argv[0]).name} --steps {options.steps}\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = written(folder)
        best = NOISE * float(np.sqrt(2 / np.pi)) * float(sizes.mean())
        print(f"{'covariates':32}{'mae':>8}{'to values alone':>18}")
        alone = None
        for number, (kind, covariates) in enumerate(KINDS.items()):
            error = measured(folder, f"run{number}", covariates, options.steps)
            alone = alone or error
            print(f"{kind:32}{error:8.3f}{error / alone:18.3f}", flush=True)
        print(f"{'all but the noise':32}{best:8.3f}{best / (alone or 1):18.3f}")


def written(folder: Path) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Write the tables of training and test; the sizes of the shops."""
    draw = np.random.default_rng(1)
    sizes = np.geomspace(1, 200, SHOPS).round(1)
    days = np.datetime64("2025-01-06") + np.arange(DAYS)  # a Monday
    files = {part: ["shop,date,sold,price,promo,size"] for part in ("train", "test")}
    for shop, size in enumerate(sizes):
        price, has_flyer = draw.integers(1, 4, DAYS), draw.random(DAYS) < 0.4
        is_weekend = np.arange(DAYS) % 7 >= 5
        sold = size * (6 - price + 2 * has_flyer + 2 * is_weekend + NOISE * draw.normal(size=DAYS))
        for day in range(DAYS):
            promo = "flyer" if has_flyer[day] else "none"
            row = f"s{shop},{days[day]},{sold[day]:.4f},{price[day]},{promo},{size}"
            files["train" if day < DAYS - HELD_OUT else "test"].append(row)
    for part, lines in files.items():
        (folder / f"{part}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return np.asarray(sizes, np.float64)


def measured(folder: Path, name: str, covariates: list[str], steps: int) -> float:
    """The mean absolute error of the days that were held out, which go on with those of training."""
    given = {"train": str(folder / "train.csv")}
    settings = ["data.series=shop", "data.values=sold", "data.window=28", "data.cache=false", "model.hidden=32"]
    settings += ["training.threads=1", "training.device=cpu", f"training.steps={steps}", "training.epochs=none"]
    settings += ["training.batch_size=32", f"decoding.horizon={HORIZON}"]
    begin(setup("forecasting", given=given, overrides=[*settings, *covariates]), folder / name, Silent())
    return load(folder / name).evaluate(folder / "test.csv").values["mae"]


if __name__ == "__main__":
    main()
