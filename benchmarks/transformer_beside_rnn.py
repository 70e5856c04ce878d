"""A Transformer beside cells: equally many parameters, equal time, the same data, tokens, search and scores.

    python benchmarks/transformer_beside_rnn.py --device cuda --out runs     # one after the other, then the table
    python benchmarks/transformer_beside_rnn.py --only ice.rnn --out runs    # one of them, to run several at once
    python benchmarks/transformer_beside_rnn.py --table --out runs           # the table of those in --out
    python benchmarks/transformer_beside_rnn.py --dry                        # how many parameters, and no training

Data are read from $RECURRA_DATA (../shared/data): Multi30k English to German (BLEU of its tokens, beam 5, test 2016),
Tiny Shakespeare by characters (nats per character in windows of 256 at a stride of 61, as nanoGPT draws them; it has no
test part) and letters to phonemes in three languages (word error rate in percent, beam 5). The recurrent networks are
those of translation.py (with projected_dot and R-Drop 2), language_models.py and pronunciation.py; the Transformers
have as many rows in W_1, feed_forward, as make their parameters equally many. Both train for --minutes, validation
among them, and their learning rates fall to zero in that time; the weights are those that did best on valid.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import language_models
import pronunciation
import translation
from recurra.runs import Setup, begin, resume, setup
from recurra.training.preparation import prepared
from recurra.training.progress import progress

PAIRS = ["model.encoder=transformer", "model.decoder=transformer"]


class Problem(NamedTuple):
    """What is learned, by which settings, and how it is scored."""

    task: str
    files: dict[str, str]
    rnn: list[str]
    transformer: list[str]
    sides: tuple[str, ...]  # sections that have a feed_forward
    score: str
    percent: bool = False


def g2p(language: str) -> Problem:
    """Letters to phonemes: small models, and for the Transformer large batches (Wu et al. 2021)."""
    transformer = [
        *(*pronunciation.LETTERS, *PAIRS, "model.layers=4", "model.hidden=128", "model.embedding=128"),
        *("model.dropout=0.3", "training.batch_size=400", "training.validate=200"),
        *("training.learning_rate=1.5e-3", "training.warmup=1000", "training.r_drop=1"),
        'training.optimizer={name="adam", betas=[0.9, 0.98]}',
    ]
    files, sides = pronunciation.files(language), ("encoder", "decoder")
    return Problem("seq2seq", files, pronunciation.SETTINGS, transformer, sides, "word_error_rate", percent=True)


PROBLEMS = {
    "multi30k": Problem(
        "seq2seq",
        {
            "train": translation.files("de", "train"),
            "valid": translation.files("de", "val"),
            "test": translation.files("de", "test_2016_flickr"),
        },
        [
            *(*translation.COMMON, *translation.SETTINGS["attention"]),
            *("model.attention=projected_dot", "training.r_drop=2", "training.validate=242"),
        ],
        [
            *(*translation.COMMON, *PAIRS, "model.layers=4", "model.hidden=384", "model.embedding=384"),
            *("model.encoder.heads=6", "model.decoder.heads=6", "model.dropout=0.3", "training.r_drop=2"),
            *("training.learning_rate=7e-4", "training.warmup=1000", "training.validate=242"),
            'training.optimizer={name="adam", betas=[0.9, 0.98]}',
        ],
        ("encoder", "decoder"),
        "bleu",
    ),
    "tinyshakespeare": Problem(
        "language_model",
        {part: str(language_models.SHARED / file) for part, file in language_models.FILES["shakespeare"].items()},
        [*language_models.SETTINGS["shakespeare"], *language_models.WINDOWED, "training.validate=500"],
        [
            *(*language_models.WINDOWED, "data.text.tokens=characters", "model.decoder=transformer", "model.layers=6"),
            *("model.hidden=384", "model.embedding=384", "model.decoder.heads=6", "model.decoder.context=256"),
            *("model.token_dropout=0.2", "model.dropout=0.4", "model.output_dropout=0.2"),
            *("reading.steps=256", "reading.vary_steps=false", "reading.carry=0", "training.batch_size=64"),
            *("training.learning_rate=1e-3", "training.warmup=500", "training.validate=500", "training.clip=1.0"),
            'training.optimizer={name="adamw", weight_decay=0.1, betas=[0.9, 0.99]}',
            'training.average={name="ema", decay=0.998}',
        ],
        ("decoder",),
        "nll",
    ),
    **{language: g2p(language) for language in ("ice", "hun", "dut")},
}

RUNS = [f"{name}.{kind}" for name in PROBLEMS for kind in ("rnn", "transformer")]
HEAD = (
    f"{'data':18}{'model':14}{'M par.':>8}{'minutes':>9}{'epochs':>8}{'updates':>9}{'a second':>10}{'':4}{'score':17}"
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", nargs="+", choices=RUNS, metavar="RUN", help=f"some of {', '.join(RUNS)}")
    arguments.add_argument("--minutes", type=float, default=5.0, help="that each is trained for")
    arguments.add_argument("--out", type=Path, help="keep the runs in this folder; one that is there is gone on with")
    arguments.add_argument("--device", default="auto", help="cpu or cuda (cuda where there is one)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--set", action="append", default=[], help="another setting, for all that are trained")
    arguments.add_argument("--dry", action="store_true", help="print how many parameters they have, and end")
    arguments.add_argument("--table", action="store_true", help="train nothing: the table of the runs in --out")
    options = arguments.parse_args()
    names = options.only or RUNS
    if options.dry:
        for name in dict.fromkeys(name.partition(".")[0] for name in names):
            compare_sizes(name)
        return
    with tempfile.TemporaryDirectory() as private:
        home = options.out or Path(private)
        for name in [] if options.table else names:
            train(name, home / name, options)
        tell([home / name for name in names if (home / name / "summary.json").exists()])


def train(name: str, run: Path, options: argparse.Namespace) -> None:
    """Make the run, or go on with it; one that is finished stays."""
    if (run / "summary.json").exists():
        return
    if (run / "config.toml").exists():
        resume(run, progress(sys.stderr))
        return
    which, _, kind = name.partition(".")
    own = [
        *("training.steps=none", "training.epochs=none", f"training.minutes={options.minutes}"),
        *(f"training.device={options.device}", f"training.seed={options.seed}", "training.deterministic=false"),
    ]
    if which == "tinyshakespeare" and options.device != "cpu":
        own.append("training.precision=bfloat16")
    begin(made(which, kind, [*own, *options.set]), run, progress(sys.stderr))


def made(which: str, kind: str, own: list[str]) -> Setup:
    """The settings of a model; a Transformer's with as many parameters as the cells have."""
    problem = PROBLEMS[which]
    if kind == "rnn":
        return setup(problem.task, given=problem.files, overrides=[*problem.rnn, *own])
    inner = inner_size(problem)
    sizes = [f"model.{side}.feed_forward={inner}" for side in problem.sides]
    return setup(problem.task, given=problem.files, overrides=[*problem.transformer, *sizes, *own])


