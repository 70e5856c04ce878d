"""Speech to digits: a synthetic voice says three to seven of them in noise, and the model writes them.

    python benchmarks/spoken_digits.py                          # a pyramid and attention that sees where it looked
    python benchmarks/spoken_digits.py --all                    # beside it: without the one, without the other, and
                                                                # phonemes in place of digits
    python benchmarks/spoken_digits.py --picture alignment.svg  # where it looked in a recording of test

examples/data/speech.py makes 2,000 recordings for training, 100 and 200 of other speakers for valid and test, each a
sequence of 24 log mel bands every 10 ms. Weights are those with the lowest symbol error rate of greedy search on valid;
test is written by a beam of 5. Symbol error rate: edits over the number of digits, in percent. Forward: the share of
digits for which attention looked, on average over the places of the memory, not before where it looked for the last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import recurra
from recurra.analysis.alignment import alignment_of
from recurra.runs import begin, setup
from recurra.tasks.task import Prediction
from recurra.training.progress import progress

MAKER = Path(__file__).parents[1] / "examples" / "data" / "speech.py"

SETTINGS = [
    "data.frames=frames",
    "data.target=digits",
    "data.target.tokens=symbols",
    "model.embedding=64",
    "model.hidden=128",
    "model.dropout=0.2",
    "training.batch_size=16",
    "training.learning_rate=2e-3",
    "training.epochs=30",
    "evaluation.first=symbol_error_rate",
]

LOCATION = 'model.attention={name="additive", terms=["location"]}'

MODELS = {
    "pyramid, location": ["model.encoder.kind=pyramid", LOCATION],
    "pyramid, additive": ["model.encoder.kind=pyramid", "model.attention=additive"],
    "three layers, location": ["model.encoder.layers=3", LOCATION],
    "phonemes": ["model.encoder.kind=pyramid", LOCATION, "data.target=target"],
}


def forward(answers: list[Prediction]) -> float:
    """The share of written symbols for which attention did not go back."""
    steps = []
    for answer in answers:
        assert answer.alignment is not None, "it attends"
        weights = answer.alignment[: len(answer.detail["tokens"])]  # without that of the end
        places = weights @ np.arange(weights.shape[1])
        steps += (np.diff(places) >= 0).tolist()
    return float(np.mean(steps))


def picture(answers: list[Prediction]) -> str:
    """Where attention looked in the shortest recording of five digits."""
    found = [alignment_of(answer, answer.output) for answer in answers if len(answer.detail["tokens"]) == 5]
    return min(found, key=lambda alignment: len(alignment.columns)).svg(1500)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--all", action="store_true", help="its neighbours too")
    arguments.add_argument("--data", type=Path, help="keep the recordings in this folder, or find them there")
    arguments.add_argument("--out", type=Path, help="keep the runs in this folder")
    arguments.add_argument("--picture", type=Path, help="an SVG of where the first model looked")
    arguments.add_argument("--minutes", type=float, default=8.0, help="of training, at most (8)")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as private:
        data, out = options.data or Path(private) / "data", options.out or Path(private) / "runs"
        if not (data / "test.npz").exists():
            subprocess.run([sys.executable, str(MAKER), str(data)], check=True)
        given = {part: str(data / f"{part}.npz") for part in ("train", "valid", "test")}
        print(
            f"{'model':24}{'places':>7}{'valid SER':>11}{'test SER':>10}{'all right':>11}{'forward':>9}{'epochs':>8}"
            f"{'seconds':>9}"
        )
        for name in MODELS if options.all else list(MODELS)[:1]:
            own = [f"training.device={options.device}", f"training.minutes={options.minutes}", *options.set]
            run = out / name.replace(", ", "-").replace(" ", "-")
            if not (run / "summary.json").exists():
                overrides = [*SETTINGS, *MODELS[name], *own]
                begin(setup("seq2seq", given=given, overrides=overrides), run, progress(sys.stderr))
            summary = json.loads((run / "summary.json").read_text("utf-8"))
            valid, test = (summary[part]["scores"] for part in ("best", "test"))
            answers = list(recurra.load(run).predict_file(given["test"], [], detail=True))
            shown = [
                100 * each for each in (valid["symbol_error_rate"], test["symbol_error_rate"], test["exact_match"])
            ]
            places = np.mean([answer.alignment.shape[1] for answer in answers if answer.alignment is not None])
            print(
                f"{name:24}{places:7.0f}{shown[0]:11.2f}{shown[1]:10.2f}{shown[2]:11.1f}{100 * forward(answers):9.1f}"
                f"{summary['epochs']:8}{summary['seconds']:9.0f}",
                flush=True,
            )
            if options.picture is not None and name == next(iter(MODELS)):
                options.picture.write_text(picture(answers), "utf-8")


if __name__ == "__main__":
    main()
