"""Sequence to sequence without attention on Multi30k, English to German: the source reversed, as it is, and both ways.

    python benchmarks/sutskever.py
    python benchmarks/sutskever.py backward --device cuda --seeds 1 2 3
    python benchmarks/sutskever.py --set training.epochs=2 --set model.hidden=128     # a first look

The model is recipes/sutskever.toml (Sutskever et al. 2014), which reads the source from its end; `forward` reads it
from its beginning, and `both` with a bidirectional encoder of as many units. In the paper, on 12 million pairs,
reversing lowered the perplexity from 5.8 to 4.7 and raised BLEU from 25.9 to 30.6. Data are read from $RECURRA_DATA
(../shared/data), lower-cased and tokenised as published; BLEU is that of these tokens, by a beam of 12.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import torch

import recurra
from recurra.runs import begin, setup, summary_of
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "multi30k" / "tok"
RECIPE = Path(__file__).parents[1] / "recipes" / "sutskever.toml"

WAYS = {
    "backward": [],
    "forward": ["model.direction=forward"],
    "both": ["model.direction=forward", "model.bidirectional=true"],
}


def files(part: str) -> str:
    """Two parallel files."""
    return ",".join(str(DATA / f"{part}.lc.norm.tok.{side}") for side in ("en", "de"))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("ways", nargs="*", help=f"which of {', '.join(WAYS)} (all)")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1])
    arguments.add_argument("--minutes", type=float, help="the most that one training may take")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    print(f"recurra {recurra.__version__}, torch {torch.__version__}: {' '.join(['python', *sys.argv])}")
    print(f"{'source':10}{'seed':>5}{'M par.':>8}{'valid':>8}{'2016':>8}{'perplexity':>12}{'epochs':>8}{'seconds':>9}")
    with tempfile.TemporaryDirectory() as private:
        for way in options.ways or WAYS:
            found = []
            for seed in options.seeds:
                run = Path(options.out or private) / f"{way}.{seed}"
                own = [f"training.device={options.device}", f"training.seed={seed}", *options.set]
                own += [] if options.minutes is None else [f"training.minutes={options.minutes}"]
                given = {"train": files("train"), "valid": files("val")}
                if not (run / "summary.json").exists():
                    begin(setup(str(RECIPE), given=given, overrides=[*WAYS[way], *own]), run, progress(sys.stderr))
                summary = summary_of(run)
                model = recurra.load(run, device="cuda" if torch.cuda.is_available() else "cpu")
                test = model.evaluate(files("test_2016_flickr"))
                found.append(test.values["bleu"])
                print(
                    f"{way:10}{seed:5}{summary['parameters'] / 1e6:8.1f}{summary['best']['scores']['bleu']:8.2f}"
                    f"{test.values['bleu']:8.2f}{test.values['perplexity']:12.2f}{summary['epochs']:8}"
                    f"{summary['seconds']:9.0f}",
                    flush=True,
                )
                print(test.tables["by length"].text(), flush=True)
            if len(found) > 1:
                print(f"{way}: BLEU 2016 {statistics.fmean(found):.2f} ± {statistics.stdev(found):.2f}", flush=True)


if __name__ == "__main__":
    main()
