"""The recipes of three papers on attention: Bahdanau, Luong, and Xu's show, attend and tell, soft and hard.

    python benchmarks/attention_papers.py --device cuda --minutes 5
    python benchmarks/attention_papers.py --only bahdanau --only "bahdanau, tanh" --seeds 1 2
    python benchmarks/attention_papers.py --only soft --only hard --device cpu --minutes 1

Bahdanau and Luong translate Multi30k, English to German, from $RECURRA_DATA (../shared/data), lower-cased and tokenised
as published; the score is the BLEU of these tokens on test 2016 by a beam of 5. Soft and hard attention caption the
made-up scenes of examples/captions.py; the score is the share of 500 new captions that are exactly right, in percent.
Weights are those with the best such score of greedy search on validation data.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import recurra
from recurra.runs import begin, setup
from recurra.training.progress import progress

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("RECURRA_DATA", ROOT.parent / "shared" / "data")) / "multi30k" / "tok"

WORDS = ["data.source.min_count=2", "data.target.min_count=2", "evaluation.bleu_tokenize=none", "decoding.width=5"]
SCENES = ["model.hidden=64", "model.embedding=32", "model.dropout=0.1", "training.learning_rate=5e-3"]
SCENES += ["data.frames=features", "data.target=caption", "evaluation.first=exact_match"]

MODELS: dict[str, tuple[str, list[str]]] = {
    "bahdanau": ("bahdanau", WORDS),
    "bahdanau, tanh": ("bahdanau", [*WORDS, "model.readout=tanh"]),
    "luong, local-p": ("luong", WORDS),
    "luong, local-m": ("luong", [*WORDS, "model.attention.look.centre=monotonic"]),
    "luong, global": ("luong", [*WORDS, "model.attention=bilinear"]),
    "soft": ("show_attend_tell", SCENES),
    "soft, no term": ("show_attend_tell", [*SCENES, "training.doubly_stochastic=0"]),
    "hard": ("show_attend_tell_hard", SCENES),
    "hard, reward 0": ("show_attend_tell_hard", [*SCENES, "model.attention.look.reward=0"]),
}


def pairs() -> dict[str, str]:
    """The parallel files of Multi30k."""
    names = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    return {
        part: ",".join(str(DATA / f"{name}.lc.norm.tok.{side}") for side in ("en", "de"))
        for part, name in names.items()
    }


def scenes(folder: Path) -> dict[str, str]:
    """Features of scenes and their captions, made up."""
    maker = [sys.executable, str(ROOT / "examples" / "data" / "made_up.py"), "scenes", str(folder), "--train", "4000"]
    subprocess.run(maker, check=True)
    return {part: str(folder / f"{part}.npz") for part in ("train", "valid", "test")}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", action="append", metavar="MODEL", choices=MODELS, help="one of them, or several")
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1], help="a run for each (1)")
    arguments.add_argument("--minutes", type=float, default=5.0, help="of training, at most (5)")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--out", type=Path, help="keep the runs in this folder")
    arguments.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    options = arguments.parse_args()
    device = options.device if options.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    print(f"python {shlex.join(sys.argv)}\nrecurra {recurra.__version__}, torch {torch.__version__}, {device}\n")
    print(f"{'model':20}{'seed':>5}{'score':>13}{'valid':>8}{'test':>8}{'perplexity':>12}{'epochs':>8}{'seconds':>9}")
    with tempfile.TemporaryDirectory() as private:
        home, made = options.out or Path(private), dict[str, str]()
        for name in options.only or MODELS:
            recipe, own = MODELS[name]
            if own[0] == SCENES[0]:
                given = made = made or scenes(Path(private))
            else:
                given = pairs()
            score = "exact_match" if own[0] == SCENES[0] else "bleu"
            for seed in options.seeds:
                run = home / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
                if not (run / "summary.json").exists():
                    limits = [f"training.device={device}", f"training.minutes={options.minutes}"]
                    overrides = [*own, *limits, f"training.seed={seed}", *options.set]
                    this = setup(ROOT / "recipes" / f"{recipe}.toml", given=given, overrides=overrides)
                    begin(this, run, progress(sys.stderr))
                summary = json.loads((run / "summary.json").read_text("utf-8"))
                scale = 100 if score == "exact_match" else 1
                valid, test = (scale * summary[part]["scores"][score] for part in ("best", "test"))
                perplexity = summary["test"]["scores"]["perplexity"]
                print(
                    f"{name:20}{seed:5}{score:>13}{valid:8.2f}{test:8.2f}{perplexity:12.3f}{summary['epochs']:8}"
                    f"{summary['seconds']:9.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
