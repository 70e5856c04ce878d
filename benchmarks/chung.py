"""Chung's comparison: an Elman network, a GRU and an LSTM of equally many parameters, with learning curves.

    python benchmarks/chung.py                                  # Bach's chorales and Tiny Shakespeare
    python benchmarks/chung.py --sets jsb --device cuda --out curves
    python benchmarks/chung.py --write data/jsb                 # the chorales as files for recipes/chung.toml, no more

The chorales (recipes/chung.toml) are learned with each of --rates, and each cell has the rate with the best validation
score, as the paper chose rates for each unit; all cells have as many updates. Tiny Shakespeare (recipes/char_rnn.toml,
two layers) is learned at one rate for --seconds each. With --out the learning curves of the three cells are drawn to
jsb.svg and shakespeare.svg there. Data are read from $RECURRA_DATA (../shared/data).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import torch

import recurra
from piano_rolls import written
from recurra.reports.cell_runs import CellRun, CellRuns, as_text, write
from recurra.trials import compare_on_data

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("RECURRA_DATA", ROOT.parent / "shared" / "data"))
CELLS = ("elman", "gru", "lstm")
HIDDEN = 100
"""Tanh units of the paper; the GRU and the LSTM have as many parameters."""

PUBLISHED = {"elman": 9.10, "gru": 8.54, "lstm": 8.67}
"""Nats a frame of JSB's test pieces, Chung et al. 2014."""


def chorales(options: argparse.Namespace, files: dict[str, str]) -> CellRuns:
    """Each cell at the rate that is best on validation pieces."""
    found: list[CellRuns] = []
    for rate in options.rates:
        own = [f"training.learning_rate={rate}", *options.set]
        print(f"jsb at a rate of {rate}", file=sys.stderr)
        recipe = ROOT / "recipes" / "chung.toml"
        found.append(
            compare_on_data(
                recipe, CELLS, files=files, overrides=own, hidden=HIDDEN, updates=options.updates, device=options.device
            )
        )
        print(f"rate {rate}\n{as_text(found[-1])}\n", flush=True)

    def best(number: int) -> CellRun:
        runs = [each.runs[number] for each in found]
        return min(runs, key=lambda run: run.scores["valid"][run.first])

    return found[0]._replace(runs=[best(number) for number in range(len(CELLS))])


def shakespeare(options: argparse.Namespace) -> CellRuns:
    """All cells for as many seconds."""
    files = {part: str(DATA / "tinyshakespeare" / f"{part}.txt") for part in ("train", "valid")}
    recipe = ROOT / "recipes" / "char_rnn.toml"
    own = ["training.epochs=none", *options.set]
    seconds = None if options.updates else options.seconds
    return compare_on_data(
        recipe, ("lstm", "gru", "elman"), files=files, overrides=own, seconds=seconds, updates=options.updates,
        device=options.device,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["jsb", "shakespeare"], choices=["jsb", "shakespeare"])
    parser.add_argument("--rates", nargs="+", default=["1e-3", "3e-3", "1e-2"], help="of the chorales")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each cell on Tiny Shakespeare (120)")
    parser.add_argument("--updates", type=int, help="of each cell, in place of the recipe's epochs or --seconds")
    parser.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    parser.add_argument("--out", type=Path, help="draw the learning curves into this folder")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the chorales there, and end")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    options = parser.parse_args()
    archive = DATA / "polymusic" / "JSB_Chorales.npz"
    if options.write is not None:
        options.write.mkdir(parents=True, exist_ok=True)
        written(archive, options.write)
        return
    where = torch.cuda.get_device_name() if torch.cuda.is_available() and options.device != "cpu" else "CPU"
    print(f"recurra {recurra.__version__}, torch {torch.__version__}, {where}: {' '.join(['python', *sys.argv])}\n")
    with tempfile.TemporaryDirectory() as private:
        for name in options.sets:
            found = chorales(options, written(archive, Path(private))) if name == "jsb" else shakespeare(options)
            if name == "jsb":
                print("each cell at its best rate on validation pieces; published test scores: ", end="")
                print(", ".join(f"{cell} {score:.2f}" for cell, score in PUBLISHED.items()))
            print(f"{as_text(found)}\n", flush=True)
            if options.out is not None:
                options.out.mkdir(parents=True, exist_ok=True)
                write(found, options.out / f"{name}.svg")


if __name__ == "__main__":
    main()
