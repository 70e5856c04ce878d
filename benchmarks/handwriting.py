"""Handwriting to symbols by CTC: formulas of CROHME that stand on one line, tested on those of 2014.

    python benchmarks/handwriting.py                      # a pyramid of two layers and CTC, 15 minutes
    python benchmarks/handwriting.py --picture FILE.svg   # the best alignment of a formula of test
    python benchmarks/handwriting.py --minutes 30 --set model.hidden=192

Data are read from $RECURRA_DATA (../shared/data). CTC writes in the order of the pen, so only formulas without scripts,
fractions, roots, sums and limits are taken: 2,671 of the 8,835 of training and 286 of the 986 of test. About a tenth
of those of training, chosen by a hash of their LaTeX so that no formula is on both sides, are for validation.

Each stroke is followed in steps of a fifth of the size of a usual stroke. A frame is such a step: how far the pen moved
to the right and down, how far below the middle of the formula it is, and whether it had left the paper before. Training
also sees every formula --more times, rotated, slanted and stretched a little. All settings are those of
recipes/ctc.toml, but for the ones below. Symbol error rate: edits over the number of symbols, in percent.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import recurra
from recurra.analysis.alignment import alignment_of
from recurra.runs import begin, setup
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "crohme"
RECIPE = Path(__file__).parents[1] / "recipes" / "ctc.toml"

TWO_DIMENSIONS = {"_", "^", "{", "}", "\\frac", "\\sqrt", "\\sum", "\\int", "\\lim", "\\prod", "\\limits"}
"""What is written above, below or around other symbols, in another order than LaTeX has it."""

STEP = 1 / 5
"""Of the size of a usual stroke: how far apart the points are that are read."""

FARTHEST = 4.0
"""In sizes of a usual stroke: a jump of the pen counts as no longer."""

SETTINGS = [
    "data.target=latex",
    "model.hidden=160",
    "model.encoder.layers=2",  # halves the steps once: a dot has only two
    "augmentation.noise=0.05",
    "training.epochs=200",
    "training.patience=30",
]

SEARCHES: dict[str, dict[str, object]] = {
    "best path": {"decoding.search": "path"},
    "greedy": {"decoding.search": "greedy"},
    "beam of 10": {},
}


def frames(ink: list[Any], turn: NDArray[np.float64] | None = None) -> list[list[float]]:
    """The steps of the pen, (T, 4), of strokes [[x, …], [y, …]], each point multiplied by a matrix first."""
    strokes = [np.array(stroke, np.float64).T for stroke in ink]
    if turn is not None:
        strokes = [stroke @ turn for stroke in strokes]
    extents = [float(np.ptp(stroke, axis=0).max()) for stroke in strokes]
    size = float(np.median([extent for extent in extents if extent > 0] or [1.0]))
    middle = float(np.median(np.concatenate(strokes)[:, 1]))
    found, last = [], strokes[0][0]
    for stroke in strokes:
        lengths = np.hypot(*np.diff(stroke, axis=0).T)
        along = np.concatenate([[0.0], np.cumsum(lengths)])
        at = np.linspace(0, along[-1], max(2, round(along[-1] / (size * STEP)) + 1))
        points = np.stack([np.interp(at, along, column) for column in stroke.T], axis=1)
        moved = np.clip(np.diff(points, axis=0, prepend=last[None]) / size, -FARTHEST, FARTHEST)
        up = (np.arange(len(points)) == 0).astype(np.float64)
        found.append(np.column_stack([moved, (points[:, 1] - middle) / size, up]))
        last = points[-1]
    return np.concatenate(found).round(3).tolist()


def turned(draw: np.random.Generator) -> NDArray[np.float64]:
    """A small rotation, slant and stretch, (2, 2)."""
    angle, slant, wide = draw.normal(0, (0.06, 0.15, 0.1))
    rotation = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return rotation @ np.array([[1.0, 0.0], [slant, 1.0]]) @ np.diag([np.exp(wide), 1.0])


def written(home: Path, *, more: int) -> dict[str, str]:
    """Files of pen movements and symbols for training, validation and test, in `home`."""
    paths = {part: home / f"{part}.jsonl" for part in ("train", "valid", "test")}
    lines: dict[str, list[str]] = {part: [] for part in paths}
    draw = np.random.default_rng(1)
    for source in ("train", "test2014"):
        with gzip.open(DATA / f"{source}.jsonl.gz", "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                if not TWO_DIMENSIONS.isdisjoint(row["latex"].split()):
                    continue
                is_held_out = hashlib.sha256(row["latex"].encode()).digest()[0] < 26
                part = "test" if source != "train" else "valid" if is_held_out else "train"
                turns = [None, *(turned(draw) for _ in range(more if part == "train" else 0))]
                for turn in turns:
                    lines[part].append(json.dumps({"frames": frames(row["ink"], turn), "latex": row["latex"]}) + "\n")
    for part, path in paths.items():
        path.write_text("".join(lines[part]), "utf-8")
        print(f"{part}: {len(lines[part]):,} formulas, of {len({json.loads(line)['latex'] for line in lines[part]}):,}")
    return {part: str(path) for part, path in paths.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--more", type=int, default=2, help="changed copies of each formula of training (2)")
    arguments.add_argument("--minutes", type=float, default=15.0, help="of training, at most (15)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--out", type=Path, help="keep the run in this folder")
    arguments.add_argument("--picture", type=Path, help="an SVG of the best alignment of a formula of test")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    options = arguments.parse_args()
    print(
        f"python {shlex.join(sys.argv)}\nrecurra {recurra.__version__}, torch {torch.__version__}, {options.device}\n"
    )
    with tempfile.TemporaryDirectory() as private:
        given: dict[str, Any] = written(Path(private), more=options.more)
        run = options.out or Path(private) / "run"
        if not (run / "summary.json").exists():
            own = [f"training.{name}={getattr(options, name)}" for name in ("minutes", "seed", "device")]
            this = setup(str(RECIPE), given=given, overrides=[*SETTINGS, *own, *options.set])
            begin(this, run, progress(sys.stderr))
        summary = json.loads((run / "summary.json").read_text("utf-8"))
        print(
            f"{summary['parameters']:,} parameters, {summary['epochs']} epochs, {summary['steps']:,} updates, "
            f"{summary['seconds']:.0f} s\n\n{'search':14}{'valid SER':>11}{'test SER':>10}{'all right':>11}"
        )
        for name, changes in SEARCHES.items():
            model = recurra.load(run, device=options.device).with_settings(changes)
            valid, test = (model.evaluate(given[part]).values for part in ("valid", "test"))
            rates = [each["symbol_error_rate"] for each in (valid, test)] + [test["exact_match"]]
            print(f"{name:14}{100 * rates[0]:11.2f}{100 * rates[1]:10.2f}{100 * rates[2]:11.1f}", flush=True)
        if options.picture is not None:
            with open(given["test"], encoding="utf-8") as file:
                wanted = [json.loads(line)["latex"] for line in file]
            answers = list(recurra.load(run).predict_file(given["test"], [], detail=True))
            right = [
                alignment_of(answer, answer.output)
                for answer, latex in zip(answers, wanted, strict=True)
                if answer.output == latex and len(latex.split()) == 7
            ]
            options.picture.write_text(min(right, key=lambda each: len(each.columns)).svg(1500), "utf-8")


if __name__ == "__main__":
    main()
