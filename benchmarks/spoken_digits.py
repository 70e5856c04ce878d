"""Speech to digits: a synthetic voice says three to seven of them in noise, and the model writes them.

    python benchmarks/spoken_digits.py                          # a pyramid and attention that sees where it looked
    python benchmarks/spoken_digits.py --all                    # beside it: without the one, without the other,
                                                                # phonemes in place of digits, CTC, and both together
    python benchmarks/spoken_digits.py --picture alignment.svg  # where it looked in a recording of test

examples/data/speech.py makes 2,000 recordings for training, 100 and 200 of other speakers for valid and test, each a
sequence of 24 log mel bands every 10 ms. Weights are those with the lowest symbol error rate of greedy search on valid;
test is written by a beam of 5. Symbol error rate: edits over the number of digits, in percent. Forward: the share of
digits for which attention looked, on average over the places of the memory, not before where it looked for the last;
for CTC, of its best alignment. A second table has the symbol error rate of CTC on test by each search, and a third that
of a run of CTC and one with attention that answer together.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

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
    "pyramid, CTC": ["model.encoder.kind=pyramid", "model.decoder.kind=ctc"],
    "three layers, CTC": ["model.encoder.layers=3", "model.decoder.kind=ctc"],
    "phonemes, CTC": ["model.encoder.kind=pyramid", "model.decoder.kind=ctc", "data.target=target"],
}

SEARCHES: dict[str, dict[str, object]] = {
    "best path": {"decoding.search": "path"},
    "greedy": {"decoding.search": "greedy"},
    "beam of 5": {},
    "beam of 50": {"decoding.width": 50},
    "beam of 5, most probable": {"decoding.length_penalty": 0.0},
}
"""The last has no length penalty, which for CTC is the most probable sequence."""

TOGETHER = ("pyramid, location", "pyramid, CTC")


def forward(answers: list[Prediction]) -> float:
    """The share of written symbols for which attention did not go back."""
    steps = []
    for answer in answers:
        if answer.alignment is None:  # CTC wrote nothing
            continue
        weights = answer.alignment[: len(answer.detail["tokens"])]  # without that of the end
        places = weights @ np.arange(weights.shape[1]) / weights.sum(1)
        steps += (np.diff(places) >= 0).tolist()
    return float(np.mean(steps))


def picture(answers: list[Prediction]) -> str:
    """Where attention looked in the shortest recording of five digits."""
    found = [alignment_of(answer, answer.output) for answer in answers if len(answer.detail["tokens"]) == 5]
    return min(found, key=lambda alignment: len(alignment.columns)).svg(1500)


def error_rate(run: str, test: str, changes: dict[str, object], device: str) -> float:
    """The symbol error rate of one run, or of several together, by a search; in percent."""
    model = recurra.load(run, device=device).with_settings(changes)
    return 100 * model.evaluate(test).values["symbol_error_rate"]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--all", action="store_true", help="its neighbours too")
    arguments.add_argument("--only", action="append", metavar="MODEL", choices=MODELS, help="one of them, or several")
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1], help="a run for each (1)")
    arguments.add_argument("--data", type=Path, help="keep the recordings in this folder, or find them there")
    arguments.add_argument("--out", type=Path, help="keep the runs in this folder")
    arguments.add_argument("--picture", type=Path, help="an SVG of where the first model looked")
    arguments.add_argument("--minutes", type=float, default=8.0, help="of training, at most (8)")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="another setting")
    options = arguments.parse_args()
    device = options.device if options.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    print(f"python {shlex.join(sys.argv)}\nrecurra {recurra.__version__}, torch {torch.__version__}, {device}\n")
    with tempfile.TemporaryDirectory() as private:
        data, out = options.data or Path(private) / "data", options.out or Path(private) / "runs"
        if not (data / "test.npz").exists():
            subprocess.run([sys.executable, str(MAKER), str(data)], check=True)
        given = {part: str(data / f"{part}.npz") for part in ("train", "valid", "test")}
        print(
            f"{'model':24}{'seed':>5}{'places':>7}{'valid SER':>11}{'test SER':>10}{'all right':>11}{'forward':>9}"
            f"{'epochs':>8}{'seconds':>9}"
        )
        chosen = options.only or (list(MODELS) if options.all else list(MODELS)[:1])
        runs: dict[tuple[str, int], str] = {}
        for name in chosen:
            for seed in options.seeds:
                own = [f"training.device={device}", f"training.minutes={options.minutes}", f"training.seed={seed}"]
                run = out / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
                runs[name, seed] = str(run)
                if not (run / "summary.json").exists():
                    overrides = [*SETTINGS, *MODELS[name], *own, *options.set]
                    begin(setup("seq2seq", given=given, overrides=overrides), run, progress(sys.stderr))
                summary = json.loads((run / "summary.json").read_text("utf-8"))
                valid, test = (summary[part]["scores"] for part in ("best", "test"))
                answers = list(recurra.load(run, device=device).predict_file(given["test"], [], detail=True))
                shown = [
                    100 * each for each in (valid["symbol_error_rate"], test["symbol_error_rate"], test["exact_match"])
                ]
                places = np.mean([answer.alignment.shape[1] for answer in answers if answer.alignment is not None])
                print(
                    f"{name:24}{seed:5}{places:7.0f}{shown[0]:11.2f}{shown[1]:10.2f}{shown[2]:11.1f}"
                    f"{100 * forward(answers):9.1f}{summary['epochs']:8}{summary['seconds']:9.0f}",
                    flush=True,
                )
                if options.picture is not None and (name, seed) == next(iter(runs)):
                    options.picture.write_text(picture(answers), "utf-8")
        by_search = [(name, seed) for name, seed in runs if "CTC" in name]
        if by_search:
            print(f"\n{'test SER of CTC':24}{'seed':>5}" + "".join(f"{name:>26}" for name in SEARCHES))
        for name, seed in by_search:
            rates = [error_rate(runs[name, seed], given["test"], how, device) for how in SEARCHES.values()]
            print(f"{name:24}{seed:5}" + "".join(f"{rate:26.2f}" for rate in rates), flush=True)
        for seed in options.seeds:
            if all((name, seed) in runs for name in TOGETHER):
                both = ",".join(runs[name, seed] for name in TOGETHER)
                print(f"\ntogether: {' and '.join(TOGETHER)}, seed {seed}: ", end="")
                print(f"test SER {error_rate(both, given['test'], {}, device):.2f}", flush=True)


if __name__ == "__main__":
    main()
