"""Char-RNN on Tiny Shakespeare: forward, backward, two models together, and exposure bias.

    python benchmarks/char_rnn.py
    python benchmarks/char_rnn.py --device cuda --seeds 1 2
    python benchmarks/char_rnn.py --minutes 1 --out runs                  # a first look

The model is recipes/char_rnn.toml (Karpathy 2015). Bits per character are those of valid.txt with carried states. The
rows: each direction by itself; all forward models mixed, where there are several seeds; both directions, whose scores
are added (their bits are the mean of both, a bound: see docs/language_models.md); and a forward model trained with
scheduled sampling, whose chance of the right character falls to 0.75. The last two columns are teacher-forced and
free-running nats per character in windows of 256, the first half of which is read as it is. Data are read from
$RECURRA_DATA (../shared/data).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import torch

import recurra
from recurra.runs import begin, setup, summary_of
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "tinyshakespeare"
RECIPE = Path(__file__).parents[1] / "recipes" / "char_rnn.toml"

KINDS = {
    "forward": [],
    "backward": ["model.direction=backward"],
    "sampled": ['training.forcing={name="linear", c=5e-5, floor=0.75}', "training.epochs=10"],
}


def row(name: str, runs: list[Path], seconds: float, device: str, *, exposes: bool) -> None:
    """Print the scores of one run, or of several together."""
    model = recurra.load(runs if len(runs) > 1 else runs[0], device=device)
    values = model.evaluate(DATA / "valid.txt").values
    found = f"{name:22}{values['nll']:8.4f}{values['bits_per_character']:8.4f}{seconds:9.0f}"
    if exposes:
        bias = model.free_running(DATA / "valid.txt").values
        found += f"{bias['teacher_forced_nll']:10.4f}{bias['free_running_nll']:10.4f}"
    print(found, flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1])
    arguments.add_argument("--minutes", type=float, help="the most that one training may take")
    arguments.add_argument("--kinds", nargs="+", default=list(KINDS), help=f"which of {', '.join(KINDS)}")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    device = "cuda" if torch.cuda.is_available() and options.device != "cpu" else "cpu"
    print(f"recurra {recurra.__version__}, torch {torch.__version__}: {' '.join(['python', *sys.argv])}")
    print(f"{'model':22}{'nll':>8}{'bpc':>8}{'seconds':>9}{'forced':>10}{'free':>10}")
    with tempfile.TemporaryDirectory() as private:
        home, found = Path(options.out or private), dict[str, list[Path]]()
        for kind in options.kinds:
            for seed in options.seeds if kind != "sampled" else options.seeds[:1]:
                run = home / f"{kind}.{seed}"
                own = [f"training.device={options.device}", f"training.seed={seed}", *options.set]
                own += [] if options.minutes is None else [f"training.minutes={options.minutes}"]
                given = {"train": str(DATA / "train.txt"), "valid": str(DATA / "valid.txt")}
                if not (run / "summary.json").exists():
                    begin(setup(str(RECIPE), given=given, overrides=[*KINDS[kind], *own]), run, progress(sys.stderr))
                found.setdefault(kind, []).append(run)
                row(run.name, [run], summary_of(run)["seconds"], device, exposes=True)
        forward, backward = found.get("forward", []), found.get("backward", [])
        if len(forward) > 1:
            row(f"{len(forward)} forward, mixed", forward, 0.0, device, exposes=False)
        if forward and backward:
            row("both directions", [*forward, *backward], 0.0, device, exposes=False)


if __name__ == "__main__":
    main()
