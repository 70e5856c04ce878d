"""Inflection: Kannada and Telugu of SIGMORPHON 2020, from a lemma and features to a form.

    python benchmarks/inflection.py                  # both languages
    python benchmarks/inflection.py --seeds 5        # five models each, alone and together

Data are read from $RECURRA_DATA (../shared/data): lemma, form, features. Accuracy: forms that are exactly right, row by
row as published (a lemma and its features may have several forms in the test; each row counts).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import recurra
from recurra.runs import begin, setup
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "inflection_sigmorphon2020"
LANGUAGES = ("kan", "tel")

SETTINGS = [
    "data.source.tokens=characters",
    "data.target.tokens=characters",
    "data.joint=true",
    "model.tied=all",
    "model.attention=bilinear",
    "model.copy=true",
    "model.wiring=between",
    "model.hidden=256",
    "model.dropout=0.4",
    "training.batch_size=32",
    "training.steps=4000",
    "training.validate=100",
    "training.learning_rate=1e-3",
    "training.deterministic=false",
]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("languages", nargs="*", help=f"which of {', '.join(LANGUAGES)} (both)")
    arguments.add_argument("--seeds", type=int, default=1, help="models for each language")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    device = "cpu" if options.device == "auto" else options.device
    print(f"{'language':10}{'valid':>8}{'test':>8}{'together: valid':>17}{'test':>8}")
    means = []
    with tempfile.TemporaryDirectory() as private:
        for language in options.languages or LANGUAGES:
            given = {part: str(DATA / f"{language}_{part}.tsv") for part in ("train", "valid", "test")}
            runs = []
            for seed in range(1, options.seeds + 1):
                run = Path(options.out or private) / f"{language}.{seed}"
                runs.append(run)
                if not (run / "summary.json").exists():
                    own = [f"training.device={options.device}", f"training.seed={seed}", *options.set]
                    begin(setup("seq2seq", given=given, overrides=[*SETTINGS, *own]), run, progress(sys.stderr))
            alone = [[accuracy([run], given[part], device) for run in runs] for part in ("valid", "test")]
            found = [sum(each) / len(each) for each in alone]
            if len(runs) > 1:
                found += [accuracy(runs, given[part], device) for part in ("valid", "test")]
            means.append(found)
            print(row(language, found), flush=True)
    print(row("mean", [sum(column) / len(column) for column in zip(*means, strict=True)]))


def accuracy(runs: list[Path], file: str, device: str) -> float:
    """The share of rows whose form is written exactly."""
    model = recurra.load(runs if len(runs) > 1 else runs[0], device=device)
    examples = list(model.task.read([file]))
    answers = model.answers([example._replace(target=None) for example in examples])
    return 100 * sum(a.output == e.target for a, e in zip(answers, examples, strict=True)) / len(examples)


def row(name: str, found: list[float]) -> str:
    return f"{name:10}" + "".join(f"{value:{width}.2f}" for value, width in zip(found, (8, 8, 17, 8), strict=False))


if __name__ == "__main__":
    main()
