"""Piano rolls: the next frame of Bach's chorales (JSB), by an Elman network, a GRU and an LSTM.

    python benchmarks/piano_rolls.py                                        # all three, one seed
    python benchmarks/piano_rolls.py --cells lstm --seeds 3 --device cuda
    python benchmarks/piano_rolls.py --cells lstm --epochs 3                # only to see that it runs

Data are read from --data, a folder with JSB_Chorales.npz ($RECURRA_DATA/polymusic, ../shared/data/polymusic). Figures
are nats per frame, summed over the 88 notes and averaged over all frames from the first (which is predicted from a
frame of silence); `after first` leaves the first frame of each piece out, as some papers do. Weights are chosen on
validation.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from recurra.runs import begin, setup
from recurra.training.progress import progress

SHARED = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))

COMMON = [
    "training.clip=1.0",
    "training.schedule=cosine",
    'training.average={name="ema", decay=0.99}',
]

SETTINGS = {
    "elman": [
        *(
            "model.cell=elman",
            "model.hidden=400",
            "model.embedding=400",
            "model.dropout=0.5",
            "model.input_dropout=0.1",
        ),
        *("training.learning_rate=5e-4", "training.batch_size=16", "training.epochs=200"),
    ],
    "gru": [
        'model.cell={name="gru", reset="after", update="keep", update_bias=-1.0}',
        *("model.hidden=200", "model.embedding=200", "model.dropout=0.5"),
        *("training.learning_rate=5e-3", "training.batch_size=8", "training.epochs=280"),
    ],
    "lstm": [
        *("model.cell=lstm", "model.hidden=400", "model.embedding=400", "model.dropout=0.6", "model.input_dropout=0.1"),
        *("training.learning_rate=5e-3", "training.batch_size=16", "training.epochs=150"),
    ],
}

PUBLISHED = {"elman": "9.10 / 8.91", "gru": "8.54 / 8.43", "lstm": "8.67 / 8.45"}
"""Chung et al. 2014 (about 20 k parameters), Bai et al. 2018 (300 k; frames 2..T)."""

PARTS = ("train", "valid", "test")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cells", nargs="+", default=list(SETTINGS), choices=list(SETTINGS), help="which (all)")
    arguments.add_argument("--data", type=Path, default=SHARED / "polymusic", help="folder with JSB_Chorales.npz")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--seeds", type=int, default=1, help="runs of each (1)")
    arguments.add_argument("--epochs", type=int, help="in place of those of the settings")
    arguments.add_argument("--out", type=Path, help="keep the runs in this folder")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as private:
        folder = options.out or Path(private)
        files = written(options.data / "JSB_Chorales.npz", Path(private))
        rows = []
        for cell in options.cells:
            for seed in range(1, options.seeds + 1):
                extra = [f"training.device={options.device}", f"training.seed={seed}", *options.set]
                extra += [f"training.epochs={options.epochs}"] if options.epochs else []
                run = folder / f"{cell}-{seed}"
                begin(setup("forecasting", given=files, overrides=[*COMMON, *SETTINGS[cell], *extra]), run, shown())
                rows.append((cell, seed, json.loads((run / "summary.json").read_text("utf-8"))))
                print(line(*rows[-1]), flush=True)
    print(f"\n{'cell':8}{'seed':>5}{'parameters':>12}{'valid':>9}{'test':>9}{'after first':>13}{'f1':>8}", end="")
    print(f"{'best step':>11}{'steps':>7}{'seconds':>9}   published test (2014 / 2018)")
    for row in rows:
        print(line(*row) + f"   {PUBLISHED[row[0]]}")
    if options.seeds > 1:
        for cell in options.cells:
            found = [summary["test"]["scores"]["nll"] for name, _, summary in rows if name == cell]
            print(f"{cell:8}test {statistics.fmean(found):.3f} ± {statistics.stdev(found):.3f} over {len(found)} seeds")


def written(archive: Path, folder: Path) -> dict[str, str]:
    """The three parts as archives that recurra reads, their notes unpacked."""
    with np.load(archive) as packed:
        for part in PARTS:
            roll = np.unpackbits(packed[f"{part}_roll"], axis=1)
            np.savez_compressed(folder / f"{part}.npz", frames=roll, frames_lengths=packed[f"{part}_lengths"])
    return {part: str(folder / f"{part}.npz") for part in PARTS}


def shown() -> Any:
    return progress(sys.stderr)


def line(cell: str, seed: int, summary: dict[str, Any]) -> str:
    valid, test = summary["best"]["scores"], summary["test"]["scores"]
    return (
        f"{cell:8}{seed:5}{summary['parameters']:12,}{valid['nll']:9.3f}{test['nll']:9.3f}"
        f"{test['nll_after_first']:13.3f}{test['f1']:8.3f}{summary['best']['step']:11}{summary['steps']:7}"
        f"{summary['seconds']:9.0f}"
    )


if __name__ == "__main__":
    main()
