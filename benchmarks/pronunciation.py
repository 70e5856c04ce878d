"""Letters to phonemes: twelve languages of SIGMORPHON 2020, and CMUdict.

    python benchmarks/pronunciation.py                         # the twelve languages, one model each
    python benchmarks/pronunciation.py ice dut --seeds 5       # five models each, alone and together
    python benchmarks/pronunciation.py cmudict

Data are read from $RECURRA_DATA (../shared/data). Weights are those with the lowest word error rate of greedy search on
valid; test is written by a beam of 5. Word error rate: the share of words that are not exactly right; of several
pronunciations of a word any is right.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import recurra
from recurra.runs import begin, setup
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))
LANGUAGES = ("ady", "arm", "bul", "dut", "fre", "geo", "gre", "hun", "ice", "jpn", "rum", "vie")

LETTERS = ["data.source.tokens=characters", "data.target.tokens=symbols", "training.deterministic=false"]

SETTINGS = [
    *LETTERS,
    'model.attention={name="projected_dot", terms=["monotonic"]}',
    "model.wiring=feeding",
    "model.encoder.layers=2",
    "model.dropout=0.25",
    "training.batch_size=120",
    "training.steps=2800",
    "training.validate=100",
    "training.learning_rate=2e-3",
    "training.r_drop=1",
]

CMUDICT = [
    *LETTERS,
    'model.attention={name="bilinear", terms=["monotonic"]}',
    "model.wiring=between",
    "model.hidden=512",
    "model.embedding=256",
    "model.encoder.layers=2",
    "model.dropout=0.3",
    "training.batch_size=256",
    "training.epochs=30",
    "training.learning_rate=1e-3",
]


def files(language: str) -> dict[str, str]:
    """The files of a language."""
    if language == "cmudict":
        return {part: str(DATA / "cmudict" / f"{part}.tsv.gz") for part in ("train", "valid", "test")}
    return {part: str(DATA / "g2p_sigmorphon2020" / f"{language}_{part}.tsv") for part in ("train", "valid", "test")}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("languages", nargs="*", help=f"which of {', '.join(LANGUAGES)} (all), or cmudict")
    arguments.add_argument("--seeds", type=int, default=1, help="models for each language")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    device = "cpu" if options.device == "auto" else options.device
    print(f"{'language':10}{'valid WER':>11}{'test WER':>10}{'PER':>8}{'together WER':>14}{'PER':>8}{'seconds':>9}")
    sums = [0.0] * 5
    names = options.languages or list(LANGUAGES)
    with tempfile.TemporaryDirectory() as private:
        for language in names:
            given, runs, scores, seconds = files(language), [], [], 0.0
            for seed in range(1, options.seeds + 1):
                run = Path(options.out or private) / f"{language}.{seed}"
                runs.append(run)
                if not (run / "summary.json").exists():
                    own = [f"training.device={options.device}", f"training.seed={seed}", *options.set]
                    overrides = [*(CMUDICT if language == "cmudict" else SETTINGS), *own]
                    begin(setup("seq2seq", given=given, overrides=overrides), run, progress(sys.stderr))
                summary = json.loads((run / "summary.json").read_text("utf-8"))
                seconds += summary["seconds"]
                both = [summary[part]["scores"] for part in ("best", "test")]
                scores.append([both[0]["word_error_rate"], both[1]["word_error_rate"], both[1]["symbol_error_rate"]])
            means = [100 * sum(column) / len(scores) for column in zip(*scores, strict=True)]
            if len(runs) > 1:
                voted = recurra.load(runs, device=device).evaluate(given["test"]).values
                means += [100 * voted["word_error_rate"], 100 * voted["symbol_error_rate"]]
            sums = [total + mean for total, mean in zip(sums, [*means, 0.0, 0.0], strict=False)]
            print(row(language, means, seconds), flush=True)
    if len(names) > 1:
        print(row("mean", [total / len(names) for total in sums[: 5 if options.seeds > 1 else 3]], 0.0))


def row(name: str, means: list[float], seconds: float) -> str:
    widths = (11, 10, 8, 14, 8)
    cells = [f"{mean:{width}.2f}" for mean, width in zip(means, widths, strict=False)]
    return f"{name:10}{''.join(cells):51}{seconds:9.0f}"


if __name__ == "__main__":
    main()
