"""Train one small run per task and keep it, with its answers, as test data for later versions.

    python tests/old_runs/make.py [TASK …]

It writes tests/old_runs/VERSION/TASK/, VERSION being that of the recurra on Python's path, with

    data/           the files the run was trained on; the run's config.toml names them relative to TASK/
    run/            the run folder, less what is only for people to look at
    expected.json   what this version answered: `predict --json`, `evaluate --json`, and where a resumed run arrived

`tests/test_old_runs.py` checks that the current code still gives these answers. Run this script once for each released
version, from a clean checkout of it, and commit the result; never make the runs of an old version again. Everything
goes through the command line, so that the script also works where the Python interface has changed.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import recurra

HERE = Path(__file__).parent

STEPS, MORE = 40, 4
"""Updates of a run, and those that resuming adds to it."""

SMALL = [
    *("training.device=cpu", "training.threads=1", f"training.steps={STEPS}", "training.validate=20"),
    *("training.warmup=0", "training.schedule=constant", "data.cache=false"),
]

SETTINGS: dict[str, list[str]] = {
    "tagging": [
        *("model.hidden=8", "model.embedding=8", "model.head=crf", "training.batch_tokens=60", "model.dropout=0.1"),
        *("model.characters.hidden=4", "model.characters.embedding=4", "data.min_count=1"),
    ],
    "classification": [
        *("model.encoder=rnn", "model.hidden=8", "model.embedding=6", "training.batch_size=8", "model.dropout=0.1"),
        *("model.characters.hidden=4", "model.characters.embedding=4"),
    ],
    "language_model": [
        *("model.hidden=12", "model.embedding=8", "reading.steps=12", "training.batch_size=4", "model.dropout=0.1"),
        *("training.learning_rate=0.01",),
    ],
    "forecasting": [
        *("model.hidden=8", "data.window=16", "decoding.horizon=4", "evaluation.season=8", "model.dropout=0.1"),
        *("training.learning_rate=0.01",),
    ],
    "vec2seq": [
        *("model.hidden=12", "model.embedding=8", "model.dropout=0.1", "training.batch_size=8"),
        *("training.learning_rate=0.02", "training.average=none", "decoding.max_length=12"),
    ],
    "question_answering": [
        *("model.hidden=8", "model.hops=2", "model.memories=3", "training.batch_size=8", "training.learning_rate=0.02"),
        *("model.linear_start=20",),
    ],
    "seq2seq": [
        *("model.hidden=12", "model.embedding=8", "model.dropout=0.1", "model.attention=bilinear"),
        *("data.source.tokens=characters", "data.target.tokens=symbols", "training.batch_size=8"),
        *("training.learning_rate=0.02", "training.average=none", "decoding.max_length=12"),
    ],
}
"""What makes each run small. The averages of the first four are kept, so that resuming has them to restore too."""

WORDS = [
    *(("cat", "K AE T"), ("dog", "D AO G"), ("house", "HH AW S"), ("a", "AH"), ("tree", "T R IY")),
    *(("mouse", "M AW S"), ("coat", "K OW T"), ("god", "G AA D"), ("goat", "G OW T"), ("see", "S IY")),
]

COLOURS = [
    *(("red", 255, 0, 0), ("green", 0, 255, 0), ("blue", 0, 0, 255), ("white", 255, 255, 255), ("ink", 0, 0, 0)),
    *(("mint", 150, 255, 180), ("rust", 180, 60, 10), ("navy", 0, 0, 120), ("rose", 250, 90, 120)),
]


def tagged(draw: random.Random, sentences: int) -> Iterator[str]:
    """Two-column CoNLL in which 'run' is a verb after 'they' and a noun after 'the'."""
    for _ in range(sentences):
        for _ in range(draw.randint(1, 3)):
            first = draw.choice(["they", "the"])
            word = draw.choice(["run", "walk", "Talk", f"zig{draw.randint(0, 9)}"])
            yield f"{first}\t{'PRON' if first == 'they' else 'DET'}"
            yield f"{word}\t{'VERB' if first == 'they' else 'NOUN'}"
        yield ""


def labelled(draw: random.Random, rows: int) -> Iterator[str]:
    yield "text\tlabel"
    for _ in range(rows):
        praise = draw.random() < 0.5
        words = [draw.choice(["a", "so", "this"]), draw.choice(["good", "fine"] if praise else ["bad", "poor"]), "film"]
        yield f"{' '.join(words)}\t{'praise' if praise else 'blame'}"


def text(draw: random.Random, lines: int) -> Iterator[str]:
    for _ in range(lines):
        yield " ".join(draw.choice(["one two three", "two three", "three one"]) for _ in range(draw.randint(1, 3)))


def stories(draw: random.Random, questions: int) -> Iterator[str]:
    """Stories of bAbI's form: someone moves, and is asked for."""
    for number in range(questions):
        if number % 2 == 0:
            line = 0
        for _ in range(2):
            line += 1
            person, place = draw.choice(["Ann", "Bob"]), draw.choice(["garden", "kitchen"])
            yield f"{line} {person} went to the {place}."
        line += 1
        yield f"{line} Where is {person}?\t{place}\t{line - 1}"


