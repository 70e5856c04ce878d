"""Handwritten formulas to LaTeX: CROHME, tested on the competition of 2014.

    python benchmarks/formulas.py                                  # recurrent decoder
    python benchmarks/formulas.py recurrent transformer --device cuda --out runs
    python benchmarks/formulas.py transformer --from transformer.1 --seed 2 --out runs   # goes on from its weights
    python benchmarks/formulas.py --together recurrent.1 transformer.1 --out runs

Data are read from $RECURRA_DATA (../shared/data): pen strokes, drawn with numpy. About a fifteenth of the training
formulas, chosen by a hash of their LaTeX so that no formula is on both sides, are for validation; weights are those
with the most formulas exactly right there by greedy search. Training also sees --composed new formulas, which are put
together of those of training alone (composed_formulas.py). Test is written by a beam of 5; exact match is of the whole
formula.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import composed_formulas
import recurra
from composed_formulas import Formula, formula
from recurra.runs import begin, setup
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "crohme"

COMPOSED = 16_000

COMMON = [
    "data.image.strokes=ink",
    "data.target=latex",
    "data.target.tokens=symbols",
    "data.image.stroke=20",
    "data.image.max_height=192",
    "data.image.max_width=640",
    "decoding.max_length=100",
    "training.batch_size=64",
    "training.epochs=100",
    "training.learning_rate=1e-3",
    "training.deterministic=false",
    "model.image.widths=[48, 96, 256]",  # a place of the map is 8 x 8 pixels: two or three across a sign
    "model.image.layers=3",
    "augmentation.rotate=5",
    "augmentation.scale=0.2",
    "augmentation.shear=0.2",
    "augmentation.warp=2",
    "augmentation.ink=1",
]

SEEING = 'model.attention={name="additive", location={filters=32, width=7, of="all", dimensions=2}}'
"""As published recognisers look: a score that sees how much of each place, and around it, was looked at before."""

SETTINGS = {
    "recurrent": [SEEING, "model.wiring=between", "model.hidden=384", "model.embedding=256"],
    "conditional": [SEEING, "model.wiring=conditional", "model.cell=gru", "model.embedding=256"],
    "transformer": [
        *("model.decoder=transformer", "model.decoder.layers=3", "model.embedding=256", "model.conditioning=[]"),
        *("model.dropout=0.3", "model.token_dropout=0.1", "training.precision=bfloat16", "training.warmup=800"),
    ],
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("models", nargs="*", help=f"which of {', '.join(SETTINGS)} (recurrent)")
    arguments.add_argument("--together", nargs="+", metavar="RUN", help="runs in --out that answer as one")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--from", dest="start", metavar="RUN", help="start from the weights of a run in --out")
    arguments.add_argument("--composed", type=int, default=COMPOSED, help=f"formulas put together ({COMPOSED})")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    print(f"{'model':28}{'M par.':>8}{'valid':>8}{'2014':>8}{'symbols wrong':>15}{'seconds':>9}")
    with tempfile.TemporaryDirectory() as private:
        home = Path(options.out or private)
        home.mkdir(parents=True, exist_ok=True)
        given = split(home, composed=options.composed)
        for name in options.models or ([] if options.together else ["recurrent"]):
            run = home / f"{name}.{options.seed}"
            if not (run / "summary.json").exists():
                own = [f"training.device={options.device}", f"training.seed={options.seed}", *options.set]
                start = home / options.start if options.start else None
                this = setup("vec2seq", given=given, overrides=[*COMMON, *SETTINGS[name], *own], start_from=start)
                begin(this, run, progress(sys.stderr))
            report(run.name, [run], given, options.device)
        if options.together:
            report(
                f"{len(options.together)} together", [home / name for name in options.together], given, options.device
            )


def split(home: Path, *, composed: int = COMPOSED) -> dict[str, Any]:
    """Files of formulas for training and validation, in `home`."""
    paths = {part: home / f"crohme.{part}.jsonl" for part in ("train", "valid")}
    lines: dict[str, list[str]] = {"train": [], "valid": []}
    with gzip.open(DATA / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            digest = hashlib.sha256(json.loads(line)["latex"].encode()).digest()
            lines["valid" if digest[0] < 17 else "train"].append(line)
    for part, path in paths.items():
        if not path.exists():
            path.write_text("".join(lines[part]), "utf-8")
    new = home / f"crohme.composed.{composed}.jsonl"
    if composed and not new.exists():
        rows = [json.loads(line) for line in lines["train"]]
        found = composed_formulas.composed([formula(row["ink"], row["latex"]) for row in rows], composed, seed=1)
        new.write_text("".join(map(in_json, found)), "utf-8")
    train = [str(paths["train"]), *([str(new)] if composed else [])]
    return {"train": train, "valid": str(paths["valid"])}


def in_json(new: Formula) -> str:
    """A line as the data have it, in hundredths of a stroke."""
    ink = [np.rint(100 * stroke).astype(int).tolist() for stroke in new.strokes]
    return json.dumps({"latex": " ".join(new.tokens), "ink": ink}) + "\n"


def report(name: str, runs: list[Path], given: dict[str, Any], device: str) -> None:
    """A row of the table."""
    summaries = [json.loads((run / "summary.json").read_text("utf-8")) for run in runs]
    model = recurra.load(runs if len(runs) > 1 else runs[0], device="cpu" if device == "auto" else device)
    valid, test = (model.evaluate(path).values for path in (given["valid"], str(DATA / "test2014.jsonl.gz")))
    print(
        f"{name:28}{sum(each['parameters'] for each in summaries) / 1e6:8.1f}{100 * valid['exact_match']:8.2f}"
        f"{100 * test['exact_match']:8.2f}{100 * test['symbol_error_rate']:15.2f}"
        f"{sum(each['seconds'] for each in summaries):9.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
