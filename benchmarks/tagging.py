"""Taggers on real data: part of speech of three languages, slots and intent, names in noisy text.

    python benchmarks/tagging.py                     # all five, one after the other
    python benchmarks/tagging.py tr fr --out runs    # some of them, their runs kept

Data are read from $RECURRA_DATA (../shared/data). Settings are the defaults of `recurra config tagging`, but for what
SETTINGS says. No word vectors from elsewhere; tokens are the gold ones; weights are chosen on the validation file.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from recurra.runs import begin, setup
from recurra.training.progress import progress

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))

FILES = {
    "en": ("ud_english_ewt/en_ewt-ud-{}.conllu.gz", "train", "dev", "test"),
    "tr": ("ud_turkish_imst/tr_imst-ud-{}.conllu.gz", "train", "dev", "test"),
    "fr": ("ud_french_sequoia/fr_sequoia-ud-{}.conllu.gz", "train", "dev", "test"),
    "snips": ("snips/{}.tsv", "train", "valid", "test"),
    "wnut17": ("wnut17/{}.conll", "train", "valid", "test"),
}

SETTINGS = {
    "en": ["training.epochs=12"],
    "tr": ["training.epochs=30", 'model.head={name="softmax", label_smoothing=0.1}'],
    "fr": ["training.epochs=30"],
    "snips": [
        'data.columns=["tokens", "tags", "label"]',
        "training.epochs=12",
        "model.dropout=0.33",
        "model.label_weight=3",
    ],
    "wnut17": ["training.epochs=20"],
}

SHOWN = ("accuracy", "unknown_accuracy", "f1", "label_accuracy", "sentence_accuracy")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("sets", nargs="*", help=f"which of {', '.join(FILES)} (all)")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as private:
        rows = [train(name, Path(options.out or private), options.set) for name in options.sets or FILES]
    print(f"{'data':8}{'part':7}" + "".join(f"{name:>19}" for name in SHOWN) + f"{'steps':>8}{'seconds':>9}")
    for name, summary in rows:
        for part, scores in (("valid", summary["best"]["scores"]), ("test", summary["test"]["scores"])):
            cells = "".join(f"{100 * scores[key]:19.2f}" if key in scores else f"{'':19}" for key in SHOWN)
            print(f"{name:8}{part:7}{cells}{summary['steps']:8}{summary['seconds']:9.0f}")


def train(name: str, folder: Path, overrides: list[str]) -> tuple[str, dict[str, dict[str, dict[str, float]]]]:
    pattern, *parts = FILES[name]
    given = {
        which: str(DATA / pattern.format(part)) for which, part in zip(("train", "valid", "test"), parts, strict=True)
    }
    begin(setup("tagging", given=given, overrides=[*SETTINGS[name], *overrides]), folder / name, progress(sys.stderr))
    return name, json.loads((folder / name / "summary.json").read_text("utf-8"))


if __name__ == "__main__":
    main()