def waves(draw: random.Random, days: int) -> Iterator[str]:
    yield "time,sales,rain"
    for day in range(days):
        turn = 2 * math.pi * day / 8
        yield f"{day},{5 + 2 * math.sin(turn) + draw.gauss(0, 0.2):.3f},{1 + math.cos(turn) + draw.gauss(0, 0.1):.3f}"


def write_data(task: str, folder: Path) -> tuple[str, str, str]:
    """Files to train on, to validate on and to predict; what no text names is predicted for the validation data."""
    folder.mkdir(parents=True)
    draw = random.Random(7)
    inputs: list[str] = []
    if task == "tagging":
        name, train, valid = "conll", tagged(draw, 30), tagged(draw, 12)
        inputs = ["they run the walk", "the zig77 .", "Talk"]
    elif task == "classification":
        name, train, valid = "tsv", labelled(draw, 30), labelled(draw, 12)
        inputs = ["a good film", "so poor", "film unheard of"]
    elif task == "language_model":
        name, train, valid = "txt", text(draw, 30), text(draw, 12)
        inputs = ["one two three", "three two", "four"]
    elif task == "question_answering":
        name, train, valid = "txt", stories(draw, 30), stories(draw, 12)
        inputs = ["Ann went to the garden. Bob went to the kitchen.\tWhere is Bob?", "It rained.\tWhere is Ann?"]
    elif task == "forecasting":
        name, train, valid = "csv", waves(draw, 64), waves(draw, 40)
    elif task == "vec2seq":
        name, train, valid = "tsv", tabbed(COLOURS), tabbed(COLOURS[3:])
    else:
        name, train, valid = "tsv", tabbed(WORDS), tabbed(WORDS[3:])
        inputs = ["cat", "goatee", "x"]
    files = []
    for part, lines in (("train", train), ("valid", valid)):
        path = folder / f"{part}.{name}"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        files.append(f"{folder.name}/{path.name}")
    if not inputs:
        return files[0], files[1], files[1]
    (folder / "inputs.txt").write_text("".join(f"{line}\n" for line in inputs), "utf-8")
    return files[0], files[1], f"{folder.name}/inputs.txt"


def tabbed(rows: Sequence[Sequence[object]]) -> Iterator[str]:
    return ("\t".join(map(str, row)) for row in rows)


def command(folder: Path, *arguments: str) -> str:
    """What a command of recurra prints, run in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "recurra", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def scores(folder: Path, run: str, data: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(command(folder, "evaluate", run, data, "--json"))
    return {name: value for name, value in found.items() if name != "seconds"}


def sizes_of_weights(run: Path) -> dict[str, float]:
    """The root mean square of each weight that a run keeps."""
    from safetensors.torch import load_file

    tensors = load_file(run / "model.safetensors")
    return {name: float(tensor.double().square().mean().sqrt()) for name, tensor in sorted(tensors.items())}


def make(task: str) -> None:
    folder = HERE / ".".join(recurra.__version__.split(".")[:2]) / task
    shutil.rmtree(folder, ignore_errors=True)
    train, valid, inputs = write_data(task, folder / "data")
    changes = [part for each in [*SMALL, *SETTINGS[task]] for part in ("--set", each)]
    command(folder, "train", task, "--train", train, "--valid", valid, "--out", "run", "--quiet", *changes)
    told = command(folder, "predict", "run", inputs, "--json")
    expected: dict[str, Any] = {
        "version": recurra.__version__,
        "task": task,
        "valid": valid,
        "inputs": inputs,
        "answers": [json.loads(line) for line in told.splitlines()],
        "scores": scores(folder, "run", valid),
    }
    shutil.copytree(folder / "run", folder / "resumed")
    command(folder, "train", "resumed", "--resume", "--quiet", "--set", f"training.steps={STEPS + MORE}")
    expected["resumed"] = {
        "from": STEPS,
        "to": STEPS + MORE,
        "scores": scores(folder, "resumed", valid),
        "weights": sizes_of_weights(folder / "resumed"),
    }
    shutil.rmtree(folder / "resumed")
    for name in ("report.html", "card.md"):
        (folder / "run" / name).unlink(missing_ok=True)
    command(folder, "check", "run", "--accept")  # the manifest, without these two
    shutil.rmtree(folder / "run" / "tensorboard", ignore_errors=True)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", "utf-8")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder.relative_to(HERE)}: {size / 1000:.0f} kB", file=sys.stderr)


if __name__ == "__main__":
    for each in sys.argv[1:] or SETTINGS:
        make(each)
