"""Intents of clinc150: 150 classes of short questions, by every encoder; questions outside them are to be refused.

    python benchmarks/intents.py                          # all encoders, one after the other
    python benchmarks/intents.py bag cnn --out runs       # some of them, their runs kept

Data are read from $RECURRA_DATA (../shared/data). Settings are the defaults of `recurra config classification`, but for
what SETTINGS says; weights are chosen on valid.tsv. Accuracy is over the 4,500 questions of test.tsv; `refused` is the
share of the 1,000 questions of oos_test.tsv that are less probable than 95 % of those of test.tsv (out-of-scope recall
at 5 % false alarms).
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

DATA = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "clinc150"

BRIEFER = ["training.batch_size=64", "training.epochs=10"]
"""Larger batches and half the epochs: a third of the time."""

SETTINGS = {
    "bag": ["model.encoder=bag"],
    "rnn": [*BRIEFER],
    "queries": [*BRIEFER, 'model.summary={name="attention", queries=4}'],
    "cnn": [*BRIEFER, "model.encoder=cnn"],
    "ensemble": [*BRIEFER, "model.encoder=ensemble"],
    "three": [*BRIEFER, "model.encoder=ensemble", 'model.members=["cnn", "rnn", "bag"]'],
}

ABOUT = {
    "bag": "words, phrases, pieces",
    "rnn": "BiLSTM, largest over time",
    "queries": "BiLSTM, 4 learned queries",
    "cnn": "convolutions, largest over time",
    "ensemble": "cnn + rnn",
    "three": "cnn + rnn + bag",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("encoders", nargs="*", help=f"which of {', '.join(SETTINGS)} (all)")
    arguments.add_argument("--out", help="keep the runs in this folder")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all")
    options = arguments.parse_args()
    given = {part: str(DATA / f"{part}.tsv") for part in ("train", "valid", "test")}
    rows = []
    with tempfile.TemporaryDirectory() as private:
        for name in options.encoders or SETTINGS:
            run = Path(options.out or private) / name
            if not (run / "summary.json").exists():
                overrides = [*SETTINGS[name], f"training.device={options.device}", *options.set]
                begin(setup("classification", given=given, overrides=overrides), run, progress(sys.stderr))
            summary = json.loads((run / "summary.json").read_text("utf-8"))
            outside = recurra.load(run).evaluate([DATA / "test.tsv", DATA / "oos_test.tsv"]).values
            valid, test = summary["best"]["scores"], summary["test"]["scores"]
            rows.append(
                f"{name:10}{ABOUT[name]:33}{summary['parameters']:>11,}{100 * valid['accuracy']:8.2f}"
                f"{100 * test['accuracy']:8.2f}{100 * outside['unseen_recall']:9.1f}"
                f"{test['calibration_error']:13.3f}{summary['seconds']:9.0f}"
            )
            print(rows[-1], flush=True)
    head = f"{'encoder':10}{'':33}{'parameters':>11}{'valid':>8}{'test':>8}{'refused':>9}"
    print(f"\n{head}{'calibration':>13}{'seconds':>9}")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