def inner_size(problem: Problem) -> int:
    """The feed_forward, a multiple of 8, with which the Transformer has about as many parameters as the cells.

    Their number is a + b · feed_forward, and two of them give a and b.
    """
    wanted = parameters(problem, problem.rnn)
    few, many = (
        parameters(problem, [*problem.transformer, *(f"model.{side}.feed_forward={inner}" for side in problem.sides)])
        for inner in (8, 16)
    )
    inner = 8 * round(1 + (wanted - few) / (many - few))
    if inner < 8:
        sys.exit(f"a Transformer has {few:,} parameters without W_1, but the cells have {wanted:,}: make it narrower.")
    return inner


def parameters(problem: Problem, settings: list[str]) -> int:
    """How many numbers are learned."""
    kind, found, _ = setup(problem.task, given=problem.files, overrides=settings)
    task = prepared(kind, found, lambda _: None).task
    return sum(parameter.numel() for parameter in task.build().parameters())


def compare_sizes(which: str) -> None:
    """One line: the parameters of both and their ratio."""
    problem = PROBLEMS[which]
    inner = inner_size(problem)
    sizes = [f"model.{side}.feed_forward={inner}" for side in problem.sides]
    counts = [parameters(problem, each) for each in (problem.rnn, [*problem.transformer, *sizes])]
    print(
        f"{which:18}rnn {counts[0]:>12,}   transformer {counts[1]:>12,} (feed_forward {inner})   "
        f"ratio {counts[1] / counts[0]:.4f}",
        flush=True,
    )


def tell(runs: list[Path]) -> None:
    """The table of finished runs."""
    print(f"{HEAD}{'valid':>8}{'test':>8}")
    languages: dict[str, list[list[float]]] = {"rnn": [], "transformer": []}
    for run in runs:
        which, _, kind = run.name.partition(".")
        problem, summary = PROBLEMS[which], json.loads((run / "summary.json").read_text("utf-8"))
        found = [summary[part]["scores"][problem.score] for part in ("best", "test") if part in summary]
        scores = [100 * score for score in found] if problem.percent else found
        if problem.percent:
            languages[kind].append(scores)
        label = {"bleu": "BLEU", "nll": "nats a character", "word_error_rate": "word error rate"}[problem.score]
        seconds, steps = summary["seconds"], summary["steps"]
        print(
            f"{which:18}{kind:14}{summary['parameters'] / 1e6:8.2f}{seconds / 60:9.2f}{summary['epochs']:8,}"
            f"{steps:9,}{steps / seconds:10.1f}{'':4}{label:17}{numbers(problem, scores)}"
        )
    for kind, each in languages.items():
        if len(each) > 1:
            means = [sum(column) / len(each) for column in zip(*each, strict=True)]
            print(f"{f'mean of {len(each)}':18}{kind:14}{'':48}{'word error rate':17}{numbers(g2p('ice'), means)}")


def numbers(problem: Problem, scores: list[float]) -> str:
    cells = [f"{score:8.4f}" if problem.score == "nll" else f"{score:8.2f}" for score in scores]
    return "".join(cells) + ("" if len(cells) > 1 else f"{'-':>8}")


if __name__ == "__main__":
    main()
