"""Language models on real text: Tiny Shakespeare by characters, WikiText-2 by words.

    python benchmarks/language_models.py shakespeare --device cuda
    python benchmarks/language_models.py quick --device cuda      # Tiny Shakespeare again: seconds to nanoGPT's figure
    python benchmarks/language_models.py wikitext2 --device cuda --out runs/wikitext2     # 25 minutes; again: goes on

Data are read from --data ($RECURRA_DATA, ../shared/data). A run that is in --out already is gone on with. Printed are
the scores of the weights that validation chose, on validation (Tiny Shakespeare has no test part) with the state
carried through the whole text and, for characters, in windows of 256 from an empty state at a stride of 61, as nanoGPT
draws its windows at random; and the perplexity on validation over time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import recurra
from recurra.runs import begin, resume, setup
from recurra.training.progress import progress

SHARED = Path(os.environ.get("RECURRA_DATA", Path(__file__).parents[2] / "shared" / "data"))

FILES = {
    "shakespeare": {part: f"tinyshakespeare/{part}.txt" for part in ("train", "valid")},
    "quick": {part: f"tinyshakespeare/{part}.txt" for part in ("train", "valid")},
    "wikitext2": {part: f"wikitext2/{part}.txt.gz" for part in ("train", "valid", "test")},
}

SETTINGS = {
    "shakespeare": [
        *("data.text.tokens=characters", "model.embedding=128", "model.hidden=[1024, 1024]"),
        *("model.token_dropout=0.2", "model.dropout=0.4", "model.weight_drop=0.2", "model.output_dropout=0.5"),
        *("reading.steps=256", "reading.vary_steps=false", "reading.carry=0.5"),
        *("training.steps=4000", "training.batch_size=64", "training.learning_rate=2e-3", "training.validate=200"),
        'training.optimizer={name="adamw", weight_decay=0.1, betas=[0.9, 0.99]}',
        *("training.clip=1.0", 'training.average={name="ema", decay=0.998}'),
    ],
    "quick": [
        *("data.text.tokens=characters", "model.embedding=128", "model.hidden=[1024, 1024]"),
        *("model.token_dropout=0.1", "model.dropout=0.2", "model.weight_drop=0", "model.output_dropout=0.2"),
        *("reading.steps=64", "reading.vary_steps=false", "reading.carry=0.5"),
        *("training.steps=700", "training.batch_size=256", "training.learning_rate=3e-3", "training.validate=25"),
        'training.optimizer={name="adamw", weight_decay=0.1, betas=[0.9, 0.99]}',
        "training.clip=1.0",
    ],
    "wikitext2": [
        *("data.text.tokens=symbols", "model.embedding=400", "model.hidden=[1150, 1150, 400]", "model.tied=true"),
        *("model.token_dropout=0", "model.embedding_dropout=0.1", "model.input_dropout=0.6", "model.dropout=0.25"),
        *("model.weight_drop=0.5", "model.output_dropout=0.4"),
        *("model.activation_regularization=2", "model.temporal_regularization=1"),
        *("reading.steps=70", "training.minutes=25", "training.batch_size=80", "training.validate=1000"),
        'training.optimizer={name="adamw", weight_decay=0.05, betas=[0.8, 0.99]}',
        *("training.learning_rate=3e-3", "training.clip=0.5", 'training.average={name="ema", decay=0.999}'),
    ],
}

WINDOWED = ["evaluation.manner=windowed", "evaluation.window=256", "evaluation.stride=61"]
ONE_STREAM = ["evaluation.manner=carried", "evaluation.streams=1"]
MINUTES = (5, 10, 25)
NANOGPT = 1.4697
"""nats a character on validation, nanoGPT's figure for its small Transformer, which trained for 3 minutes on an A100"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("which", choices=list(SETTINGS))
    arguments.add_argument("--data", type=Path, default=SHARED)
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--out", type=Path, help="keep the run in this folder")
    arguments.add_argument("--set", action="append", default=[], help="another setting")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as private:
        run = options.out or Path(private) / "run"
        shown = progress(sys.stderr)
        if (run / "config.toml").exists() and not (run / "summary.json").exists():
            resume(run, shown)
        elif not (run / "summary.json").exists():
            given = {part: str(options.data / file) for part, file in FILES[options.which].items()}
            extra = [f"training.device={options.device}", "training.deterministic=false", *options.set]
            if options.device != "cpu":
                extra.insert(0, "training.precision=bfloat16")
            begin(setup("language_model", given=given, overrides=[*SETTINGS[options.which], *extra]), run, shown)
        tell(options.which, run, options.data, options.device)


def tell(which: str, run: Path, data: Path, device: str) -> None:
    """The scores of a finished run."""
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    seconds, steps = summary["seconds"], summary["steps"]
    print(
        f"{which}: {summary['description']}; {summary['parameters']:,} parameters; {steps:,} steps in {seconds:.0f} s"
    )
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    valid = [(line["seconds"] / 60, line["scores"]["perplexity"]) for line in lines if line["kind"] == "valid"]
    for minutes in MINUTES if which == "wikitext2" else ():
        reached = [score for at, score in valid if at <= minutes + 0.5]
        print(f"best perplexity on validation within {minutes} minutes: {min(reached):.2f}" if reached else "-")
    if which == "quick":
        losses = [(line["seconds"], line["step"], line["loss"]) for line in lines if line["kind"] == "valid"]
        seconds, step, loss = next(each for each in losses if each[2] <= NANOGPT)
        print(f"{NANOGPT} nats were reached after {seconds:.1f} s and {step} steps ({loss:.4f}), validations included")
    for part, file in FILES[which].items():
        if part == "train":
            continue
        for manner in (ONE_STREAM, WINDOWED) if which != "wikitext2" else (ONE_STREAM,):
            model = recurra.load(run, device="cuda" if device == "auto" else device)
            found = model.with_settings(manner).evaluate(str(data / file)).values
            shown = ", ".join(f"{name} {found[name]:.4f}" for name in ("nll", "perplexity", "bits_per_character"))
            print(f"{part}, {manner[0].partition('=')[2]}: {shown} over {found['count']:,.0f} tokens")


if __name__ == "__main__":
    main()
