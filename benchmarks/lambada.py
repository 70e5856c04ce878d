"""LAMBADA: the last word of 5,153 passages, by a language model of WikiText-2.

    python benchmarks/lambada.py                                   # two layers of 650, ten epochs
    python benchmarks/lambada.py --device cuda --epochs 20 --out runs
    python benchmarks/lambada.py --minutes 1 --hidden 128 --device cpu

The model is recipes/lambada.toml. LAMBADA and WikiText-2 are read from $RECURRA_DATA (../shared/data: lambada,
wikitext2). A cache of the words of the passage is added in evaluation; its two settings are those of least perplexity
on LAMBADA's validation passages. The published figures are of models of 203 million words of novels, which are not
there: this one has read 2 million words of an encyclopedia, in lower case as the passages are. A last word that it does
not know counts as wrong.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))
RECIPE = Path(__file__).parents[1] / "recipes" / "lambada.toml"

PUBLISHED = {
    "LSTM (Paperno et al. 2016)": ("0.0", "5,357"),
    "n-gram with cache (the same)": ("0.1", "768"),
    "LSTM (Bai et al. 2018)": ("", "4,186"),
    "TCN (the same)": ("", "1,279"),
    "humans": ("86", ""),
}
"""Accuracy in percent and perplexity of the last word, as the README of the data has them."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--hidden", type=int, default=650)
    arguments.add_argument("--epochs", type=int, default=10)
    arguments.add_argument("--minutes", type=float, help="at most so long for training")
    arguments.add_argument("--out", type=Path, help="keep the run in this folder")
    arguments.add_argument("--set", action="append", default=[], help="another setting of training")
    options = arguments.parse_args()
    print(f"command: {shlex.join(['python', *sys.argv])}\n{versions()}", flush=True)
    with tempfile.TemporaryDirectory() as private:
        run = (options.out or Path(private)) / "wikitext2"
        began = time.monotonic()
        subprocess.run(training(run, options), check=True)
        print(f"trained in {time.monotonic() - began:.0f} s", flush=True)
        print(f"\n{'last word of LAMBADA':32}{'accuracy':>10}{'perplexity':>12}{'of known words':>16}{'unknown':>9}")
        for part in ("valid", "test"):
            tell(part, run, options.device)
        best = min(CACHES, key=lambda each: scores("valid", run, options.device, each)["perplexity"])
        for part in ("valid", "test"):
            tell(part, run, options.device, best)
        for name, (accuracy, perplexity) in PUBLISHED.items():
            print(f"{name + ', test':32}{accuracy:>10}{perplexity:>12}")


def training(run: Path, options: argparse.Namespace) -> list[str]:
    """The command that trains."""
    words = [sys.executable, "-m", "recurra", "train", str(RECIPE), "--out", str(run), "--quiet"]
    for part in ("train", "valid"):
        words += [f"--{part}", str(DATA / "wikitext2" / f"{part}.txt.gz")]
    settings = [
        *("data.cache=false", f"model.embedding={options.hidden}", f"model.hidden={options.hidden}"),
        *(f"training.epochs={options.epochs}", f"training.device={options.device}"),
        *([f"training.minutes={options.minutes}"] if options.minutes else []),
        *options.set,
    ]
    return [*words, *(word for each in settings for word in ("--set", each))]


Cache = tuple[float, float]
CACHES: list[Cache] = [(share, sharpness) for share in (0.2, 0.4, 0.6) for sharpness in (0.0, 0.2, 0.6)]
"""How much of the probability is the cache's, and how much more a place counts whose state is alike."""


def scores(part: str, run: Path, device: str, cache: Cache | None = None) -> dict[str, float]:
    """What `recurra evaluate` prints for a part of LAMBADA."""
    import torch

    import recurra

    where = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    share, sharpness = cache or (0.0, 0.0)
    settings = ["evaluation.manner=last_word"]
    settings += [f"evaluation.cache={share}", f"evaluation.cache_sharpness={sharpness}"] if cache else []
    found = recurra.load(run, device=where).with_settings(settings).evaluate(DATA / "lambada" / f"{part}.txt.gz")
    return dict(found.values)


def tell(part: str, run: Path, device: str, cache: Cache | None = None) -> None:
    """A row of the table."""
    found = scores(part, run, device, cache)
    known = found.get("known_perplexity", found["perplexity"])
    unknown = found.get("unknown", 0) / found["count"]
    name = "this model" if cache is None else f"cache {cache[0]:g}, {cache[1]:g}"
    print(
        f"{name + ', ' + part:32}{100 * found['accuracy']:>10.2f}{found['perplexity']:>12,.1f}{known:>16,.1f}"
        f"{unknown:>9.1%}",
        flush=True,
    )


def versions() -> str:
    import torch

    import recurra

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return f"recurra {recurra.__version__}, torch {torch.__version__}, Python {platform.python_version()}, {device}"


if __name__ == "__main__":
    main()
